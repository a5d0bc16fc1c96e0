#include "cli/telemetry.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "engine/base/clock.h"

static const double PERIOD_SECONDS = 2;

/* ---- GPUs */

enum status telemetry_open(struct telemetry *telemetry, struct device_handle device) {
    if (!device.ops->extra)
        return STATUS_OK;
    telemetry->gpus = device.ops->extra(device.device, "gpus");
    if (!telemetry->gpus)
        return STATUS_OK;
    return gpu_telemetry_open(telemetry->gpus, PERIOD_SECONDS, NULL, &telemetry->readings);
}

void telemetry_close(struct telemetry *telemetry) {
    gpu_telemetry_close(telemetry->readings);
    *telemetry = (struct telemetry){0};
}

static double known(const struct gpu_reading *reading, enum gpu_value value) {
    return reading->valid & 1u << value ? reading->value[value] : wire_unknown();
}

static int64_t known_bytes(const struct gpu_reading *reading, enum gpu_value value) {
    return reading->valid & 1u << value ? (int64_t)reading->value[value] : WIRE_UNKNOWN_INT;
}

bool telemetry_gpu(struct telemetry *telemetry, int gpu, struct event *out) {
    struct gpu_reading reading;
    if (!telemetry->readings || !gpu_telemetry_read(telemetry->readings, gpu, &reading))
        return false;
    *out = event_new(EVENT_DEVICE);
    out->device.device = telemetry->gpus->gpu[gpu].name;
    out->device.memory_used = known_bytes(&reading, GPU_MEMORY_USED);
    out->device.memory_total = known_bytes(&reading, GPU_MEMORY_TOTAL);
    out->device.utilization = known(&reading, GPU_USE);
    out->device.temperature = known(&reading, GPU_TEMPERATURE);
    out->device.power = known(&reading, GPU_POWER);
    out->device.clock = known(&reading, GPU_CLOCK);
    return true;
}

/* ---- the processor */

static double seconds_of(struct timeval t) {
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

/* Memory that this process holds; unknown where the system does not say. */
static int64_t resident_bytes(void) {
    long long pages, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return WIRE_UNKNOWN_INT;
    int n = fscanf(file, "%lld %lld", &pages, &resident);
    fclose(file);
    return n == 2 ? resident * sysconf(_SC_PAGESIZE) : WIRE_UNKNOWN_INT;
}

static int64_t total_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (int64_t)pages * size : WIRE_UNKNOWN_INT;
}

bool telemetry_measure(struct telemetry *telemetry, const char *device, int threads, struct event *out) {
    double now = clock_seconds();
    if (now - telemetry->measured < PERIOD_SECONDS)
        return false;
    struct rusage usage;
    double cpu =
        getrusage(RUSAGE_SELF, &usage) == 0 ? seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime) : 0;
    double share = (cpu - telemetry->cpu_seconds) / (now - telemetry->measured) / (threads > 0 ? threads : 1);
    bool known = telemetry->measured > 0 && cpu > 0;
    telemetry->measured = now;
    telemetry->cpu_seconds = cpu;
    *out = event_new(EVENT_DEVICE);
    out->device.device = device;
    out->device.memory_used = resident_bytes();
    out->device.memory_total = total_bytes();
    if (known)
        out->device.utilization = share < 1 ? share : 1;
    return true;
}
