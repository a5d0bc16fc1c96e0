/* One optimizer step: on every GPU, so that the shared parameters stay the same on all of them, or on the one
 * GPU where a tower's own parameters lie. */
#include "kernels/cuda/gpu.h"

static enum status place_of(const struct device *device, int gpu, struct span span, size_t bytes,
                            const char *what, float **out) {
    void *at;
    STATUS_TRY(memory_local(device, gpu, span, bytes, what, &at));
    *out = at;
    return STATUS_OK;
}

enum status update_begin(struct device *device, int gpu, const struct update_args *a,
                         struct update_place *out) {
    struct gpu *g = &device->gpu[gpu];
    const size_t bytes = a->parameters.bytes;
    STATUS_TRY(place_of(device, gpu, a->parameters, bytes, "the parameters", &out->parameters));
    STATUS_TRY(place_of(device, gpu, a->average, bytes, "the averaged gradient", &out->average));
    STATUS_TRY(
        place_of(device, gpu, a->velocity, a->velocity.data ? bytes : 0, "the momentum", &out->velocity));
    STATUS_TRY(
        place_of(device, gpu, a->shadow, a->shadow.data ? bytes : 0, "the moving average", &out->shadow));
    gpu_use(g);
    g->main.queried = false;
    const struct cuda_update_scalars scalars = {.learning_rate = a->learning_rate,
                                                .momentum = a->momentum,
                                                .gradient_scale = a->gradient_scale,
                                                .ema_decay = a->ema_decay,
                                                .clip_norm = a->clip_norm,
                                                .guard = a->guard};
    return staging_send(device, gpu, g->main.handle, g->sums.scalars, &scalars, sizeof scalars);
}

enum status update_queue(struct device *device, int gpu, const struct table *table,
                         const struct update_place *p) {
    struct sums *s = &device->gpu[gpu].sums;
    cudaStream_t main = device->gpu[gpu].main.handle;
    const struct cuda_sum sums[] = {
        {s->average, table->begin[gpu], table->segment_count, s->parameter_norms2},
        {s->other, table->begin[gpu], table->segment_count, s->update_norms2},
    };
    STATUS_TRY(
        gpu_checked(device, gpu,
                    cuda_update(main, table->piece[gpu], table->pieces, s->scalars, s->average_norm2, s->held,
                                p->average, p->parameters, p->velocity, p->shadow, s->average, s->other),
                    "update the parameters"));
    return gpu_checked(device, gpu, cuda_sums(main, sums, 2, table->pieces), "add up norms");
}

enum status update_deliver(struct device *device, int gpu, const struct update_args *a, const double *host) {
    const struct sums *s = &device->gpu[gpu].sums;
    size_t bytes = (size_t)a->segment_count * sizeof *host;
    STATUS_TRY(deliver_later(device, a->parameter_norms2, host, bytes));
    return deliver_later(device, a->update_norms2, host + (s->update_norms2 - s->parameter_norms2), bytes);
}

static enum status bring(struct device *device, int gpu, const struct update_args *a) {
    const struct gpu *g = &device->gpu[gpu];
    const double *first = g->sums.parameter_norms2;
    size_t count = (size_t)(g->sums.update_norms2 - first) + (size_t)a->segment_count;
    const void *staged;
    STATUS_TRY(staging_receive(device, gpu, g->main.handle, first, count * sizeof *first, &staged));
    return update_deliver(device, gpu, a, staged);
}

static enum status update(struct device *device, const struct update_args *a) {
    const struct table *table;
    const struct block *block;
    bool brought = false;
    STATUS_TRY(memory_find(device, a->parameters, &block));
    struct block where = *block;
    for (int s = 0; s < a->segment_count; s++)
        if (a->segments[s].offset + a->segments[s].count > a->parameters.bytes / sizeof(float))
            return status_fail(STATUS_INTERNAL, "tensor %d reaches beyond the parameters", s);
    STATUS_TRY(table_get(device, a->segments, a->segment_count, &table));
    for (int g = 0; g < device->count; g++) {
        struct update_place place;
        cudaStream_t main;
        if (!where.base[g])
            continue;
        STATUS_TRY(sums_room(device, g, table, 0));
        STATUS_TRY(update_begin(device, g, a, &place));
        STATUS_TRY(gpu_join(device, g, &main));
        STATUS_TRY(update_queue(device, g, table, &place));
        if (!brought)
            STATUS_TRY(bring(device, g, a));
        brought = true;
        STATUS_TRY(gpu_leave(device, g));
    }
    return STATUS_OK;
}

enum status cuda_update_parameters(struct device *device, const struct update_args *a) {
    int before = deliveries(device);
    return deliver_or_forget(device, before, update(device, a));
}
