/* y[...,c] = x[...,c] + b[c]. */
#include "kernels/ref/operation.h"

#include <string.h>

static void bias_forward(const struct op *op, int images, const struct plan_args *args) {
    const real *x = args->x.data, *b = args->params[0].data;
    real *y = args->y.data;
    size_t pixels = (size_t)images * op->in.h * op->in.w;
    for (size_t p = 0; p < pixels; p++, x += op->in.c, y += op->in.c)
        for (int c = 0; c < op->in.c; c++)
            y[c] = x[c] + b[c];
}

/* db[c] = sum of dy[...,c], image by image as in conv.c; dx = dy. */
static void bias_backward(const struct op *op, int images, const struct plan_args *args) {
    const real *dy = args->dy.data;
    real *gradient = args->grads[0].data, *sum = args->scratch.data;
    size_t channel_bytes = (size_t)op->in.c * sizeof(real);
    memset(gradient, 0, channel_bytes);
    for (int n = 0; n < images; n++) {
        memset(sum, 0, channel_bytes);
        for (int p = 0; p < op->in.h * op->in.w; p++, dy += op->in.c)
            real_add_scaled(sum, 1, dy, op->in.c);
        real_add_scaled(gradient, 1, sum, op->in.c);
    }
    if (args->dx.data)
        memcpy(args->dx.data, args->dy.data, (size_t)images * shape_size(op->in) * sizeof(real));
}

static size_t bias_scratch(const struct op *op) {
    return (size_t)op->in.c * sizeof(real);
}

const struct operation REF(bias) = {
    .scratch = bias_scratch,
    .forward = bias_forward,
    .backward = bias_backward,
};
