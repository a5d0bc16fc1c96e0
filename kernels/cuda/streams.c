#include "kernels/cuda/gpu.h"

#include "kernels/cuda/runtime.h"

#include <stdio.h>
#include <string.h>

void gpu_use(const struct gpu *gpu) {
    (void)cudaSetDevice(gpu->index);
}

enum status device_failed(const struct device *device) {
    return status_fail(STATUS_DEVICE, "%s", device->failure);
}

enum status gpu_checked(struct device *device, int gpu, cudaError_t error, const char *what) {
    if (error == cudaSuccess)
        return STATUS_OK;
    (void)cudaGetLastError();
    if (error == cudaErrorMemoryAllocation)
        return status_fail(STATUS_NO_MEMORY, "%s has no memory left: it cannot %s", device->gpu[gpu].name,
                           what);
    if (!*device->failure)
        snprintf(device->failure, sizeof device->failure, "%s failed: it cannot %s: %s",
                 device->gpu[gpu].name, what, cudaGetErrorString(error));
    return device_failed(device);
}

static enum status beside_open(struct device *device, int gpu, struct beside *b) {
    STATUS_TRY(gpu_checked(device, gpu, cudaStreamCreateWithFlags(&b->handle, cudaStreamNonBlocking),
                           "make a stream"));
    STATUS_TRY(gpu_checked(device, gpu, cudaEventCreateWithFlags(&b->fork, cudaEventDisableTiming),
                           "make an event"));
    STATUS_TRY(gpu_checked(device, gpu, cudaEventCreateWithFlags(&b->join, cudaEventDisableTiming),
                           "make an event"));
    return conv_context_new(b->handle, &b->conv);
}

static void beside_close(struct beside *b) {
    conv_context_free(b->conv);
    if (b->fork)
        (void)cudaEventDestroy(b->fork);
    if (b->join)
        (void)cudaEventDestroy(b->join);
    if (b->handle)
        (void)cudaStreamDestroy(b->handle);
}

enum status stream_open(struct device *device, int gpu, int number, struct stream *stream) {
    gpu_use(&device->gpu[gpu]);
    cudaStream_t handle;
    STATUS_TRY(
        gpu_checked(device, gpu, cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "make a stream"));
    *stream =
        (struct stream){.device = device, .number = number, .gpu = gpu, .handle = handle, .queried = true};
    STATUS_TRY(gpu_checked(device, gpu, cudaEventCreateWithFlags(&stream->event, cudaEventDisableTiming),
                           "make an event"));
    STATUS_TRY(conv_context_new(handle, &stream->conv));
    if (number < 0)
        return STATUS_OK;
    STATUS_TRY(beside_open(device, gpu, &stream->beside));
    return gemm_new(handle, device->precision, &stream->gemm);
}

void stream_close(struct stream *stream) {
    if (!stream->handle)
        return;
    gpu_use(&stream->device->gpu[stream->gpu]);
    beside_close(&stream->beside);
    conv_context_free(stream->conv);
    gemm_free(stream->gemm);
    (void)cudaFree(stream->labels);
    (void)cudaFree(stream->measure);
    if (stream->event)
        (void)cudaEventDestroy(stream->event);
    (void)cudaStreamDestroy(stream->handle);
    *stream = (struct stream){0};
}

static enum status wait_for(struct device *device, int gpu, cudaStream_t stream, cudaEvent_t event) {
    return gpu_checked(device, gpu, cudaStreamWaitEvent(stream, event, 0), "wait for an event");
}

enum status gpu_join(struct device *device, int gpu, cudaStream_t *main) {
    struct gpu *g = &device->gpu[gpu];
    if (*device->failure)
        return device_failed(device);
    gpu_use(g);
    for (int w = gpu; w < device->count * WORKERS_PER_GPU; w += device->count) {
        struct stream *worker = &device->worker[w];
        if (!worker->busy)
            continue;
        STATUS_TRY(
            gpu_checked(device, gpu, cudaEventRecord(worker->event, worker->handle), "record an event"));
        STATUS_TRY(wait_for(device, gpu, g->main.handle, worker->event));
        worker->busy = false;
    }
    g->main.queried = false;
    *main = g->main.handle;
    return STATUS_OK;
}

enum status gpu_leave(struct device *device, int gpu) {
    struct gpu *g = &device->gpu[gpu];
    gpu_use(g);
    g->work++;
    return gpu_checked(device, gpu, cudaEventRecord(g->main.event, g->main.handle), "record an event");
}

enum status worker_enter(struct device *device, int number, struct stream **out) {
    struct stream *worker = &device->worker[number];
    int gpu = number % device->count;
    struct gpu *g = &device->gpu[gpu];
    if (*device->failure)
        return device_failed(device);
    if (!worker->handle) {
        enum status status = stream_open(device, gpu, number, worker);
        if (status != STATUS_OK) {
            stream_close(worker);
            return status_prefix(status, "%s: ", g->name);
        }
        worker->seen = g->main.queried ? g->work : 0; /* nothing to wait for, or all of it */
    }
    gpu_use(g);
    *out = worker;
    return STATUS_OK;
}

enum status worker_use(struct stream *worker) {
    struct device *device = worker->device;
    struct gpu *g = &device->gpu[worker->gpu];
    gpu_use(g);
    if (worker->seen != g->work) {
        STATUS_TRY(wait_for(device, worker->gpu, worker->handle, g->main.event));
        worker->seen = g->work;
    }
    worker->busy = true;
    worker->queried = false;
    return STATUS_OK;
}

/* `after` goes on when what `before` has queued so far is done. */
static enum status follow(const struct stream *worker, cudaStream_t after, cudaStream_t before,
                          cudaEvent_t event) {
    STATUS_TRY(gpu_checked(worker->device, worker->gpu, cudaEventRecord(event, before), "record an event"));
    return wait_for(worker->device, worker->gpu, after, event);
}

enum status beside_begin(struct stream *worker) {
    return follow(worker, worker->beside.handle, worker->handle, worker->beside.fork);
}

enum status beside_end(struct stream *worker) {
    return follow(worker, worker->handle, worker->beside.handle, worker->beside.join);
}

static enum status query(struct device *device, struct stream *stream) {
    if (!stream->handle || stream->queried)
        return STATUS_OK;
    gpu_use(&device->gpu[stream->gpu]);
    cudaError_t error = cudaStreamQuery(stream->handle);
    if (error == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return STATUS_BUSY;
    }
    STATUS_TRY(gpu_checked(device, stream->gpu, error, "finish its work"));
    stream->queried = true;
    return STATUS_OK;
}

enum status streams_query(struct device *device) {
    enum status result = STATUS_OK;
    for (int i = 0; i < device->count * (WORKERS_PER_GPU + 1); i++) {
        struct stream *stream = i < device->count ? &device->gpu[i].main : &device->worker[i - device->count];
        enum status status = query(device, stream);
        if (status == STATUS_BUSY)
            result = STATUS_BUSY;
        else if (status != STATUS_OK)
            return status;
    }
    return result;
}

void streams_settled(struct device *device) {
    for (int w = 0; w < device->count * WORKERS_PER_GPU; w++) {
        device->worker[w].seen = device->gpu[w % device->count].work;
        device->worker[w].busy = false;
    }
}
