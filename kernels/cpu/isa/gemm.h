/* Small matrix products that run in registers: panels of a few vectors' width, a few rows at a time. Every
 * element is summed over `depth` in order, whatever the rows around it, so that its bits don't depend on
 * them. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_GEMM_H
#define TOWERSCOPE_KERNELS_CPU_ISA_GEMM_H

#include "kernels/cpu/isa/vec.h"

/* GEMM_ROWS x GEMM_VECTORS accumulators, a line of b and one value of a: 29 of 32 registers, 15 of 16. */
#define GEMM_ROWS 6
#if defined(ISA_avx512)
#define GEMM_VECTORS 4
#else
#define GEMM_VECTORS 2
#endif
#define GEMM_WIDTH (GEMM_VECTORS * VEC) /* of a panel */

/* Where the operands are: element (row, k) of a at a + row * a_row + k * a_k, line k of b at b + k * b_k, row
 * of c at c + row * c_row. */
struct gemm {
    ptrdiff_t a_row, a_k, b_k, c_row;
    int depth;
    bool add; /* c += a b, else c = a b */
};

INLINE void gemm_tile(const struct gemm *g, const int rows, const int vectors, const float *a, const float *b,
                      float *c) {
    vec sum[GEMM_ROWS][GEMM_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[r][v] = g->add ? vec_load(c + r * g->c_row + v * VEC) : vec_zero();
    for (int k = 0; k < g->depth; k++, a += g->a_k, b += g->b_k) {
        vec line[GEMM_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            line[v] = vec_load(b + v * VEC);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            vec value = vec_set(a[r * g->a_row]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[r][v] += value * line[v];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            vec_store(c + r * g->c_row + v * VEC, sum[r][v]);
}

/* One panel of `vectors`. */
INLINE void gemm_panel(const struct gemm *g, int rows, const int vectors, const float *a, const float *b,
                       float *c) {
    for (; rows >= GEMM_ROWS; rows -= GEMM_ROWS, a += GEMM_ROWS * g->a_row, c += GEMM_ROWS * g->c_row)
        gemm_tile(g, GEMM_ROWS, vectors, a, b, c);
    switch (rows) {
    case 5:
        gemm_tile(g, 5, vectors, a, b, c);
        break;
    case 4:
        gemm_tile(g, 4, vectors, a, b, c);
        break;
    case 3:
        gemm_tile(g, 3, vectors, a, b, c);
        break;
    case 2:
        gemm_tile(g, 2, vectors, a, b, c);
        break;
    case 1:
        gemm_tile(g, 1, vectors, a, b, c);
        break;
    default:
        break;
    }
}

#endif
