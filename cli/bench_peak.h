/* How fast the processor multiplies and adds at this moment, for towerscope bench: to be measured beside what
 * is compared with it. */
#ifndef TOWERSCOPE_CLI_BENCH_PEAK_H
#define TOWERSCOPE_CLI_BENCH_PEAK_H

#include "kernels/cpu/isa/peak.h"
#include "kernels/device.h"

/* GFLOP/s of the threads of a worker of the CPU device, in some milliseconds; to be called by that worker. */
enum status bench_peak_team(const struct peak_kernels *kernels, struct stream *stream, double *rate);

/* Of all threads of a CPU device, for at least `seconds`. */
enum status bench_peak_run(const struct peak_kernels *kernels, struct device_handle device, double seconds,
                           double *rate);

#endif
