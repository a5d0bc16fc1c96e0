/* Shapes. Everything in towerscope is laid out as TensorFlow's NHWC: the channel is the fastest index.
 * Convolution weights are [kernel row][kernel column][in][out], dense weights [in][out]. */
#ifndef TOWERSCOPE_KERNELS_TENSOR_H
#define TOWERSCOPE_KERNELS_TENSOR_H

#include <stddef.h>
#include <stdint.h>

/* One image's shape at some place of the network; the number of images stands apart. A vector of n values
 * (after flatten) is {1, 1, n}; flattening {h, w, c} keeps the order of the values. */
struct shape {
    int h, w, c;
};

/* Values of one image; shapes are checked when a model is read, so that this can't overflow. */
static inline size_t shape_size(struct shape s) {
    return (size_t)s.h * (size_t)s.w * (size_t)s.c;
}

#endif
