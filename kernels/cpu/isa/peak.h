/* How fast multiplications and additions can be at all: what kernels are measured against. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_PEAK_H
#define TOWERSCOPE_KERNELS_CPU_ISA_PEAK_H

#include "kernels/cpu/isa.h"

struct peak_kernels {
    /* Multiply and add in registers, `rounds` times; returns how many operations that was (a multiplication
     * and an addition are two). The time is the caller's to take. */
    double (*multiply_add)(long rounds);
};

ISA_DECLARE(const struct peak_kernels, peak_kernels);

#endif
