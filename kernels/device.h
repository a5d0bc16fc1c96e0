/* Devices: one small table of functions. Plan an operation once, run it many times.
 *
 * `ref` (plain C, built in float and in double) is the oracle; `cpu` is oneDNN and our own vector kernels;
 * `cuda` is a plugin. The elements of a device's buffers are its `real`: float everywhere but in ref64. Only
 * activations and their gradients (x, y, dx, dy and what a plan saves) may be narrower: bfloat16 on a GPU of
 * precision bf16 (device_info.activation_bytes). Parameters, their gradients, losses and all sums are real.
 *
 * Streams: a stream is an order of execution. On the CPU work is done when the call returns, on the thread
 * that calls (the stream names a worker and the threads of its lanes); on an asynchronous device it is
 * queued, and poll() tells when it is done. Code that drives towers is the same for both: each() hands it a
 * stream per item, on the CPU from the workers of the device's pool, elsewhere in order on the calling
 * thread.
 *
 * Places: one open device may be a group of several GPUs, with memory of their own. Tower k, and worker k,
 * live at place k: on GPU k mod (number of GPUs). A shared buffer lies on every GPU, with the same content;
 * its address is that of the first one's. Calls that write to a shared buffer write to all of them; calls
 * that read one use the nearest. A piece of a buffer (address and bytes within it) is a span like any other.
 *
 * Asynchronous devices: what a call reads of the host it reads before it returns; what it gives to the host
 * (read(), the figures of combine() and update()) is there once poll() said STATUS_OK, not before, and its
 * place must last until poll() said something else than STATUS_BUSY. With marks the host can queue more
 * before that: what was queued before a mark is given to it when that mark is reached.
 *
 * Forward bits of an image never depend on the other images of the batch or on their number (2 or more); on a
 * GPU with `deterministic`, as far as cuDNN's kernels keep to it (kernels/cuda/conv.c).
 * Sums over images, towers and parameters are made in a fixed order: the same settings give the same bytes.
 */
#ifndef TOWERSCOPE_KERNELS_DEVICE_H
#define TOWERSCOPE_KERNELS_DEVICE_H

#include "kernels/op.h"

#define DEVICE_API       11 /* raised when this table changes; a plugin with another number is refused */
#define PLAN_MAX_OPS     8
#define DEVICE_GROUP_MAX 16   /* GPUs of one open device */
#define DEVICE_MARKS     2    /* open ones, at most */
#define PLACE_SHARED     (-1) /* of a buffer: on every GPU; else a tower's or worker's number */

struct device;
struct stream;
struct plan;

/* A piece of a buffer of a device. `bytes` counts; data is host memory only where device_info.host_memory. */
struct span {
    void *data;
    size_t bytes;
};

/* How a device is to be opened. Zeroed, but for count 1, is the default. */
struct device_options {
    int indices[DEVICE_GROUP_MAX]; /* which of its kind, each once: {0, 1} of "cuda:0,cuda:1" */
    int count;
    int threads;           /* CPU devices: 0 = one per processor in the affinity mask */
    const char *isa;       /* CPU devices: NULL: the best there is */
    const char *precision; /* GPUs: "f32", "tf32", "bf16" of matrix products; NULL: f32 */
    bool deterministic;    /* GPUs: only kernels that give the same bytes each time, sums in tower order */
    bool eager;            /* GPUs: no graphs, every kernel launched by itself */
    const char *kept; /* GPUs: a file for what was measured, so that the next run need not; read by open()
                         alone. NULL: nothing is kept */
};

struct device_info {
    char name[32];         /* "cpu", "ref", "cuda": the kind, and of a single one "cuda:0" */
    char description[128]; /* the processor or GPU, in words */
    int element_bytes;     /* sizeof(real): 4, or 8 for ref64 */
    int activation_bytes;  /* of an activation or its gradient: as a real, or 2: bfloat16 */
    int threads;           /* workers of a CPU device, else 0 */
    char isa[16];          /* "avx512", "avx2", "plain"; "" where it means nothing */
    char precision[8];     /* of matrix products: "f32" */
    bool host_memory;      /* spans are readable by the host */
    bool asynchronous;
    int count;              /* GPUs of the group; 1 */
    long long memory_bytes; /* of all of them; 0: unknown */
};

/* What is to be planned: operations that follow one another, the first of them reading the group's input. */
struct plan_request {
    const struct op *ops;
    int count;
    int images;          /* the plan runs exactly this many */
    bool training;       /* false: forward only, nothing is saved */
    bool input_gradient; /* false for the first layer: dx is not wanted */
    bool reaches_end;    /* the last of these operations gives the logits */
    const char *force;   /* name of an implementation, or NULL: the device chooses */
};

struct plan_info {
    int taken; /* operations from the front of the request that this plan does, at least 1 */
    char implementation[64];
    size_t saved_bytes;    /* written by forward, read by backward: one per plan and tower */
    size_t scratch_bytes;  /* free again after each call: one per worker, the largest wins */
    size_t prepared_bytes; /* made from the parameters by prepare(), shared by all towers; its content and
                              size depend on ops and implementation only, not on `images` */
    bool backward_reads_x; /* backward reads the group's input ... */
    bool backward_reads_y; /* ... or output: else those buffers may be reused after forward */
    bool gradients_later;  /* backward without grads makes dx alone, and leaves the rest to gradients() */
    bool real_output;      /* y is real though activations are narrower (only where the request reaches_end,
                              and all of it is taken) */
};

/* Memory of one group for one call. Unused spans are {NULL, 0}. params[i] and grads[i] belong to the i-th
 * taken operation ({NULL, 0} when it has no parameter). x and y, dx and dy never overlap. */
struct plan_args {
    struct span x, y;   /* [images][in], [images][out] */
    struct span dy, dx; /* backward; dx.data NULL when not wanted. dy may be destroyed by the call */
    struct span params[PLAN_MAX_OPS];
    struct span grads[PLAN_MAX_OPS]; /* backward writes (does not add to) the sum over the images */
    struct span saved, scratch, prepared;
};

/* Softmax cross-entropy of one tower. losses[i] = log(sum_c exp(logit_c - m)) + m - logit_label, m the
 * largest logit. probabilities may be NULL.
 * dlogits (NULL: not wanted) = (p - onehot) * scale, scale = 1/images. */
struct loss_args {
    int images, classes;
    struct span logits;    /* [images][classes], what the plans' y is */
    bool real_logits;      /* real_output of the plan that gave them */
    const int32_t *labels; /* host memory, 0 <= label < classes */
    double scale;
    struct span losses;        /* [images] real */
    struct span probabilities; /* [images][classes] real */
    struct span dlogits;       /* [images][classes] activations' type */
};

/* One parameter tensor inside the flat buffer of all parameters. */
struct segment {
    size_t offset, count; /* in elements */
    double weight_decay;  /* 0 for biases: the term is wd * sum(w^2) / 2, its gradient wd * w */
};

#define COMBINE_MAX_TOWERS 1024

/* Average of the towers' gradients, weighted, in tower order. A tower's gradient is that of its total loss:
 * G_k = gradients[k] + weight_decay * parameters, formed on the fly. average = sum_k weights[k] * G_k.
 * Towers with weight 0 are skipped (their buffers are not read). Sums are in double over fixed blocks, so
 * that the number of threads does not change them. (Several GPUs add their towers' sums up in float.)
 * parameters are read only where a segment decays. */
struct combine_args {
    int towers;
    const struct span *gradients; /* [towers] flat buffers of cross-entropy gradients */
    const double *weights; /* [towers] share of the step's images: they add up to 1 in the right average */
    struct span parameters;
    const struct segment *segments;
    int segment_count;
    bool want_dots;         /* fill dots[] */
    struct span average;    /* out: flat */
    double *norms2;         /* out [towers]: |G_k|^2 */
    double *dots;           /* out [towers]: G_k . average */
    double *segment_norms2; /* out [segment_count] or NULL: |average|^2 by tensor */
    double *average_norm2;  /* out */
};

/* One optimizer step over the flat buffers, in one pass:
 *   g = gradient_scale * average
 *   m = momentum * velocity + g (velocity NULL: m = g)
 *   w -= learning_rate * m
 *   shadow -= (1 - ema_decay) * (shadow - w) (shadow NULL: none) */
struct update_args {
    struct span parameters, average, velocity, shadow;
    const struct segment *segments;
    int segment_count;
    double learning_rate, momentum, gradient_scale, ema_decay;
    /* Asynchronous devices, where nobody has seen the average's norm yet: with clip_norm > 0 the scale is
     * further min(1, clip_norm / |average|), and with `guard` nothing is changed when |average| is not
     * finite, nor by any update with `guard` after that one, until there is one without. |average| is what
     * the last combine() found. Others ignore both: the caller knows the norm. */
    double clip_norm;
    bool guard;
    double
        *parameter_norms2; /* out [segment_count]: sum(w^2) after the update (the next step's decay terms) */
    double *update_norms2; /* out [segment_count]: |change of w|^2 */
};

/* What measure() finds out about values. */
enum measure {
    MEASURE_ZEROS,     /* how many are 0 */
    MEASURE_NON_FINITE /* index of the first one that is not finite; -1: all are */
};

/* Work that is queued again and again in the same way. */
#define REPEAT_KEYS 6
struct repeat {
    const void *key[REPEAT_KEYS]; /* what it is made of: equal keys, equal work. NULL: not used */
    const int32_t *labels;        /* [images] what the loss in it is called with; may change in content */
    int images;
    int part; /* of the work that the key stands for: another part, other work */
};
typedef enum status repeat_work(void *context, struct stream *);

struct device_ops {
    int api;
    const char *name;
    /* STATUS_NOT_FOUND: there is no device with an index that high. */
    enum status (*open)(const struct device_options *options, struct device **out);
    void (*close)(struct device *);
    enum status (*describe)(const struct device *, struct device_info *out);
    /* Name of the GPU at a place, as --devices names it ("cuda:1"); NULL: the device's own name. */
    void (*place_name)(const struct device *, int place, char *out, size_t size);
    enum status (*buffer_new)(struct device *, size_t bytes, int place, struct span *out); /* zeroed, 64-byte
                                                                                              aligned */
    void (*buffer_free)(struct device *, struct span buffer);
    /* Host float values to and from the device's real; asynchronous where the device is. A span of exactly
     * count times activation_bytes holds activations: rounded to the nearest on the way there. */
    enum status (*write)(struct device *, struct stream *, struct span to, const float *from, size_t count);
    enum status (*read)(struct device *, struct stream *, float *to, struct span from, size_t count);
    /* Device to device, raw bytes; `from` is shared, or of the same GPU as `to`. */
    enum status (*copy)(struct device *, struct stream *, struct span to, struct span from);
    enum status (*plan)(struct device *, const struct plan_request *, struct plan **out);
    const struct plan_info *(*plan_info)(const struct plan *);
    void (*plan_free)(struct plan *);
    enum status (*prepare)(struct stream *, const struct plan *,
                           const struct plan_args *); /* NULL: nothing to */
    /* Optional (NULL: one after the other): prepare() for several plans, with one launch on a GPU. */
    enum status (*prepare_all)(struct stream *, int count, const struct plan *const *plans,
                               const struct plan_args *args);
    enum status (*forward)(struct stream *, const struct plan *, const struct plan_args *);
    enum status (*backward)(struct stream *, const struct plan *, const struct plan_args *);
    enum status (*loss)(struct stream *, const struct loss_args *);
    /* Look at `count` values, of the type that write() has for them; *out is given to the host as read()
     * does. NULL where the host reads the memory itself. */
    enum status (*measure)(struct device *, struct stream *, struct span values, size_t count,
                           enum measure what, int64_t *out);
    /* Optional (NULL: call the work). Do the work, which queues operations of plans and the loss on the
     * stream and nothing else: the same ones for the same key, on the same memory. A GPU may keep a graph of
     * them. */
    enum status (*repeat)(struct stream *, const struct repeat *, repeat_work *work, void *context);
    /* Devices whose streams may have several threads, else NULL. lanes() calls work(context, lane, stream)
     * for lane 0 .. count - 1, lane l always on the same thread of the stream's team, with a stream of that
     * thread alone; it returns when all returned, the failure of the lowest lane is the result.
     * gradients(), of a plan that has gradients_later: a share of the gradients of its parameters, the
     * part-th of `parts`, over its images; with `add` it is added to what is there. Reads x, and dy as
     * backward left it. add(): to += from, as many elements as `to` has. */
    enum status (*lanes)(struct stream *, int count,
                         enum status (*work)(void *context, int lane, struct stream *), void *context);
    enum status (*gradients)(struct stream *, const struct plan *, const struct plan_args *, int part,
                             int parts, bool add);
    enum status (*add)(struct device *, struct stream *, struct span to, struct span from);
    /* These two use the whole device; on a synchronous one no stream of it may be at work. A call with the
     * shared parameters works on every GPU; one with a tower's own (see buffer_new) on that tower's. */
    enum status (*combine)(struct device *, const struct combine_args *);
    enum status (*update)(struct device *, const struct update_args *);
    /* Asynchronous devices, else NULL: combine(), then update() by its average, of shared parameters. */
    enum status (*combine_update)(struct device *, const struct combine_args *, const struct update_args *);
    /* Call work(context, item, stream) for item 0..count-1. At most `workers` (see device_workers) at once,
     * and worker w is never at two items. The same count gives the same streams. Returns when all
     * returned; the first failure in item order is the result (its text is carried over). */
    enum status (*each)(struct device *, int count,
                        enum status (*work)(void *context, int item, int worker, struct stream *),
                        void *context);
    int (*workers)(const struct device *, int count); /* how many items each() runs at once for this count */
    enum status (*poll)(struct device *);             /* STATUS_OK: all done, STATUS_BUSY, or a failure; never
                                                         waits. After STATUS_DEVICE only buffer_free(), read() of
                                                         shared buffers and close() are of use */
    /* Asynchronous devices, else NULL. mark() divides what is queued: up to DEVICE_MARKS may be open, and
     * while that many are nothing can be queued. reached() is poll() for what was queued before the oldest
     * one, which is gone when it said STATUS_OK. poll() closes all of them. */
    enum status (*mark)(struct device *);
    enum status (*reached)(struct device *);
    /* Asynchronous devices, else NULL: how long the stream (NULL: what all of a group's streams wait for, on
     * its first GPU) took for what was queued since its last lap(), of the same step; a figure as read()
     * gives them, NaN where it can't be had. seconds NULL: a lap begins. */
    enum status (*lap)(struct device *, struct stream *, double *seconds);
    /* Optional (NULL): what a kind of device has beside the rest, by name ("gpus" of cuda/host/telemetry.h,
     * "refusals" of cpu/cpu.h); NULL: not this one. */
    void *(*extra)(struct device *, const char *name);
};

/* What the rest of the program holds: a table and an open device. */
struct device_handle {
    const struct device_ops *ops;
    struct device *device;
};

#endif
