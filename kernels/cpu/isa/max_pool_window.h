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

/* The better of two, the first where they are equal. Unless all values are known to be `numbers`: one that is
 * not wins and stays. */
INLINE struct pooled pool_better(struct pooled first, struct pooled second, const bool numbers) {
    vec_mask wins = numbers ? vec_greater(second.best, first.best)
                            : vec_not_at_most(second.best, first.best) & vec_is_number(first.best);
    return (struct pooled){numbers ? vec_max(first.best, second.best)
                                   : vec_select(wins, second.best, first.best),
                           vec_select_int(wins, second.winner, first.winner)};
}

/* One window over `count` channels. at[u]: row u of the window, where its tap 0 lies; pixels are `step`
 * floats apart. The best of each row is found first: three short chains of comparisons instead of a long one.
 */
INLINE struct pooled pool_window(const float *const *at, ptrdiff_t step, int kernel_w, const int row,
                                 const int row_end, const int column, const int column_end,
                                 const bool numbers, const int count) {
    struct pooled best = {vec_zero(), vec_set_int(0)};
    for (int u = row; u < row_end; u++) {
        struct pooled of_row = {vec_load_some(at[u] + column * step, count),
                                vec_set_int(u * kernel_w + column)};
        for (int v = column + 1; v < column_end; v++)
            of_row = pool_better(
                of_row,
                (struct pooled){vec_load_some(at[u] + v * step, count), vec_set_int(u * kernel_w + v)},
                numbers);
        best = u == row ? of_row : pool_better(best, of_row, numbers);
    }
    return best;
}

#endif
