#include "kernels/cpu/isa/conv_pool.h"
#include "kernels/cpu/isa/lrn_pixel.h"
#include "kernels/cpu/isa/max_pool_window.h"
#include "kernels/cpu/isa/points8.h"

#include <float.h>
#include <math.h>

#define KERNEL 5
#define TILE   (POINTS - KERNEL + 1)

/* One value for each of the eight vertical points: transforms of x are made eight lanes wide on every
 * instruction set, since x has too few channels to fill a vector. */
typedef float eight __attribute__((vector_size(POINTS * 4)));
typedef float eight_at __attribute__((vector_size(POINTS * 4), aligned(4), may_alias));
POINTS_INPUT(eight_input, eight)

/* How x is cut into tiles, padded, and where the convolution's rows wait for the pool. */
struct cut {
    int strips, tiles; /* of an image, of a strip */
    int columns;       /* of the padded image; it has strips * TILE + KERNEL - 1 rows */
    int ring;          /* rows of the convolution that are kept */
};

static struct cut cut_of(const struct conv_pool *s) {
    struct cut c = {.strips = (s->conv->out.h + TILE - 1) / TILE,
                    .tiles = (s->conv->out.w + TILE - 1) / TILE};
    c.columns = c.tiles * TILE + KERNEL - 1;
    c.ring = (s->pool->window.kernel_h + 2 * TILE - 1) / TILE * TILE;
    return c;
}

static size_t padded_floats(const struct conv_pool *s, const struct cut *c) {
    return ((size_t)(c->strips * TILE + KERNEL - 1) * (size_t)c->columns * (size_t)s->conv->in.c + 63) / 16 *
           16;
}

/* x with zeros around it. The zeros are made by clear_padded(), once. */
static void clear_padded(const struct conv_pool *s, const struct cut *c, float *padded) {
    memset(padded, 0, padded_floats(s, c) * sizeof *padded);
}

static void copy_padded(const struct conv_pool *s, const struct cut *c, const float *x, float *padded) {
    const struct op *conv = s->conv;
    const size_t row = (size_t)conv->in.w * conv->in.c;
    padded += ((size_t)conv->window.pad_top * c->columns + conv->window.pad_left) * conv->in.c;
    for (int h = 0; h < conv->in.h; h++, x += row, padded += (size_t)c->columns * conv->in.c)
        memcpy(padded, x, row * sizeof *x);
}

static void copy_from_padded(const struct conv_pool *s, const struct cut *c, const float *padded, float *x) {
    const struct op *conv = s->conv;
    const size_t row = (size_t)conv->in.w * conv->in.c;
    padded += ((size_t)conv->window.pad_top * c->columns + conv->window.pad_left) * conv->in.c;
    for (int h = 0; h < conv->in.h; h++, x += row, padded += (size_t)c->columns * conv->in.c)
        memcpy(x, padded, row * sizeof *x);
}

/* ---- weights: transformed[out.c / VEC][horizontal point][in.c][vertical point][VEC] */

static size_t weights_floats(const struct conv_pool *s) {
    return (size_t)POINTS * POINTS * s->conv->in.c * s->conv->out.c;
}

static void weights(const struct conv_pool *s, const float *w, float *transformed) {
    const int in = s->conv->in.c, out = s->conv->out.c;
    for (int o = 0; o < out; o += VEC, transformed += POINTS * POINTS * in * VEC)
        for (int i = 0; i < in; i++) {
            vec rows[KERNEL][POINTS];
            for (int v = 0; v < KERNEL; v++) {
                vec taps[KERNEL];
                for (int u = 0; u < KERNEL; u++)
                    taps[u] = vec_load(w + ((u * KERNEL + v) * in + i) * out + o);
                points_taps(taps, KERNEL, rows[v]);
            }
            for (int r = 0; r < POINTS; r++) {
                vec taps[KERNEL], all[POINTS];
                for (int v = 0; v < KERNEL; v++)
                    taps[v] = rows[v][r];
                points_taps(taps, KERNEL, all);
                for (int q = 0; q < POINTS; q++)
                    vec_store(transformed + ((q * in + i) * POINTS + r) * VEC, all[q]);
            }
        }
}

/* ---- forward */

/* Scratch of forward: the padded image, its transform [strip][tile][horizontal point][in.c][vertical point],
 * one strip's vertical transform, the ring [row][column][VEC], and a row of -infinity. */
struct forward_scratch {
    float *padded, *transformed, *columns, *ring, *least;
};

static size_t transformed_floats(const struct conv_pool *s, const struct cut *c) {
    return (size_t)c->strips * c->tiles * POINTS * s->conv->in.c * POINTS;
}

static size_t lay_out_forward(const struct conv_pool *s, const struct cut *c, float *scratch,
                              struct forward_scratch *f) {
    size_t in = (size_t)s->conv->in.c, at = padded_floats(s, c);
    size_t transformed = at, columns = transformed + transformed_floats(s, c);
    size_t ring = columns + (size_t)c->columns * in * POINTS, row = (size_t)c->tiles * TILE * VEC;
    size_t least = ring + (size_t)c->ring * row;
    if (f)
        *f = (struct forward_scratch){scratch, scratch + transformed, scratch + columns, scratch + ring,
                                      scratch + least};
    return least + row;
}

static size_t forward_scratch_floats(const struct conv_pool *s) {
    struct cut c = cut_of(s);
    return lay_out_forward(s, &c, NULL, NULL);
}

/* Columns of BT: what one value of a tile's column gives to each point. */
INLINE void input_matrix(eight matrix[POINTS]) {
    for (int h = 0; h < POINTS; h++) {
        eight unit[POINTS] = {{0}}, y[POINTS];
        unit[h] += 1;
        eight_input(unit, y);
        for (int r = 0; r < POINTS; r++)
            matrix[h][r] = y[r][0];
    }
}

static void transform_image(const struct conv_pool *s, const struct cut *c, const struct forward_scratch *f) {
    const int in = s->conv->in.c, width = c->columns * in;
    eight matrix[POINTS];
    input_matrix(matrix);
    float *to = f->transformed;
    for (int strip = 0; strip < c->strips; strip++) {
        const float *row = f->padded + (ptrdiff_t)strip * TILE * width;
        for (int j = 0; j < width; j++) {
            eight sum = row[j] * matrix[0];
#pragma GCC unroll 8
            for (int h = 1; h < POINTS; h++)
                sum += row[h * width + j] * matrix[h];
            *(eight_at *)(f->columns + j * POINTS) = sum;
        }
        for (int t = 0; t < c->tiles; t++, to += POINTS * POINTS * in)
            for (int i = 0; i < in; i++) {
                eight d[POINTS], y[POINTS];
                for (int q = 0; q < POINTS; q++)
                    d[q] = *(const eight_at *)(f->columns + ((t * TILE + q) * in + i) * POINTS);
                eight_input(d, y);
                for (int q = 0; q < POINTS; q++)
                    *(eight_at *)(to + (q * in + i) * POINTS) = y[q];
            }
    }
}

/* VEC output channels of `tiles` neighbouring tiles, which share the loads of the weights: products and the
 * transform back; rows of the result are `row` floats apart. */
INLINE void convolve_tiles(const int tiles, const int in, const float *x, const float *w, float *y,
                           ptrdiff_t row) {
    const ptrdiff_t tile = POINTS * POINTS * in;
    vec columns[2][POINTS][TILE];
    for (int q = 0; q < POINTS; q++) {
        vec products[2][POINTS];
#pragma GCC unroll 8
        for (int r = 0; r < POINTS; r++) {
            const float *value = x + q * in * POINTS + r, *weight = w + (q * in * POINTS + r) * VEC;
            for (int t = 0; t < tiles; t++)
                products[t][r] = value[t * tile] * vec_load(weight);
#pragma GCC unroll 4
            for (int i = 1; i < in; i++)
                for (int t = 0; t < tiles; t++)
                    products[t][r] += value[t * tile + i * POINTS] * vec_load(weight + i * POINTS * VEC);
        }
        for (int t = 0; t < tiles; t++)
            points_output(products[t], TILE, columns[t][q]);
    }
    for (int t = 0; t < tiles; t++)
        for (int u = 0; u < TILE; u++) {
            vec line[POINTS], o[TILE];
            for (int q = 0; q < POINTS; q++)
                line[q] = columns[t][q][u];
            points_output(line, TILE, o);
            for (int v = 0; v < TILE; v++)
                vec_store(y + u * row + (t * TILE + v) * VEC, o[v]);
        }
}

INLINE void convolve_strip(const struct cut *c, const int in, const float *x, const float *w,
                           float *ring_rows) {
    const ptrdiff_t row = (ptrdiff_t)c->tiles * TILE * VEC, tile = POINTS * POINTS * in;
    int t = 0;
#if defined(ISA_avx512)
    for (; t + 2 <= c->tiles; t += 2)
        convolve_tiles(2, in, x + t * tile, w, ring_rows + t * TILE * VEC, row);
#endif
    for (; t < c->tiles; t++)
        convolve_tiles(1, in, x + t * tile, w, ring_rows + t * TILE * VEC, row);
}

/* One row of the pool for VEC channels, then bias and ReLU. Where a 3x3 window ends below the image, rows of
 * -infinity take part: they never win, and the loops over the window have constant bounds. */
INLINE void pool_row(const struct conv_pool *s, const struct cut *c, const struct forward_scratch *f, int i,
                     vec bias, float *pooled, uint8_t *won, const bool numbers) {
    const struct op_window *w = &s->pool->window;
    const int channels = s->pool->out.c;
    const struct reach rows = reach_of(i, w->stride, w->pad_top, w->kernel_h, s->pool->in.h);
    const bool three = w->kernel_h == 3 && w->kernel_w == 3 && rows.first == 0;
    const float *row[MAX_POOL_KERNEL], *at[MAX_POOL_KERNEL];
    for (int u = 0; u < w->kernel_h; u++)
        row[u] = u >= rows.first && u < rows.end
                     ? f->ring + (rows.start + u) % c->ring * c->tiles * TILE * VEC
                     : f->least;
    for (int j = 0; j < s->pool->out.w; j++) {
        const struct reach columns = reach_of(j, w->stride, w->pad_left, w->kernel_w, s->pool->in.w);
        struct pooled p;
        for (int u = 0; u < (three ? 3 : w->kernel_h); u++)
            at[u] = row[u] + columns.start * VEC;
        if (three && columns.first == 0 && columns.end == 3)
            p = pool_window(at, VEC, 3, 0, 3, 0, 3, numbers, VEC);
        else if (three && columns.first == 0 && columns.end == 2)
            p = pool_window(at, VEC, 3, 0, 3, 0, 2, numbers, VEC);
        else
            p = pool_window(at, VEC, w->kernel_w, rows.first, rows.end, columns.first, columns.end, numbers,
                            VEC);
        vec_store(pooled + j * channels, vec_relu(p.best + bias));
        if (won)
            vec_store_bytes(won + j * channels, p.winner);
    }
}

/* Apart, since almost always all values are numbers. */
static void pool_row_numbers(const struct conv_pool *s, const struct cut *c, const struct forward_scratch *f,
                             int i, vec bias, float *pooled, uint8_t *won) {
    pool_row(s, c, f, i, bias, pooled, won, true);
}

static void pool_row_any(const struct conv_pool *s, const struct cut *c, const struct forward_scratch *f,
                         int i, vec bias, float *pooled, uint8_t *won) {
    pool_row(s, c, f, i, bias, pooled, won, false);
}

/* Sum of the sizes of some values; not finite when one of them isn't. count: a multiple of VEC. */
static float magnitude(const float *values, size_t count) {
    vec sum = vec_zero();
    for (size_t i = 0; i < count; i += VEC) {
        vec v = vec_load(values + i);
        sum += vec_max(v, -v);
    }
    return vec_sum(sum);
}

/* The row of the convolution after the last that row i of the pool needs. */
INLINE int rows_needed(const struct conv_pool *s, int i) {
    const struct op_window *w = &s->pool->window;
    const int end = i * w->stride - w->pad_top + w->kernel_h;
    return end < s->pool->in.h ? end : s->pool->in.h;
}

/* VEC output channels of an image; numbers: all values of the convolution are known to be numbers. */
INLINE void forward_channels(const struct conv_pool *s, const struct cut *c, const struct forward_scratch *f,
                             const int in, const float *w, vec bias, float *pooled, uint8_t *won,
                             bool numbers) {
    const size_t row = (size_t)s->pool->out.w * s->pool->out.c;
    int i = 0;
    for (int strip = 0; strip < c->strips; strip++) {
        convolve_strip(c, in, f->transformed + (size_t)strip * c->tiles * POINTS * POINTS * in, w,
                       f->ring + (size_t)(strip * TILE % c->ring) * c->tiles * TILE * VEC);
        for (; i < s->pool->out.h && rows_needed(s, i) <= (strip + 1) * TILE; i++)
            (numbers ? pool_row_numbers : pool_row_any)(s, c, f, i, bias, pooled + i * row,
                                                        won ? won + i * row : NULL);
    }
}

INLINE void normalise(const struct op *lrn, const float *x, float *y, const int vectors) {
    const float bias = (float)lrn->lrn.bias, alpha = (float)lrn->lrn.alpha;
    const ptrdiff_t size = (ptrdiff_t)shape_size(lrn->in);
    for (ptrdiff_t p = 0; p < size; p += vectors * VEC)
        lrn_pixel_forward(bias, alpha, vectors, x + p, y + p);
}

static void forward(const struct conv_pool *s, int images, const float *x, const float *transformed,
                    const float *bias, float *pooled, uint8_t *won, float *y, float *scratch) {
    const struct cut c = cut_of(s);
    const int in = s->conv->in.c, channels = s->conv->out.c;
    const size_t size = shape_size(s->pool->out);
    struct forward_scratch f;
    lay_out_forward(s, &c, scratch, &f);
    clear_padded(s, &c, f.padded);
    for (int j = 0; j < c.tiles * TILE * VEC; j++)
        f.least[j] = -INFINITY;
    /* No value of the products and of the transform back (whose lines' sizes add up to less than 20) is
     * larger than this times the size of the image's transform. */
    const float gain = magnitude(transformed, weights_floats(s)) * (float)in * 20 * 20;
    for (int n = 0; n < images; n++, x += shape_size(s->conv->in), pooled += size, y += size) {
        copy_padded(s, &c, x, f.padded);
        transform_image(s, &c, &f);
        const bool numbers = gain * magnitude(f.transformed, transformed_floats(s, &c)) < FLT_MAX;
        const float *w = transformed;
        for (int o = 0; o < channels; o += VEC, w += POINTS * POINTS * in * VEC) {
            vec b = vec_load(bias + o);
            uint8_t *to = won ? won + (size_t)n * size + o : NULL;
            switch (in) {
            case 1:
                forward_channels(s, &c, &f, 1, w, b, pooled + o, to, numbers);
                break;
            case 3:
                forward_channels(s, &c, &f, 3, w, b, pooled + o, to, numbers);
                break;
            default:
                forward_channels(s, &c, &f, in, w, b, pooled + o, to, numbers);
                break;
            }
        }
        if (s->lrn && channels == 64)
            normalise(s->lrn, pooled, y, 64 / VEC);
        else if (s->lrn)
            normalise(s->lrn, pooled, y, channels / VEC);
    }
}

/* ---- gradients */

/* Patches of x: for each place of the convolution, columns of the image as the kernel sees them:
 * [row][column] [kernel row][in.c]. Consecutive columns are `step` floats apart and a patch is KERNEL of
 * them, `vectors` long: with `step` a multiple of VEC every load is aligned; where that takes more vectors,
 * columns are packed. */
struct patches {
    int step, vectors;
    int rows;       /* rows of the pool's output that are done at once */
    int image_rows; /* rows of patches these need */
    ptrdiff_t row;  /* floats from a row to the next */
};

static struct patches patches_of(const struct conv_pool *s) {
    const struct op_window *w = &s->pool->window;
    const int column = KERNEL * s->conv->in.c, aligned = (column + VEC - 1) / VEC * KERNEL;
    const int packed = (KERNEL * column + VEC - 1) / VEC;
    struct patches p = {.rows = 3};
    p.step = aligned <= packed ? aligned / KERNEL * VEC : column;
    p.vectors = aligned <= packed ? aligned : packed;
    p.image_rows = (p.rows - 1) * w->stride + w->kernel_h;
    p.row = ((s->conv->out.w + KERNEL - 1) * p.step + 2 * VEC) / VEC * VEC;
    return p;
}

static size_t gradient_floats(const struct conv_pool *s) {
    return (size_t)s->conv->out.c * ((size_t)patches_of(s).vectors * VEC + 1);
}

static size_t gradient_scratch_floats(const struct conv_pool *s) {
    const struct cut c = cut_of(s);
    const struct patches p = patches_of(s);
    const size_t channels = (size_t)s->pool->out.c;
    return padded_floats(s, &c) + (size_t)p.image_rows * p.row + (size_t)p.rows * s->pool->out.w * channels +
           2 * channels;
}

/* One row of the image as kernel row `to` of its columns; four values at a time where what is written too
 * much is overwritten by the next kernel row, or is padding. */
INLINE void fill_columns(const float *padded, const int in, int columns, float *to, int step) {
    if (step >= (KERNEL - 1) * in + 4)
        for (int x = 0; x < columns; x++)
            memcpy(to + x * step, padded + x * in, 4 * sizeof(float));
    else
        for (int x = 0; x < columns; x++)
            for (int i = 0; i < in; i++)
                to[x * step + i] = padded[x * in + i];
}

/* Patches of rows first .. of the convolution's output; rows outside of it are left as they are. */
static void fill_patches(const struct conv_pool *s, const struct cut *c, const struct patches *p,
                         const float *padded, int first, float *to) {
    const int in = s->conv->in.c, columns = s->conv->out.w + KERNEL - 1;
    for (int h = first; h < first + p->image_rows; h++, to += p->row)
        for (int u = 0; u < KERNEL && h >= 0 && h < s->conv->out.h; u++) {
            const float *from = padded + (ptrdiff_t)(h + u) * c->columns * in;
            switch (in) {
            case 1:
                fill_columns(from, 1, columns, to + u, p->step);
                break;
            case 3:
                fill_columns(from, 3, columns, to + u * 3, p->step);
                break;
            default:
                fill_columns(from, in, columns, to + u * in, p->step);
                break;
            }
        }
}

/* The gradient of the pool's output: LRN and ReLU backward for some pixels; and the bias's, unless NULL. */
INLINE void output_gradient_vectors(const struct conv_pool *s, int pixels, const float *pooled,
                                    const float *dy, float *to, float *bias_gradient, float *lines,
                                    const int vectors) {
    const struct op_lrn *lrn = s->lrn ? &s->lrn->lrn : NULL;
    const float bias = lrn ? (float)lrn->bias : 0, alpha = lrn ? (float)lrn->alpha : 0;
    const float factor = lrn ? (float)(2 * lrn->alpha * lrn->beta) : 0;
    for (int p = 0; p < pixels; p++, pooled += vectors * VEC, dy += vectors * VEC, to += vectors * VEC) {
        if (lrn)
            lrn_pixel_backward(bias, alpha, factor, vectors, pooled, dy, to, true, lines);
        for (int k = 0; k < vectors; k++) {
            vec d =
                lrn ? vec_load(to + k * VEC)
                    : vec_keep(vec_greater(vec_load(pooled + k * VEC), vec_zero()), vec_load(dy + k * VEC));
            vec_store(to + k * VEC, d);
            if (bias_gradient)
                vec_store(bias_gradient + k * VEC, vec_load(bias_gradient + k * VEC) + d);
        }
    }
}

static void output_gradient(const struct conv_pool *s, int pixels, const float *pooled, const float *dy,
                            float *to, float *bias_gradient, float *lines) {
    if (s->pool->out.c == 64)
        output_gradient_vectors(s, pixels, pooled, dy, to, bias_gradient, lines, 64 / VEC);
    else
        output_gradient_vectors(s, pixels, pooled, dy, to, bias_gradient, lines, s->pool->out.c / VEC);
}

/* Output channels and vectors of a patch that are summed in registers at a time. */
#if defined(ISA_avx512)
enum { CHANNELS = 4, VECTORS = 5 };
#else
enum { CHANNELS = 2, VECTORS = 5 };
#endif

struct places { /* of the pool's rows that are done at once */
    int rows, columns, channels;
    ptrdiff_t row, step; /* floats between patches of neighbouring windows */
    ptrdiff_t
        tap[MAX_POOL_KERNEL * MAX_POOL_KERNEL]; /* from a window's first patch to that of each of its taps */
};

/* sums[channel][vector] += g * patch, over all places; `vectors` of CHANNELS channels. */
INLINE void add_patches(const struct places *at, const int vectors, const float *patches, const float *g,
                        const uint8_t *won, float *sums, ptrdiff_t sums_step) {
    vec sum[CHANNELS][VECTORS];
#pragma GCC unroll 4
    for (int c = 0; c < CHANNELS; c++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[c][v] = vec_load(sums + c * sums_step + v * VEC);
    for (int i = 0; i < at->rows; i++) {
        const float *window = patches + i * at->row;
        for (int j = 0; j < at->columns; j++, window += at->step, g += at->channels, won += at->channels)
#pragma GCC unroll 4
            for (int c = 0; c < CHANNELS; c++) {
                const float *patch = window + at->tap[won[c]];
                vec value = vec_set(g[c]);
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++)
                    sum[c][v] += value * vec_load(patch + v * VEC);
            }
    }
#pragma GCC unroll 4
    for (int c = 0; c < CHANNELS; c++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            vec_store(sums + c * sums_step + v * VEC, sum[c][v]);
}

static void add_places(const struct places *at, const struct patches *p, const float *patches, const float *g,
                       const uint8_t *won, float *sums) {
    const ptrdiff_t step = (ptrdiff_t)p->vectors * VEC;
    for (int o = 0; o < at->channels;
         o += CHANNELS, g += CHANNELS, won += CHANNELS, sums += CHANNELS * step) {
        int v = 0;
        for (; v + VECTORS <= p->vectors; v += VECTORS)
            add_patches(at, VECTORS, patches + v * VEC, g, won, sums + v * VEC, step);
        switch (p->vectors - v) {
        case 4:
            add_patches(at, 4, patches + v * VEC, g, won, sums + v * VEC, step);
            break;
        case 3:
            add_patches(at, 3, patches + v * VEC, g, won, sums + v * VEC, step);
            break;
        case 2:
            add_patches(at, 2, patches + v * VEC, g, won, sums + v * VEC, step);
            break;
        case 1:
            add_patches(at, 1, patches + v * VEC, g, won, sums + v * VEC, step);
            break;
        default:
            break;
        }
    }
}

static void gradient(const struct conv_pool *s, int images, const float *x, const float *pooled,
                     const uint8_t *won, const float *dy, bool add, float *sums, float *scratch) {
    const struct cut c = cut_of(s);
    const struct patches p = patches_of(s);
    const struct op_window *w = &s->pool->window;
    const int channels = s->pool->out.c, out_w = s->pool->out.w;
    float *padded = scratch, *patches = padded + padded_floats(s, &c), *g = patches + p.image_rows * p.row;
    float *lines = g + (size_t)p.rows * out_w * channels, *bias_gradient = sums + channels * p.vectors * VEC;
    struct places at = {
        .columns = out_w, .channels = channels, .row = w->stride * p.row, .step = w->stride * p.step};
    for (int u = 0; u < w->kernel_h; u++)
        for (int v = 0; v < w->kernel_w; v++)
            at.tap[u * w->kernel_w + v] = u * p.row + v * p.step;
    if (!add)
        memset(sums, 0, gradient_floats(s) * sizeof *sums);
    clear_padded(s, &c, padded);
    memset(patches, 0, (size_t)p.image_rows * p.row * sizeof *patches);
    for (int n = 0; n < images; n++, x += shape_size(s->conv->in)) {
        copy_padded(s, &c, x, padded);
        for (int i = 0; i < s->pool->out.h; i += p.rows) {
            at.rows = s->pool->out.h - i < p.rows ? s->pool->out.h - i : p.rows;
            const size_t pixels = (size_t)at.rows * out_w;
            fill_patches(s, &c, &p, padded, i * w->stride - w->pad_top, patches);
            output_gradient(s, (int)pixels, pooled, dy, g, bias_gradient, lines);
            add_places(&at, &p, patches - w->pad_left * p.step, g, won, sums);
            pooled += pixels * channels;
            dy += pixels * channels;
            won += pixels * channels;
        }
    }
}

/* ---- gradient of x: each value of g gives the kernel of its channel to the patch that it came from */

static void kernels(const struct conv_pool *s, const float *w, float *to) {
    const int taps = KERNEL * KERNEL * s->conv->in.c, channels = s->conv->out.c;
    for (int o = 0; o < channels; o++)
        for (int tap = 0; tap < taps; tap++)
            to[o * taps + tap] = w[tap * channels + o];
}

static void input_gradient(const struct conv_pool *s, int images, const float *pooled, const uint8_t *won,
                           const float *dy, const float *w, float *dx, float *scratch) {
    const struct cut c = cut_of(s);
    const struct op_window *window = &s->pool->window;
    const int in = s->conv->in.c, channels = s->pool->out.c, out_w = s->pool->out.w;
    const ptrdiff_t row = c.columns * in, line = KERNEL * in;
    float *padded = scratch, *g = padded + padded_floats(s, &c), *lines = g + (size_t)out_w * channels;
    for (int n = 0; n < images; n++, dx += shape_size(s->conv->in)) {
        clear_padded(s, &c, padded);
        for (int i = 0; i < s->pool->out.h; i++, pooled += out_w * channels, dy += out_w * channels) {
            output_gradient(s, out_w, pooled, dy, g, NULL, lines);
            for (int j = 0; j < out_w * channels; j++, won++) {
                int h = i * window->stride - window->pad_top + *won / window->kernel_w;
                int v = j / channels * window->stride - window->pad_left + *won % window->kernel_w;
                for (int u = 0; u < KERNEL; u++)
                    for (int k = 0; k < line; k++)
                        padded[(h + u) * row + v * in + k] +=
                            g[j] * w[(j % channels * KERNEL + u) * line + k];
            }
        }
        copy_from_padded(s, &c, padded, dx);
    }
}

static void finish(const struct conv_pool *s, const float *gradient, float *dw, float *db) {
    const struct patches p = patches_of(s);
    const int in = s->conv->in.c, channels = s->conv->out.c;
    for (int o = 0; o < channels; o++)
        for (int u = 0; u < KERNEL; u++)
            for (int v = 0; v < KERNEL; v++)
                for (int i = 0; i < in; i++)
                    dw[((u * KERNEL + v) * in + i) * channels + o] =
                        gradient[o * p.vectors * VEC + v * p.step + u * in + i];
    for (int o = 0; o < channels; o++)
        db[o] = gradient[channels * p.vectors * VEC + o];
}

const struct conv_pool_kernels ISA_SYMBOL(conv_pool_kernels) = {
    .weights_floats = weights_floats,
    .gradient_floats = gradient_floats,
    .forward_scratch_floats = forward_scratch_floats,
    .gradient_scratch_floats = gradient_scratch_floats,
    .weights = weights,
    .kernels = kernels,
    .forward = forward,
    .gradient = gradient,
    .finish = finish,
    .input_gradient = input_gradient,
};
