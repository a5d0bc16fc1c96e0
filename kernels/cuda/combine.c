/* The average of the towers' gradients over all GPUs, and what is measured on the way.
 *
 * Each GPU adds up its own towers' weighted gradients in tower order, the GPUs' sums are added by NCCL, and
 * each GPU then measures its own towers against the average. With an update behind it that is one graph, from
 * the sum on where there is no other GPU, else from NCCL on. With --deterministic the towers' gradients go to
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
    int sent; /* how many of these the GPU has in sums.gradients and sums.weights: */
    const float *sent_gradient[COMBINE_MAX_TOWERS];
    double sent_weight[COMBINE_MAX_TOWERS];
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

/* Tell the GPU which gradients there are; mostly it knows. */
static enum status send_share(struct device *device, int gpu, struct share *share, const struct place *p) {
    size_t n = (size_t)share->count, gradients = n * sizeof *share->gradient,
           weights = n * sizeof *share->weight;
    if (share->sent == share->count && !memcmp(share->sent_gradient, share->gradient, gradients) &&
        !memcmp(share->sent_weight, share->weight, weights))
        return STATUS_OK;
    share->sent = 0;
    gpu_use(&device->gpu[gpu]);
    STATUS_TRY(staging_send(device, gpu, p->main, p->sums->gradients, share->gradient, gradients));
    STATUS_TRY(staging_send(device, gpu, p->main, p->sums->weights, share->weight, weights));
    memcpy(share->sent_gradient, share->gradient, gradients);
    memcpy(share->sent_weight, share->weight, weights);
    share->sent = share->count;
    return STATUS_OK;
}

/* One combine() at work. */
struct combining {
    const struct combine_args *args;
    const struct table *table;
    struct place places[DEVICE_GROUP_MAX];
    struct update_place updates[DEVICE_GROUP_MAX]; /* of the update behind it, if there is one */
    bool gathers, whole; /* whole: a GPU's share is all there is, so that its sum is the average */
};

/* Add up the GPU's share; where that is the average it is measured too. Kernels alone. */
static enum status add_up(struct device *device, int gpu, const struct combining *c) {
    const struct combine_args *a = c->args;
    const struct place *p = &c->places[gpu];
    const struct sums *s = p->sums;
    return gpu_checked(device, gpu,
                       cuda_combine_all(p->main, p->pieces, c->table->pieces, device->shares[gpu].count,
                                        s->gradients, s->weights, p->parameters, p->average, s->norms2,
                                        c->whole && a->want_dots ? s->dots : NULL,
                                        c->whole ? s->average : NULL),
                       "add up gradients");
}

static enum status add_up_apart(struct device *device, int gpu, const struct combining *c) {
    const struct place *p = &c->places[gpu];
    gpu_use(&device->gpu[gpu]);
    if (!device->shares[gpu].count) /* more GPUs than towers */
        return gpu_checked(device, gpu, cudaMemsetAsync(p->average, 0, c->args->average.bytes, p->main),
                           "clear a gradient");
    return add_up(device, gpu, c);
}

/* Tensors whose norm the GPU finds. */
static int segments_of(const struct combining *c, int gpu) {
    return gpu == 0 && c->args->segment_norms2 ? c->table->segment_count : 0;
}

/* Measure the average, and the GPU's share against it. Kernels alone. */
static enum status measure(struct device *device, int gpu, const struct combining *c) {
    const struct place *p = &c->places[gpu];
    const struct sums *s = p->sums;
    int pieces = c->table->pieces, towers = device->shares[gpu].count, dots = c->args->want_dots ? towers : 0;
    if (c->whole)
        STATUS_TRY(add_up(device, gpu, c));
    else
        STATUS_TRY(gpu_checked(device, gpu,
                               cuda_dots(p->main, p->pieces, pieces, dots, s->gradients, s->weights,
                                         p->parameters, p->average, s->dots, s->average),
                               "measure gradients"));
    const struct cuda_sum sums[] = {
        {.sums = s->average, .rows = 1, .out = s->average_norm2},
        {.sums = s->norms2, .rows = towers, .out = s->tower_norms2},
        {.sums = s->dots, .rows = dots, .out = s->tower_dots},
        {.sums = s->average,
         .begin = c->table->begin[gpu],
         .rows = segments_of(c, gpu),
         .out = s->segment_norms2},
    };
    return gpu_checked(device, gpu, cuda_sums(p->main, sums, sizeof sums / sizeof *sums, pieces),
                       "add up norms");
}

/* Bring a GPU's figures to the host, with those of an update behind it (NULL: none): they lie one behind the
 * other (sums_room), and leave in one copy. */
static enum status bring(struct device *device, int gpu, const struct combining *c,
                         const struct update_args *update) {
    const struct combine_args *a = c->args;
    const struct share *share = &device->shares[gpu];
    const struct sums *s = c->places[gpu].sums;
    const double *first = s->average_norm2;
    size_t segments = (size_t)segments_of(c, gpu);
    const double *end = update ? s->update_norms2 + c->table->segment_count : s->segment_norms2 + segments;
    const void *staged;
    STATUS_TRY(staging_receive(device, gpu, c->places[gpu].main, first, (size_t)(end - first) * sizeof *first,
                               &staged));
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
    return update ? update_deliver(device, gpu, update, host + (s->parameter_norms2 - first)) : STATUS_OK;
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

/* All that comes before the average is measured; the GPUs are joined. What an update behind it (or NULL) is
 * told goes before that, so that the copy does not wait for the workers. */
static enum status begin(struct device *device, const struct combine_args *a,
                         const struct update_args *update, struct combining *c) {
    struct share *shares = device->shares;
    c->args = a;
    c->gathers = device->count > 1 && device->options.deterministic;
    STATUS_TRY(check(device, a));
    STATUS_TRY(table_get(device, a->segments, a->segment_count, &c->table));
    memset(a->norms2, 0, (size_t)a->towers * sizeof *a->norms2); /* of towers with weight 0 */
    if (a->want_dots)
        memset(a->dots, 0, (size_t)a->towers * sizeof *a->dots);
    for (int g = 0; g < device->count; g++) {
        STATUS_TRY(take_share(device, g, a, &shares[g]));
        STATUS_TRY(sums_room(device, g, c->table, c->gathers ? a->towers : shares[g].count));
        if (update)
            STATUS_TRY(update_begin(device, g, update, &c->updates[g]));
        STATUS_TRY(find_place(device, g, a, c->table, c->gathers || shares[g].count, &c->places[g]));
    }
    if (c->gathers)
        STATUS_TRY(gather(device, a, shares, c->places));
    c->whole = (device->count == 1 || c->gathers) && shares[0].count > 0;
    for (int g = 0; g < device->count; g++) {
        STATUS_TRY(send_share(device, g, &shares[g], &c->places[g]));
        if (!c->whole)
            STATUS_TRY(add_up_apart(device, g, c));
    }
    if (device->count == 1 || c->gathers)
        return STATUS_OK;
    float *averages[DEVICE_GROUP_MAX];
    for (int g = 0; g < device->count; g++)
        averages[g] = c->places[g].average;
    return collective_sum(device, averages, a->average.bytes / sizeof(float));
}

static enum status combine(struct device *device, const struct combine_args *a) {
    struct combining c;
    STATUS_TRY(begin(device, a, NULL, &c));
    for (int g = 0; g < device->count; g++) {
        gpu_use(&device->gpu[g]);
        STATUS_TRY(measure(device, g, &c));
        if (!c.gathers || g == 0)
            STATUS_TRY(bring(device, g, &c, NULL));
        STATUS_TRY(gpu_leave(device, g));
    }
    return STATUS_OK;
}

enum status cuda_combine_towers(struct device *device, const struct combine_args *a) {
    int before = deliveries(device);
    return deliver_or_forget(device, before, combine(device, a));
}

/* ---- with an update behind it */

struct finish {
    const struct combining *combining;
    struct update_place update;
    int gpu;
};

static enum status queue_finish(void *context, struct stream *stream) {
    const struct finish *f = context;
    STATUS_TRY(measure(stream->device, f->gpu, f->combining));
    return update_queue(stream->device, f->gpu, f->combining->table, &f->update);
}

static struct graph_key key_of(const struct device *device, const struct finish *f) {
    const struct combining *c = f->combining;
    const struct place *p = &c->places[f->gpu];
    return (struct graph_key){
        .pointer = {p->pieces, c->table->begin[f->gpu], p->parameters, p->average, f->update.parameters,
                    f->update.velocity, f->update.shadow, p->sums->memory},
        .number = {c->table->pieces, c->table->segment_count, device->shares[f->gpu].count,
                   c->whole + 2 * c->args->want_dots + 4 * (segments_of(c, f->gpu) > 0)},
    };
}

static enum status combine_update(struct device *device, const struct combine_args *a,
                                  const struct update_args *u) {
    struct combining c;
    if (u->average.data != a->average.data || u->parameters.bytes != a->average.bytes ||
        u->segment_count != a->segment_count)
        return status_fail(STATUS_INTERNAL, "an update by another gradient than the average before it");
    STATUS_TRY(begin(device, a, u, &c));
    for (int g = 0; g < device->count; g++) {
        struct stream *main = &device->gpu[g].main;
        struct finish finish = {.combining = &c, .update = c.updates[g], .gpu = g};
        gpu_use(&device->gpu[g]);
        struct graph_key key = key_of(device, &finish);
        STATUS_TRY(graph_run(main, &key, queue_finish, &finish));
        if (!c.gathers || g == 0)
            STATUS_TRY(bring(device, g, &c, g == 0 ? u : NULL));
        STATUS_TRY(gpu_leave(device, g));
    }
    return STATUS_OK;
}

enum status cuda_combine_update(struct device *device, const struct combine_args *a,
                                const struct update_args *u) {
    int before = deliveries(device);
    return deliver_or_forget(device, before, combine_update(device, a, u));
}
