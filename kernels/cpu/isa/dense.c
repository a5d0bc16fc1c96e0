#include "kernels/cpu/isa/dense.h"

#include "kernels/cpu/isa/gemm.h"

/* Lines of the right factor used again and again for all rows before the next ones: they stay in the first
 * cache. */
enum { DEPTH = 64 };

/* c[rows][columns] = a b, `vectors` wide. b and c have room for whole vectors. */
INLINE void multiply_vectors(struct gemm g, int rows, const int vectors, int depth, const float *a,
                             const float *b, float *c) {
    for (int k = 0; k < depth; k += DEPTH) {
        g.depth = depth - k < DEPTH ? depth - k : DEPTH;
        g.add = k > 0;
        gemm_panel(&g, rows, vectors, a + k * g.a_k, b + k * g.b_k, c);
    }
}

static void multiply(const struct gemm *g, int rows, int vectors, int depth, const float *a, const float *b,
                     float *c) {
    switch (vectors) {
#if GEMM_VECTORS == 4
    case 4:
        multiply_vectors(*g, rows, 4, depth, a, b, c);
        break;
    case 3:
        multiply_vectors(*g, rows, 3, depth, a, b, c);
        break;
#endif
    case 2:
        multiply_vectors(*g, rows, 2, depth, a, b, c);
        break;
    default:
        multiply_vectors(*g, rows, 1, depth, a, b, c);
        break;
    }
}

/* As multiply(), where b and c have only `columns` columns that are no whole vectors: the last, incomplete
 * one is done aside, from a copy of b's with zeros behind. */
static void multiply_columns(const struct gemm *g, int rows, int columns, int depth, const float *a,
                             const float *b, float *c) {
    int whole = columns / VEC, rest = columns % VEC;
    if (whole)
        multiply(g, rows, whole, depth, a, b, c);
    if (!rest)
        return;
    b += whole * VEC;
    c += whole * VEC;
    for (int row = 0; row < rows; row += GEMM_ROWS) {
        int some = rows - row < GEMM_ROWS ? rows - row : GEMM_ROWS;
        float lines[DEPTH * VEC] __attribute__((aligned(64))),
            sums[GEMM_ROWS * VEC] __attribute__((aligned(64)));
        for (int k = 0; k < depth; k += DEPTH) {
            int few = depth - k < DEPTH ? depth - k : DEPTH;
            for (int i = 0; i < few; i++)
                vec_store(lines + i * VEC, vec_load_some(b + (k + i) * g->b_k, rest));
            struct gemm part = {g->a_row, g->a_k, VEC, VEC, few, k > 0};
            gemm_panel(&part, some, 1, a + row * g->a_row + k * g->a_k, lines, sums);
        }
        for (int r = 0; r < some; r++)
            vec_store_some(c + (row + r) * g->c_row, vec_load(sums + r * VEC), rest);
    }
}

static int panel_columns(int panel, int columns) {
    int left = columns - panel * GEMM_WIDTH;
    return left < GEMM_WIDTH ? left : GEMM_WIDTH;
}

static void add_bias(const struct dense *d, float *y, const float *bias, int columns) {
    for (int c = 0; c < columns; c += VEC) {
        int some = columns - c < VEC ? columns - c : VEC;
        vec v = vec_load_some(y + c, some);
        if (bias)
            v += vec_load_some(bias + c, some);
        vec_store_some(y + c, d->relu ? vec_relu(v) : v, some);
    }
}

static void forward(const struct dense *d, int panel, int first, int count) {
    int column = panel * GEMM_WIDTH, columns = panel_columns(panel, d->outputs);
    float *y = d->y + (size_t)first * (size_t)d->outputs + column;
    struct gemm g = {.a_row = d->inputs, .a_k = 1, .b_k = d->outputs, .c_row = d->outputs};
    multiply_columns(&g, count, columns, d->inputs, d->x + (size_t)first * (size_t)d->inputs, d->w + column,
                     y);
    if (!d->bias && !d->relu)
        return;
    for (int row = 0; row < count; row++)
        add_bias(d, y + (size_t)row * (size_t)d->outputs, d->bias ? d->bias + column : NULL, columns);
}

static void turn(const struct dense *d, int first, int count) {
    for (int column = first; column < first + count; column += VEC) {
        int some = first + count - column < VEC ? first + count - column : VEC;
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
    for (int column = first; d->turned && column < first + count; column++)
        for (int n = d->images; n < d->turned_images; n++)
            d->turned[(size_t)column * (size_t)d->turned_images + (size_t)n] = 0;
}

static void weights_gradient(const struct dense *d, int panel, int first, int count) {
    int column = panel * GEMM_WIDTH;
    struct gemm g = {.a_row = 1, .a_k = d->inputs, .b_k = d->outputs, .c_row = d->outputs};
    multiply_columns(&g, count, panel_columns(panel, d->outputs), d->images, d->x + first, d->dy + column,
                     d->dw + (size_t)first * (size_t)d->outputs + column);
}

/* dx turned, for a few inputs at a time: sums[input][image] = sum over outputs of w[input][output]
 * dy[image][output].
 */
static void input_gradient(const struct dense *d, int panel, int first, int count) {
    enum { INPUTS = 48 };
    float sums[INPUTS * GEMM_WIDTH] __attribute__((aligned(64)));
    int image = panel * GEMM_WIDTH, images = panel_columns(panel, d->images);
    struct gemm g = {.a_row = d->outputs, .a_k = 1, .b_k = d->turned_images, .c_row = GEMM_WIDTH};
    for (int input = first; input < first + count; input += INPUTS) {
        int some = first + count - input < INPUTS ? first + count - input : INPUTS;
        multiply(&g, some, (images + VEC - 1) / VEC, d->outputs, d->w + (size_t)input * (size_t)d->outputs,
                 d->turned + image, sums);
        for (int n = 0; n < images; n++) {
            float *dx = d->dx + (size_t)(image + n) * (size_t)d->inputs + (size_t)input;
            for (int i = 0; i < some; i++)
                dx[i] = sums[i * GEMM_WIDTH + n];
        }
    }
}

const struct dense_kernels ISA_SYMBOL(dense_kernels) = {
    .width = GEMM_WIDTH,
    .forward = forward,
    .turn = turn,
    .weights_gradient = weights_gradient,
    .input_gradient = input_gradient,
};
