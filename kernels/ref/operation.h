/* What each operation's file gives to plan.c and device.c. */
#ifndef TOWERSCOPE_KERNELS_REF_OPERATION_H
#define TOWERSCOPE_KERNELS_REF_OPERATION_H

#include "kernels/device.h"
#include "kernels/ref/real.h"

/* One kind of operation. The spans of `args` are as large as plan.c promised when these are called; images
 * are computed one after the other, so that the bits of one never depend on the others. */
struct operation {
    bool backward_reads_x, backward_reads_y;
    size_t (*saved)(const struct op *op, int images); /* bytes; NULL: none */
    size_t (*scratch)(const struct op *op);           /* bytes; NULL: none */
    void (*forward)(const struct op *op, int images, const struct plan_args *args);
    void (*backward)(const struct op *op, int images, const struct plan_args *args);
};

extern const struct operation REF(conv), REF(bias), REF(relu), REF(max_pool), REF(lrn), REF(dense);

/* Entries of the device's table. */
enum status REF(plan)(struct device *device, const struct plan_request *request, struct plan **out);
const struct plan_info *REF(plan_info)(const struct plan *plan);
void REF(plan_free)(struct plan *plan);
enum status REF(forward)(struct stream *stream, const struct plan *plan, const struct plan_args *args);
enum status REF(backward)(struct stream *stream, const struct plan *plan, const struct plan_args *args);
enum status REF(loss)(struct stream *stream, const struct loss_args *args);
enum status REF(combine)(struct device *device, const struct combine_args *args);
enum status REF(update)(struct device *device, const struct update_args *args);
enum status REF(each)(struct device *device, int count,
                      enum status (*work)(void *context, int item, int worker, struct stream *stream),
                      void *context);
int REF(workers)(const struct device *device, int count);

struct device {
    int threads;
};

struct stream {
    int worker; /* nothing is queued here: a call does its work */
};

/* STATUS_INTERNAL, naming the span, when it holds less than `bytes` (and any are wanted). */
enum status REF(need)(struct span span, size_t bytes, const char *name);

/* STATUS_INTERNAL unless every segment lies inside `count` elements. */
enum status REF(need_segments)(const struct segment *segments, int segment_count, size_t count);

#endif
