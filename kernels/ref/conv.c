/* Convolution without bias: y[i,j,o] = sum over u, v, c of x[i*stride+u-pad_top, j*stride+v-pad_left, c] *
 * w[u,v,c,o]; taps outside the image count as 0 and are left out. */
#include "kernels/ref/operation.h"
#include "kernels/ref/window.h"

#include <string.h>

static void conv_forward(const struct op *op, int images, const struct plan_args *args) {
    const struct op_window *w = &op->window;
    const real *weights = args->params[0].data;
    for (int n = 0; n < images; n++) {
        const real *x = (const real *)args->x.data + (size_t)n * shape_size(op->in);
        real *y = (real *)args->y.data + (size_t)n * shape_size(op->out);
        memset(y, 0, shape_size(op->out) * sizeof *y);
        for (int i = 0; i < op->out.h; i++) {
            struct reach rows = window_reach(i, w->stride, w->pad_top, w->kernel_h, op->in.h);
            for (int j = 0; j < op->out.w; j++, y += op->out.c) {
                struct reach columns = window_reach(j, w->stride, w->pad_left, w->kernel_w, op->in.w);
                for (int u = rows.first; u < rows.end; u++)
                    for (int v = columns.first; v < columns.end; v++) {
                        const real *pixel =
                            x + ((size_t)(rows.start + u) * op->in.w + columns.start + v) * op->in.c;
                        const real *tap = weights + ((size_t)u * w->kernel_w + v) * op->in.c * op->out.c;
                        for (int c = 0; c < op->in.c; c++, tap += op->out.c)
                            real_add_scaled(y, pixel[c], tap, op->out.c);
                    }
            }
        }
    }
}

/* dx[...,c] += sum over o of dy[i,j,o] * w[u,v,c,o], for every output position and tap. */
static void input_gradient(const struct op *op, const real *weights, const real *dy, real *dx) {
    const struct op_window *w = &op->window;
    memset(dx, 0, shape_size(op->in) * sizeof *dx);
    for (int i = 0; i < op->out.h; i++) {
        struct reach rows = window_reach(i, w->stride, w->pad_top, w->kernel_h, op->in.h);
        for (int j = 0; j < op->out.w; j++, dy += op->out.c) {
            struct reach columns = window_reach(j, w->stride, w->pad_left, w->kernel_w, op->in.w);
            for (int u = rows.first; u < rows.end; u++)
                for (int v = columns.first; v < columns.end; v++) {
                    real *pixel = dx + ((size_t)(rows.start + u) * op->in.w + columns.start + v) * op->in.c;
                    const real *tap = weights + ((size_t)u * w->kernel_w + v) * op->in.c * op->out.c;
                    for (int c = 0; c < op->in.c; c++, tap += op->out.c)
                        pixel[c] += real_dot(dy, tap, op->out.c);
                }
        }
    }
}

/* sum[o] = what one image adds to the gradient of w[u,v,c,o]. Summing an image for itself before adding it
 * to the others keeps float sums short. */
static void tap_gradient(const struct op *op, const real *x, const real *dy, int u, int v, int c, real *sum) {
    const struct op_window *w = &op->window;
    memset(sum, 0, (size_t)op->out.c * sizeof *sum);
    for (int i = 0; i < op->out.h; i++) {
        int row = i * w->stride + u - w->pad_top;
        if (row < 0 || row >= op->in.h)
            continue;
        for (int j = 0; j < op->out.w; j++) {
            int column = j * w->stride + v - w->pad_left;
            if (column >= 0 && column < op->in.w)
                real_add_scaled(sum, x[((size_t)row * op->in.w + column) * op->in.c + c],
                                dy + ((size_t)i * op->out.w + j) * op->out.c, op->out.c);
        }
    }
}

static void conv_backward(const struct op *op, int images, const struct plan_args *args) {
    real *gradient = args->grads[0].data, *sum = args->scratch.data;
    memset(gradient, 0, op_parameter_size(op) * sizeof *gradient);
    for (int n = 0; n < images; n++) {
        const real *x = (const real *)args->x.data + (size_t)n * shape_size(op->in);
        const real *dy = (const real *)args->dy.data + (size_t)n * shape_size(op->out);
        real *row = gradient;
        for (int u = 0; u < op->window.kernel_h; u++)
            for (int v = 0; v < op->window.kernel_w; v++)
                for (int c = 0; c < op->in.c; c++, row += op->out.c) {
                    tap_gradient(op, x, dy, u, v, c, sum);
                    real_add_scaled(row, 1, sum, op->out.c);
                }
        if (args->dx.data)
            input_gradient(op, args->params[0].data, dy,
                           (real *)args->dx.data + (size_t)n * shape_size(op->in));
    }
}

static size_t conv_scratch(const struct op *op) {
    return (size_t)op->out.c * sizeof(real);
}

const struct operation REF(conv) = {
    .backward_reads_x = true,
    .scratch = conv_scratch,
    .forward = conv_forward,
    .backward = conv_backward,
};
