/* What is known of the machine while a run trains: live-only `device` events. */
#ifndef TOWERSCOPE_CLI_TELEMETRY_H
#define TOWERSCOPE_CLI_TELEMETRY_H

#include "engine/wire/event.h"
#include "kernels/cuda/host/telemetry.h"
#include "kernels/device.h"

struct telemetry { /* all zero: nothing measured yet */
    double measured, cpu_seconds;
    const struct device_gpus *gpus; /* the device's own, NULL: it is a processor */
    struct gpu_telemetry *readings; /* NULL: not known */
};

/* Start to read the GPUs of a device that has some; telemetry_close ends it, before the device is closed.
 * Where the driver's library can't be had, what it would say stays unknown: the result is its reason, and no
 * failure of the run. */
enum status telemetry_open(struct telemetry *telemetry, struct device_handle device);
void telemetry_close(struct telemetry *telemetry);

/* Fill a device event for GPU `gpu`, from 0; false: nothing new of it, or there is no such one. */
bool telemetry_gpu(struct telemetry *telemetry, int gpu, struct event *out);

/* Fill a device event for this process on the processor; false: not yet due (each two seconds). `threads`:
 * how many it computes with. */
bool telemetry_measure(struct telemetry *telemetry, const char *device, int threads, struct event *out);

#endif
