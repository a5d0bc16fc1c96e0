/* The kernels of winograd.h for one size: included after one of points*.h, with KERNEL set. */
#include "kernels/cpu/isa/gemm.h"
#include "kernels/cpu/isa/winograd.h"

#define TILE        (POINTS - KERNEL + 1)
#define FREQUENCIES (POINTS * POINTS)

/* How an image is cut, and how many floats there are from one frequency (or frequency row) to the next in
 * each of the scratch arrays: never a multiple of a page, so that the lines written together lie in different
 * sets of a cache. */
struct cut {
    int strips_of_image, tiles_of_strip;
    int strips, tiles;     /* of a block */
    int columns;           /* of a strip of x: those of its tiles and the KERNEL - 1 more that they reach */
    ptrdiff_t in_columns;  /* [POINTS][strips][columns][in.c] */
    ptrdiff_t out_columns; /* [POINTS][strips][tiles_of_strip * TILE][out.c] */
    ptrdiff_t in_tiles, out_tiles; /* [POINTS][tiles][channels] */
};

INLINE ptrdiff_t spaced(int count, int channels) {
    return (ptrdiff_t)count * channels + 16;
}

/* About `target` tiles in a block, whole strips, and whole rows of the products' registers where that can be
 * had. */
static struct cut cut_of(const struct winograd_shape *s, int target) {
    struct cut c = {.strips_of_image = (s->out.h + TILE - 1) / TILE,
                    .tiles_of_strip = (s->out.w + TILE - 1) / TILE};
    c.strips = target / c.tiles_of_strip;
    while (c.strips > 1 && c.strips * c.tiles_of_strip % GEMM_ROWS != 0)
        c.strips--;
    if (c.strips * c.tiles_of_strip % GEMM_ROWS != 0)
        c.strips = target / c.tiles_of_strip;
    if (c.strips < 1)
        c.strips = 1;
    c.tiles = c.strips * c.tiles_of_strip;
    c.columns = c.tiles_of_strip * TILE + KERNEL - 1;
    c.in_columns = spaced(c.strips * c.columns, s->in.c);
    c.out_columns = spaced(c.tiles * TILE, s->out.c);
    c.in_tiles = spaced(c.tiles, s->in.c);
    c.out_tiles = spaced(c.tiles, s->out.c);
    return c;
}

/* More channels want more tiles for each line of the weights that is read. */
static struct cut forward_cut(const struct winograd_shape *s) {
    struct cut c = cut_of(s, s->in.c > 64 || s->out.c > 64 ? 36 : 18);
    /* products overwrite the operands one frequency below */
    c.in_tiles = c.out_tiles = c.in_tiles > c.out_tiles ? c.in_tiles : c.out_tiles;
    return c;
}

static struct cut gradient_cut(const struct winograd_shape *s) {
    return cut_of(s, 36);
}

/* ---- weights: transformed[frequency][panel][in.c][width of the panel] */

static size_t weights_floats(const struct winograd_shape *s) {
    return (size_t)FREQUENCIES * s->in.c * s->out.c;
}

INLINE void weights_vector(const float *w, ptrdiff_t tap, float *out, ptrdiff_t frequency) {
    vec rows[KERNEL][POINTS];
    for (int v = 0; v < KERNEL; v++) {
        vec taps[KERNEL];
        for (int u = 0; u < KERNEL; u++)
            taps[u] = vec_load(w + (u * KERNEL + v) * tap);
        points_taps(taps, KERNEL, rows[v]);
    }
    for (int r = 0; r < POINTS; r++) {
        vec taps[KERNEL], all[POINTS];
        for (int v = 0; v < KERNEL; v++)
            taps[v] = rows[v][r];
        points_taps(taps, KERNEL, all);
        for (int c = 0; c < POINTS; c++)
            vec_store(out + (r * POINTS + c) * frequency, all[c]);
    }
}

static void weights(const struct winograd_shape *s, const float *w, int first, int count,
                    float *transformed) {
    const int out = s->out.c;
    const ptrdiff_t tap = (ptrdiff_t)s->in.c * out;
    for (int i = first; i < first + count; i++)
        for (int panel = 0; panel < out; panel += GEMM_WIDTH) {
            int width = out - panel < GEMM_WIDTH ? out - panel : GEMM_WIDTH;
            for (int o = 0; o < width; o += VEC)
                weights_vector(w + (ptrdiff_t)i * out + panel + o, tap,
                               transformed + (ptrdiff_t)panel * s->in.c + (ptrdiff_t)i * width + o, tap);
        }
}

/* ---- transforms of x, shared by forward and gradient */

/* Columns that lie in the padding are the same in every strip: cleared once. */
static void clear_columns(const struct winograd_shape *s, const struct cut *c, float *columns) {
    const size_t left = (size_t)s->pad_left * s->in.c;
    const size_t right = (size_t)(c->columns - s->pad_left - s->in.w) * s->in.c;
    for (int r = 0; r < POINTS; r++)
        for (int strip = 0; strip < c->strips; strip++) {
            float *begin = columns + r * c->in_columns + (size_t)strip * c->columns * s->in.c;
            memset(begin, 0, left * sizeof(float));
            memset(begin + left + (size_t)s->in.w * s->in.c, 0, right * sizeof(float));
        }
}

/* The vertical pass over strip `strip` of an image. */
static void input_columns(const struct winograd_shape *s, const struct cut *c, const float *image, int strip,
                          const float *zeros, float *columns) {
    const ptrdiff_t width = (ptrdiff_t)s->in.w * s->in.c;
    const float *row[POINTS];
    for (int r = 0; r < POINTS; r++) {
        int h = strip * TILE - s->pad_top + r;
        row[r] = h >= 0 && h < s->in.h ? image + h * width : zeros;
    }
    columns += (ptrdiff_t)s->pad_left * s->in.c;
    for (ptrdiff_t j = 0; j < width; j += VEC) {
        vec d[POINTS], y[POINTS];
        for (int r = 0; r < POINTS; r++)
            d[r] = vec_load(row[r] + j);
        points_input(d, y);
        for (int r = 0; r < POINTS; r++)
            vec_store(columns + r * c->in_columns + j, y[r]);
    }
}

/* The horizontal pass over one frequency row of `strips` strips: operands[POINTS][tiles][in.c]. */
static void input_tiles(const struct winograd_shape *s, const struct cut *c, int strips, const float *columns,
                        float *operands) {
    const ptrdiff_t channels = s->in.c;
    for (int strip = 0; strip < strips; strip++)
        for (int t = 0; t < c->tiles_of_strip; t++, operands += channels) {
            const float *at = columns + ((ptrdiff_t)strip * c->columns + t * TILE) * channels;
            for (ptrdiff_t k = 0; k < channels; k += VEC) {
                vec d[POINTS], y[POINTS];
                for (int q = 0; q < POINTS; q++)
                    d[q] = vec_load(at + q * channels + k);
                points_input(d, y);
                for (int q = 0; q < POINTS; q++)
                    vec_store(operands + q * c->in_tiles + k, y[q]);
            }
        }
}

/* ---- forward */

static size_t forward_scratch_floats(const struct winograd_shape *s) {
    struct cut c = forward_cut(s);
    return (size_t)s->in.w * s->in.c +
           (size_t)(POINTS * (c.in_columns + c.out_columns) + (POINTS + 1) * c.in_tiles);
}

/* One frequency: c[tiles][out.c] = a[tiles][in.c] times the weights. */
static void forward_product(const struct winograd_shape *s, int tiles, const float *a, const float *b,
                            float *c) {
    const struct gemm shape = {.a_row = s->in.c, .a_k = 1, .c_row = s->out.c, .depth = s->in.c};
    for (int panel = 0; panel < s->out.c; panel += GEMM_WIDTH) {
        int left = (s->out.c - panel) / VEC;
        struct gemm g = shape;
        g.b_k = (left < GEMM_VECTORS ? left : GEMM_VECTORS) * VEC;
        if (left >= GEMM_VECTORS)
            gemm_panel(&g, tiles, GEMM_VECTORS, a, b, c);
#if GEMM_VECTORS > 2
        else if (left == 3)
            gemm_panel(&g, tiles, 3, a, b, c);
        else if (left == 2)
            gemm_panel(&g, tiles, 2, a, b, c);
        else
            gemm_panel(&g, tiles, 1, a, b, c);
#endif
        b += g.b_k * s->in.c;
        c += g.b_k;
    }
}

/* The horizontal pass back: one frequency row of columns[tiles][TILE][out.c]. */
static void output_columns(const struct winograd_shape *s, const struct cut *c, int tiles,
                           const float *products, float *columns) {
    const ptrdiff_t channels = s->out.c;
    for (int t = 0; t < tiles; t++, products += channels, columns += TILE * channels)
        for (ptrdiff_t k = 0; k < channels; k += VEC) {
            vec m[POINTS], o[TILE];
            for (int q = 0; q < POINTS; q++)
                m[q] = vec_load(products + q * c->in_tiles + k);
            points_output(m, TILE, o);
            for (int q = 0; q < TILE; q++)
                vec_store(columns + q * channels + k, o[q]);
        }
}

/* The vertical pass back, into the image. */
static void output_rows(const struct winograd_shape *s, const struct cut *c, int strip, const float *columns,
                        const float *bias, bool relu, float *image) {
    const ptrdiff_t channels = s->out.c, width = (ptrdiff_t)s->out.w * channels;
    const int rows = s->out.h - strip * TILE < TILE ? s->out.h - strip * TILE : TILE;
    float *y = image + strip * TILE * width;
    for (int x = 0; x < s->out.w; x++, y += channels, columns += channels)
        for (ptrdiff_t k = 0; k < channels; k += VEC) {
            vec m[POINTS], o[TILE];
            for (int r = 0; r < POINTS; r++)
                m[r] = vec_load(columns + r * c->out_columns + k);
            points_output(m, TILE, o);
            vec b = bias ? vec_load(bias + k) : vec_zero();
            for (int r = 0; r < TILE; r++) {
                vec v = o[r] + b;
                if (r < rows)
                    vec_store(y + r * width + k, relu ? vec_relu(v) : v);
            }
        }
}

static void forward(const struct winograd_shape *s, int images, const float *x, const float *transformed,
                    const float *bias, bool relu, float *y, float *scratch) {
    const struct cut c = forward_cut(s);
    const ptrdiff_t frequency = (ptrdiff_t)s->in.c * s->out.c;
    float *zeros = scratch, *in_columns = zeros + (size_t)s->in.w * s->in.c;
    float *out_columns = in_columns + POINTS * c.in_columns, *slots = out_columns + POINTS * c.out_columns;
    memset(zeros, 0, (size_t)s->in.w * s->in.c * sizeof *zeros);
    clear_columns(s, &c, in_columns);
    const int all = images * c.strips_of_image;
    for (int first = 0; first < all; first += c.strips) {
        const int strips = all - first < c.strips ? all - first : c.strips, tiles = strips * c.tiles_of_strip;
        for (int i = 0; i < strips; i++) {
            int image = (first + i) / c.strips_of_image, strip = (first + i) % c.strips_of_image;
            input_columns(s, &c, x + (size_t)image * shape_size(s->in), strip, zeros,
                          in_columns + (ptrdiff_t)i * c.columns * s->in.c);
        }
        for (int r = 0; r < POINTS; r++) {
            input_tiles(s, &c, strips, in_columns + r * c.in_columns, slots + c.in_tiles);
            for (int q = 0; q < POINTS; q++)
                forward_product(s, tiles, slots + (q + 1) * c.in_tiles,
                                transformed + (r * POINTS + q) * frequency, slots + q * c.in_tiles);
            output_columns(s, &c, tiles, slots, out_columns + r * c.out_columns);
        }
        for (int i = 0; i < strips; i++) {
            int image = (first + i) / c.strips_of_image, strip = (first + i) % c.strips_of_image;
            output_rows(s, &c, strip, out_columns + (ptrdiff_t)i * c.tiles_of_strip * TILE * s->out.c, bias,
                        relu, y + (size_t)image * shape_size(s->out));
        }
    }
}

/* ---- gradient of the weights */

static size_t gradient_floats(const struct winograd_shape *s) {
    return (size_t)FREQUENCIES * s->in.c * s->out.c + (size_t)s->out.c;
}

static size_t gradient_scratch_floats(const struct winograd_shape *s) {
    struct cut c = gradient_cut(s);
    size_t in_row = (size_t)s->in.w * s->in.c, out_row = (size_t)s->out.w * s->out.c;
    return (in_row > out_row ? in_row : out_row) +
           (size_t)(POINTS * (c.in_columns + c.out_columns + c.in_tiles + c.out_tiles));
}

/* The vertical pass over a strip of dy: masked by y, summed for the bias, then taps -> points. */
static void output_gradient_columns(const struct winograd_shape *s, const struct cut *c, int strip,
                                    float *image, const float *image_y, float *bias_gradient,
                                    float *columns) {
    const ptrdiff_t channels = s->out.c, width = (ptrdiff_t)s->out.w * channels;
    const int rows = s->out.h - strip * TILE < TILE ? s->out.h - strip * TILE : TILE;
    float *dy = image + strip * TILE * width;
    const float *y = image_y ? image_y + strip * TILE * width : NULL;
    for (ptrdiff_t j = 0; j < width; j += channels)
        for (ptrdiff_t k = 0; k < channels; k += VEC) {
            vec taps[TILE], u[POINTS], sum = vec_load(bias_gradient + k);
            for (int r = 0; r < TILE; r++) {
                taps[r] = vec_zero();
                if (r < rows) {
                    float *at = dy + r * width + j + k;
                    taps[r] = vec_load(at);
                    if (y) {
                        taps[r] = vec_keep(vec_greater(vec_load(y + r * width + j + k), vec_zero()), taps[r]);
                        vec_store(at, taps[r]);
                    }
                }
                sum += taps[r];
            }
            vec_store(bias_gradient + k, sum);
            points_taps(taps, TILE, u);
            for (int r = 0; r < POINTS; r++)
                vec_store(columns + r * c->out_columns + j + k, u[r]);
        }
    /* what the last tile has beyond the image's width */
    const size_t beyond = (size_t)(c->tiles_of_strip * TILE - s->out.w) * s->out.c;
    for (int r = 0; beyond && r < POINTS; r++)
        memset(columns + r * c->out_columns + width, 0, beyond * sizeof *columns);
}

/* The horizontal pass over one frequency row of dy: operands[POINTS][tiles][out.c]. */
static void output_gradient_tiles(const struct winograd_shape *s, const struct cut *c, int tiles,
                                  const float *columns, float *operands) {
    const ptrdiff_t channels = s->out.c;
    for (int t = 0; t < tiles; t++, columns += TILE * channels, operands += channels)
        for (ptrdiff_t k = 0; k < channels; k += VEC) {
            vec taps[TILE], u[POINTS];
            for (int q = 0; q < TILE; q++)
                taps[q] = vec_load(columns + q * channels + k);
            points_taps(taps, TILE, u);
            for (int q = 0; q < POINTS; q++)
                vec_store(operands + q * c->out_tiles + k, u[q]);
        }
}

/* One frequency: c[in.c][out.c] (+)= transpose of a[tiles][in.c] times b[tiles][out.c]. */
static void gradient_product(const struct winograd_shape *s, int tiles, const float *a, const float *b,
                             bool add, float *c) {
    const struct gemm g = {
        .a_row = 1, .a_k = s->in.c, .b_k = s->out.c, .c_row = s->out.c, .depth = tiles, .add = add};
    for (int panel = 0; panel < s->out.c; panel += GEMM_WIDTH) {
        int left = (s->out.c - panel) / VEC;
        if (left >= GEMM_VECTORS)
            gemm_panel(&g, s->in.c, GEMM_VECTORS, a, b + panel, c + panel);
#if GEMM_VECTORS > 2
        else if (left == 3)
            gemm_panel(&g, s->in.c, 3, a, b + panel, c + panel);
        else if (left == 2)
            gemm_panel(&g, s->in.c, 2, a, b + panel, c + panel);
        else
            gemm_panel(&g, s->in.c, 1, a, b + panel, c + panel);
#endif
    }
}

static void gradient(const struct winograd_shape *s, int images, const float *x, float *dy, const float *y,
                     bool add, float *sums, float *scratch) {
    const struct cut c = gradient_cut(s);
    const ptrdiff_t frequency = (ptrdiff_t)s->in.c * s->out.c;
    const size_t in_row = (size_t)s->in.w * s->in.c, out_row = (size_t)s->out.w * s->out.c;
    float *zeros = scratch, *in_columns = zeros + (in_row > out_row ? in_row : out_row);
    float *out_columns = in_columns + POINTS * c.in_columns, *in_tiles = out_columns + POINTS * c.out_columns;
    float *out_tiles = in_tiles + POINTS * c.in_tiles, *bias_gradient = sums + FREQUENCIES * frequency;
    memset(zeros, 0, in_row * sizeof *zeros);
    clear_columns(s, &c, in_columns);
    if (!add)
        memset(bias_gradient, 0, (size_t)s->out.c * sizeof *bias_gradient);
    const int all = images * c.strips_of_image;
    for (int first = 0; first < all; first += c.strips, add = true) {
        const int strips = all - first < c.strips ? all - first : c.strips, tiles = strips * c.tiles_of_strip;
        for (int i = 0; i < strips; i++) {
            int image = (first + i) / c.strips_of_image, strip = (first + i) % c.strips_of_image;
            size_t at = (size_t)image * shape_size(s->out);
            input_columns(s, &c, x + (size_t)image * shape_size(s->in), strip, zeros,
                          in_columns + (ptrdiff_t)i * c.columns * s->in.c);
            output_gradient_columns(s, &c, strip, dy + at, y ? y + at : NULL, bias_gradient,
                                    out_columns + (ptrdiff_t)i * c.tiles_of_strip * TILE * s->out.c);
        }
        for (int r = 0; r < POINTS; r++) {
            input_tiles(s, &c, strips, in_columns + r * c.in_columns, in_tiles);
            output_gradient_tiles(s, &c, tiles, out_columns + r * c.out_columns, out_tiles);
            for (int q = 0; q < POINTS; q++)
                gradient_product(s, tiles, in_tiles + q * c.in_tiles, out_tiles + q * c.out_tiles, add,
                                 sums + (r * POINTS + q) * frequency);
        }
    }
}

static void gradient_sum(const struct winograd_shape *s, const float *gradients, size_t stride, int parts,
                         int first, int count, float *dw) {
    const ptrdiff_t frequency = (ptrdiff_t)s->in.c * s->out.c;
    for (ptrdiff_t at = (ptrdiff_t)first * s->out.c; at < (ptrdiff_t)(first + count) * s->out.c; at += VEC) {
        vec rows[POINTS][KERNEL];
        for (int q = 0; q < POINTS; q++) {
            vec m[POINTS];
            for (int r = 0; r < POINTS; r++) {
                const float *from = gradients + (r * POINTS + q) * frequency + at;
                m[r] = vec_load(from);
                for (int part = 1; part < parts; part++)
                    m[r] += vec_load(from + (size_t)part * stride);
            }
            points_output(m, KERNEL, rows[q]);
        }
        for (int u = 0; u < KERNEL; u++) {
            vec m[POINTS], taps[KERNEL];
            for (int q = 0; q < POINTS; q++)
                m[q] = rows[q][u];
            points_output(m, KERNEL, taps);
            for (int v = 0; v < KERNEL; v++)
                vec_store(dw + (u * KERNEL + v) * frequency + at, taps[v]);
        }
    }
}

#define WINOGRAD_TABLE                                                                                       \
    {                                                                                                        \
        KERNEL, weights_floats, gradient_floats, forward_scratch_floats, gradient_scratch_floats, weights,   \
            forward, gradient, gradient_sum                                                                  \
    }
