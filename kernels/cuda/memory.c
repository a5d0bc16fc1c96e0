/* Buffers, each on one GPU or on all of them, and page-locked memory on the host that copies go through. */
#include "kernels/cuda/bf16.h"
#include "kernels/cuda/gpu.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- buffers */

/* How many buffers begin at or before the address. */
static int blocks_before(const struct device *device, const void *data) {
    int low = 0, high = device->block_count;
    while (low < high) {
        int middle = (low + high) / 2;
        const struct block *b = &device->blocks[middle];
        if ((uintptr_t)b->base[b->gpu < 0 ? 0 : b->gpu] <= (uintptr_t)data)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const char *known_base(const struct block *block) {
    return block->base[block->gpu < 0 ? 0 : block->gpu];
}

enum status memory_find(const struct device *device, struct span span, const struct block **out) {
    int at = blocks_before(device, span.data) - 1;
    const struct block *block = at >= 0 ? &device->blocks[at] : NULL;
    size_t offset = block ? (size_t)((const char *)span.data - known_base(block)) : 0;
    if (!block || offset > block->bytes || span.bytes > block->bytes - offset)
        return status_fail(STATUS_INTERNAL, "%zu bytes at %p are no part of a buffer of the device",
                           span.bytes, span.data);
    *out = block;
    return STATUS_OK;
}

enum status memory_local(const struct device *device, int gpu, struct span span, size_t bytes,
                         const char *what, void **out) {
    const struct block *block;
    *out = NULL;
    if (!span.data && bytes == 0)
        return STATUS_OK;
    if (!span.data || span.bytes < bytes)
        return status_fail(STATUS_INTERNAL, "%s: a buffer of %zu bytes, expected %zu", what,
                           span.data ? span.bytes : 0, bytes);
    STATUS_TRY(memory_find(device, span, &block));
    if (!block->base[gpu])
        return status_fail(STATUS_INTERNAL, "%s lies on %s, and is used on %s", what,
                           device->gpu[block->gpu].name, device->gpu[gpu].name);
    *out = block->base[gpu] + ((const char *)span.data - known_base(block));
    return STATUS_OK;
}

static enum status allocate(struct device *device, int gpu, size_t bytes, char **out) {
    void *at = NULL;
    cudaStream_t main;
    STATUS_TRY(gpu_join(device, gpu, &main));
    STATUS_TRY(gpu_checked(device, gpu, cudaMalloc(&at, bytes ? bytes : 1), "make a buffer"));
    *out = at;
    if (bytes)
        STATUS_TRY(gpu_checked(device, gpu, cudaMemsetAsync(at, 0, bytes, main), "clear a buffer"));
    return gpu_leave(device, gpu);
}

static void release(struct device *device, const struct block *block) {
    for (int g = 0; g < device->count; g++)
        if (block->base[g]) {
            gpu_use(&device->gpu[g]);
            (void)cudaFree(block->base[g]);
            (void)cudaGetLastError();
        }
}

enum status memory_new(struct device *device, size_t bytes, int place, struct span *out) {
    *out = (struct span){NULL, 0};
    if (device->block_count == device->block_room) {
        int room = device->block_room ? 2 * device->block_room : 64;
        struct block *more = realloc(device->blocks, (size_t)room * sizeof *more);
        if (!more)
            return status_fail(STATUS_NO_MEMORY, "no memory for the list of a device's buffers");
        device->blocks = more;
        device->block_room = room;
    }
    struct block block = {.bytes = bytes, .gpu = place == PLACE_SHARED ? -1 : place % device->count};
    for (int g = 0; g < device->count; g++) {
        if (block.gpu >= 0 && block.gpu != g)
            continue;
        enum status status = allocate(device, g, bytes, &block.base[g]);
        if (status != STATUS_OK) {
            release(device, &block);
            return status == STATUS_NO_MEMORY
                       ? status_fail(status, "%s has no memory for a buffer of %zu bytes",
                                     device->gpu[g].name, bytes)
                       : status;
        }
    }
    int at = blocks_before(device, known_base(&block));
    memmove(device->blocks + at + 1, device->blocks + at,
            (size_t)(device->block_count - at) * sizeof *device->blocks);
    device->blocks[at] = block;
    device->block_count++;
    *out = (struct span){block.base[block.gpu < 0 ? 0 : block.gpu], bytes};
    return STATUS_OK;
}

void memory_free(struct device *device, struct span span) {
    int at = span.data ? blocks_before(device, span.data) - 1 : -1;
    if (at < 0 || known_base(&device->blocks[at]) != span.data)
        return;
    collective_given_up(device); /* cudaFree() waits for a sum that will never end */
    graphs_forget(device, NULL);
    release(device, &device->blocks[at]);
    device->block_count--;
    memmove(device->blocks + at, device->blocks + at + 1,
            (size_t)(device->block_count - at) * sizeof *device->blocks);
}

/* ---- page-locked memory */

struct chunk {
    struct chunk *next;
    char *memory;
    size_t bytes, used;
};

enum { CHUNK = 1 << 20, STAGING_ALIGNMENT = 64 };

struct generation *staging_at_work(struct device *device) {
    return device->marks < DEVICE_MARKS ? &device->generation[(device->oldest + device->marks) % DEVICE_MARKS]
                                        : NULL;
}

/* What page-locked memory could not be made for: want of memory, or the GPU that is current is lost. */
static enum status no_staging(struct device *device, cudaError_t error, size_t size) {
    int current = -1, gpu = 0;
    (void)cudaGetLastError();
    if (error == cudaSuccess || error == cudaErrorMemoryAllocation || cudaGetDevice(&current) != cudaSuccess)
        return status_fail(STATUS_NO_MEMORY, "no page-locked memory of %zu bytes for copies to the GPUs",
                           size);
    while (gpu < device->count - 1 && device->gpu[gpu].index != current)
        gpu++;
    return gpu_checked(device, gpu, error, "make page-locked memory");
}

static enum status too_many_marks(void) {
    return status_fail(STATUS_INTERNAL, "work was queued behind %d marks that are open", DEVICE_MARKS);
}

enum status staging_take(struct device *device, size_t bytes, void **out) {
    struct generation *now = staging_at_work(device);
    struct chunk *c = now ? now->staging : NULL;
    if (!now)
        return too_many_marks();
    bytes = (bytes + STAGING_ALIGNMENT - 1) / STAGING_ALIGNMENT * STAGING_ALIGNMENT;
    while (c && c->bytes - c->used < bytes)
        c = c->next;
    if (!c) {
        void *memory = NULL;
        size_t size = bytes > CHUNK ? bytes : CHUNK;
        cudaError_t error = cudaSuccess;
        c = calloc(1, sizeof *c);
        if (!c || (error = cudaHostAlloc(&memory, size, cudaHostAllocPortable)) != cudaSuccess) {
            free(c);
            return no_staging(device, error, size);
        }
        *c = (struct chunk){.next = now->staging, .memory = memory, .bytes = size};
        now->staging = c;
    }
    *out = c->memory + c->used;
    c->used += bytes;
    return STATUS_OK;
}

enum status staging_send(struct device *device, int gpu, cudaStream_t stream, void *to, const void *from,
                         size_t bytes) {
    void *staged;
    if (!bytes)
        return STATUS_OK;
    STATUS_TRY(staging_take(device, bytes, &staged));
    memcpy(staged, from, bytes);
    return gpu_checked(device, gpu, cudaMemcpyAsync(to, staged, bytes, cudaMemcpyHostToDevice, stream),
                       "copy from the host");
}

enum status staging_receive(struct device *device, int gpu, cudaStream_t stream, const void *from,
                            size_t bytes, const void **out) {
    void *staged;
    STATUS_TRY(staging_take(device, bytes, &staged));
    *out = staged;
    return gpu_checked(device, gpu, cudaMemcpyAsync(staged, from, bytes, cudaMemcpyDeviceToHost, stream),
                       "copy to the host");
}

static enum status later(struct device *device, struct delivery delivery) {
    struct generation *now = staging_at_work(device);
    if (!now)
        return too_many_marks();
    if (now->delivery_count == now->delivery_room) {
        int room = now->delivery_room ? 2 * now->delivery_room : 256;
        struct delivery *more = realloc(now->deliveries, (size_t)room * sizeof *more);
        if (!more)
            return status_fail(STATUS_NO_MEMORY, "no memory for the list of a device's results");
        now->deliveries = more;
        now->delivery_room = room;
    }
    now->deliveries[now->delivery_count++] = delivery;
    return STATUS_OK;
}

enum status deliver_later(struct device *device, void *to, const void *from, size_t bytes) {
    return later(device, (struct delivery){to, from, bytes, false});
}

enum status deliver_widened(struct device *device, float *to, const void *from, size_t bytes) {
    return later(device, (struct delivery){to, from, bytes, true});
}

static void deliver(const struct delivery *delivery) {
    if (delivery->widen)
        bf16_to_floats(delivery->from, delivery->to, delivery->bytes / sizeof(uint16_t));
    else
        memcpy(delivery->to, delivery->from, delivery->bytes);
}

int deliveries(const struct device *device) {
    int now = (device->oldest + device->marks) % DEVICE_MARKS;
    return device->marks < DEVICE_MARKS ? device->generation[now].delivery_count : 0;
}

enum status deliver_or_forget(struct device *device, int before, enum status status) {
    struct generation *now = staging_at_work(device);
    if (status != STATUS_OK && now)
        now->delivery_count = before;
    return status;
}

void staging_deliver(struct device *device, int generations) {
    for (int n = 0; n < generations; n++) {
        struct generation *done = &device->generation[device->oldest];
        for (int i = 0; i < done->delivery_count; i++)
            deliver(&done->deliveries[i]);
        done->delivery_count = 0;
        laps_settle(device, done, true);
        for (struct chunk *c = done->staging; c; c = c->next)
            c->used = 0;
        if (!device->marks)
            return;
        device->oldest = (device->oldest + 1) % DEVICE_MARKS;
        device->marks--;
    }
}

void staging_forget(struct device *device) {
    for (int i = 0; i < DEVICE_MARKS; i++) {
        device->generation[i].delivery_count = 0;
        laps_settle(device, &device->generation[i], false);
    }
    device->marks = 0;
}

void staging_close(struct device *device) {
    for (int i = 0; i < DEVICE_MARKS; i++) {
        struct generation *g = &device->generation[i];
        while (g->staging) {
            struct chunk *c = g->staging;
            g->staging = c->next;
            (void)cudaFreeHost(c->memory);
            free(c);
        }
        free(g->deliveries);
        laps_close(device, g);
        for (int k = 0; k < device->count; k++) {
            gpu_use(&device->gpu[k]);
            if (g->done[k])
                (void)cudaEventDestroy(g->done[k]);
        }
    }
}

/* ---- marks */

enum status marks_open(struct device *device) {
    for (int i = 0; i < DEVICE_MARKS; i++)
        for (int g = 0; g < device->count; g++) {
            gpu_use(&device->gpu[g]);
            STATUS_TRY(gpu_checked(
                device, g, cudaEventCreateWithFlags(&device->generation[i].done[g], cudaEventDisableTiming),
                "make an event"));
        }
    return STATUS_OK;
}

enum status marks_set(struct device *device) {
    struct generation *now = staging_at_work(device);
    if (!now)
        return too_many_marks();
    for (int g = 0; g < device->count; g++) {
        cudaStream_t main;
        STATUS_TRY(gpu_join(device, g, &main));
        STATUS_TRY(gpu_checked(device, g, cudaEventRecord(now->done[g], main), "record an event"));
    }
    device->marks++;
    return STATUS_OK;
}

/* Every GPU is asked: one that is lost keeps the others waiting for it. */
enum status marks_query(struct device *device) {
    enum status result = STATUS_OK;
    for (int g = 0; g < device->count; g++) {
        gpu_use(&device->gpu[g]);
        cudaError_t error = cudaEventQuery(device->generation[device->oldest].done[g]);
        if (error == cudaErrorNotReady) {
            (void)cudaGetLastError();
            result = STATUS_BUSY;
        } else {
            STATUS_TRY(gpu_checked(device, g, error, "finish its work"));
        }
    }
    return result;
}
