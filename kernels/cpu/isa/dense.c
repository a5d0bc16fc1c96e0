#include "kernels/cpu/isa/dense.h"

#include "kernels/cpu/isa/gemm.h"

enum {
    DEPTH = 64,  /* lines of the right factor used for all rows before the next ones: they stay in the first
                    cache */
    INPUTS = 48, /* whose gradients are made together, while their weights and values are near */
};

/* c[rows][columns] (+)= a b, `vectors` wide. */
static void multiply(const struct gemm *g, int rows, int vectors, const float *a, const float *b, float *c) {
    switch (vectors) {
#if GEMM_VECTORS == 4
    case 4:
        gemm_panel(g, rows, 4, a, b, c);
        break;
    case 3:
        gemm_panel(g, rows, 3, a, b, c);
        break;
#endif
    case 2:
        gemm_panel(g, rows, 2, a, b, c);
        break;
    default:
        gemm_panel(g, rows, 1, a, b, c);
        break;
    }
}

/* Columns that fill no vector: c (+)= a b with a copy of b's lines, zeros behind. */
static void multiply_rest(const struct gemm *g, int rows, int columns, int depth, const float *a,
                          const float *b, float *c) {
    for (int row = 0; row < rows; row += GEMM_ROWS) {
        int some = rows - row < GEMM_ROWS ? rows - row : GEMM_ROWS;
        float lines[DEPTH * VEC] __attribute__((aligned(64)));
        float sums[GEMM_ROWS * VEC] __attribute__((aligned(64)));
        for (int r = 0; g->add && r < some; r++)
            vec_store(sums + r * VEC, vec_load_some(c + (row + r) * g->c_row, columns));
        for (int k = 0; k < depth; k += DEPTH) {
            int few = depth - k < DEPTH ? depth - k : DEPTH;
            for (int i = 0; i < few; i++)
                vec_store(lines + i * VEC, vec_load_some(b + (k + i) * g->b_k, columns));
            struct gemm part = {g->a_row, g->a_k, VEC, VEC, few, g->add || k > 0};
            gemm_panel(&part, some, 1, a + row * g->a_row + k * g->a_k, lines, sums);
        }
        for (int r = 0; r < some; r++)
            vec_store_some(c + (row + r) * g->c_row, vec_load(sums + r * VEC), columns);
    }
}

static int at_most(int left, int width) {
    return left < width ? left : width;
}

static void finish(const struct dense *d, float *y) {
    for (int c = 0; c < d->outputs; c += VEC) {
        int some = at_most(d->outputs - c, VEC);
        vec v = vec_load_some(y + c, some);
        if (d->bias)
            v += vec_load_some(d->bias + c, some);
        vec_store_some(y + c, d->relu ? vec_relu(v) : v, some);
    }
}

/* Some lines of the weights at a time, for all columns and images: they are read once, in the order in which
 * they lie. */
static void forward(const struct dense *d) {
    int whole = d->outputs / VEC * VEC;
    struct gemm g = {.a_row = d->inputs, .a_k = 1, .b_k = d->outputs, .c_row = d->outputs};
    for (int k = 0; k < d->inputs; k += DEPTH) {
        g.depth = at_most(d->inputs - k, DEPTH);
        g.add = k > 0;
        for (int c = 0; c < whole; c += GEMM_WIDTH)
            multiply(&g, d->images, at_most(whole - c, GEMM_WIDTH) / VEC, d->x + k,
                     d->w + (size_t)k * (size_t)d->outputs + c, d->y + c);
    }
    g.add = false;
    if (whole < d->outputs)
        multiply_rest(&g, d->images, d->outputs - whole, d->inputs, d->x, d->w + whole, d->y + whole);
    if (!d->bias && !d->relu)
        return;
    for (int row = 0; row < d->images; row++)
        finish(d, d->y + (size_t)row * (size_t)d->outputs);
}

static void turn(const struct dense *d) {
    for (int column = 0; column < d->outputs; column += VEC) {
        int some = at_most(d->outputs - column, VEC);
        vec sum = vec_zero();
        for (int n = 0; n < d->images; n++) {
            size_t at = (size_t)n * (size_t)d->outputs + (size_t)column;
            vec v = vec_load_some(d->dy + at, some);
            if (d->relu) {
                v = vec_keep(vec_greater(vec_load_some(d->y + at, some), vec_zero()), v);
                vec_store_some(d->dy + at, v, some);
            }
            sum += v;
            for (int i = 0; d->turned && i < some; i++)
                d->turned[(size_t)(column + i) * (size_t)d->turned_images + (size_t)n] = v[i];
        }
        if (d->db)
            vec_store_some(d->db + column, sum, some);
    }
    /* Images that are not there, up to a whole vector. */
    for (int column = 0; d->turned && column < d->outputs; column++)
        for (int n = d->images; n < d->turned_images; n++)
            d->turned[(size_t)column * (size_t)d->turned_images + (size_t)n] = 0;
}

static void weights_gradient(const struct dense *d, int first, int count) {
    int whole = d->outputs / VEC * VEC;
    const float *x = d->x + first;
    float *dw = d->dw + (size_t)first * (size_t)d->outputs;
    struct gemm g = {.a_row = 1, .a_k = d->inputs, .b_k = d->outputs, .c_row = d->outputs};
    for (int c = 0; c < whole; c += GEMM_WIDTH)
        for (int n = 0; n < d->images; n += DEPTH) {
            g.depth = at_most(d->images - n, DEPTH);
            g.add = d->add || n > 0;
            multiply(&g, count, at_most(whole - c, GEMM_WIDTH) / VEC, x + (size_t)n * (size_t)d->inputs,
                     d->dy + (size_t)n * (size_t)d->outputs + c, dw + c);
        }
    g.add = d->add;
    if (whole < d->outputs)
        multiply_rest(&g, count, d->outputs - whole, d->images, x, d->dy + whole, dw + whole);
}

/* dx turned: sums[input][image] = sum over outputs of w[input][output] dy[image][output]. */
static void input_gradient(const struct dense *d, int first, int count) {
    float sums[INPUTS * GEMM_WIDTH] __attribute__((aligned(64)));
    const float *w = d->w + (size_t)first * (size_t)d->outputs;
    struct gemm g = {.a_row = d->outputs, .a_k = 1, .b_k = d->turned_images, .c_row = GEMM_WIDTH};
    for (int image = 0; image < d->images; image += GEMM_WIDTH) {
        int images = at_most(d->images - image, GEMM_WIDTH);
        for (int k = 0; k < d->outputs; k += DEPTH) {
            g.depth = at_most(d->outputs - k, DEPTH);
            g.add = k > 0;
            multiply(&g, count, (images + VEC - 1) / VEC, w + k,
                     d->turned + (size_t)k * (size_t)d->turned_images + image, sums);
        }
        for (int n = 0; n < images; n++) {
            float *dx = d->dx + (size_t)(image + n) * (size_t)d->inputs + (size_t)first;
            for (int i = 0; i < count; i++)
                dx[i] = sums[i * GEMM_WIDTH + n];
        }
    }
}

static void gradients(const struct dense *d, int first, int count) {
    for (int input = first; input < first + count; input += INPUTS) {
        int some = at_most(first + count - input, INPUTS);
        if (d->dw)
            weights_gradient(d, input, some);
        if (d->dx)
            input_gradient(d, input, some);
    }
}

static void bias(const struct dense *d) {
    for (int column = 0; column < d->outputs; column += VEC) {
        int some = at_most(d->outputs - column, VEC);
        vec sum = d->add ? vec_load_some(d->db + column, some) : vec_zero();
        for (int n = 0; n < d->images; n++)
            sum += vec_load_some(d->dy + (size_t)n * (size_t)d->outputs + (size_t)column, some);
        vec_store_some(d->db + column, sum, some);
    }
}

const struct dense_kernels ISA_SYMBOL(dense_kernels) = {
    .forward = forward,
    .turn = turn,
    .gradients = gradients,
    .bias = bias,
};
