/* oneDNN's C interface (2.6) behind one idea: a call, which is a primitive with memory objects for every
 * thread of the pool, made when an operation is planned, since several may run the same plan at once. oneDNN
 * keeps the code it generated for shapes seen before, so that planning again for them takes microseconds.
 * This header, library.c and the onednn_*.c are all that know oneDNN. */
#ifndef TOWERSCOPE_KERNELS_CPU_ONEDNN_H
#define TOWERSCOPE_KERNELS_CPU_ONEDNN_H

#include "kernels/cpu/impl.h"

#include <oneapi/dnnl/dnnl.h>

struct onednn {
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attributes; /* scratch memory is ours to give */
    int threads;
    dnnl_stream_t *streams; /* one per thread */
};

/* oneDNN's engine on the processor, with a stream for each thread of a pool of `threads`. */
enum status onednn_open(int threads, struct onednn **out);
void onednn_close(struct onednn *onednn); /* NULL is fine */

/* STATUS_OK, or the failure in words: "oneDNN: <what>: out of memory". */
enum status onednn_check(dnnl_status_t status, const char *what);
#define ONEDNN_TRY(expression) STATUS_TRY(onednn_check((expression), #expression))

enum { ONEDNN_MAX_ARGUMENTS = 6 };

struct onednn_call {
    const struct onednn *onednn;
    dnnl_primitive_t primitive; /* NULL: the call was not made */
    int count;
    int names[ONEDNN_MAX_ARGUMENTS]; /* DNNL_ARG_SRC ..., the scratchpad last when there is one */
    size_t bytes[ONEDNN_MAX_ARGUMENTS];
    dnnl_memory_t *memory; /* [threads][count] */
    void **set;            /* [threads][count] what each memory object points to */
    size_t scratchpad_bytes;
    char implementation[48];
};

/* Build a call from a description (as dnnl_primitive_desc_create takes it); `hint` is the forward one, or
 * NULL. The arguments are named in the order in which onednn_call_run() wants their data. The primitive
 * description is handed out through `keep` when that is not NULL (destroy it), else destroyed. */
enum status onednn_call_new(const struct onednn *onednn, const void *description, dnnl_primitive_desc_t hint,
                            const int *names, int count, struct onednn_call *out,
                            dnnl_primitive_desc_t *keep);

/* The same for bringing one layout into another: arguments DNNL_ARG_FROM, DNNL_ARG_TO. */
enum status onednn_reorder_new(const struct onednn *onednn, const dnnl_memory_desc_t *from,
                               const dnnl_memory_desc_t *to, struct onednn_call *out);
void onednn_call_free(struct onednn_call *call); /* one that was not made is fine */

/* Name a plan's implementation after the call that is its forward. */
void onednn_name(struct plan *plan, const struct onednn_call *forward);

/* data[i] belongs to names[i]; thread: that of the pool which calls. scratchpad: call->scratchpad_bytes,
 * 64-byte aligned. */
enum status onednn_call_run(const struct onednn_call *call, int thread, void *const *data, void *scratchpad);

/* A dense description of the given dimensions in oneDNN's order; format `any` leaves the layout to a
 * primitive. */
enum status onednn_layout(dnnl_memory_desc_t *out, int dimensions, const dnnl_dims_t sizes,
                          dnnl_format_tag_t format);
enum status onednn_images_layout(dnnl_memory_desc_t *out, int images, struct shape shape); /* NHWC */

/* A window's numbers as oneDNN takes them. */
struct onednn_window {
    dnnl_dims_t strides, kernel, before, after;
};
struct onednn_window onednn_window_of(const struct op_window *window);

#endif
