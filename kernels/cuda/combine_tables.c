/* The pieces of the flat buffers on the GPUs, and room for their sums. */
#include "kernels/cuda/gpu.h"

#include <stdlib.h>
#include <string.h>

enum { TABLES = 8 }; /* that are kept: one for each set of weight decays in use */

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* ---- tables */

static void table_free(struct device *device, struct table *table) {
    for (int g = 0; g < device->count; g++) {
        gpu_use(&device->gpu[g]);
        (void)cudaFree(table->piece[g]);
        (void)cudaFree(table->begin[g]);
        (void)cudaGetLastError();
    }
    free(table->segments);
    free(table);
}

/* Fill in the pieces, and where each segment's begin. */
static void cut(const struct table *table, struct cuda_piece *pieces, int *begin) {
    int at = 0;
    for (int s = 0; s < table->segment_count; s++) {
        const struct segment *segment = &table->segments[s];
        begin[s] = at;
        for (size_t done = 0; done < segment->count; done += CUDA_PIECE) {
            size_t left = segment->count - done;
            pieces[at++] = (struct cuda_piece){.first = segment->offset + done,
                                               .count = (int)(left < CUDA_PIECE ? left : CUDA_PIECE),
                                               .segment = s,
                                               .weight_decay = segment->weight_decay};
        }
    }
    begin[table->segment_count] = at;
}

static enum status send(struct device *device, struct table *table, const struct cuda_piece *pieces,
                        const int *begin) {
    size_t piece_bytes = (size_t)table->pieces * sizeof *pieces;
    size_t begin_bytes = ((size_t)table->segment_count + 1) * sizeof *begin;
    for (int g = 0; g < device->count; g++) {
        cudaStream_t main;
        void *at;
        STATUS_TRY(gpu_join(device, g, &main));
        STATUS_TRY(gpu_checked(device, g, cudaMalloc(&at, piece_bytes), "make a table of pieces"));
        table->piece[g] = at;
        STATUS_TRY(gpu_checked(device, g, cudaMalloc(&at, begin_bytes), "make a table of pieces"));
        table->begin[g] = at;
        STATUS_TRY(staging_send(device, g, main, table->piece[g], pieces, piece_bytes));
        STATUS_TRY(staging_send(device, g, main, table->begin[g], begin, begin_bytes));
        STATUS_TRY(gpu_leave(device, g));
    }
    return STATUS_OK;
}

static enum status table_fill(struct device *device, struct table *table) {
    struct cuda_piece *pieces = malloc((size_t)table->pieces * sizeof *pieces);
    int *begin = malloc(((size_t)table->segment_count + 1) * sizeof *begin);
    enum status status;
    if (pieces && begin) {
        cut(table, pieces, begin);
        status = send(device, table, pieces, begin);
    } else {
        status = status_fail(STATUS_NO_MEMORY, "no memory for a table of pieces");
    }
    free(pieces);
    free(begin);
    return status;
}

static struct table *table_new(const struct segment *segments, int count) {
    struct table *table = calloc(1, sizeof *table);
    size_t bytes = (size_t)count * sizeof *segments;
    if (!table || !(table->segments = malloc(bytes ? bytes : 1))) {
        free(table);
        return NULL;
    }
    memcpy(table->segments, segments, bytes);
    table->segment_count = count;
    for (int s = 0; s < count; s++) {
        table->pieces += (int)((segments[s].count + CUDA_PIECE - 1) / CUDA_PIECE);
        table->decays = table->decays || segments[s].weight_decay != 0;
    }
    return table;
}

static bool same(const struct table *table, const struct segment *segments, int count) {
    bool equal = table->segment_count == count;
    for (int s = 0; equal && s < count; s++)
        equal = table->segments[s].offset == segments[s].offset &&
                table->segments[s].count == segments[s].count &&
                table->segments[s].weight_decay == segments[s].weight_decay;
    return equal;
}

enum status table_get(struct device *device, const struct segment *segments, int count,
                      const struct table **out) {
    int kept = 0;
    for (struct table **at = &device->tables; *at; at = &(*at)->next) {
        struct table *table = *at;
        if (same(table, segments, count)) { /* to the front: the one that nobody wants goes first */
            *at = table->next;
            table->next = device->tables;
            device->tables = table;
            *out = table;
            return STATUS_OK;
        }
        if (++kept == TABLES && !table->next) {
            *at = NULL;
            table_free(device, table);
            break;
        }
    }
    struct table *made = table_new(segments, count);
    if (!made)
        return status_fail(STATUS_NO_MEMORY, "no memory for a table of pieces");
    enum status status = made->pieces ? table_fill(device, made)
                                      : status_fail(STATUS_INTERNAL, "a flat buffer without values");
    if (status != STATUS_OK) {
        table_free(device, made);
        return status;
    }
    made->next = device->tables;
    device->tables = made;
    *out = made;
    return STATUS_OK;
}

void tables_close(struct device *device) {
    while (device->tables) {
        struct table *table = device->tables;
        device->tables = table->next;
        table_free(device, table);
    }
}

/* ---- room for sums */

/* Other memory in the place of `old`; freeing waits for whoever uses it. */
static enum status again(struct device *device, int gpu, void *old, size_t bytes, void **out) {
    *out = NULL;
    (void)cudaFree(old);
    return gpu_checked(device, gpu, cudaMalloc(out, bytes), "make room for sums");
}

static enum status make_fixed(struct device *device, int gpu, struct sums *s) {
    void *at;
    size_t gradients = COMBINE_MAX_TOWERS * sizeof *s->gradients;
    size_t weights = COMBINE_MAX_TOWERS * sizeof *s->weights;
    size_t scalars = sizeof *s->scalars;
    if (s->fixed)
        return STATUS_OK;
    STATUS_TRY(again(device, gpu, NULL, gradients + weights + scalars + sizeof *s->held, &at));
    s->fixed = at;
    s->gradients = at;
    s->weights = (double *)(s->fixed + gradients);
    s->scalars = (struct cuda_update_scalars *)(s->fixed + gradients + weights);
    s->held = (int *)(s->fixed + gradients + weights + scalars);
    return gpu_checked(device, gpu,
                       cudaMemsetAsync(s->held, 0, sizeof *s->held, device->gpu[gpu].main.handle),
                       "clear a flag");
}

enum status sums_room(struct device *device, int gpu, const struct table *table, int rows) {
    struct sums *s = &device->gpu[gpu].sums;
    size_t pieces = (size_t)table->pieces, segments = (size_t)table->segment_count, towers = (size_t)rows;
    void *at;
    gpu_use(&device->gpu[gpu]);
    STATUS_TRY(make_fixed(device, gpu, s));
    if (s->rows >= towers && s->pieces >= pieces && s->segments >= segments)
        return STATUS_OK;
    towers = larger(s->rows, larger(towers, 4));
    pieces = larger(s->pieces, pieces);
    segments = larger(s->segments, segments);
    s->rows = s->pieces = s->segments = 0;
    double *old = s->memory;
    s->memory = NULL;
    STATUS_TRY(again(device, gpu, old,
                     ((2 * towers + 2) * pieces + 1 + 2 * towers + 3 * segments) * sizeof(double), &at));
    graphs_forget(device, &device->gpu[gpu].main); /* the old memory is in them */
    s->memory = s->norms2 = at;
    s->dots = s->norms2 + towers * pieces;
    s->average = s->dots + towers * pieces;
    s->other = s->average + pieces;
    s->average_norm2 = s->other + pieces;
    s->tower_norms2 = s->average_norm2 + 1;
    s->tower_dots = s->tower_norms2 + towers;
    s->segment_norms2 = s->tower_dots + towers;
    s->parameter_norms2 = s->segment_norms2 + segments;
    s->update_norms2 = s->parameter_norms2 + segments;
    s->rows = towers;
    s->pieces = pieces;
    s->segments = segments;
    return STATUS_OK;
}

enum status sums_gather_room(struct device *device, int gpu, size_t bytes) {
    struct sums *s = &device->gpu[gpu].sums;
    void *at, *old = s->gather;
    gpu_use(&device->gpu[gpu]);
    if (s->gather_bytes >= bytes)
        return STATUS_OK;
    s->gather_bytes = 0;
    s->gather = NULL;
    STATUS_TRY(again(device, gpu, old, bytes, &at));
    s->gather = at;
    s->gather_bytes = bytes;
    return STATUS_OK;
}

void sums_close(struct device *device, int gpu) {
    struct sums *s = &device->gpu[gpu].sums;
    gpu_use(&device->gpu[gpu]);
    (void)cudaFree(s->memory);
    (void)cudaFree(s->fixed);
    (void)cudaFree(s->gather);
    (void)cudaGetLastError();
    *s = (struct sums){0};
}
