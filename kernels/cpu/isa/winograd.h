/* Convolutions of stride 1 by minimal filtering: Winograd's F(4x4, 5x5) and F(4x4, 3x3), as in Lavin and
 * Gray, "Fast Algorithms for Convolutional Neural Networks", 2015. With T = 4 outputs and K taps in each
 * direction, an output tile needs A = T + K - 1 inputs in each direction:
 *
 *   y  = AT [ (G w GT) * (BT x B) ] A         forward: T x T outputs of an A x A tile of x
 *   dx = the same with dy for x and w turned by 180 degrees, in and out channels exchanged
 *   dw = AK [ (GT dy GT') * (BT x B) ] AK'    the K x K taps are the "outputs", a T x T tile of dy the "taps"
 *
 * where * is element by element; summed over channels (for dw: over tiles) that is A * A matrix products, one
 * for each element of the tile ("frequency"). The matrices are in points*.h: B, and G and A for T or K taps
 * and outputs, are those of polynomial interpolation at the same A points.
 *
 * Work goes in blocks of a few strips (rows of tiles). Both directions of a transform are passes of their
 * own: the vertical one over whole rows of the image, the horizontal one frequency row by frequency row just
 * before (after) the products that need (make) it, so that all operands of the products stay in the nearest
 * cache.
 *
 * An image's results never depend on the block it falls in. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_WINOGRAD_H
#define TOWERSCOPE_KERNELS_CPU_ISA_WINOGRAD_H

#include "kernels/cpu/isa.h"
#include "kernels/tensor.h"

/* Channels are multiples of 16. out.h = in.h + pads - K + 1, likewise out.w; pads are below K. */
struct winograd_shape {
    struct shape in, out;
    int pad_top, pad_left;
};

struct winograd_kernels {
    int kernel; /* K */

    /* Sizes in floats. A gradient holds A * A * in.c * out.c values of dw's transform, then out.c of the
     * bias's. */
    size_t (*weights_floats)(const struct winograd_shape *);
    size_t (*gradient_floats)(const struct winograd_shape *);
    size_t (*forward_scratch_floats)(const struct winograd_shape *);
    size_t (*gradient_scratch_floats)(const struct winograd_shape *);

    /* w: [K][K][in.c][out.c]; transformed for input channels first .. first + count - 1 only. */
    void (*weights)(const struct winograd_shape *, const float *w, int first, int count, float *transformed);

    /* y = convolution (+ bias, unless NULL) (, ReLU). Both ways: for the gradient of the input give the shape
     * of that convolution and the weights turned and exchanged. */
    void (*forward)(const struct winograd_shape *, int images, const float *x, const float *transformed,
                    const float *bias, bool relu, float *y, float *scratch);

    /* gradient = (or, with add, +=) that of the weights, and the sums of dy. With y, the output of a ReLU, dy
     * is first set to 0 in memory where y is not positive. */
    void (*gradient)(const struct winograd_shape *, int images, const float *x, float *dy, const float *y,
                     bool add, float *gradient, float *scratch);

    /* dw, and db unless NULL, of what gradient() left. */
    void (*finish)(const struct winograd_shape *, const float *gradient, float *dw, float *db);
};

ISA_DECLARE(const struct winograd_kernels, winograd_5x5_kernels);
ISA_DECLARE(const struct winograd_kernels, winograd_3x3_kernels);

#endif
