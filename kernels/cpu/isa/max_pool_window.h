/* One window of a max pool, inlined into the kernels that pool. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_MAX_POOL_WINDOW_H
#define TOWERSCOPE_KERNELS_CPU_ISA_MAX_POOL_WINDOW_H

#include "kernels/cpu/isa/vec.h"

/* Where a window meets the image in one direction: taps first .. end - 1 are inside, tap t at start + t. */
struct reach {
    int start, first, end;
};

INLINE struct reach reach_of(int position, int stride, int pad, int kernel, int size) {
    int start = position * stride - pad;
    return (struct reach){start, start < 0 ? -start : 0, start + kernel > size ? size - start : kernel};
}

struct pooled {
    vec best;
    vec_int winner; /* kernel row * kernel_w + kernel column */
};

/* One window over `count` channels. at[u]: row u of the window, where its tap 0 lies; pixels are `step`
 * floats apart. */
INLINE struct pooled pool_window(const float *const *at, ptrdiff_t step, int kernel_w, const int row,
                                 const int row_end, const int column, const int column_end, const int count) {
    struct pooled p = {vec_load_some(at[row] + column * step, count), vec_set_int(row * kernel_w + column)};
    for (int u = row; u < row_end; u++)
        for (int v = column; v < column_end; v++) {
            vec candidate = vec_load_some(at[u] + v * step, count);
            vec_mask wins = vec_not_at_most(candidate, p.best) & vec_is_number(p.best);
            p.best = vec_select(wins, candidate, p.best);
            p.winner = vec_select_int(wins, vec_set_int(u * kernel_w + v), p.winner);
        }
    return p;
}

#endif
