/* Max pooling of any window, alone or with the LRN before it. What won is kept as one byte: kernel row *
 * kernel_w + kernel column. The first in row order wins a tie; what is not a number wins over all, so that it
 * is not lost. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_MAX_POOL_H
#define TOWERSCOPE_KERNELS_CPU_ISA_MAX_POOL_H

#include "kernels/cpu/isa/lrn.h"

enum { MAX_POOL_KERNEL = 15 };

struct max_pool_kernels {
    /* x: [images][in], y and won: [images][out]; won may be NULL. */
    void (*forward)(const struct op *pool, int images, const float *x, float *y, uint8_t *won);
    void (*backward)(const struct op *pool, int images, const float *dy, const uint8_t *won, float *dx);
    /* LRN of x, then the pool; the normalised values are not stored. scratch: lrn_pool_scratch_floats(). */
    void (*lrn_forward)(const struct op *lrn, const struct op *pool, int images, const float *x, float *y,
                        uint8_t *won, float *scratch);
    /* relu as in lrn_kernels.backward. */
    void (*lrn_backward)(const struct op *lrn, const struct op *pool, int images, const float *x,
                         const float *dy, const uint8_t *won, float *dx, bool relu, float *scratch);
};

ISA_DECLARE(const struct max_pool_kernels, max_pool_kernels);

/* Kernels of up to 15x15, no window of which lies in the padding alone. */
static inline bool max_pool_supported(const struct op *op) {
    if (op->kind != OP_MAX_POOL)
        return false;
    const struct op_window *w = &op->window;
    return w->kernel_h <= MAX_POOL_KERNEL && w->kernel_w <= MAX_POOL_KERNEL && w->pad_top < w->kernel_h &&
           w->pad_left < w->kernel_w && (op->out.h - 1) * w->stride - w->pad_top < op->in.h &&
           (op->out.w - 1) * w->stride - w->pad_left < op->in.w;
}

/* Radius 4 and a multiple of 16 channels. */
static inline bool lrn_pool_supported(const struct op *lrn, const struct op *pool) {
    return lrn_supported(lrn) && lrn->lrn.radius == 4 && lrn->in.c % 16 == 0 && max_pool_supported(pool);
}

static inline size_t lrn_pool_scratch_floats(const struct op *lrn, const struct op *pool) {
    return (size_t)pool->window.kernel_h * (size_t)pool->in.w * (size_t)pool->in.c + 3 * (size_t)lrn->in.c;
}

#endif
