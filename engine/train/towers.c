#include "engine/train/towers.h"

#include "datasets/order.h"
#include "engine/base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void add_size(struct towers_need *need, int64_t images) {
    for (int i = 0; i < need->size_count; i++)
        if (need->sizes[i] == images)
            return;
    if (images > 0)
        need->sizes[need->size_count++] = (int)images;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

enum status towers_plan(struct nets *nets, int count, const int64_t *batches, int batch_count,
                        struct towers_need *need) {
    *need = (struct towers_need){.count = count, .lanes = net_lanes_for(nets->device, count)};
    for (int b = 0; b < batch_count; b++) {
        int64_t first;
        add_size(need, order_shard(batches[b], count, 0, &first));
        add_size(need, order_shard(batches[b], count, count - 1, &first));
    }
    struct net *first = NULL;
    for (int i = 0; i < need->size_count; i++) {
        struct net *net;
        STATUS_TRY(nets_get(nets, need->sizes[i], need->lanes, &net));
        struct net_sizes sizes = net_sizes(net);
        if (first && !net_shares_prepared(first, net))
            return status_fail(STATUS_INTERNAL,
                               "the plans for %d and %d images derive different things from the "
                               "parameters",
                               need->sizes[0], need->sizes[i]);
        first = first ? first : net;
        need->prepared_bytes = sizes.prepared_bytes;
        need->arena_bytes = larger(need->arena_bytes, sizes.arena_bytes);
        need->gradient_bytes = larger(need->gradient_bytes, sizes.gradient_bytes);
        need->scratch_bytes = larger(need->scratch_bytes, sizes.scratch_bytes);
    }
    need->workers = nets->device.ops->workers(nets->device.device, count);
    need->bytes = (size_t)count * (need->arena_bytes + need->gradient_bytes) +
                  (size_t)need->workers * need->scratch_bytes;
    return STATUS_OK;
}

bool towers_serve(const struct towers *towers, const struct towers_need *need) {
    return towers && towers->count == need->count && towers->workers == need->workers &&
           towers->lanes == need->lanes && towers->arena_bytes >= need->arena_bytes &&
           towers->gradient_bytes >= need->gradient_bytes && towers->scratch_bytes >= need->scratch_bytes;
}

static enum status no_memory(const struct towers_need *need) {
    char words[32];
    return status_fail(STATUS_NO_MEMORY, "%d towers need %s (%zu bytes), which are not there", need->count,
                       memory_words(need->bytes, words), need->bytes);
}

static enum status enough_memory(const struct nets *nets, const struct towers_need *need) {
    struct device_info info;
    STATUS_TRY(nets->device.ops->describe(nets->device.device, &info));
    size_t available = info.host_memory ? memory_available() : 0;
    if (available == 0 || need->bytes <= available)
        return STATUS_OK;
    char words[32], left[32];
    return status_fail(STATUS_NO_MEMORY,
                       "%d towers need %s (%zu bytes) and %s are free: take fewer towers, or a smaller batch",
                       need->count, memory_words(need->bytes, words), need->bytes,
                       memory_words(available, left));
}

/* The host's own arrays. */
static bool allocate_arrays(struct towers *t, const struct model *model) {
    size_t n = (size_t)t->count, cells = n * (size_t)model->layer_count;
    t->tower = calloc(n, sizeof *t->tower);
    for (size_t k = 0; t->tower && k < n; k++)
        t->tower[k].laps[0] = t->tower[k].laps[1] = t->tower[k].laps[2] = NAN;
    t->scratch = calloc((size_t)t->workers, sizeof *t->scratch);
    t->chosen = calloc((size_t)t->collection.count, sizeof *t->chosen);
    t->gradients = calloc(n, sizeof *t->gradients);
    t->weights = calloc(n, sizeof *t->weights);
    t->norms2 = calloc(n, sizeof *t->norms2);
    t->dots = calloc(n, sizeof *t->dots);
    t->losses = calloc(n, sizeof *t->losses);
    t->rule_weights = calloc(n, sizeof *t->rule_weights);
    t->rule_norms2 = calloc(n, sizeof *t->rule_norms2);
    t->zeros = calloc(cells, sizeof *t->zeros);
    t->values = calloc(cells, sizeof *t->values);
    return t->tower && t->scratch && t->chosen && t->gradients && t->weights && t->norms2 && t->dots &&
           t->losses && t->rule_weights && t->rule_norms2 && t->zeros && t->values;
}

static enum status allocate_buffers(struct towers *t, towers_making *making, void *context) {
    const struct device_ops *ops = t->device.ops;
    for (int k = 0; k < t->count; k++) {
        STATUS_TRY(ops->buffer_new(t->device.device, t->arena_bytes, k, &t->tower[k].memory.arena));
        STATUS_TRY(ops->buffer_new(t->device.device, t->gradient_bytes, k, &t->tower[k].memory.gradient));
        t->gradients[k] = t->tower[k].memory.gradient;
        if (making && !making(context, k + 1, t->count))
            return status_fail(STATUS_INTERRUPTED, "given up when %d of %d towers had their memory", k + 1,
                               t->count);
    }
    for (int w = 0; w < t->workers && t->scratch_bytes; w++)
        STATUS_TRY(ops->buffer_new(t->device.device, t->scratch_bytes, w, &t->scratch[w]));
    return STATUS_OK;
}

/* What each tower's scope selects, resolved once. */
static enum status choose_terms(struct towers *t) {
    int *next = t->chosen;
    for (int k = 0; k < t->count; k++) {
        char scope[32];
        snprintf(scope, sizeof scope, "tower_%d/", k);
        int count = collection_select(&t->collection, scope, next);
        if (count != t->collection.per_tower)
            return status_fail(STATUS_INTERNAL, "the scope %s selects %d terms, not %d", scope, count,
                               t->collection.per_tower);
        next += count;
    }
    return STATUS_OK;
}

enum status towers_new(const struct nets *nets, const struct towers_need *need, towers_making *making,
                       void *context, struct towers **out) {
    STATUS_TRY(enough_memory(nets, need));
    struct towers *t = calloc(1, sizeof *t);
    if (!t)
        return no_memory(need);
    t->device = nets->device;
    t->count = need->count;
    t->workers = need->workers;
    t->lanes = need->lanes;
    t->arena_bytes = need->arena_bytes;
    t->gradient_bytes = need->gradient_bytes;
    t->scratch_bytes = need->scratch_bytes;
    t->prepared_bytes = need->prepared_bytes;
    enum status status = collection_new(nets->model, t->count, &t->collection);
    if (status == STATUS_OK && !allocate_arrays(t, nets->model))
        status = no_memory(need);
    if (status == STATUS_OK)
        status = choose_terms(t);
    if (status == STATUS_OK && (status = allocate_buffers(t, making, context)) == STATUS_NO_MEMORY)
        status = no_memory(need);
    if (status != STATUS_OK) {
        towers_free(t);
        return status;
    }
    *out = t;
    return STATUS_OK;
}

static void free_buffer(struct device_handle device, struct span span) {
    if (span.data)
        device.ops->buffer_free(device.device, span);
}

void towers_free(struct towers *t) {
    if (!t)
        return;
    for (int k = 0; t->tower && k < t->count; k++) {
        free_buffer(t->device, t->tower[k].memory.arena);
        free_buffer(t->device, t->tower[k].memory.gradient);
    }
    for (int w = 0; t->scratch && w < t->workers; w++)
        free_buffer(t->device, t->scratch[w]);
    collection_free(&t->collection);
    free(t->tower);
    free(t->scratch);
    free(t->chosen);
    free(t->gradients);
    free(t->weights);
    free(t->norms2);
    free(t->dots);
    free(t->losses);
    free(t->rule_weights);
    free(t->rule_norms2);
    free(t->zeros);
    free(t->values);
    free(t);
}

enum status towers_shard(struct towers *towers, const struct nets *nets, int64_t images) {
    for (int k = 0; k < towers->count; k++) {
        struct tower *tower = &towers->tower[k];
        tower->images = order_shard(images, towers->count, k, &tower->first);
        tower->net = tower->images ? nets_find(nets, (int)tower->images, towers->lanes) : NULL;
        tower->cross_entropy = tower->total = NAN;
        tower->load = tower->forward = tower->backward = tower->done = 0;
        towers->weights[k] = (double)tower->images / (double)images;
        if (tower->images && !tower->net)
            return status_fail(STATUS_INTERNAL, "no plan for a shard of %lld images",
                               (long long)tower->images);
    }
    return STATUS_OK;
}
