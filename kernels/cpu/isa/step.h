/* What a step does over flat arrays, for each instruction set. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_STEP_H
#define TOWERSCOPE_KERNELS_CPU_ISA_STEP_H

#include "kernels/cpu/isa.h"
#include "kernels/device.h"

enum {
    STEP_BLOCK = 1024
}; /* elements of a block of combine and update: a tower's piece stays in the first cache */

struct step_kernels {
    /* A block of combine: `first` and `count` elements (at most STEP_BLOCK) of one segment. Adds to
     * norms2[tower], dots[tower] and average_norm2. */
    void (*combine)(const struct combine_args *args, size_t first, size_t count, double decay, double *norms2,
                    double *dots, double *average_norm2);
    /* A block of update; adds to parameter_norm2 and update_norm2. */
    void (*update)(const struct update_args *args, size_t first, size_t count, double *parameter_norm2,
                   double *update_norm2);
    /* y = max(x, 0); a value that is not a number stays one. x and y may be the same. */
    void (*relu)(const float *x, float *y, size_t count);
    /* dx = dy where y > 0, else 0. dy and dx may be the same. */
    void (*relu_backward)(const float *y, const float *dy, float *dx, size_t count);
    /* y[row][column] = x[row][column] + bias[column]; x and y may be the same. */
    void (*bias)(const float *x, const float *bias, float *y, size_t rows, size_t columns);
    /* sums[column] = sum over the rows, in their order. */
    void (*column_sums)(const float *x, float *sums, size_t rows, size_t columns);
    /* to[i] += from[i] */
    void (*add)(float *to, const float *from, size_t count);
    void (*copy)(float *to, const float *from, size_t count);
};

ISA_DECLARE(const struct step_kernels, step_kernels);

#endif
