/* The few functions of NVML that are used, by the types of its interface, which is stable. */
#ifndef TOWERSCOPE_KERNELS_CUDA_HOST_NVML_H
#define TOWERSCOPE_KERNELS_CUDA_HOST_NVML_H

#include "kernels/status.h"

struct nvml_utilization { /* percent */
    unsigned gpu, memory;
};

struct nvml_memory { /* bytes */
    unsigned long long total, free, used;
};

enum { NVML_DONE = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2, NVML_SENSOR_GPU = 0 };

struct nvml { /* functions that a driver lacks are NULL, but for the first five */
    void *library;
    int (*start)(void);
    int (*stop)(void);
    const char *(*words)(int error);
    int (*by_bus)(const char *bus, void **device);
    int (*memory)(void *device, struct nvml_memory *out);
    int (*utilization)(void *device, struct nvml_utilization *out);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*power)(void *device, unsigned *milliwatts);
    int (*clock)(void *device, int which, unsigned *mhz);
};

/* Load and start it. STATUS_UNSUPPORTED with the reason. Stop with nvml_close (a zeroed one is fine). */
enum status nvml_open(const char *library, struct nvml *out);
void nvml_close(struct nvml *nvml);

#endif
