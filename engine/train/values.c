/* Values of device buffers that somebody wants to look at. */
#include "engine/train/internal.h"

#include <math.h>

struct fetch {
    const struct trainer *t;
    struct span from;
    float *to;
    size_t count;
};

static enum status fetch_item(void *context, int item, int worker, struct stream *stream) {
    (void)item;
    (void)worker;
    const struct fetch *f = context;
    const struct device_handle device = f->t->options.device;
    return device.ops->read(device.device, stream, f->to, f->from, f->count);
}

static struct span part(const struct trainer *t, struct span span, size_t first, size_t count) {
    size_t element = (size_t)t->info.element_bytes;
    return (struct span){(char *)span.data + first * element, count * element};
}

enum status trainer_fetch(struct trainer *t, struct span span, size_t first, size_t count, float *out) {
    struct fetch f = {t, part(t, span, first, count), out, count};
    STATUS_TRY(t->options.device.ops->each(t->options.device.device, 1, fetch_item, &f));
    return trainer_wait(t);
}

static int64_t measure_here(const struct trainer *t, struct span values, size_t count, enum measure what) {
    int64_t zeros = 0;
    for (size_t i = 0; i < count; i++) {
        double value = t->info.element_bytes == 8 ? ((const double *)values.data)[i]
                                                  : (double)((const float *)values.data)[i];
        if (what == MEASURE_NON_FINITE && !isfinite(value))
            return (int64_t)i;
        zeros += value == 0;
    }
    return what == MEASURE_ZEROS ? zeros : -1;
}

enum status trainer_measure(struct trainer *t, struct stream *stream, struct span values, size_t count,
                            enum measure what, int64_t *out) {
    const struct device_handle device = t->options.device;
    if (!t->info.host_memory)
        return device.ops->measure(device.device, stream, values, count, what, out);
    *out = measure_here(t, values, count, what);
    return STATUS_OK;
}

struct look {
    struct trainer *t;
    struct span values;
    size_t count;
    int64_t first;
};

static enum status look_item(void *context, int item, int worker, struct stream *stream) {
    (void)item;
    (void)worker;
    struct look *l = context;
    return trainer_measure(l->t, stream, l->values, l->count, MEASURE_NON_FINITE, &l->first);
}

bool trainer_has_non_finite(struct trainer *t, struct span values, size_t count) {
    struct look l = {t, values, count, -1};
    const struct device_handle device = t->options.device;
    if (t->queued_count) /* the memory is that of a later step */
        return false;
    return count && device.ops->each(device.device, 1, look_item, &l) == STATUS_OK &&
           trainer_wait(t) == STATUS_OK && l.first >= 0;
}
