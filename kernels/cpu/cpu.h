/* The CPU device: oneDNN and our own vector kernels over a pool of threads (team.h).
 *
 * One device, index 0. Work is done when a call returns. Who computes what is decided when an operation is
 * planned (impl.h); plan_request.force names an implementation: "onednn", "vector" or another of
 * implementations.c; operations that it can't take fall to the default.
 *
 * extra("refusals") is a  const char *(*)(const struct plan *):  why the implementations preferred to the
 * chosen one did not take a plan's operations, a line each; "" when the first did. */
#ifndef TOWERSCOPE_KERNELS_CPU_CPU_H
#define TOWERSCOPE_KERNELS_CPU_CPU_H

#include "kernels/device.h"

extern const struct device_ops cpu_device_ops;

#endif
