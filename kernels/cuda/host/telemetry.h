/* What NVIDIA's management library (NVML) says of GPUs: asked in a thread of its own, since an answer may
 * take long, and loaded when it is first needed, since it comes with the driver. */
#ifndef TOWERSCOPE_KERNELS_CUDA_HOST_TELEMETRY_H
#define TOWERSCOPE_KERNELS_CUDA_HOST_TELEMETRY_H

#include "kernels/status.h"

#include <stdint.h>

enum { GPUS_MAX = 64 };

/* The GPUs of an open device: what device_ops.extra(device, "gpus") returns. CUDA and NVML number GPUs
 * differently; the place on the bus is the same for both. */
struct device_gpus {
    int count;
    struct {
        char name[16]; /* "cuda:0" */
        char bus[20];  /* "0000:3b:00.0" */
    } gpu[GPUS_MAX];
};

enum gpu_value {
    GPU_USE,          /* share of the last moments in which a kernel ran, 0..1 */
    GPU_MEMORY_USED,  /* bytes, all programs together */
    GPU_MEMORY_TOTAL, /* bytes */
    GPU_TEMPERATURE,  /* degrees Celsius */
    GPU_POWER,        /* watts */
    GPU_CLOCK,        /* of the multiprocessors, MHz */
    GPU_MEMORY_CLOCK, /* MHz */
    GPU_VALUES
};

struct gpu_reading {
    unsigned valid; /* bit 1 << value: it is known. A GPU that does not tell a value, or is gone, leaves it
                       unknown */
    double value[GPU_VALUES];
};

struct gpu_telemetry;

/* Start to read the GPUs each `seconds`. library: NULL for the driver's own. STATUS_UNSUPPORTED: there is no
 * such library or it does not start, and the text says why. The thread ends with gpu_telemetry_close (NULL is
 * fine). */
enum status gpu_telemetry_open(const struct device_gpus *gpus, double seconds, const char *library,
                               struct gpu_telemetry **out);
void gpu_telemetry_close(struct gpu_telemetry *telemetry);

/* The newest reading of GPU 0..count-1 of `gpus`; false: none since the last call with this GPU. */
bool gpu_telemetry_read(struct gpu_telemetry *telemetry, int gpu, struct gpu_reading *out);

#endif
