/* Interpolation at the six points 0, 1, -1, 2, -2, infinity. Lines of the matrices for points p and -p are
 * made as even part +- odd part. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_POINTS6_H
#define TOWERSCOPE_KERNELS_CPU_ISA_POINTS6_H

#include "kernels/cpu/isa/vec.h"

#define POINTS 6

/* BT d:   4  0 -5  0  1  0
 *         0 -4 -4  1  1  0     and with - + for odd columns
 *         0 -2 -1  2  1  0     likewise
 *         0  4  0 -5  0  1  */
INLINE void points_input(const vec d[6], vec y[6]) {
    y[0] = 4 * d[0] - 5 * d[2] + d[4];
    y[5] = 4 * d[1] - 5 * d[3] + d[5];
    vec even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1];
    y[1] = even + odd;
    y[2] = even - odd;
    even = d[4] - d[2];
    odd = 2 * (d[3] - d[1]);
    y[3] = even + odd;
    y[4] = even - odd;
}

/* The polynomial with coefficients w at each point, over the product of that point's distances to the others:
 * G w, lines s (1 p p^2 ...) with s = 1/4, -1/6, 1/24 for p = 0, +-1, +-2, and (0 ... 0 1). n: 3 or 4. */
INLINE void points_taps(const vec *w, const int n, vec u[6]) {
    vec zero = vec_zero(), w3 = n > 3 ? w[3] : zero;
    u[0] = 0.25f * w[0];
    u[5] = w[n - 1];
    vec even = w[0] + w[2], odd = w[1] + w3;
    u[1] = (-1.0f / 6) * (even + odd);
    u[2] = (-1.0f / 6) * (even - odd);
    even = (1.0f / 24) * w[0] + (1.0f / 6) * w[2];
    odd = (1.0f / 12) * w[1] + (1.0f / 3) * w3;
    u[3] = even + odd;
    u[4] = even - odd;
}

/* AT m, lines (1 1 1 1 1 0), (p^i for each point, 0), ..., the last one ending in 1. n: 3 or 4. */
INLINE void points_output(const vec m[6], const int n, vec *o) {
    vec even1 = m[1] + m[2], odd1 = m[1] - m[2], even2 = m[3] + m[4], odd2 = m[3] - m[4];
    o[0] = m[0] + even1 + even2;
    o[1] = odd1 + 2 * odd2;
    o[2] = even1 + 4 * even2;
    if (n > 3)
        o[3] = odd1 + 8 * odd2;
    o[n - 1] += m[5];
}

#endif
