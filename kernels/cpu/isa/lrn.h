/* Local response normalisation over channels (formulas: kernels/ref/lrn.c) with beta = 3/4: the power is made
 * of square roots, N^-3/4 = r * r * 1/sqrt(r) with r = 1/sqrt(N). */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_LRN_H
#define TOWERSCOPE_KERNELS_CPU_ISA_LRN_H

#include "kernels/cpu/isa.h"
#include "kernels/op.h"

struct lrn_kernels {
    /* x, y: [pixels][op->in.c]; y may be x. scratch: lrn_scratch_floats() values. */
    void (*forward)(const struct op *op, size_t pixels, const float *x, float *y, float *scratch);
    /* dx may be dy. With relu, dx is 0 where x is not positive: the backward pass of a ReLU that made x. */
    void (*backward)(const struct op *op, size_t pixels, const float *x, const float *dy, float *dx,
                     bool relu, float *scratch);
};

ISA_DECLARE(const struct lrn_kernels, lrn_kernels);

/* Any radius and number of channels, beta 3/4, bias above 0, alpha not negative: else N may not be positive.
 */
static inline bool lrn_supported(const struct op *op) {
    return op->kind == OP_LRN && op->lrn.beta == 0.75 && op->lrn.bias > 0 && op->lrn.alpha >= 0;
}

static inline size_t lrn_scratch_floats(const struct op *op) {
    return 2 * ((size_t)op->in.c + 2 * (size_t)op->lrn.radius + 32);
}

#endif
