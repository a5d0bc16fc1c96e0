#include "kernels/cuda/host/telemetry.h"
#include "kernels/cuda/host/nvml.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct gpu_telemetry {
    struct device_gpus gpus;
    struct nvml nvml;
    double seconds;
    pthread_t thread;
    pthread_mutex_t lock; /* over what follows */
    pthread_cond_t wake;
    bool ending;
    struct gpu_reading readings[GPUS_MAX];
    bool fresh[GPUS_MAX];
};

static void put(struct gpu_reading *reading, enum gpu_value value, double number) {
    reading->value[value] = number;
    reading->valid |= 1u << value;
}

/* Handles are looked up each time: one that is kept may belong to a GPU that was reset. */
static void read_gpu(const struct nvml *nvml, const char *bus, struct gpu_reading *out) {
    void *device = NULL;
    struct nvml_utilization use;
    struct nvml_memory memory;
    unsigned number;
    *out = (struct gpu_reading){0};
    if (nvml->by_bus(bus, &device) != NVML_DONE)
        return;
    if (nvml->utilization && nvml->utilization(device, &use) == NVML_DONE && use.gpu <= 100)
        put(out, GPU_USE, use.gpu / 100.0);
    if (nvml->memory(device, &memory) == NVML_DONE) {
        put(out, GPU_MEMORY_USED, (double)memory.used);
        put(out, GPU_MEMORY_TOTAL, (double)memory.total);
    }
    if (nvml->temperature && nvml->temperature(device, NVML_SENSOR_GPU, &number) == NVML_DONE)
        put(out, GPU_TEMPERATURE, number);
    if (nvml->power && nvml->power(device, &number) == NVML_DONE)
        put(out, GPU_POWER, number / 1000.0);
    if (nvml->clock && nvml->clock(device, NVML_CLOCK_SM, &number) == NVML_DONE)
        put(out, GPU_CLOCK, number);
    if (nvml->clock && nvml->clock(device, NVML_CLOCK_MEMORY, &number) == NVML_DONE)
        put(out, GPU_MEMORY_CLOCK, number);
}

static struct timespec after(double seconds) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double whole = (double)t.tv_sec + (double)t.tv_nsec * 1e-9 + seconds;
    t.tv_sec = (time_t)whole;
    t.tv_nsec = (long)((whole - (double)t.tv_sec) * 1e9);
    return t;
}

static void *read_again_and_again(void *context) {
    struct gpu_telemetry *t = context;
    struct gpu_reading reading;
    pthread_mutex_lock(&t->lock);
    while (!t->ending) {
        for (int i = 0; i < t->gpus.count && !t->ending; i++) {
            pthread_mutex_unlock(&t->lock); /* an answer may take long */
            read_gpu(&t->nvml, t->gpus.gpu[i].bus, &reading);
            pthread_mutex_lock(&t->lock);
            t->readings[i] = reading;
            t->fresh[i] = true;
        }
        struct timespec until = after(t->seconds);
        while (!t->ending && pthread_cond_timedwait(&t->wake, &t->lock, &until) != ETIMEDOUT)
            continue;
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static int start_thread(struct gpu_telemetry *t) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&t->thread, NULL, read_again_and_again, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

enum status gpu_telemetry_open(const struct device_gpus *gpus, double seconds, const char *library,
                               struct gpu_telemetry **out) {
    struct gpu_telemetry *t = calloc(1, sizeof *t);
    if (!t)
        return status_fail(STATUS_NO_MEMORY, "no memory for the GPUs' telemetry");
    t->gpus = *gpus;
    t->seconds = seconds;
    enum status status = nvml_open(library, &t->nvml);
    if (status != STATUS_OK) {
        free(t);
        return status;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&t->lock, NULL);
    int error = start_thread(t);
    if (error) {
        pthread_mutex_destroy(&t->lock);
        pthread_cond_destroy(&t->wake);
        nvml_close(&t->nvml);
        free(t);
        return status_fail(STATUS_NO_MEMORY, "no thread for the GPUs' telemetry: %s", strerror(error));
    }
    *out = t;
    return STATUS_OK;
}

void gpu_telemetry_close(struct gpu_telemetry *t) {
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->ending = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->wake);
    nvml_close(&t->nvml);
    free(t);
}

bool gpu_telemetry_read(struct gpu_telemetry *t, int gpu, struct gpu_reading *out) {
    if (gpu < 0 || gpu >= t->gpus.count)
        return false;
    pthread_mutex_lock(&t->lock);
    bool fresh = t->fresh[gpu];
    *out = t->readings[gpu];
    t->fresh[gpu] = false;
    pthread_mutex_unlock(&t->lock);
    return fresh;
}
