/* Interpolation at the eight points 0, 1, -1, 2, -2, 1/2, -1/2, infinity. Lines of the matrices for points p
 * and -p are made as even part +- odd part. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_POINTS8_H
#define TOWERSCOPE_KERNELS_CPU_ISA_POINTS8_H

#include "kernels/cpu/isa/vec.h"

#define POINTS 8

/* BT d:   1    0  -21/4    0    21/4    0   -1   0
 *         0    1    1   -17/4  -17/4    1    1   0     and with - + for odd columns
 *         0   1/2  1/4   -5/2   -5/4    2    1   0     likewise
 *         0    2    4    -5/2    -5    1/2   1   0     likewise
 *         0   -1    0    21/4     0   -21/4  0   1
 * for any type of vector. */
#define POINTS_INPUT(name, type)                                                                             \
    INLINE void name(const type d[8], type y[8]) {                                                           \
        y[0] = (d[0] - d[6]) + 5.25f * (d[4] - d[2]);                                                        \
        y[7] = (d[7] - d[1]) + 5.25f * (d[3] - d[5]);                                                        \
        type even = (d[2] + d[6]) - 4.25f * d[4], odd = (d[1] + d[5]) - 4.25f * d[3];                        \
        y[1] = even + odd;                                                                                   \
        y[2] = even - odd;                                                                                   \
        even = d[6] - 1.25f * d[4] + 0.25f * d[2];                                                           \
        odd = (d[5] + d[5]) - 2.5f * d[3] + 0.5f * d[1];                                                     \
        y[3] = even + odd;                                                                                   \
        y[4] = even - odd;                                                                                   \
        even = d[6] - 5 * d[4] + 4 * d[2];                                                                   \
        odd = (d[1] + d[1]) - 2.5f * d[3] + 0.5f * d[5];                                                     \
        y[5] = even + odd;                                                                                   \
        y[6] = even - odd;                                                                                   \
    }
POINTS_INPUT(points_input, vec)

/* The polynomial with coefficients w at each point, over the product of that point's distances to the others:
 * G w, lines s (1 p p^2 ...) with s = 1, -2/9, 1/90, 32/45 for p = 0, +-1, +-2, +-1/2, and (0 ... 0 1). n: 4
 * or 5. */
INLINE void points_taps(const vec *w, const int n, vec u[8]) {
    vec zero = vec_zero(), w4 = n > 4 ? w[4] : zero;
    u[0] = w[0];
    u[7] = w[n - 1];
    vec even = w[0] + w[2] + w4, odd = w[1] + w[3];
    u[1] = (-2.0f / 9) * (even + odd);
    u[2] = (-2.0f / 9) * (even - odd);
    even = (1.0f / 90) * w[0] + (4.0f / 90) * w[2] + (16.0f / 90) * w4;
    odd = (2.0f / 90) * w[1] + (8.0f / 90) * w[3];
    u[3] = even + odd;
    u[4] = even - odd;
    even = (32.0f / 45) * w[0] + (8.0f / 45) * w[2] + (2.0f / 45) * w4;
    odd = (16.0f / 45) * w[1] + (4.0f / 45) * w[3];
    u[5] = even + odd;
    u[6] = even - odd;
}

/* AT m, lines (1 1 1 1 1 1 1 0), (p^i for each point, 0), ..., the last one ending in 1. n: 4 or 5. */
INLINE void points_output(const vec m[8], const int n, vec *o) {
    vec even1 = m[1] + m[2], odd1 = m[1] - m[2], even2 = m[3] + m[4], odd2 = m[3] - m[4];
    vec even3 = m[5] + m[6], odd3 = m[5] - m[6];
    o[0] = m[0] + even1 + (even2 + even3);
    o[1] = odd1 + 2 * odd2 + 0.5f * odd3;
    o[2] = even1 + 4 * even2 + 0.25f * even3;
    o[3] = odd1 + 8 * odd2 + 0.125f * odd3;
    if (n > 4)
        o[4] = even1 + 16 * even2 + 0.0625f * even3;
    o[n - 1] += m[7];
}

#endif
