/* An operation that oneDNN computes in parts of its images, one for each thread of the team: the calls for
 * every size that a part can have, and what a part works on. */
#ifndef TOWERSCOPE_KERNELS_CPU_ONEDNN_PARTS_H
#define TOWERSCOPE_KERNELS_CPU_ONEDNN_PARTS_H

#include "kernels/cpu/onednn.h"

/* For parts of `images` images; those that the operation has no use for are not made. */
struct onednn_part_calls {
    int images;
    struct onednn_call forward, backward_data, backward_weights, gradient;
};

struct onednn_parts {
    int sizes;
    struct onednn_part_calls *calls; /* [sizes] */
};

/* Make the calls for each size into which teams of the device's pool may split plan->images, by make(plan,
 * calls) with calls->images given. Names plan's implementation after the first. Free it, after a failure too.
 */
enum status onednn_parts_plan(struct plan *plan, struct onednn_parts *out,
                              enum status (*make)(const struct plan *plan, struct onednn_part_calls *calls));
void onednn_parts_free(struct onednn_parts *parts);

/* Bytes of the largest scratchpad, aligned. */
size_t onednn_parts_scratchpad(const struct onednn_parts *parts);

/* The most parts at once, for what a plan says of its scratch. */
int onednn_parts_most(const struct plan *plan);

/* One pass over a plan's images. */
struct onednn_job {
    const struct plan *plan;
    const struct plan_args *args;
    const struct onednn_parts *parts;
    size_t part_bytes; /* of scratch */
    int count;         /* parts */
};
struct onednn_job onednn_job_of(const struct stream *stream, const struct plan *plan,
                                const struct plan_args *args, const struct onednn_parts *parts,
                                size_t part_bytes);

/* What a part works on; a span that args lacks is NULL. */
struct onednn_share {
    const struct onednn_part_calls *calls;
    struct part images;
    float *x, *y, *dx, *dy;
    char *scratch;
};
struct onednn_share onednn_share_of(const struct onednn_job *job, int part);

#endif
