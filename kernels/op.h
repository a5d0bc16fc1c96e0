/* The operations of a network, as plain descriptions. What computes them is a plan (device.h).
 *
 * Formulas and paddings: "Numbers" in ARCHITECTURE.md; the readable version of each is in kernels/ref. */
#ifndef TOWERSCOPE_KERNELS_OP_H
#define TOWERSCOPE_KERNELS_OP_H

#include "kernels/status.h"
#include "kernels/tensor.h"

enum op_kind {
    OP_CONV,     /* y[n,i,j,o] = sum x[n, i*stride+u-pad_top, j*stride+v-pad_left, c] * w[u,v,c,o]; 1 parameter */
    OP_BIAS,     /* y = x + b[channel]; 1 parameter */
    OP_RELU,     /* y = max(x, 0); the gradient passes where y > 0 */
    OP_MAX_POOL, /* the largest value of the window inside the image; the first in row order wins a tie */
    OP_LRN,      /* y_j = x_j * (bias + alpha * sum_{|k-j| <= radius} x_k^2) ^ -beta over channels */
    OP_DENSE,    /* y[n,o] = sum_i x[n,i] * w[i,o]; 1 parameter. x is flattened (h, w, c order) */
    OP_KINDS
};

struct op_window { /* OP_CONV and OP_MAX_POOL */
    int kernel_h, kernel_w, stride;
    int pad_top, pad_left, pad_bottom, pad_right; /* SAME may be asymmetric: pools here pad 0 before, 1 after */
};

struct op_lrn {
    int radius; /* 4: a window of 9 channels, clipped at the ends, not renormalised */
    double bias, alpha, beta;
};

struct op {
    enum op_kind kind;
    struct shape in, out; /* of one image */
    union {
        struct op_window window;
        struct op_lrn lrn;
    };
};

/* "conv", "bias", ...; never NULL. */
const char *op_kind_name(enum op_kind kind);

/* Number of values of the operation's parameter; 0 when it has none. */
size_t op_parameter_size(const struct op *op);

/* Multiplications and additions of one image, forward, padding taps counted; 0 for the cheap kinds. */
double op_flops(const struct op *op);

/* Fill window's paddings and return the output size for TensorFlow's SAME rule:
 * out = ceil(in / stride), pad = max((out-1)*stride + kernel - in, 0), before = floor(pad/2), after = the rest.
 * window->kernel_h, kernel_w and stride are read. */
struct shape op_same_padding(struct shape in, int channels_out, struct op_window *window);

/* Whether the description is whole: sizes positive, output following from input and window, each padding
 * smaller than the kernel (so that every window touches the image). STATUS_INTERNAL if not: whoever built the
 * description is at fault. For plan() of every device. */
enum status op_verify(const struct op *op);

#endif
