/* Where a window meets the image, in one direction. */
#ifndef TOWERSCOPE_KERNELS_REF_WINDOW_H
#define TOWERSCOPE_KERNELS_REF_WINDOW_H

/* Taps first..end-1 of the window lie inside the image; tap t is at image row (or column) start + t. */
struct reach {
    int start, first, end;
};

static inline struct reach window_reach(int position, int stride, int pad, int kernel, int size) {
    struct reach r = {.start = position * stride - pad, .first = 0, .end = kernel};
    if (r.start < 0)
        r.first = -r.start;
    if (r.start + kernel > size)
        r.end = size - r.start;
    return r;
}

#endif
