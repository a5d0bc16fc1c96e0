// Max pool: a thread makes the outputs (backwards: the inputs) of one pixel's pack of channels. Threads x:
// packs of channels, y: pixels.
#include "kernels/cuda/max_pool.cuh"
#include "kernels/cuda/rows.cuh"

template <int N, int K, class T>
static __global__ void __launch_bounds__(THREADS)
    max_pool(pool p, size_t pixels, const T *x, T *y, uint8_t *places) {
    int channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * N;
    size_t pixel = static_cast<size_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    if (channel >= p.channels || pixel >= pixels)
        return;
    place at = place_of(pixel, p.out_h, p.out_w);
    pack<uint8_t, N> won;
    pack<float, N> best = window_largest<N, K>(p, x + at.image * p.in_h * p.in_w * p.channels + channel, 0,
                                               at.row, at.column, &won);
    store_floats<N>(y + pixel * p.channels + channel, best);
    if (places)
        store<N>(places + pixel * p.channels + channel, won);
}

template <int N, class T>
static __global__ void __launch_bounds__(THREADS)
    max_pool_backward(pool p, size_t pixels, const T *dy, const uint8_t *places, T *dx) {
    int channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * N;
    size_t pixel = static_cast<size_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    if (channel >= p.channels || pixel >= pixels)
        return;
    store_floats<N>(dx + pixel * p.channels + channel,
                    window_gradient<N>(p, dy, places, place_of(pixel, p.in_h, p.in_w), channel));
}

size_t cuda_max_pool_places(const struct op *op, int images) {
    return static_cast<size_t>(images) * shape_size(op->out);
}

// Blocks that hold each pixel once; false: they are too many.
static bool grid_of(size_t pixels, int packs_of_pixel, rows_grid *g) {
    *g = rows_grid_of(packs_of_pixel, 1);
    size_t blocks = divide_up(pixels, g->threads.y);
    g->blocks.x = static_cast<unsigned>(blocks);
    return blocks <= INT32_MAX;
}

template <class T>
static cudaError_t forward(cudaStream_t stream, const struct op *op, int images, const T *x, T *y,
                           void *places) {
    uint8_t *won = static_cast<uint8_t *>(places);
    int channels = op->in.c;
    bool wide = packs<4>(x, channels) && packs<4>(y, channels) && packs<4>(won, channels);
    size_t pixels = static_cast<size_t>(images) * op->out.h * op->out.w;
    rows_grid g;
    if (!pool_is_good(op, images) || !grid_of(pixels, channels / (wide ? 4 : 1), &g))
        return cudaErrorInvalidValue;
    auto kernel = pool_is_three(op) ? wide ? max_pool<4, 3, T> : max_pool<1, 3, T>
                  : wide ? max_pool<4, 0, T>
                                    : max_pool<1, 0, T>;
    return LAUNCH(max_pool, g.blocks, g.threads, 0, stream, kernel, pool_of(op), pixels, x, y, won);
}

template <class T>
static cudaError_t backward(cudaStream_t stream, const struct op *op, int images, const T *dy,
                            const void *places, T *dx) {
    const uint8_t *won = static_cast<const uint8_t *>(places);
    int channels = op->in.c;
    bool wide = packs<4>(dy, channels) && packs<4>(dx, channels) && packs<4>(won, channels);
    size_t pixels = static_cast<size_t>(images) * op->in.h * op->in.w;
    rows_grid g;
    if (!pool_is_good(op, images) || !grid_of(pixels, channels / (wide ? 4 : 1), &g))
        return cudaErrorInvalidValue;
    return LAUNCH(max_pool_backward, g.blocks, g.threads, 0, stream,
                  wide ? max_pool_backward<4, T> : max_pool_backward<1, T>, pool_of(op), pixels, dy, won, dx);
}

cudaError_t cuda_max_pool(cudaStream_t stream, enum cuda_type type, const struct op *op, int images,
                          const void *x, void *y, void *places) {
    return of_type(type, [&](auto value) {
        using T = decltype(value);
        return forward(stream, op, images, static_cast<const T *>(x), static_cast<T *>(y), places);
    });
}

cudaError_t cuda_max_pool_backward(cudaStream_t stream, enum cuda_type type, const struct op *op, int images,
                                   const void *dy, const void *places, void *dx) {
    return of_type(type, [&](auto value) {
        using T = decltype(value);
        return backward(stream, op, images, static_cast<const T *>(dy), places, static_cast<T *>(dx));
    });
}
