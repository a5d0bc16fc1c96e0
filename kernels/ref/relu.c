/* y = max(x, 0). Written so that a value that is not a number stays one and is found, not turned into 0. */
#include "kernels/ref/operation.h"

static void relu_forward(const struct op *op, int images, const struct plan_args *args) {
    const real *x = args->x.data;
    real *y = args->y.data;
    size_t count = (size_t)images * shape_size(op->in);
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] < 0 ? 0 : x[i];
}

static void relu_backward(const struct op *op, int images, const struct plan_args *args) {
    const real *y = args->y.data, *dy = args->dy.data;
    real *dx = args->dx.data;
    size_t count = (size_t)images * shape_size(op->in);
    for (size_t i = 0; dx && i < count; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
}

const struct operation REF(relu) = {
    .backward_reads_y = true,
    .forward = relu_forward,
    .backward = relu_backward,
};
