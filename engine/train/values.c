/* Values of device buffers that the host wants to look at: directly, or copied over in pieces. */
#include "engine/train/internal.h"

#include <stdlib.h>

enum { PIECE = 1 << 16 };

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

static size_t count_here(const struct trainer *t, struct span span, size_t first, size_t count,
                         bool (*is)(double)) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += is(t->info.element_bytes == 8 ? ((const double *)span.data)[first + i]
                                               : (double)((const float *)span.data)[first + i]);
    return found;
}

enum status trainer_count(struct trainer *t, struct span span, size_t first, size_t count, bool (*is)(double),
                          size_t *out) {
    *out = 0;
    if (t->info.host_memory) {
        *out = count_here(t, span, first, count, is);
        return STATUS_OK;
    }
    float *piece = malloc(PIECE * sizeof *piece);
    if (!piece)
        return status_fail(STATUS_NO_MEMORY, "no memory to look at a device's values");
    enum status status = STATUS_OK;
    for (size_t done = 0; done < count && status == STATUS_OK; done += PIECE) {
        size_t n = count - done < PIECE ? count - done : PIECE;
        status = trainer_fetch(t, span, first + done, n, piece);
        for (size_t i = 0; i < n && status == STATUS_OK; i++)
            *out += is((double)piece[i]);
    }
    free(piece);
    return status;
}
