/* Values between the host and the GPUs, and from buffer to buffer; and what is asked about values. */
#include "kernels/cuda/bf16.h"
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/runtime.h"

#include <string.h>
#include <time.h>

/* The stream for work on a buffer that lies on `gpu` alone: the caller's when it is that GPU's, else the
 * GPU's main one. leave() has to follow. */
static enum status stream_for(struct device *device, struct stream *stream, int gpu, struct stream **out) {
    cudaStream_t main;
    if (stream && stream->gpu == gpu) {
        *out = stream;
        return worker_use(stream);
    }
    *out = &device->gpu[gpu].main;
    return gpu_join(device, gpu, &main);
}

static enum status leave(struct device *device, const struct stream *stream) {
    return stream->number < 0 ? gpu_leave(device, stream->gpu) : STATUS_OK;
}

/* Whether `count` values of the span are bfloat16: see write() and read() of device.h. */
static bool are_bf16(const struct device *device, struct span span, size_t count) {
    return device_type(device) == CUDA_TYPE_BF16 && span.bytes == count * sizeof(uint16_t);
}

/* Floats to the GPU that is current, rounded on the way where `narrow`. */
static enum status send(struct device *device, int gpu, cudaStream_t stream, void *to, const float *from,
                        size_t count, bool narrow) {
    void *staged;
    size_t bytes = count * sizeof(uint16_t);
    if (!narrow)
        return staging_send(device, gpu, stream, to, from, count * sizeof *from);
    STATUS_TRY(staging_take(device, bytes, &staged));
    floats_to_bf16(from, staged, count);
    return gpu_checked(device, gpu, cudaMemcpyAsync(to, staged, bytes, cudaMemcpyHostToDevice, stream),
                       "copy from the host");
}

enum status transfer_write(struct device *device, struct stream *stream, struct span to, const float *from,
                           size_t count) {
    const struct block *block;
    bool narrow = are_bf16(device, to, count);
    size_t bytes = narrow ? to.bytes : count * sizeof *from;
    if (!count)
        return STATUS_OK;
    STATUS_TRY(memory_find(device, to, &block));
    for (int g = 0; g < device->count; g++) {
        void *local;
        struct stream *at;
        if (!block->base[g])
            continue;
        STATUS_TRY(memory_local(device, g, to, bytes, "writing", &local));
        STATUS_TRY(stream_for(device, block->gpu < 0 ? NULL : stream, g, &at));
        STATUS_TRY(send(device, g, at->handle, local, from, count, narrow));
        STATUS_TRY(leave(device, at));
    }
    return STATUS_OK;
}

/* After a failure: from whichever GPU still answers, at once. */
static enum status rescue(struct device *device, float *to, struct span from, size_t bytes) {
    const struct block *block;
    collective_given_up(device);
    STATUS_TRY(memory_find(device, from, &block));
    for (int g = 0; g < device->count; g++) {
        const struct timespec moment = {0, 1000000};
        void *local, *staged;
        if (!block->base[g])
            continue;
        STATUS_TRY(memory_local(device, g, from, bytes, "reading", &local));
        gpu_use(&device->gpu[g]);
        if (staging_take(device, bytes, &staged) != STATUS_OK) /* a GPU that is lost makes none */
            continue;
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
    bool widen = are_bf16(device, from, count);
    size_t bytes = widen ? from.bytes : count * sizeof *to;
    if (!count)
        return STATUS_OK;
    if (*device->failure)
        return widen ? device_failed(device) : rescue(device, to, from, bytes);
    STATUS_TRY(memory_find(device, from, &block));
    int gpu = block->gpu < 0 ? 0 : block->gpu;
    void *local;
    const void *staged;
    struct stream *at;
    STATUS_TRY(memory_local(device, gpu, from, bytes, "reading", &local));
    STATUS_TRY(stream_for(device, block->gpu < 0 ? NULL : stream, gpu, &at));
    STATUS_TRY(staging_receive(device, gpu, at->handle, local, bytes, &staged));
    STATUS_TRY(leave(device, at));
    return widen ? deliver_widened(device, to, staged, bytes) : deliver_later(device, to, staged, bytes);
}

/* Room for measuring `count` values: the answer, then the kernel's scratch. */
static enum status measure_room(struct stream *stream, size_t count) {
    size_t bytes = sizeof(long long) + cuda_measure_scratch(count);
    void *room = NULL;
    if (stream->measure_bytes >= bytes)
        return STATUS_OK;
    (void)cudaFree(stream->measure); /* waits for whoever uses it */
    stream->measure = NULL;
    stream->measure_bytes = 0;
    STATUS_TRY(gpu_checked(stream->device, stream->gpu, cudaMalloc(&room, bytes), "make room to measure"));
    stream->measure = room;
    stream->measure_bytes = bytes;
    return STATUS_OK;
}

enum status cuda_measure(struct device *device, struct stream *stream, struct span values, size_t count,
                         enum measure what, int64_t *out) {
    const struct block *block;
    enum cuda_type type = are_bf16(device, values, count) ? CUDA_TYPE_BF16 : CUDA_TYPE_F32;
    if (!count)
        return status_fail(STATUS_INTERNAL, "nothing to measure");
    STATUS_TRY(memory_find(device, values, &block));
    int gpu = block->gpu < 0 ? 0 : block->gpu;
    void *local;
    const void *staged;
    struct stream *at;
    STATUS_TRY(memory_local(device, gpu, values, count * cuda_type_bytes(type), "measuring", &local));
    STATUS_TRY(stream_for(device, block->gpu < 0 ? NULL : stream, gpu, &at));
    STATUS_TRY(measure_room(at, count));
    cudaError_t (*kernel)(cudaStream_t, enum cuda_type, const void *, size_t, void *, long long *) =
        what == MEASURE_ZEROS ? cuda_count_zeros : cuda_first_non_finite;
    STATUS_TRY(gpu_checked(device, gpu, kernel(at->handle, type, local, count, at->measure + 1, at->measure),
                           "measure values"));
    STATUS_TRY(staging_receive(device, gpu, at->handle, at->measure, sizeof *at->measure, &staged));
    STATUS_TRY(leave(device, at));
    return deliver_later(device, out, staged, sizeof *out);
}

/* On each GPU that has the target, from what it has itself. From a tower's own buffer to another GPU's tower
 * nobody copies: it is refused, since it would take events between two GPUs' main streams that nothing else
 * needs. */
enum status transfer_copy(struct device *device, struct stream *stream, struct span to, struct span from) {
    const struct block *target, *source;
    if (!from.bytes)
        return STATUS_OK;
    STATUS_TRY(memory_find(device, to, &target));
    STATUS_TRY(memory_find(device, from, &source));
    for (int g = 0; g < device->count; g++) {
        void *there, *here;
        struct stream *at;
        if (!target->base[g])
            continue;
        STATUS_TRY(memory_local(device, g, to, from.bytes, "copying", &there));
        STATUS_TRY(memory_local(device, g, from, from.bytes, "copying", &here));
        STATUS_TRY(stream_for(device, target->gpu < 0 ? NULL : stream, g, &at));
        STATUS_TRY(gpu_checked(device, g,
                               cudaMemcpyAsync(there, here, from.bytes, cudaMemcpyDeviceToDevice, at->handle),
                               "copy a buffer"));
        STATUS_TRY(leave(device, at));
    }
    return STATUS_OK;
}
