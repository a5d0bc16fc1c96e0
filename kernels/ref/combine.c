/* The average of the towers' gradients and what is measured on the way. Sums are made in double, over blocks
 * of BLOCK elements from each segment's start; the blocks' sums are added in order. */
#include "kernels/ref/operation.h"

#include <string.h>

enum { BLOCK = 1024 };

/* G_k[i] of one block: the tower's gradient and the decay's. */
static inline double total_gradient(const struct combine_args *a, int tower, size_t at, double decay) {
    return ((const real *)a->gradients[tower].data)[at] + decay * ((const real *)a->parameters.data)[at];
}

/* One block; returns |average|^2 of it. */
static double combine_block(const struct combine_args *a, size_t first, size_t count, double decay) {
    double sum[BLOCK] = {0}, average_norm2 = 0;
    for (int k = 0; k < a->towers; k++) {
        if (a->weights[k] == 0)
            continue;
        double norm2 = 0;
        for (size_t i = 0; i < count; i++) {
            double g = total_gradient(a, k, first + i, decay);
            sum[i] += a->weights[k] * g;
            norm2 += g * g;
        }
        a->norms2[k] += norm2;
    }
    real *average = (real *)a->average.data + first;
    for (size_t i = 0; i < count; i++) {
        average[i] = (real)sum[i];
        average_norm2 += (double)average[i] * average[i];
    }
    for (int k = 0; a->want_dots && k < a->towers; k++) {
        if (a->weights[k] == 0)
            continue;
        double dot = 0;
        for (size_t i = 0; i < count; i++)
            dot += total_gradient(a, k, first + i, decay) * average[i];
        a->dots[k] += dot;
    }
    return average_norm2;
}

static enum status check(const struct combine_args *a) {
    size_t bytes = a->average.bytes;
    if (a->towers < 1 || a->towers > COMBINE_MAX_TOWERS)
        return status_fail(STATUS_INTERNAL, "gradients of %d towers: expected 1 to %d", a->towers,
                           COMBINE_MAX_TOWERS);
    STATUS_TRY(REF(need_segments)(a->segments, a->segment_count, bytes / sizeof(real)));
    STATUS_TRY(REF(need)(a->parameters, bytes, "the parameters"));
    for (int k = 0; k < a->towers; k++)
        if (a->weights[k] != 0)
            STATUS_TRY(REF(need)(a->gradients[k], bytes, "a tower's gradient"));
    return STATUS_OK;
}

enum status REF(combine)(struct device *device, const struct combine_args *a) {
    (void)device;
    STATUS_TRY(check(a));
    memset(a->norms2, 0, (size_t)a->towers * sizeof *a->norms2);
    if (a->want_dots)
        memset(a->dots, 0, (size_t)a->towers * sizeof *a->dots);
    *a->average_norm2 = 0;
    for (int s = 0; s < a->segment_count; s++) {
        const struct segment *segment = &a->segments[s];
        double norm2 = 0;
        for (size_t done = 0; done < segment->count; done += BLOCK) {
            size_t left = segment->count - done;
            norm2 +=
                combine_block(a, segment->offset + done, left < BLOCK ? left : BLOCK, segment->weight_decay);
        }
        if (a->segment_norms2)
            a->segment_norms2[s] = norm2;
        *a->average_norm2 += norm2;
    }
    return STATUS_OK;
}
