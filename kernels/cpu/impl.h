/* What an implementation of operations on the CPU device is: how many of the operations offered it takes, how
 * much memory it wants, and its functions. plan.c tries those of implementations.c in their order and keeps
 * what each said. All data is float, NHWC; weights [kernel row][kernel column][in][out] and [in][out]
 * (tensor.h). */
#ifndef TOWERSCOPE_KERNELS_CPU_IMPL_H
#define TOWERSCOPE_KERNELS_CPU_IMPL_H

#include "kernels/cpu/isa.h"
#include "kernels/cpu/library.h"
#include "kernels/cpu/team.h"
#include "kernels/device.h"

struct onednn;

struct device {
    struct pool *pool;
    enum cpu_isa isa;
    struct library_threads library;
    struct onednn *onednn;
    char processor[80];
    double
        *partial; /* for combine and update: [blocks][values], grows when a larger model comes; optimizer.c */
    size_t partial_count;
};

struct cpu_implementation;

/* A plan of this device. plan.c makes it and fills everything up to `info`; the implementation fills the
 * sizes in `info` and its own `state`. */
struct plan {
    struct device *device;
    const struct cpu_implementation *implementation;
    struct op ops[PLAN_MAX_OPS]; /* those taken: info.taken of them */
    int images;
    bool training, input_gradient;
    struct plan_info info; /* taken and implementation are set before plan(); it may add detail to the name */
    void *state;
    char refusals[1024];
};

struct cpu_implementation {
    const char *name; /* what --force and doctor call it; implementations of one family may share it */

    /* How many operations from the front of the request it computes as one; 0: none, with the reason in words
     * in `reason` ("the kernel is 7x7; 5x5 and 3x3 are done"). The answer depends on the operations and the
     * device only, not on images, training or input_gradient: else evaluation would compute otherwise than
     * training and `prepared` could not be shared. */
    int (*takes)(const struct device *device, const struct plan_request *request, char *reason, size_t size);

    /* Fill plan->info: saved_bytes, scratch_bytes, prepared_bytes, backward_reads_x, backward_reads_y; of all
     * spans the data is 64-byte aligned. NULL: all zero and false. */
    enum status (*plan)(struct plan *plan);
    void (*free)(struct plan *plan); /* plan->state, also after a plan() that failed; NULL: nothing */

    /* As in device_ops. Sizes of x, y, params and grads have been checked; prepare NULL: nothing to do.
     * All but prepare, which may use the stream's team (team.h), run on the calling thread alone. Several
     * streams run the same plan at the same time with different args: what is written must be in args (saved,
     * scratch) or belong to the thread. Nothing is allocated. */
    enum status (*prepare)(struct stream *stream, const struct plan *plan, const struct plan_args *args);
    enum status (*forward)(struct stream *stream, const struct plan *plan, const struct plan_args *args);
    enum status (*backward)(struct stream *stream, const struct plan *plan, const struct plan_args *args);
    /* Where plan() set gradients_later. */
    enum status (*gradients)(struct stream *stream, const struct plan *plan, const struct plan_args *args,
                             int part, int parts, bool add);
};

/* The implementations for an instruction set, most preferred first, ended by NULL (implementations.c). */
const struct cpu_implementation *const *cpu_implementations(enum cpu_isa isa);

/* Bytes rounded up to the alignment of spans, to lay several things out in one. */
static inline size_t align64(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

/* plan.c: the entries of cpu_device_ops. */
enum status cpu_plan(struct device *device, const struct plan_request *request, struct plan **out);
const struct plan_info *cpu_plan_info(const struct plan *plan);
void cpu_plan_free(struct plan *plan);
const char *cpu_plan_refusals(const struct plan *plan);
enum status cpu_prepare(struct stream *stream, const struct plan *plan, const struct plan_args *args);
enum status cpu_forward(struct stream *stream, const struct plan *plan, const struct plan_args *args);
enum status cpu_backward(struct stream *stream, const struct plan *plan, const struct plan_args *args);
enum status cpu_gradients(struct stream *stream, const struct plan *plan, const struct plan_args *args,
                          int part, int parts, bool add);

/* lanes.c, loss.c, optimizer.c */
enum status cpu_lanes(struct stream *stream, int count,
                      enum status (*work)(void *context, int lane, struct stream *stream), void *context);
enum status cpu_add(struct device *device, struct stream *stream, struct span to, struct span from);
enum status cpu_loss(struct stream *stream, const struct loss_args *args);
enum status cpu_combine(struct device *device, const struct combine_args *args);
enum status cpu_update(struct device *device, const struct update_args *args);

#endif
