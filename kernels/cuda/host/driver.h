/* Whether this machine has a driver for NVIDIA's GPUs, without loading anything. */
#ifndef TOWERSCOPE_KERNELS_CUDA_HOST_DRIVER_H
#define TOWERSCOPE_KERNELS_CUDA_HOST_DRIVER_H

#include <stdbool.h>

/* A device file of a driver is there: of a workstation or server, of Windows' subsystem, or of a Jetson
 * board. Loading the plugin takes 224 MB and is worth it only then, or when somebody asks for the device. */
bool cuda_driver_present(void);

/* "no NVIDIA driver on this machine: ..." */
const char *cuda_driver_absence(void);

#endif
