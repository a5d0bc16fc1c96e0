/* A network's first layers in one: convolution 5x5 of few channels, max pool, bias, ReLU and, if wanted, LRN.
 * The pool comes first of the last four, since a maximum commutes with adding a bias and with ReLU; so the
 * large output of the convolution never leaves the nearest cache, and is never stored.
 *
 * Forward is F(4x4, 5x5) (winograd.h), its products made on the fly between the two transforms. Backward
 * follows the arg-max of the pool: each value of the gradient reaches one place of the convolution, and so
 * one 5x5 patch of x. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_CONV_POOL_H
#define TOWERSCOPE_KERNELS_CPU_ISA_CONV_POOL_H

#include "kernels/cpu/isa/max_pool.h"

struct conv_pool {
    const struct op *conv, *pool, *lrn; /* lrn NULL: none */
};

struct conv_pool_kernels {
    /* Sizes in floats. A gradient holds a patch for each output channel, then the bias's. */
    size_t (*weights_floats)(const struct conv_pool *);
    size_t (*gradient_floats)(const struct conv_pool *);
    size_t (*forward_scratch_floats)(const struct conv_pool *);
    size_t (*gradient_scratch_floats)(const struct conv_pool *);

    /* w: [5][5][in.c][out.c], transformed. */
    void (*weights)(const struct conv_pool *, const float *w, float *transformed);

    /* The same for input_gradient(): to[out.c][5][5][in.c]. */
    void (*kernels)(const struct conv_pool *, const float *w, float *to);

    /* pooled: [images][pool->out], the pooled values after ReLU, before LRN; it may be y. won as in
     * max_pool.h; NULL: not wanted. */
    void (*forward)(const struct conv_pool *, int images, const float *x, const float *transformed,
                    const float *bias, float *pooled, uint8_t *won, float *y, float *scratch);

    /* gradient = (or, with add, +=) that of weights and bias. */
    void (*gradient)(const struct conv_pool *, int images, const float *x, const float *pooled,
                     const uint8_t *won, const float *dy, bool add, float *gradient, float *scratch);

    /* dw and db of what gradient() left. */
    void (*finish)(const struct conv_pool *, const float *gradient, float *dw, float *db);

    /* dx, for when this is not a network's first layer; scratch as gradient(). */
    void (*input_gradient)(const struct conv_pool *, int images, const float *pooled, const uint8_t *won,
                           const float *dy, const float *kernels, float *dx, float *scratch);
};

ISA_DECLARE(const struct conv_pool_kernels, conv_pool_kernels);

/* 1 to 4 channels to a multiple of 16, stride 1, pads below 5; pool and LRN as lrn_pool_supported(). */
static inline bool conv_pool_supported(const struct conv_pool *s) {
    const struct op_window *w = &s->conv->window;
    return s->conv->kind == OP_CONV && w->kernel_h == 5 && w->kernel_w == 5 && w->stride == 1 &&
           w->pad_top < 5 && w->pad_left < 5 && w->pad_bottom < 5 && w->pad_right < 5 && s->conv->in.c <= 4 &&
           s->conv->out.c % 16 == 0 && max_pool_supported(s->pool) &&
           (!s->lrn || (lrn_supported(s->lrn) && s->lrn->lrn.radius == 4));
}

#endif
