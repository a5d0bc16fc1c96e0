#include "kernels/cpu/isa/max_pool.h"
#include "kernels/cpu/isa/lrn_pixel.h"
#include "kernels/cpu/isa/max_pool_window.h"

INLINE void pool_vector(const float *const *at, ptrdiff_t channels, int kernel_w, const int row,
                        const int row_end, const int column, const int column_end, float *y, uint8_t *won,
                        const int count) {
    struct pooled pooled =
        pool_window(at, channels, kernel_w, row, row_end, column, column_end, false, count);
    vec_store_some(y, pooled.best, count);
    if (won)
        vec_store_bytes_some(won, pooled.winner, count);
}

/* One output row. image_row[u]: the image's row rows.start + u, for u in reach. */
static void pool_row(const struct op *op, const float *const *image_row, struct reach rows, float *y,
                     uint8_t *won) {
    const struct op_window *w = &op->window;
    const ptrdiff_t channels = op->in.c, whole = channels - channels % VEC;
    const float *at[MAX_POOL_KERNEL];
    for (int j = 0; j < op->out.w; j++, y += channels, won = won ? won + channels : NULL) {
        struct reach columns = reach_of(j, w->stride, w->pad_left, w->kernel_w, op->in.w);
        bool inside =
            rows.first == 0 && columns.first == 0 && rows.end == 3 && columns.end == 3 && w->kernel_w == 3;
        for (int u = rows.first; u < rows.end; u++)
            at[u] = image_row[u] + columns.start * channels;
        for (ptrdiff_t c = 0; c < whole; c += VEC) {
            uint8_t *won_at = won ? won + c : NULL;
            if (inside)
                pool_vector(at, channels, 3, 0, 3, 0, 3, y + c, won_at, VEC);
            else
                pool_vector(at, channels, w->kernel_w, rows.first, rows.end, columns.first, columns.end,
                            y + c, won_at, VEC);
            for (int u = rows.first; u < rows.end; u++)
                at[u] += VEC;
        }
        if (whole < channels)
            pool_vector(at, channels, w->kernel_w, rows.first, rows.end, columns.first, columns.end,
                        y + whole, won ? won + whole : NULL, (int)(channels - whole));
    }
}

static void forward(const struct op *op, int images, const float *x, float *y, uint8_t *won) {
    const struct op_window *w = &op->window;
    const size_t row = (size_t)op->in.w * op->in.c, out_row = (size_t)op->out.w * op->out.c;
    for (int n = 0; n < images; n++, x += shape_size(op->in))
        for (int i = 0; i < op->out.h; i++, y += out_row, won = won ? won + out_row : NULL) {
            struct reach rows = reach_of(i, w->stride, w->pad_top, w->kernel_h, op->in.h);
            const float *image_row[MAX_POOL_KERNEL];
            for (int u = rows.first; u < rows.end; u++)
                image_row[u] = x + (size_t)(rows.start + u) * row;
            pool_row(op, image_row, rows, y, won);
        }
}

/* ---- backward: every input pixel gathers from the windows that cover it */

/* Windows first .. first + count - 1 cover position `at` in one direction; the first by its tap `tap`, each
 * further one by `stride` taps less. */
struct cover {
    int first, count, tap;
};

INLINE struct cover cover_of(int at, int stride, int pad, int kernel, int out) {
    int last = (at + pad) / stride, first = at + pad - kernel + 1;
    first = first > 0 ? (first + stride - 1) / stride : 0;
    last = last < out - 1 ? last : out - 1;
    return (struct cover){first, last - first + 1, at + pad - first * stride};
}

INLINE vec gather(const struct op *op, struct cover rows, struct cover columns, const float *dy,
                  const uint8_t *won, const int count) {
    const struct op_window *w = &op->window;
    vec sum = vec_zero();
    for (int i = 0; i < rows.count; i++)
        for (int j = 0; j < columns.count; j++) {
            size_t at = ((size_t)(rows.first + i) * op->out.w + (size_t)(columns.first + j)) * op->out.c;
            int tap = (rows.tap - i * w->stride) * w->kernel_w + columns.tap - j * w->stride;
            vec_int winner = vec_load_bytes_some(won + at, count);
            sum += vec_keep(vec_equal_int(winner, vec_set_int(tap)), vec_load_some(dy + at, count));
        }
    return sum;
}

INLINE void gather_pixel(const struct op *op, struct cover rows, struct cover columns, const float *dy,
                         const uint8_t *won, float *dx) {
    const int channels = op->in.c, whole = channels - channels % VEC;
    for (int c = 0; c < whole; c += VEC)
        vec_store(dx + c, gather(op, rows, columns, dy + c, won + c, VEC));
    if (whole < channels)
        vec_store_some(dx + whole, gather(op, rows, columns, dy + whole, won + whole, channels - whole),
                       channels - whole);
}

static void backward(const struct op *op, int images, const float *dy, const uint8_t *won, float *dx) {
    const struct op_window *w = &op->window;
    for (int n = 0; n < images; n++, dy += shape_size(op->out), won += shape_size(op->out))
        for (int h = 0; h < op->in.h; h++) {
            struct cover rows = cover_of(h, w->stride, w->pad_top, w->kernel_h, op->out.h);
            for (int j = 0; j < op->in.w; j++, dx += op->in.c)
                gather_pixel(op, rows, cover_of(j, w->stride, w->pad_left, w->kernel_w, op->out.w), dy, won,
                             dx);
        }
}

/* ---- with LRN: one ring of normalised rows, one line of gradients */

INLINE void lrn_pool_forward(const struct op *lrn, const struct op *op, int images, const float *x, float *y,
                             uint8_t *won, float *scratch, const int vectors) {
    const struct op_window *w = &op->window;
    const float bias = (float)lrn->lrn.bias, alpha = (float)lrn->lrn.alpha;
    const size_t row = (size_t)op->in.w * op->in.c, out_row = (size_t)op->out.w * op->out.c;
    for (int n = 0; n < images; n++, x += shape_size(op->in)) {
        int done = 0; /* rows of this image that have been normalised */
        for (int i = 0; i < op->out.h; i++, y += out_row, won = won ? won + out_row : NULL) {
            struct reach rows = reach_of(i, w->stride, w->pad_top, w->kernel_h, op->in.h);
            done = done < rows.start ? rows.start : done;
            for (; done < rows.start + rows.end; done++)
                for (int j = 0; j < op->in.w; j++)
                    lrn_pixel_forward(bias, alpha, vectors, x + done * row + (size_t)j * op->in.c,
                                      scratch + done % w->kernel_h * row + (size_t)j * op->in.c);
            const float *image_row[MAX_POOL_KERNEL];
            for (int u = rows.first; u < rows.end; u++)
                image_row[u] = scratch + (rows.start + u) % w->kernel_h * row;
            pool_row(op, image_row, rows, y, won);
        }
    }
}

static void lrn_forward(const struct op *lrn, const struct op *op, int images, const float *x, float *y,
                        uint8_t *won, float *scratch) {
    if (op->in.c == 64)
        lrn_pool_forward(lrn, op, images, x, y, won, scratch, 64 / VEC);
    else
        lrn_pool_forward(lrn, op, images, x, y, won, scratch, op->in.c / VEC);
}

INLINE void lrn_pool_backward(const struct op *lrn, const struct op *op, int images, const float *x,
                              const float *dy, const uint8_t *won, float *dx, bool relu, float *scratch,
                              const int vectors) {
    const struct op_window *w = &op->window;
    const float bias = (float)lrn->lrn.bias, alpha = (float)lrn->lrn.alpha;
    const float factor = (float)(2 * lrn->lrn.alpha * lrn->lrn.beta);
    float *line = scratch, *lines = scratch + op->in.c;
    for (int n = 0; n < images; n++, dy += shape_size(op->out), won += shape_size(op->out))
        for (int h = 0; h < op->in.h; h++) {
            struct cover rows = cover_of(h, w->stride, w->pad_top, w->kernel_h, op->out.h);
            for (int j = 0; j < op->in.w; j++, x += op->in.c, dx += op->in.c) {
                gather_pixel(op, rows, cover_of(j, w->stride, w->pad_left, w->kernel_w, op->out.w), dy, won,
                             line);
                lrn_pixel_backward(bias, alpha, factor, vectors, x, line, dx, relu, lines);
            }
        }
}

static void lrn_backward(const struct op *lrn, const struct op *op, int images, const float *x,
                         const float *dy, const uint8_t *won, float *dx, bool relu, float *scratch) {
    if (op->in.c == 64)
        lrn_pool_backward(lrn, op, images, x, dy, won, dx, relu, scratch, 64 / VEC);
    else
        lrn_pool_backward(lrn, op, images, x, dy, won, dx, relu, scratch, op->in.c / VEC);
}

const struct max_pool_kernels ISA_SYMBOL(max_pool_kernels) = {forward, backward, lrn_forward, lrn_backward};
