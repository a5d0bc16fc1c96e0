/* The implementations there are; implementations.c puts them in order. */
#ifndef TOWERSCOPE_KERNELS_CPU_IMPLEMENTATIONS_H
#define TOWERSCOPE_KERNELS_CPU_IMPLEMENTATIONS_H

#include "kernels/cpu/impl.h"

extern const struct cpu_implementation dense_implementation, vector_implementation;
extern const struct cpu_implementation onednn_weighted, onednn_window;
extern const struct cpu_implementation lrn_pool_implementation, lrn_implementation, max_pool_implementation;
extern const struct cpu_implementation winograd_5x5_implementation, winograd_3x3_implementation;
extern const struct cpu_implementation conv_pool_implementation;

#endif
