/* LRN by square roots. The window of nine over whole vectors runs in registers (lrn_pixel.h); other radii and
 * channel counts go through lines of memory with zeros on both sides. */
#include "kernels/cpu/isa/lrn.h"
#include "kernels/cpu/isa/lrn_pixel.h"

/* ---- any radius, any number of channels */

/* line: radius zeros, the values, and zeros up to where the last window can look. */
INLINE void clear_line(float *line, const struct op *op) {
    memset(line, 0, ((size_t)op->in.c + 2 * (size_t)op->lrn.radius + VEC) * sizeof *line);
}

INLINE vec line_sum(const float *line, int c, int radius) {
    vec sum = vec_load(line + c);
    for (int k = 1; k <= 2 * radius; k++)
        sum += vec_load(line + c + k);
    return sum;
}

INLINE int tail(int channels, int c) {
    return channels - c < VEC ? channels - c : VEC;
}

INLINE void square_line(const float *x, float *values, int channels) {
    for (int c = 0; c < channels; c += VEC) {
        vec v = vec_load_some(x + c, tail(channels, c));
        vec_store(values + c, v * v);
    }
}

static void any_forward(const struct op *op, size_t pixels, const float *x, float *y, float *scratch) {
    const int channels = op->in.c, radius = op->lrn.radius;
    const float bias = (float)op->lrn.bias, alpha = (float)op->lrn.alpha;
    clear_line(scratch, op);
    for (size_t p = 0; p < pixels; p++, x += channels, y += channels) {
        square_line(x, scratch + radius, channels);
        for (int c = 0; c < channels; c += VEC) {
            vec inverse, n = bias + alpha * line_sum(scratch, c, radius);
            vec v = vec_load_some(x + c, tail(channels, c)) * lrn_power(n, &inverse);
            vec_store_some(y + c, v, tail(channels, c));
        }
    }
}

static void any_backward(const struct op *op, size_t pixels, const float *x, const float *dy, float *dx,
                         bool relu, float *scratch) {
    const int channels = op->in.c, radius = op->lrn.radius;
    const float bias = (float)op->lrn.bias, alpha = (float)op->lrn.alpha;
    const float factor = (float)(2 * op->lrn.alpha * op->lrn.beta);
    float *squares = scratch, *ratios = scratch + lrn_scratch_floats(op) / 2;
    clear_line(squares, op);
    clear_line(ratios, op);
    for (size_t p = 0; p < pixels; p++, x += channels, dy += channels, dx += channels) {
        square_line(x, squares + radius, channels);
        for (int c = 0; c < channels; c += VEC) {
            vec inverse, n = bias + alpha * line_sum(squares, c, radius);
            vec g = vec_load_some(dy + c, tail(channels, c)) * lrn_power(n, &inverse);
            vec_store_some(dx + c, g, tail(channels, c));
            vec_store(ratios + radius + c, g * vec_load_some(x + c, tail(channels, c)) * inverse);
        }
        for (int c = 0; c < channels; c += VEC) {
            vec at = vec_load_some(x + c, tail(channels, c));
            vec d = vec_load_some(dx + c, tail(channels, c)) - factor * at * line_sum(ratios, c, radius);
            vec_store_some(dx + c, relu ? vec_keep(vec_greater(at, vec_zero()), d) : d, tail(channels, c));
        }
    }
}

/* ---- radius 4, whole vectors */

INLINE void nine_forward(const struct op *op, size_t pixels, const float *x, float *y, const int vectors) {
    const float bias = (float)op->lrn.bias, alpha = (float)op->lrn.alpha;
    for (size_t p = 0; p < pixels; p++, x += vectors * VEC, y += vectors * VEC)
        lrn_pixel_forward(bias, alpha, vectors, x, y);
}

INLINE void nine_backward(const struct op *op, size_t pixels, const float *x, const float *dy, float *dx,
                          bool relu, float *scratch, const int vectors) {
    const float bias = (float)op->lrn.bias, alpha = (float)op->lrn.alpha;
    const float factor = (float)(2 * op->lrn.alpha * op->lrn.beta);
    for (size_t p = 0; p < pixels; p++, x += vectors * VEC, dy += vectors * VEC, dx += vectors * VEC)
        lrn_pixel_backward(bias, alpha, factor, vectors, x, dy, dx, relu, scratch);
}

INLINE bool nine(const struct op *op) {
    return op->lrn.radius == 4 && op->in.c % VEC == 0;
}

static void forward(const struct op *op, size_t pixels, const float *x, float *y, float *scratch) {
    if (!nine(op))
        any_forward(op, pixels, x, y, scratch);
    else if (op->in.c == 64)
        nine_forward(op, pixels, x, y, 64 / VEC);
    else
        nine_forward(op, pixels, x, y, op->in.c / VEC);
}

static void backward(const struct op *op, size_t pixels, const float *x, const float *dy, float *dx,
                     bool relu, float *scratch) {
    if (!nine(op))
        any_backward(op, pixels, x, dy, dx, relu, scratch);
    else if (op->in.c == 64)
        nine_backward(op, pixels, x, dy, dx, relu, scratch, 64 / VEC);
    else
        nine_backward(op, pixels, x, dy, dx, relu, scratch, op->in.c / VEC);
}

const struct lrn_kernels ISA_SYMBOL(lrn_kernels) = {forward, backward};
