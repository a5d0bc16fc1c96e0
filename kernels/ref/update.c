/* One step of SGD with momentum, and the moving average of the parameters. Each element is computed in double
 * and rounded once; sums as in combine.c. */
#include "kernels/ref/operation.h"

enum { BLOCK = 1024 };

/* One element; returns how far it moved. */
static double update_element(const struct update_args *a, size_t at) {
    real *w = (real *)a->parameters.data + at;
    double m = a->gradient_scale * ((const real *)a->average.data)[at];
    if (a->velocity.data) {
        real *velocity = (real *)a->velocity.data + at;
        m += a->momentum * *velocity;
        *velocity = (real)m;
    }
    real before = *w;
    *w = (real)(before - a->learning_rate * m);
    if (a->shadow.data) {
        real *shadow = (real *)a->shadow.data + at;
        *shadow = (real)(*shadow - (1 - a->ema_decay) * ((double)*shadow - *w));
    }
    return (double)*w - before;
}

static void update_block(const struct update_args *a, size_t first, size_t count, double *parameter_norm2,
                         double *update_norm2) {
    double sum_w = 0, sum_change = 0;
    for (size_t at = first; at < first + count; at++) {
        double change = update_element(a, at);
        double w = ((const real *)a->parameters.data)[at];
        sum_change += change * change;
        sum_w += w * w;
    }
    *parameter_norm2 += sum_w;
    *update_norm2 += sum_change;
}

enum status REF(update)(struct device *device, const struct update_args *a) {
    (void)device;
    size_t bytes = a->parameters.bytes;
    STATUS_TRY(REF(need_segments)(a->segments, a->segment_count, bytes / sizeof(real)));
    STATUS_TRY(REF(need)(a->average, bytes, "the averaged gradient"));
    if (a->velocity.data)
        STATUS_TRY(REF(need)(a->velocity, bytes, "the momentum"));
    if (a->shadow.data)
        STATUS_TRY(REF(need)(a->shadow, bytes, "the moving average"));
    for (int s = 0; s < a->segment_count; s++) {
        const struct segment *segment = &a->segments[s];
        double parameter_norm2 = 0, update_norm2 = 0;
        for (size_t done = 0; done < segment->count; done += BLOCK) {
            size_t left = segment->count - done;
            update_block(a, segment->offset + done, left < BLOCK ? left : BLOCK, &parameter_norm2,
                         &update_norm2);
        }
        a->parameter_norms2[s] = parameter_norm2;
        a->update_norms2[s] = update_norm2;
    }
    return STATUS_OK;
}
