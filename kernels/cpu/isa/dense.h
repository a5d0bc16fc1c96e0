/* Dense layers by matrix products in registers (gemm.h), on the tensors as they lie: x [images][inputs],
 * w [inputs][outputs], y [images][outputs]. Every sum runs over its index in order, so that neither the
 * pieces of the inputs nor the number of images change a bit of any result. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_DENSE_H
#define TOWERSCOPE_KERNELS_CPU_ISA_DENSE_H

#include "kernels/cpu/isa.h"

struct dense {
    int images, inputs, outputs;
    const float *x, *w, *bias; /* bias may be NULL */
    float *y;                  /* backward reads it where there is a ReLU */
    bool relu;
    float *dy;     /* backward makes it the gradient before the ReLU */
    float *turned; /* [outputs][turned_images]: dy with images next to each other; NULL: dx is not wanted */
    int turned_images;
    float *dx, *dw, *db; /* NULL: not wanted */
    bool add;            /* gradients() and bias() add to dw and db */
};

struct dense_kernels {
    void (*forward)(const struct dense *d);
    /* dy where y > 0 (with a ReLU), db and turned: before the next one. */
    void (*turn)(const struct dense *d);
    /* dw and dx of `count` inputs from `first`. */
    void (*gradients)(const struct dense *d, int first, int count);
    /* db alone, from a dy that turn() was done with. */
    void (*bias)(const struct dense *d);
};

ISA_DECLARE(const struct dense_kernels, dense_kernels);

#endif
