// Local response normalisation over channels (formulas: kernels/ref/lrn.c). A block takes whole pixels; what
// the channels of a pixel want of each other goes through shared memory, in rows with zeros at both ends.
#include "kernels/cuda/common.cuh"

namespace {

struct lrn {
    int channels, radius, row; // row: floats of a pixel's row in shared memory, both ends included
    float bias, alpha, beta;
};

} // namespace

// n^-beta; THREE_QUARTERS: beta is 0.75
template <bool THREE_QUARTERS> static __device__ __forceinline__ float power(const lrn &l, float n) {
    if (!THREE_QUARTERS)
        return powf(n, -l.beta);
    float root = rsqrtf(n);
    return root * sqrtf(root);
}

// Zero both ends of `pixels` rows, and return where pixel 0's channel 0 lies.
static __device__ __forceinline__ float *begin_rows(const lrn &l, float *rows, int pixels) {
    int ends = l.row - l.channels, before = ends / 2;
    for (int i = static_cast<int>(threadIdx.x); i < pixels * ends; i += THREADS) {
        int at = i % ends;
        rows[i / ends * l.row + (at < before ? at : at + l.channels)] = 0;
    }
    return rows + before;
}

// N of the channel at `at` of a row of x.
static __device__ __forceinline__ float normaliser(const lrn &l, const float *at) {
    float sum = 0;
    for (int k = -l.radius; k <= l.radius; k++)
        sum += at[k] * at[k];
    return l.bias + l.alpha * sum;
}

template <int N, bool THREE_QUARTERS>
static __global__ void __launch_bounds__(THREADS)
    lrn_forward(lrn l, size_t pixels, int pixels_of_block, const float *x, float *y) {
    DYNAMIC_SHARED(float, room);
    size_t first = static_cast<size_t>(blockIdx.x) * pixels_of_block;
    int here = pixels - first < static_cast<size_t>(pixels_of_block) ? static_cast<int>(pixels - first)
                                                                     : pixels_of_block;
    float *rows = begin_rows(l, room, here);
    int row_packs = l.channels / N, items = here * row_packs;
    x += first * l.channels;
    y += first * l.channels;
    for (int i = static_cast<int>(threadIdx.x); i < items; i += THREADS)
        store<N>(rows + i / row_packs * l.row + i % row_packs * N, load<N>(x + static_cast<size_t>(i) * N));
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < items; i += THREADS) {
        const float *at = rows + i / row_packs * l.row + i % row_packs * N;
        pack<float, N> out;
        for (int c = 0; c < N; c++)
            out.at[c] = at[c] * power<THREE_QUARTERS>(l, normaliser(l, at + c));
        store<N>(y + static_cast<size_t>(i) * N, out);
    }
}

// dx_k = g_k * N_k^-beta - 2 * alpha * beta * x_k * sum_{|j-k| <= radius} g_j * y_j / N_j
template <int N, bool THREE_QUARTERS>
static __global__ void __launch_bounds__(THREADS)
    lrn_backward(lrn l, size_t pixels, int pixels_of_block, const float *x, const float *dy, float *dx) {
    DYNAMIC_SHARED(float, room);
    size_t first = static_cast<size_t>(blockIdx.x) * pixels_of_block;
    int here = pixels - first < static_cast<size_t>(pixels_of_block) ? static_cast<int>(pixels - first)
                                                                     : pixels_of_block;
    size_t size = static_cast<size_t>(pixels_of_block) * l.row;
    float *rows = begin_rows(l, room, here), *ratios = begin_rows(l, room + size, here);
    float *scaled = room + 2 * size; // g * N^-beta
    int row_packs = l.channels / N, items = here * row_packs;
    x += first * l.channels;
    dy += first * l.channels;
    dx += first * l.channels;
    for (int i = static_cast<int>(threadIdx.x); i < items; i += THREADS)
        store<N>(rows + i / row_packs * l.row + i % row_packs * N, load<N>(x + static_cast<size_t>(i) * N));
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < items; i += THREADS) {
        int offset = i / row_packs * l.row + i % row_packs * N;
        pack<float, N> g = load<N>(dy + static_cast<size_t>(i) * N), ratio, own;
        for (int c = 0; c < N; c++) {
            float n = normaliser(l, rows + offset + c);
            own.at[c] = g.at[c] * power<THREE_QUARTERS>(l, n);
            ratio.at[c] = own.at[c] * rows[offset + c] / n;
        }
        store<N>(ratios + offset, ratio);
        store<N>(scaled + static_cast<size_t>(i) * N, own);
    }
    __syncthreads();
    float factor = 2 * l.alpha * l.beta;
    for (int i = static_cast<int>(threadIdx.x); i < items; i += THREADS) {
        int offset = i / row_packs * l.row + i % row_packs * N;
        pack<float, N> own = load<N>(scaled + static_cast<size_t>(i) * N);
        for (int c = 0; c < N; c++) {
            float sum = 0;
            for (int k = -l.radius; k <= l.radius; k++)
                sum += ratios[offset + c + k];
            own.at[c] -= factor * rows[offset + c] * sum;
        }
        store<N>(dx + static_cast<size_t>(i) * N, own);
    }
}

// What is launched: the sizes of a block that takes `rows` shared rows per pixel.
struct lrn_launch {
    lrn l;
    int pixels_of_block;
    unsigned blocks;
    size_t shared_bytes;
};

static bool plan_launch(const struct op_lrn *op, size_t pixels, int channels, bool wide, int rows,
                        lrn_launch *out) {
    if (pixels < 1 || channels < 1 || op->radius < 0)
        return false;
    int end = static_cast<int>(divide_up(op->radius, 4)) * 4; // keeps the rows aligned for packs
    int row_packs = channels / (wide ? 4 : 1), row = static_cast<int>(divide_up(channels, 4)) * 4 + 2 * end;
    out->l = {channels,
              op->radius,
              row,
              static_cast<float>(op->bias),
              static_cast<float>(op->alpha),
              static_cast<float>(op->beta)};
    out->pixels_of_block = row_packs < THREADS ? THREADS / row_packs : 1;
    size_t most = (48 << 10) / (static_cast<size_t>(rows) * row * sizeof(float));
    if (most < 1)
        return false;
    if (static_cast<size_t>(out->pixels_of_block) > most)
        out->pixels_of_block = static_cast<int>(most);
    size_t blocks = divide_up(pixels, out->pixels_of_block);
    out->blocks = static_cast<unsigned>(blocks);
    out->shared_bytes = static_cast<size_t>(rows) * out->pixels_of_block * row * sizeof(float);
    return blocks <= INT32_MAX;
}

cudaError_t cuda_lrn(cudaStream_t stream, const struct op_lrn *op, size_t pixels, int channels,
                     const float *x, float *y) {
    bool wide = packs<4>(x, channels) && packs<4>(y, channels), usual = op->beta == 0.75;
    lrn_launch a;
    if (!plan_launch(op, pixels, channels, wide, 1, &a))
        return cudaErrorInvalidValue;
    auto kernel = wide    ? usual ? lrn_forward<4, true> : lrn_forward<4, false>
                     : usual ? lrn_forward<1, true>
                          : lrn_forward<1, false>;
    return LAUNCH(lrn_forward, dim3(a.blocks), dim3(THREADS), a.shared_bytes, stream, kernel, a.l, pixels,
                  a.pixels_of_block, x, y);
}

cudaError_t cuda_lrn_backward(cudaStream_t stream, const struct op_lrn *op, size_t pixels, int channels,
                              const float *x, const float *dy, float *dx) {
    bool wide = packs<4>(x, channels) && packs<4>(dy, channels) && packs<4>(dx, channels),
         usual = op->beta == 0.75;
    lrn_launch a;
    if (!plan_launch(op, pixels, channels, wide, 3, &a))
        return cudaErrorInvalidValue;
    auto kernel = wide    ? usual ? lrn_backward<4, true> : lrn_backward<4, false>
                     : usual ? lrn_backward<1, true>
                          : lrn_backward<1, false>;
    return LAUNCH(lrn_backward, dim3(a.blocks), dim3(THREADS), a.shared_bytes, stream, kernel, a.l, pixels,
                  a.pixels_of_block, x, dy, dx);
}
