/* The type that ref computes with, and the names of its two builds: REF(x) is ref_x or ref64_x. */
#ifndef TOWERSCOPE_KERNELS_REF_REAL_H
#define TOWERSCOPE_KERNELS_REF_REAL_H

#if REF_DOUBLE
typedef double real;
#define REF(name) ref64_##name
#define real_pow  pow
#else
typedef float real;
#define REF(name) ref_##name
#define real_pow  powf
#endif

/* sum of a[i] * b[i]. Sixteen partial sums, since a compiler may not reorder a single one into a vector. */
static inline real real_dot(const real *a, const real *b, int count) {
    enum { LANES = 16 };
    real lane[LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += a[i + l] * b[i + l];
    for (; i < count; i++)
        sum += a[i] * b[i];
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

/* to[i] += factor * from[i] */
static inline void real_add_scaled(real *restrict to, real factor, const real *restrict from, int count) {
    for (int i = 0; i < count; i++)
        to[i] += factor * from[i];
}

#endif
