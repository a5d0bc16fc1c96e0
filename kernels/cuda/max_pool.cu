// Max pool. One thread makes the outputs (backwards: the inputs) of one pixel's pack of channels. Which value
// of the window won is kept in a byte: row of the window times its width plus column.
#include "kernels/cuda/common.cuh"

namespace {

struct pool {
    int in_h, in_w, out_h, out_w, channels;
    int kernel_h, kernel_w, stride, pad_top, pad_left;
};

pool pool_of(const struct op *op) {
    const struct op_window *w = &op->window;
    return {op->in.h,    op->in.w,    op->out.h, op->out.w,  op->in.c,
            w->kernel_h, w->kernel_w, w->stride, w->pad_top, w->pad_left};
}

bool good(const struct op *op, int images) {
    return op->kind == OP_MAX_POOL && images > 0 && op->window.kernel_h * op->window.kernel_w <= 256;
}

// The place that a thread works at.
struct place {
    int image, row, column, channel;
};

// One of images * rows * columns * (packs of a row) items.
__device__ __forceinline__ place place_of(unsigned item, unsigned rows, unsigned columns, unsigned row_packs,
                                          int pack_size) {
    unsigned pixel = item / row_packs, line = pixel / columns, image = line / rows;
    return {static_cast<int>(image), static_cast<int>(line - image * rows),
            static_cast<int>(pixel - line * columns), static_cast<int>(item - pixel * row_packs) * pack_size};
}

} // namespace

// K: the window's size, or 0: any.
template <int N, int K>
static __global__ void __launch_bounds__(THREADS)
    max_pool(pool p, unsigned items, const float *x, float *y, uint8_t *places) {
    unsigned item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= items)
        return;
    place at = place_of(item, p.out_h, p.out_w, p.channels / N, N);
    int kernel_h = K ? K : p.kernel_h, kernel_w = K ? K : p.kernel_w;
    int top = at.row * p.stride - p.pad_top, left = at.column * p.stride - p.pad_left;
    const float *image = x + static_cast<size_t>(at.image) * p.in_h * p.in_w * p.channels + at.channel;
    pack<float, N> best = {};
    pack<uint8_t, N> won = {};
    bool any = false;
#pragma unroll
    for (int u = 0; u < kernel_h; u++)
#pragma unroll
        for (int v = 0; v < kernel_w; v++) {
            int row = top + u, column = left + v;
            if (row < 0 || row >= p.in_h || column < 0 || column >= p.in_w)
                continue; // padding never wins
            pack<float, N> value = load<N>(image + (static_cast<size_t>(row) * p.in_w + column) * p.channels);
            for (int i = 0; i < N; i++)
                // of equals the first; what is not a number wins, and stays
                if (!any || value.at[i] > best.at[i] ||
                    (value.at[i] != value.at[i] && best.at[i] == best.at[i])) {
                    best.at[i] = value.at[i];
                    won.at[i] = static_cast<uint8_t>(u * kernel_w + v);
                }
            any = true;
        }
    store<N>(y + static_cast<size_t>(item) * N, best);
    if (places)
        store<N>(places + static_cast<size_t>(item) * N, won);
}

// The windows that hold an input are gone through in row order: the order in which ref adds to it.
template <int N>
static __global__ void __launch_bounds__(THREADS)
    max_pool_backward(pool p, unsigned items, const float *dy, const uint8_t *places, float *dx) {
    unsigned item = blockIdx.x * THREADS + threadIdx.x;
    if (item >= items)
        return;
    place at = place_of(item, p.in_h, p.in_w, p.channels / N, N);
    int row = at.row + p.pad_top, column = at.column + p.pad_left;
    int first_i = row < p.kernel_h ? 0 : (row - p.kernel_h) / p.stride + 1, last_i = row / p.stride;
    int first_j = column < p.kernel_w ? 0 : (column - p.kernel_w) / p.stride + 1, last_j = column / p.stride;
    last_i = last_i < p.out_h ? last_i : p.out_h - 1;
    last_j = last_j < p.out_w ? last_j : p.out_w - 1;
    size_t image = static_cast<size_t>(at.image) * p.out_h * p.out_w * p.channels + at.channel;
    pack<float, N> sum = {};
    for (int i = first_i; i <= last_i; i++)
        for (int j = first_j; j <= last_j; j++) {
            int tap = (row - i * p.stride) * p.kernel_w + column - j * p.stride;
            size_t from = image + (static_cast<size_t>(i) * p.out_w + j) * p.channels;
            pack<uint8_t, N> won = load<N>(places + from);
            pack<float, N> g = load<N>(dy + from);
            for (int c = 0; c < N; c++)
                sum.at[c] += won.at[c] == tap ? g.at[c] : 0;
        }
    store<N>(dx + static_cast<size_t>(item) * N, sum);
}

// Images are taken in pieces whose items can be counted in 31 bits: all at once, nearly always.
static int piece_of(struct shape shape, int images) {
    size_t most = static_cast<size_t>(INT32_MAX) / shape_size(shape);
    return most < 1 ? 0 : most < static_cast<size_t>(images) ? static_cast<int>(most) : images;
}

size_t cuda_max_pool_places(const struct op *op, int images) {
    return static_cast<size_t>(images) * shape_size(op->out);
}

cudaError_t cuda_max_pool(cudaStream_t stream, const struct op *op, int images, const float *x, float *y,
                          void *places) {
    int piece = piece_of(op->in, images);
    if (!good(op, images) || piece == 0)
        return cudaErrorInvalidValue;
    uint8_t *won = static_cast<uint8_t *>(places);
    int channels = op->in.c;
    bool wide = packs<4>(x, channels) && packs<4>(y, channels) && packs<4>(won, channels);
    bool three = op->window.kernel_h == 3 && op->window.kernel_w == 3;
    auto kernel = wide ? three ? max_pool<4, 3> : max_pool<4, 0> : three ? max_pool<1, 3> : max_pool<1, 0>;
    size_t in = shape_size(op->in), out = shape_size(op->out);
    for (int first = 0; first < images; first += piece) {
        int count = images - first < piece ? images - first : piece;
        unsigned items = static_cast<unsigned>(count * out / (wide ? 4 : 1));
        CUDA_TRY(LAUNCH(max_pool, dim3(static_cast<unsigned>(divide_up(items, THREADS))), dim3(THREADS), 0,
                        stream, kernel, pool_of(op), items, x + first * in, y + first * out,
                        won ? won + first * out : NULL));
    }
    return cudaSuccess;
}

cudaError_t cuda_max_pool_backward(cudaStream_t stream, const struct op *op, int images, const float *dy,
                                   const void *places, float *dx) {
    int piece = piece_of(op->in, images);
    if (!good(op, images) || piece == 0)
        return cudaErrorInvalidValue;
    const uint8_t *won = static_cast<const uint8_t *>(places);
    int channels = op->in.c;
    bool wide = packs<4>(dy, channels) && packs<4>(dx, channels) && packs<4>(won, channels);
    size_t in = shape_size(op->in), out = shape_size(op->out);
    for (int first = 0; first < images; first += piece) {
        int count = images - first < piece ? images - first : piece;
        unsigned items = static_cast<unsigned>(count * in / (wide ? 4 : 1));
        CUDA_TRY(LAUNCH(max_pool_backward, dim3(static_cast<unsigned>(divide_up(items, THREADS))),
                        dim3(THREADS), 0, stream, wide ? max_pool_backward<4> : max_pool_backward<1>,
                        pool_of(op), items, dy + first * out, won + first * out, dx + first * in));
    }
    return cudaSuccess;
}
