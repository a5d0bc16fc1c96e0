/* Values between the host and the GPUs, and from buffer to buffer. */
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/runtime.h"

#include <string.h>
#include <time.h>

/* The stream for work on a buffer that lies on `gpu` alone: the caller's when it is that GPU's, else the
 * GPU's main one (then *main is set, and gpu_leave() has to follow). */
static enum status stream_for(struct device *device, struct stream *stream, int gpu, cudaStream_t *out,
                              bool *main) {
    *main = !stream || stream->gpu != gpu;
    if (*main)
        return gpu_join(device, gpu, out);
    *out = stream->handle;
    return worker_use(stream);
}

static enum status leave(struct device *device, int gpu, bool main) {
    return main ? gpu_leave(device, gpu) : STATUS_OK;
}

enum status transfer_write(struct device *device, struct stream *stream, struct span to, const float *from,
                           size_t count) {
    const struct block *block;
    if (!count)
        return STATUS_OK;
    STATUS_TRY(memory_find(device, to, &block));
    for (int g = 0; g < device->count; g++) {
        void *local;
        cudaStream_t handle;
        bool main;
        if (!block->base[g])
            continue;
        STATUS_TRY(memory_local(device, g, to, count * sizeof *from, "writing", &local));
        STATUS_TRY(stream_for(device, block->gpu < 0 ? NULL : stream, g, &handle, &main));
        STATUS_TRY(staging_send(device, g, handle, local, from, count * sizeof *from));
        STATUS_TRY(leave(device, g, main));
    }
    return STATUS_OK;
}

/* After a failure: from whichever GPU still answers, at once. */
static enum status rescue(struct device *device, float *to, struct span from, size_t bytes) {
    const struct block *block;
    STATUS_TRY(memory_find(device, from, &block));
    for (int g = 0; g < device->count; g++) {
        const struct timespec moment = {0, 1000000};
        void *local, *staged;
        if (!block->base[g])
            continue;
        STATUS_TRY(memory_local(device, g, from, bytes, "reading", &local));
        STATUS_TRY(staging_take(device, bytes, &staged));
        gpu_use(&device->gpu[g]);
        cudaError_t error =
            cudaMemcpyAsync(staged, local, bytes, cudaMemcpyDeviceToHost, device->gpu[g].rescue);
        for (int i = 0; error == cudaSuccess && i < 5000; i++) {
            error = cudaStreamQuery(device->gpu[g].rescue);
            if (error == cudaSuccess) {
                memcpy(to, staged, bytes);
                return STATUS_OK;
            }
            if (error == cudaErrorNotReady) {
                nanosleep(&moment, NULL);
                error = cudaSuccess;
            }
        }
        (void)cudaGetLastError();
    }
    return device_failed(device);
}

enum status transfer_read(struct device *device, struct stream *stream, float *to, struct span from,
                          size_t count) {
    const struct block *block;
    size_t bytes = count * sizeof *to;
    if (!count)
        return STATUS_OK;
    if (*device->failure)
        return rescue(device, to, from, bytes);
    STATUS_TRY(memory_find(device, from, &block));
    int gpu = block->gpu < 0 ? 0 : block->gpu;
    void *local;
    const void *staged;
    cudaStream_t handle;
    bool main;
    STATUS_TRY(memory_local(device, gpu, from, bytes, "reading", &local));
    STATUS_TRY(stream_for(device, block->gpu < 0 ? NULL : stream, gpu, &handle, &main));
    STATUS_TRY(staging_receive(device, gpu, handle, local, bytes, &staged));
    STATUS_TRY(leave(device, gpu, main));
    return deliver_later(device, to, staged, bytes);
}

enum status transfer_copy(struct device *device, struct stream *stream, struct span to, struct span from) {
    const struct block *target, *source;
    if (!from.bytes)
        return STATUS_OK;
    STATUS_TRY(memory_find(device, to, &target));
    STATUS_TRY(memory_find(device, from, &source));
    for (int g = 0; g < device->count; g++) {
        void *there, *here;
        cudaStream_t handle;
        bool main;
        if (!target->base[g])
            continue;
        STATUS_TRY(memory_local(device, g, to, from.bytes, "copying", &there));
        STATUS_TRY(memory_local(device, g, from, from.bytes, "copying", &here));
        STATUS_TRY(stream_for(device, target->gpu < 0 ? NULL : stream, g, &handle, &main));
        STATUS_TRY(gpu_checked(device, g,
                               cudaMemcpyAsync(there, here, from.bytes, cudaMemcpyDeviceToDevice, handle),
                               "copy a buffer"));
        STATUS_TRY(leave(device, g, main));
    }
    return STATUS_OK;
}
