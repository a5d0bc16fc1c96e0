// A window of a max pool, forwards and backwards: used alone (max_pool.cu) and beside a normalisation
// (lrn.cu). Which value of the window won is kept in a byte: row of the window times its width plus column.
#ifndef TOWERSCOPE_KERNELS_CUDA_MAX_POOL_CUH
#define TOWERSCOPE_KERNELS_CUDA_MAX_POOL_CUH

#include "kernels/cuda/common.cuh"

struct pool {
    int in_h, in_w, out_h, out_w, channels;
    int kernel_h, kernel_w, stride, pad_top, pad_left;
};

static inline pool pool_of(const struct op *op) {
    const struct op_window *w = &op->window;
    return {op->in.h,    op->in.w,    op->out.h, op->out.w,  op->in.c,
            w->kernel_h, w->kernel_w, w->stride, w->pad_top, w->pad_left};
}

static inline bool pool_is_good(const struct op *op, int images) {
    return op->kind == OP_MAX_POOL && images > 0 && op->window.kernel_h * op->window.kernel_w <= 256;
}

static inline bool pool_is_three(const struct op *op) {
    return op->window.kernel_h == 3 && op->window.kernel_w == 3;
}

// A pixel of one of several images.
struct place {
    size_t image;
    int row, column;
};

static __device__ __forceinline__ place place_of(size_t pixel, int rows, int columns) {
    size_t image;
    unsigned within;
    if (pixel <= UINT32_MAX) { // nearly always, and much the quicker division
        unsigned size = static_cast<unsigned>(rows) * static_cast<unsigned>(columns);
        image = static_cast<unsigned>(pixel) / size;
        within = static_cast<unsigned>(pixel) % size;
    } else {
        size_t size = static_cast<size_t>(rows) * columns;
        image = pixel / size;
        within = static_cast<unsigned>(pixel % size);
    }
    unsigned row = within / static_cast<unsigned>(columns);
    return {image, static_cast<int>(row), static_cast<int>(within - row * columns)};
}

// The largest values of the window of output (i, j), N channels at once. x: the channels' value at column 0
// of row `first_row`; of the image or of its part that the window lies in. K: the window's size, or 0: any.
template <int N, int K, class T>
static __device__ __forceinline__ pack<float, N> window_largest(const pool &p, const T *x, int first_row,
                                                                int i, int j, pack<uint8_t, N> *won) {
    int kernel_h = K ? K : p.kernel_h, kernel_w = K ? K : p.kernel_w;
    int top = i * p.stride - p.pad_top, left = j * p.stride - p.pad_left;
    pack<float, N> best = {};
    *won = {};
    bool any = false;
#pragma unroll
    for (int u = 0; u < kernel_h; u++)
#pragma unroll
        for (int v = 0; v < kernel_w; v++) {
            int row = top + u, column = left + v;
            if (row < 0 || row >= p.in_h || column < 0 || column >= p.in_w)
                continue; // padding never wins
            pack<float, N> value =
                load_floats<N>(x + (static_cast<size_t>(row - first_row) * p.in_w + column) * p.channels);
            for (int c = 0; c < N; c++)
                // of equals the first; what is not a number wins, and stays
                if (!any || value.at[c] > best.at[c] ||
                    (value.at[c] != value.at[c] && best.at[c] == best.at[c])) {
                    best.at[c] = value.at[c];
                    won->at[c] = static_cast<uint8_t>(u * kernel_w + v);
                }
            any = true;
        }
    return best;
}

// The gradient of the input at `at`: that of each window that it won. dy and places: of the whole batch. The
// windows are gone through in row order, in which ref adds.
template <int N, class T>
static __device__ __forceinline__ pack<float, N>
window_gradient(const pool &p, const T *dy, const uint8_t *places, place at, int channel) {
    int row = at.row + p.pad_top, column = at.column + p.pad_left;
    int first_i = row < p.kernel_h ? 0 : (row - p.kernel_h) / p.stride + 1, last_i = row / p.stride;
    int first_j = column < p.kernel_w ? 0 : (column - p.kernel_w) / p.stride + 1, last_j = column / p.stride;
    last_i = last_i < p.out_h ? last_i : p.out_h - 1;
    last_j = last_j < p.out_w ? last_j : p.out_w - 1;
    size_t image = at.image * p.out_h * p.out_w * p.channels + channel;
    pack<float, N> sum = {};
    for (int i = first_i; i <= last_i; i++)
        for (int j = first_j; j <= last_j; j++) {
            int tap = (row - i * p.stride) * p.kernel_w + column - j * p.stride;
            size_t from = image + (static_cast<size_t>(i) * p.out_w + j) * p.channels;
            pack<uint8_t, N> won = load<N>(places + from);
            pack<float, N> g = load_floats<N>(dy + from);
            for (int c = 0; c < N; c++)
                sum.at[c] += won.at[c] == tap ? g.at[c] : 0;
        }
    return sum;
}

#endif
