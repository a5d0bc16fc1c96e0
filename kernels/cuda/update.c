/* One optimizer step: on every GPU, so that the shared parameters stay the same on all of them, or on the one
 * GPU where a tower's own parameters lie. */
#include "kernels/cuda/gpu.h"

/* The norms of the tensors and of their changes; both lie one behind the other (sums_room). */
static enum status bring(struct device *device, int gpu, cudaStream_t main, const struct update_args *a,
                         const struct table *table) {
    struct sums *s = &device->gpu[gpu].sums;
    const double *first = s->segment_norms2;
    size_t bytes = (size_t)table->segment_count * sizeof *first;
    const struct cuda_sum sums[] = {
        {s->average, table->begin[gpu], table->segment_count, s->segment_norms2},
        {s->other, table->begin[gpu], table->segment_count, s->segment_others},
    };
    const void *staged;
    STATUS_TRY(gpu_checked(device, gpu, cuda_sums(main, sums, 2, table->pieces), "add up norms"));
    STATUS_TRY(staging_receive(device, gpu, main, first,
                               (size_t)(s->segment_others - first) * sizeof *first + bytes, &staged));
    const double *host = staged;
    STATUS_TRY(deliver_later(device, a->parameter_norms2, host, bytes));
    return deliver_later(device, a->update_norms2, host + (s->segment_others - first), bytes);
}

static enum status update_on(struct device *device, int gpu, const struct update_args *a,
                             const struct table *table, bool brings) {
    struct sums *s = &device->gpu[gpu].sums;
    const size_t bytes = a->parameters.bytes;
    void *parameters, *average, *velocity, *shadow;
    cudaStream_t main;
    STATUS_TRY(sums_room(device, gpu, table, 0));
    STATUS_TRY(memory_local(device, gpu, a->parameters, bytes, "the parameters", &parameters));
    STATUS_TRY(memory_local(device, gpu, a->average, bytes, "the averaged gradient", &average));
    STATUS_TRY(
        memory_local(device, gpu, a->velocity, a->velocity.data ? bytes : 0, "the momentum", &velocity));
    STATUS_TRY(
        memory_local(device, gpu, a->shadow, a->shadow.data ? bytes : 0, "the moving average", &shadow));
    const struct cuda_update_scalars scalars = {.learning_rate = a->learning_rate,
                                                .momentum = a->momentum,
                                                .gradient_scale = a->gradient_scale,
                                                .ema_decay = a->ema_decay,
                                                .clip_norm = a->clip_norm,
                                                .guard = a->guard};
    STATUS_TRY(gpu_join(device, gpu, &main));
    STATUS_TRY(staging_send(device, gpu, main, s->scalars, &scalars, sizeof scalars));
    cudaError_t error = cuda_update(main, table->piece[gpu], table->pieces, s->scalars, s->average_norm2,
                                    s->held, average, parameters, velocity, shadow, s->average, s->other);
    STATUS_TRY(gpu_checked(device, gpu, error, "update the parameters"));
    if (brings)
        STATUS_TRY(bring(device, gpu, main, a, table));
    return gpu_leave(device, gpu);
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
    for (int g = 0; g < device->count; g++)
        if (where.base[g]) {
            STATUS_TRY(update_on(device, g, a, table, !brought));
            brought = true;
        }
    return STATUS_OK;
}

enum status cuda_update_parameters(struct device *device, const struct update_args *a) {
    int before = deliveries(device);
    return deliver_or_forget(device, before, update(device, a));
}
