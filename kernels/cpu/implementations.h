/* The implementations there are; implementations.c puts them in order. */
#ifndef TOWERSCOPE_KERNELS_CPU_IMPLEMENTATIONS_H
#define TOWERSCOPE_KERNELS_CPU_IMPLEMENTATIONS_H

#include "kernels/cpu/impl.h"

extern const struct cpu_implementation vector_implementation, onednn_weighted, onednn_window;

#endif
