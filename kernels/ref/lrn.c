/* Local response normalisation over channels: Krizhevsky, Sutskever, Hinton, "ImageNet classification with
 * deep convolutional neural networks", 2012, section 3.3. N_j = bias + alpha * sum_{|k-j| <= radius} x_k^2,
 * y_j = x_j * N_j^-beta The window is clipped at the ends; alpha is not divided by its size. */
#include "kernels/ref/operation.h"

#include <math.h>

/* sum of v[k] over the channels within `radius` of `at` */
static real window_sum(const real *v, int channels, int at, int radius) {
    int first = at - radius < 0 ? 0 : at - radius;
    int last = at + radius > channels - 1 ? channels - 1 : at + radius;
    real sum = 0;
    for (int k = first; k <= last; k++)
        sum += v[k];
    return sum;
}

/* N of one pixel; squares is scratch. */
static void normaliser(const struct op *op, const real *x, real *squares, real *n) {
    for (int k = 0; k < op->in.c; k++)
        squares[k] = x[k] * x[k];
    for (int j = 0; j < op->in.c; j++)
        n[j] = (real)op->lrn.bias + (real)op->lrn.alpha * window_sum(squares, op->in.c, j, op->lrn.radius);
}

static void lrn_forward(const struct op *op, int images, const struct plan_args *args) {
    const real *x = args->x.data;
    real *y = args->y.data;
    real *squares = args->scratch.data, *n = squares + op->in.c;
    size_t pixels = (size_t)images * op->in.h * op->in.w;
    for (size_t p = 0; p < pixels; p++, x += op->in.c, y += op->in.c) {
        normaliser(op, x, squares, n);
        for (int j = 0; j < op->in.c; j++)
            y[j] = x[j] * real_pow(n[j], (real)-op->lrn.beta);
    }
}

/* dx_k = g_k * N_k^-beta - 2 * alpha * beta * x_k * sum_{|j-k| <= radius} g_j * y_j / N_j */
static void lrn_backward(const struct op *op, int images, const struct plan_args *args) {
    if (!args->dx.data)
        return;
    const real *x = args->x.data, *g = args->dy.data;
    real *dx = args->dx.data;
    real *ratio = args->scratch.data, *n = ratio + op->in.c, *power = n + op->in.c;
    real factor = (real)(2 * op->lrn.alpha * op->lrn.beta);
    size_t pixels = (size_t)images * op->in.h * op->in.w;
    for (size_t p = 0; p < pixels; p++, x += op->in.c, g += op->in.c, dx += op->in.c) {
        normaliser(op, x, ratio, n);
        for (int j = 0; j < op->in.c; j++) {
            power[j] = real_pow(n[j], (real)-op->lrn.beta);
            ratio[j] = g[j] * x[j] * power[j] / n[j];
        }
        for (int k = 0; k < op->in.c; k++)
            dx[k] = g[k] * power[k] - factor * x[k] * window_sum(ratio, op->in.c, k, op->lrn.radius);
    }
}

static size_t lrn_scratch(const struct op *op) {
    return 3 * (size_t)op->in.c * sizeof(real);
}

const struct operation REF(lrn) = {
    .backward_reads_x = true,
    .scratch = lrn_scratch,
    .forward = lrn_forward,
    .backward = lrn_backward,
};
