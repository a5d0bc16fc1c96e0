/* Sums between the GPUs by NCCL: one rank per GPU, all driven by this thread, so calls are grouped.
 * Communicators do not block: what they are at is asked for, with a deadline, and a failure is seen by
 * collective_check(). */
#include "kernels/cuda/gpu.h"

#include <stdio.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* NCCL names no GPU, and of one that is lost it may know nothing: each is asked itself. */
static enum status failed(struct device *device, int gpu, ncclResult_t result) {
    for (int g = 0; g < device->count && !*device->failure; g++) {
        gpu_use(&device->gpu[g]);
        cudaError_t error = cudaStreamQuery(device->gpu[g].rescue);
        if (error != cudaErrorNotReady)
            (void)gpu_checked(device, g, error, "take part in the sum over the GPUs");
    }
    const char *words = ncclGetLastError(NULL);
    if (!*device->failure)
        snprintf(device->failure, sizeof device->failure, "the sum over the GPUs failed at %s: NCCL: %s%s%s",
                 device->gpu[gpu].name, ncclGetErrorString(result), words && *words ? ": " : "",
                 words ? words : "");
    return device_failed(device);
}

static bool fine(ncclResult_t result) {
    return result == ncclSuccess || result == ncclInProgress;
}

enum status collective_check(struct device *device) {
    for (int g = 0; device->communicates && g < device->count; g++) {
        ncclResult_t state = ncclSuccess;
        ncclResult_t result = ncclCommGetAsyncError(device->comm[g], &state);
        if (!fine(result) || !fine(state))
            return failed(device, g, fine(result) ? state : result);
    }
    return STATUS_OK;
}

/* Until every communicator has done what it was asked on the host's side. */
static enum status wait_ready(struct device *device) {
    const struct timespec moment = {0, 20000};
    double end = now() + device->deadline;
    for (int g = 0; g < device->count; g++) {
        ncclResult_t state = ncclInProgress;
        while (state == ncclInProgress) {
            ncclResult_t result = ncclCommGetAsyncError(device->comm[g], &state);
            if (!fine(result) || !fine(state))
                return failed(device, g, fine(result) ? state : result);
            if (state == ncclInProgress && now() > end) {
                snprintf(device->failure, sizeof device->failure, "%s did not answer NCCL within %g seconds",
                         device->gpu[g].name, device->deadline);
                return device_failed(device);
            }
            if (state == ncclInProgress)
                nanosleep(&moment, NULL);
        }
    }
    return STATUS_OK;
}

static enum status grouped(struct device *device, int gpu, ncclResult_t result) {
    ncclResult_t end = ncclGroupEnd();
    if (!fine(result) || !fine(end))
        return failed(device, gpu, fine(result) ? end : result);
    return end == ncclInProgress ? wait_ready(device) : STATUS_OK;
}

enum status collective_open(struct device *device) {
    ncclUniqueId id;
    int g = 0;
    if (device->count < 2) /* NCCL is not even started: it would listen on the network */
        return STATUS_OK;
    ncclResult_t result = ncclGetUniqueId(&id);
    if (result == ncclSuccess)
        result = ncclGroupStart();
    if (result != ncclSuccess)
        return failed(device, 0, result);
    for (; g < device->count && fine(result); g++) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        gpu_use(&device->gpu[g]);
        result = ncclCommInitRankConfig(&device->comm[g], device->count, id, g, &config);
    }
    device->communicates = fine(result);
    STATUS_TRY(grouped(device, g - 1, result));
    return wait_ready(device);
}

void collective_close(struct device *device) {
    bool whole = device->communicates && !*device->failure;
    for (int g = 0; whole && g < device->count; g++)
        whole = fine(ncclCommFinalize(device->comm[g]));
    whole = whole && wait_ready(device) == STATUS_OK;
    for (int g = 0; g < device->count; g++) {
        if (!device->comm[g])
            continue;
        gpu_use(&device->gpu[g]);
        if (whole)
            (void)ncclCommDestroy(device->comm[g]);
        else
            (void)ncclCommAbort(device->comm[g]); /* ends what is under way, too */
        device->comm[g] = NULL;
    }
    device->communicates = false;
}

void collective_given_up(struct device *device) {
    if (*device->failure)
        collective_close(device);
}

enum status collective_sum(struct device *device, float *const buffers[], size_t count) {
    ncclResult_t result = ncclGroupStart();
    int g = 0;
    for (; g < device->count && fine(result); g++) {
        gpu_use(&device->gpu[g]);
        result = ncclAllReduce(buffers[g], buffers[g], count, ncclFloat, ncclSum, device->comm[g],
                               device->gpu[g].main.handle);
    }
    return grouped(device, g - 1, result);
}

enum status collective_gather(struct device *device, float *const from[], float *const to[], size_t count) {
    ncclResult_t result = ncclGroupStart();
    int g = 0;
    for (; g < device->count && fine(result); g++) {
        gpu_use(&device->gpu[g]);
        result = ncclAllGather(from[g], to[g], count, ncclFloat, device->comm[g], device->gpu[g].main.handle);
    }
    return grouped(device, g - 1, result);
}
