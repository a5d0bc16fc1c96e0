/* y[i,j,c] = the largest x[...,c] of the window's part inside the image: padding never wins. Of equal values
 * the first in row order wins, and the whole gradient goes to it. What won is saved as its index in the
 * image. */
#include "kernels/ref/operation.h"
#include "kernels/ref/window.h"

#include <string.h>

static int32_t winner(const struct op *op, const real *x, struct reach rows, struct reach columns, int c) {
    int32_t best = -1;
    for (int u = rows.first; u < rows.end; u++)
        for (int v = columns.first; v < columns.end; v++) {
            int32_t at = ((rows.start + u) * op->in.w + columns.start + v) * op->in.c + c;
            /* not a number wins, and stays: it must not be lost here */
            if (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best]))
                best = at;
        }
    return best;
}

static void max_pool_forward(const struct op *op, int images, const struct plan_args *args) {
    const struct op_window *w = &op->window;
    real *y = args->y.data;
    int32_t *won = args->saved.data;
    for (int n = 0; n < images; n++) {
        const real *x = (const real *)args->x.data + (size_t)n * shape_size(op->in);
        for (int i = 0; i < op->out.h; i++) {
            struct reach rows = window_reach(i, w->stride, w->pad_top, w->kernel_h, op->in.h);
            for (int j = 0; j < op->out.w; j++) {
                struct reach columns = window_reach(j, w->stride, w->pad_left, w->kernel_w, op->in.w);
                for (int c = 0; c < op->in.c; c++) {
                    int32_t at = winner(op, x, rows, columns, c);
                    *y++ = x[at];
                    if (won)
                        *won++ = at;
                }
            }
        }
    }
}

static void max_pool_backward(const struct op *op, int images, const struct plan_args *args) {
    if (!args->dx.data)
        return;
    const real *dy = args->dy.data;
    const int32_t *won = args->saved.data;
    size_t out = shape_size(op->out);
    for (int n = 0; n < images; n++, dy += out, won += out) {
        real *dx = (real *)args->dx.data + (size_t)n * shape_size(op->in);
        memset(dx, 0, shape_size(op->in) * sizeof *dx);
        for (size_t i = 0; i < out; i++)
            dx[won[i]] += dy[i];
    }
}

static size_t max_pool_saved(const struct op *op, int images) {
    return (size_t)images * shape_size(op->out) * sizeof(int32_t);
}

const struct operation REF(max_pool) = {
    .saved = max_pool_saved,
    .forward = max_pool_forward,
    .backward = max_pool_backward,
};
