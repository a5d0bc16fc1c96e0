/* LRN of one pixel, inlined into the kernels that fuse it with what comes before or after. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_LRN_PIXEL_H
#define TOWERSCOPE_KERNELS_CPU_ISA_LRN_PIXEL_H

#include "kernels/cpu/isa/lrn.h"
#include "kernels/cpu/isa/vec.h"

/* The sum over a window of nine channels, one vector after the other from the first channel on. With
 * pair_i = v_i + v_(i+1) and four_i = pair_i + pair_(i+2), sum_i = four_(i-4) + four_i + v_(i+4). */
struct window9 {
    vec here, next;  /* the vector whose sum comes next, and the one after it */
    vec pair, fours; /* pair of `here`, four of the vector before */
};

INLINE struct window9 window9_start(vec first, vec second) {
    vec zero = vec_zero();
    vec before = vec_slide(zero, first, 1), pair = first + vec_slide(first, second, 1);
    return (struct window9){first, second, pair, before + vec_slide(before, pair, 2)};
}

/* after_next: the vector after `next`, 0 beyond the last. */
INLINE vec window9_sum(struct window9 *w, vec after_next) {
    vec next_pair = w->next + vec_slide(w->next, after_next, 1);
    vec fours = w->pair + vec_slide(w->pair, next_pair, 2);
    vec sum = vec_slide(w->fours, fours, VEC - 4) + fours + vec_slide(w->here, w->next, 4);
    *w = (struct window9){w->next, after_next, next_pair, fours};
    return sum;
}

/* N^-3/4, and 1/N. */
INLINE vec lrn_power(vec n, vec *inverse) {
    vec r = vec_inverse_root(n);
    *inverse = r * r;
    return *inverse * vec_inverse_root(r);
}

INLINE vec lrn_square(const float *x, int k, int vectors) {
    if (k >= vectors)
        return vec_zero();
    vec v = vec_load(x + k * VEC);
    return v * v;
}

/* radius 4, vectors * VEC channels. */
INLINE void lrn_pixel_forward(float bias, float alpha, const int vectors, const float *x, float *y) {
    struct window9 w = window9_start(lrn_square(x, 0, vectors), lrn_square(x, 1, vectors));
    for (int k = 0; k < vectors; k++) {
        vec inverse, n = bias + alpha * window9_sum(&w, lrn_square(x, k + 2, vectors));
        vec_store(y + k * VEC, vec_load(x + k * VEC) * lrn_power(n, &inverse));
    }
}

/* line: 2 * vectors * VEC values of scratch. factor = 2 * alpha * beta. */
INLINE void lrn_pixel_backward(float bias, float alpha, float factor, const int vectors, const float *x,
                               const float *dy, float *dx, bool relu, float *line) {
    float *ratio = line, *direct = line + vectors * VEC; /* g y / N, and g N^-beta */
    struct window9 w = window9_start(lrn_square(x, 0, vectors), lrn_square(x, 1, vectors));
    for (int k = 0; k < vectors; k++) {
        vec inverse, n = bias + alpha * window9_sum(&w, lrn_square(x, k + 2, vectors));
        vec g = vec_load(dy + k * VEC) * lrn_power(n, &inverse);
        vec_store(direct + k * VEC, g);
        vec_store(ratio + k * VEC, g * vec_load(x + k * VEC) * inverse);
    }
    w = window9_start(vec_load(ratio), vectors > 1 ? vec_load(ratio + VEC) : vec_zero());
    for (int k = 0; k < vectors; k++) {
        vec at = vec_load(x + k * VEC);
        vec sum = window9_sum(&w, k + 2 < vectors ? vec_load(ratio + (k + 2) * VEC) : vec_zero());
        vec d = vec_load(direct + k * VEC) - factor * at * sum;
        vec_store(dx + k * VEC, relu ? vec_keep(vec_greater(at, vec_zero()), d) : d);
    }
}

#endif
