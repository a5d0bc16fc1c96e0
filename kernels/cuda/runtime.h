/* The CUDA runtime's refusals in words, and which GPU may be used. */
#ifndef TOWERSCOPE_KERNELS_CUDA_RUNTIME_H
#define TOWERSCOPE_KERNELS_CUDA_RUNTIME_H

#include "kernels/status.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The oldest architecture that the plugin has code for, 75 for sm_75. */
#define CUDA_OLDEST 75

/* "CUDA cannot WHAT: out of memory": STATUS_NO_MEMORY for memory, STATUS_DEVICE for the rest, STATUS_OK for
 * cudaSuccess. */
enum status cuda_checked(cudaError_t error, const char *what);

/* Whether GPU `index` is there and can run the plugin; its properties when it can. STATUS_NOT_FOUND: there
 * are GPUs, and none of this number. STATUS_UNSUPPORTED, with the reason: no driver, a driver older than the
 * runtime, no GPU at all, or one that is too old ("device too old (sm_61)"). Makes no GPU current. */
enum status cuda_probe(int index, struct cudaDeviceProp *out);

#ifdef __cplusplus
}
#endif

#endif
