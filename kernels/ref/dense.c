/* y[o] = sum over i of x[i] * w[i,o]; the input's values in h, w, c order. */
#include "kernels/ref/operation.h"

#include <string.h>

static void dense_forward(const struct op *op, int images, const struct plan_args *args) {
    int inputs = (int)shape_size(op->in), units = op->out.c;
    const real *x = args->x.data;
    real *y = args->y.data;
    memset(y, 0, (size_t)images * units * sizeof *y);
    for (int n = 0; n < images; n++, x += inputs, y += units) {
        const real *row = args->params[0].data;
        for (int i = 0; i < inputs; i++, row += units)
            real_add_scaled(y, x[i], row, units);
    }
}

/* dw[i,o] = sum over images of x[i] * dy[o]; dx[i] = sum over o of dy[o] * w[i,o]. */
static void dense_backward(const struct op *op, int images, const struct plan_args *args) {
    int inputs = (int)shape_size(op->in), units = op->out.c;
    const real *x = args->x.data, *dy = args->dy.data, *weights = args->params[0].data;
    real *gradient = args->grads[0].data, *dx = args->dx.data;
    memset(gradient, 0, op_parameter_size(op) * sizeof *gradient);
    for (int i = 0; i < inputs; i++)
        for (int n = 0; n < images; n++)
            real_add_scaled(gradient + (size_t)i * units, x[(size_t)n * inputs + i], dy + (size_t)n * units,
                            units);
    for (int n = 0; dx && n < images; n++)
        for (int i = 0; i < inputs; i++)
            dx[(size_t)n * inputs + i] = real_dot(dy + (size_t)n * units, weights + (size_t)i * units, units);
}

const struct operation REF(dense) = {
    .backward_reads_x = true,
    .forward = dense_forward,
    .backward = dense_backward,
};
