/* How long things take on the GPUs, by events in their streams: nobody waits, and the times are those of the
 * GPU, not of who asks. A generation keeps its events for the next time. */
#include "kernels/cuda/gpu.h"

#include <math.h>
#include <stdlib.h>

struct lap {
    struct lap *next;
    cudaEvent_t event, from; /* from NULL: nobody asked how long it took */
    double *seconds;
    int gpu;
    bool used;
};

/* An event of that GPU that is not in use. */
static enum status take(struct device *device, struct generation *now, int gpu, struct lap **out) {
    struct lap *lap = now->laps;
    while (lap && (lap->used || lap->gpu != gpu))
        lap = lap->next;
    if (!lap) {
        lap = calloc(1, sizeof *lap);
        if (!lap)
            return status_fail(STATUS_NO_MEMORY, "no memory for a time");
        enum status status = gpu_checked(device, gpu, cudaEventCreateWithFlags(&lap->event, cudaEventDefault),
                                         "make an event");
        if (status != STATUS_OK) {
            free(lap);
            return status;
        }
        lap->gpu = gpu;
        lap->next = now->laps;
        now->laps = lap;
    }
    *out = lap;
    return STATUS_OK;
}

enum status cuda_lap(struct device *device, struct stream *stream, double *seconds) {
    struct generation *now = staging_at_work(device);
    struct stream *at = stream ? stream : &device->gpu[0].main;
    struct lap *lap = NULL;
    cudaStream_t handle = at->handle;
    if (!now)
        return status_fail(STATUS_INTERNAL, "a time was asked for behind %d marks that are open",
                           DEVICE_MARKS);
    STATUS_TRY(stream ? worker_use(stream) : gpu_join(device, 0, &handle));
    STATUS_TRY(take(device, now, at->gpu, &lap));
    STATUS_TRY(gpu_checked(device, at->gpu, cudaEventRecord(lap->event, handle), "record an event"));
    lap->used = true;
    lap->from = seconds ? at->lap : NULL;
    lap->seconds = seconds;
    at->lap = lap->event;
    return STATUS_OK;
}

void laps_settle(struct device *device, struct generation *generation, bool done) {
    for (struct lap *lap = generation->laps; lap; lap = lap->next) {
        float milliseconds;
        if (done && lap->used && lap->from) {
            gpu_use(&device->gpu[lap->gpu]);
            bool known = cudaEventElapsedTime(&milliseconds, lap->from, lap->event) == cudaSuccess;
            (void)cudaGetLastError();
            *lap->seconds = known ? 1e-3 * (double)milliseconds : NAN;
        }
        lap->used = false;
    }
}

void laps_close(struct device *device, struct generation *generation) {
    while (generation->laps) {
        struct lap *lap = generation->laps;
        generation->laps = lap->next;
        gpu_use(&device->gpu[lap->gpu]);
        (void)cudaEventDestroy(lap->event);
        free(lap);
    }
}
