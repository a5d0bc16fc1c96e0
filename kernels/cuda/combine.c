/* The average of the towers' gradients over all GPUs, and what is measured on the way.
 *
 * Each GPU adds up its own towers' weighted gradients in tower order, the GPUs' sums are added by NCCL, and
 * each GPU then measures its own towers against the average. With --deterministic the towers' gradients go to
 * every GPU instead, and each adds all of them up in tower order: the same bytes wherever the towers are. */
#include "kernels/cuda/gpu.h"

#include <stdlib.h>
#include <string.h>

/* What one GPU has to do with. */
struct share {
    int count;                     /* towers */
    int tower[COMBINE_MAX_TOWERS]; /* their numbers */
    const float *gradient[COMBINE_MAX_TOWERS];
    double weight[COMBINE_MAX_TOWERS];
};

enum status combine_open(struct device *device) {
    device->shares = calloc((size_t)device->count, sizeof *device->shares);
    return device->shares ? STATUS_OK : status_fail(STATUS_NO_MEMORY, "no memory for the sums over towers");
}

/* The GPU whose tower that gradient is; of a shared buffer the first. */
static enum status owner(const struct device *device, struct span gradient, int *gpu) {
    const struct block *block;
    STATUS_TRY(memory_find(device, gradient, &block));
    *gpu = block->gpu < 0 ? 0 : block->gpu;
    return STATUS_OK;
}

static enum status take_share(const struct device *device, int gpu, const struct combine_args *a,
                              struct share *share) {
    share->count = 0;
    for (int k = 0; k < a->towers; k++) {
        int of;
        void *at;
        if (a->weights[k] == 0)
            continue;
        STATUS_TRY(owner(device, a->gradients[k], &of));
        if (of != gpu)
            continue;
        STATUS_TRY(memory_local(device, gpu, a->gradients[k], a->average.bytes, "a tower's gradient", &at));
        int i = share->count++;
        share->tower[i] = k;
        share->gradient[i] = at;
        share->weight[i] = a->weights[k];
    }
    return STATUS_OK;
}

static enum status check(struct device *device, const struct combine_args *a) {
    const struct block *block;
    if (a->towers < 1 || a->towers > COMBINE_MAX_TOWERS)
        return status_fail(STATUS_INTERNAL, "gradients of %d towers: expected 1 to %d", a->towers,
                           COMBINE_MAX_TOWERS);
    for (int s = 0; s < a->segment_count; s++)
        if (a->segments[s].offset + a->segments[s].count > a->average.bytes / sizeof(float))
            return status_fail(STATUS_INTERNAL, "tensor %d reaches beyond the averaged gradient", s);
    STATUS_TRY(memory_find(device, a->average, &block));
    if (block->gpu >= 0 && device->count > 1)
        return status_fail(STATUS_INTERNAL, "the averaged gradient lies on one GPU alone");
    return STATUS_OK;
}

/* What the kernels are given on one GPU. */
struct place {
    cudaStream_t main;
    struct sums *sums;
    const struct cuda_piece *pieces;
    const float *parameters;
    float *average;
};

static enum status find_place(struct device *device, int gpu, const struct combine_args *a,
                              const struct table *table, bool shares, struct place *p) {
    void *at = NULL;
    p->sums = &device->gpu[gpu].sums;
    p->pieces = table->piece[gpu];
    if (table->decays && shares) /* a tower's own parameters lie on its GPU alone */
        STATUS_TRY(memory_local(device, gpu, a->parameters, a->average.bytes, "the parameters", &at));
    p->parameters = at;
    STATUS_TRY(memory_local(device, gpu, a->average, a->average.bytes, "the averaged gradient", &at));
    p->average = at;
    return gpu_join(device, gpu, &p->main);
}

/* Add up the GPU's share. `whole`: there is no other, so that the sum is the average; it is measured too. */
static enum status add_up(struct device *device, int gpu, const struct combine_args *a,
                          const struct table *table, const struct share *share, const struct place *p,
                          bool whole) {
    size_t n = (size_t)share->count, bytes = a->average.bytes;
    struct sums *s = p->sums;
    gpu_use(&device->gpu[gpu]);
    if (!n) /* more GPUs than towers */
        return gpu_checked(device, gpu, cudaMemsetAsync(p->average, 0, bytes, p->main), "clear a gradient");
    STATUS_TRY(
        staging_send(device, gpu, p->main, s->gradients, share->gradient, n * sizeof *share->gradient));
    STATUS_TRY(staging_send(device, gpu, p->main, s->weights, share->weight, n * sizeof *share->weight));
    return gpu_checked(device, gpu,
                       cuda_combine_all(p->main, p->pieces, table->pieces, share->count, s->gradients,
                                        s->weights, p->parameters, p->average, s->norms2,
                                        whole && a->want_dots ? s->dots : NULL, whole ? s->average : NULL),
                       "add up gradients");
}

/* Bring a GPU's figures to the host: they lie one behind the other (sums_room), and leave in one copy. */
static enum status bring(struct device *device, int gpu, const struct combine_args *a,
                         const struct share *share, const struct place *p, size_t segments) {
    const struct sums *s = p->sums;
    const double *first = s->average_norm2;
    size_t count = (size_t)(s->segment_norms2 - first) + segments;
    const void *staged;
    STATUS_TRY(staging_receive(device, gpu, p->main, first, count * sizeof *first, &staged));
    const double *host = staged;
    for (int i = 0; i < share->count; i++) {
        int tower = share->tower[i];
        STATUS_TRY(
            deliver_later(device, &a->norms2[tower], host + (s->tower_norms2 - first) + i, sizeof *host));
        if (a->want_dots)
            STATUS_TRY(
                deliver_later(device, &a->dots[tower], host + (s->tower_dots - first) + i, sizeof *host));
    }
    if (gpu == 0)
        STATUS_TRY(deliver_later(device, a->average_norm2, host, sizeof *host));
    if (segments)
        STATUS_TRY(deliver_later(device, a->segment_norms2, host + (s->segment_norms2 - first),
                                 segments * sizeof *host));
    return STATUS_OK;
}

/* Measure the average, and the GPU's share against it (`whole`: add_up did). `brings`: this GPU's figures are
 * wanted on the host. */
static enum status measure(struct device *device, int gpu, const struct combine_args *a,
                           const struct table *table, const struct share *share, const struct place *p,
                           bool whole, bool brings) {
    struct sums *s = p->sums;
    int pieces = table->pieces, dots = a->want_dots ? share->count : 0;
    int segments = gpu == 0 && a->segment_norms2 ? table->segment_count : 0;
    gpu_use(&device->gpu[gpu]);
    if (!whole)
        STATUS_TRY(gpu_checked(device, gpu,
                               cuda_dots(p->main, p->pieces, pieces, dots, s->gradients, s->weights,
                                         p->parameters, p->average, s->dots, s->average),
                               "measure gradients"));
    const struct cuda_sum sums[] = {
        {.sums = s->average, .rows = 1, .out = s->average_norm2},
        {.sums = s->norms2, .rows = share->count, .out = s->tower_norms2},
        {.sums = s->dots, .rows = dots, .out = s->tower_dots},
        {.sums = s->average, .begin = table->begin[gpu], .rows = segments, .out = s->segment_norms2},
    };
    STATUS_TRY(gpu_checked(device, gpu, cuda_sums(p->main, sums, sizeof sums / sizeof *sums, pieces),
                           "add up norms"));
    return brings ? bring(device, gpu, a, share, p, (size_t)segments) : STATUS_OK;
}

/* Every tower's gradient on every GPU: the shares become all towers, in order. */
static enum status gather(struct device *device, const struct combine_args *a, struct share *shares,
                          const struct place *places) {
    float *from[DEVICE_GROUP_MAX], *to[DEVICE_GROUP_MAX];
    size_t flat = a->average.bytes / sizeof(float), most = 1;
    for (int g = 0; g < device->count; g++)
        most = (size_t)shares[g].count > most ? (size_t)shares[g].count : most;
    for (int g = 0; g < device->count; g++) {
        size_t own = most * flat;
        STATUS_TRY(sums_gather_room(device, g, own * (size_t)(device->count + 1) * sizeof(float)));
        from[g] = places[g].sums->gather;
        to[g] = from[g] + own;
        for (int i = 0; i < shares[g].count; i++)
            STATUS_TRY(
                gpu_checked(device, g,
                            cudaMemcpyAsync(from[g] + (size_t)i * flat, shares[g].gradient[i],
                                            a->average.bytes, cudaMemcpyDeviceToDevice, places[g].main),
                            "copy a gradient"));
    }
    STATUS_TRY(collective_gather(device, from, to, most * flat));
    size_t place[COMBINE_MAX_TOWERS]; /* of a tower's gradient among them */
    for (int g = 0; g < device->count; g++)
        for (int i = 0; i < shares[g].count; i++)
            place[shares[g].tower[i]] = ((size_t)g * most + (size_t)i) * flat;
    for (int g = 0; g < device->count; g++) {
        shares[g].count = 0;
        for (int k = 0; k < a->towers; k++) {
            if (a->weights[k] == 0)
                continue;
            int i = shares[g].count++;
            shares[g].tower[i] = k;
            shares[g].gradient[i] = to[g] + place[k];
            shares[g].weight[i] = a->weights[k];
        }
    }
    return STATUS_OK;
}

static enum status combine(struct device *device, const struct combine_args *a) {
    const struct table *table;
    struct place places[DEVICE_GROUP_MAX];
    struct share *shares = device->shares;
    bool gathers = device->count > 1 && device->options.deterministic, whole = false;
    STATUS_TRY(check(device, a));
    STATUS_TRY(table_get(device, a->segments, a->segment_count, &table));
    memset(a->norms2, 0, (size_t)a->towers * sizeof *a->norms2); /* of towers with weight 0 */
    if (a->want_dots)
        memset(a->dots, 0, (size_t)a->towers * sizeof *a->dots);
    for (int g = 0; g < device->count; g++) {
        STATUS_TRY(take_share(device, g, a, &shares[g]));
        STATUS_TRY(sums_room(device, g, table, gathers ? a->towers : shares[g].count));
        STATUS_TRY(find_place(device, g, a, table, gathers || shares[g].count, &places[g]));
    }
    if (gathers)
        STATUS_TRY(gather(device, a, shares, places));
    whole = (device->count == 1 || gathers) && shares[0].count > 0;
    for (int g = 0; g < device->count; g++)
        STATUS_TRY(add_up(device, g, a, table, &shares[g], &places[g], whole));
    if (device->count > 1 && !gathers) {
        float *averages[DEVICE_GROUP_MAX];
        for (int g = 0; g < device->count; g++)
            averages[g] = places[g].average;
        STATUS_TRY(collective_sum(device, averages, a->average.bytes / sizeof(float)));
    }
    for (int g = 0; g < device->count; g++) {
        STATUS_TRY(measure(device, g, a, table, &shares[g], &places[g], whole, !gathers || g == 0));
        STATUS_TRY(gpu_leave(device, g));
    }
    return STATUS_OK;
}

enum status cuda_combine_towers(struct device *device, const struct combine_args *a) {
    int before = deliveries(device);
    return deliver_or_forget(device, before, combine(device, a));
}
