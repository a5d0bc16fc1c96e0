// Local response normalisation over channels (formulas: kernels/ref/lrn.c), alone and with its neighbours: a
// max pool before or behind it, and backwards the ReLU and the bias before it. What the channels of a pixel
// want of each other goes through rows of shared memory with zeros at both ends. Threads x: packs of a
// pixel's channels, y: pixels.
#include "kernels/cuda/max_pool.cuh"
#include "kernels/cuda/rows.cuh"

namespace {

enum { MOST_THREADS = CUDA_LRN_MOST_CHANNELS };

struct lrn {
    int channels, radius;
    int end, row; // floats of zeros at each end of a row of shared memory, and of the row with them
    float bias, alpha, beta;
    bool usual; // beta is 0.75
};

// ---- where values come from

template <class T> struct plain {
    const T *from;

    template <int N>
    __device__ __forceinline__ pack<float, N> get(size_t pixel, int channels, int channel) const {
        return load_floats<N>(from + pixel * channels + channel);
    }
};

// A max pool of x; its values and places are kept.
template <int K, class T> struct pooled {
    pool p;
    const T *x;
    T *kept;
    uint8_t *places; // NULL: not wanted

    template <int N>
    __device__ __forceinline__ pack<float, N> get(size_t pixel, int channels, int channel) const {
        place at = place_of(pixel, p.out_h, p.out_w);
        pack<uint8_t, N> won;
        pack<float, N> best = window_largest<N, K>(p, x + at.image * p.in_h * p.in_w * channels + channel, 0,
                                                   at.row, at.column, &won);
        store_floats<N>(kept + pixel * channels + channel, best);
        if (places)
            store<N>(places + pixel * channels + channel, won);
        return best;
    }
};

// What a max pool behind the normalisation hands back.
template <class T> struct handed_back {
    pool p;
    const T *dy;
    const uint8_t *places;

    template <int N> __device__ __forceinline__ pack<float, N> get(size_t pixel, int, int channel) const {
        return window_gradient<N>(p, dy, places, place_of(pixel, p.in_h, p.in_w), channel);
    }
};

// ---- parts

// n^-beta
__device__ __forceinline__ float power(const lrn &l, float n) {
    if (!l.usual)
        return powf(n, -l.beta);
    float root = rsqrtf(n);
    return root * sqrtf(root);
}

// Wait for the threads of the same pixel: where those lie in one warp, for that.
__device__ __forceinline__ void wait_for_row() {
    if (LANES % blockDim.x == 0)
        __syncwarp();
    else
        __syncthreads();
}

__device__ __forceinline__ void zero_ends(const lrn &l, float *row) {
    for (int i = static_cast<int>(threadIdx.x); i < l.row - l.channels; i += static_cast<int>(blockDim.x))
        row[i < l.end ? i : i + l.channels] = 0;
}

// out[i] = sum of the values, or of their squares, within the radius of at[i].
template <int N, bool SQUARES>
__device__ __forceinline__ void window_sums(const lrn &l, const float *at, float (&out)[N]) {
    if (N == 4 && l.radius == 4) { // the usual one, read in packs
        float v[12];
        for (int i = 0; i < 3; i++) {
            pack<float, 4> part = load<4>(at + 4 * (i - 1));
            for (int c = 0; c < 4; c++)
                v[4 * i + c] = part.at[c];
        }
        for (int c = 0; c < N; c++) {
            out[c] = 0;
            for (int k = 0; k < 9; k++)
                out[c] += SQUARES ? v[c + k] * v[c + k] : v[c + k];
        }
        return;
    }
    for (int c = 0; c < N; c++) {
        out[c] = 0;
        for (int k = -l.radius; k <= l.radius; k++)
            out[c] += SQUARES ? at[c + k] * at[c + k] : at[c + k];
    }
}

// y of N channels, whose x and neighbours lie at `at`.
template <int N> __device__ __forceinline__ pack<float, N> normalised(const lrn &l, const float *at) {
    float sum[N];
    window_sums<N, true>(l, at, sum);
    pack<float, N> y;
    for (int c = 0; c < N; c++)
        y.at[c] = at[c] * power(l, l.bias + l.alpha * sum[c]);
    return y;
}

} // namespace

// ---- kernels

template <int N, class Source, class T>
static __global__ void __launch_bounds__(N == 4 ? THREADS : MOST_THREADS, N == 4 ? 4 : 1)
    lrn_forward(lrn l, size_t pixels, Source source, T *y) {
    DYNAMIC_SHARED(float, room);
    float *row = room + static_cast<int>(threadIdx.y) * l.row;
    int channel = static_cast<int>(threadIdx.x) * N;
    size_t pixel = static_cast<size_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    zero_ends(l, row);
    if (pixel < pixels)
        store<N>(row + l.end + channel, source.template get<N>(pixel, l.channels, channel));
    wait_for_row();
    if (pixel < pixels)
        store_floats<N>(y + pixel * l.channels + channel, normalised<N>(l, row + l.end + channel));
}

// dx_k = g_k * N_k^-beta - 2 * alpha * beta * x_k * sum_{|j-k| <= radius} g_j * y_j / N_j; RELU: 0 where x_k
// is not above 0. partial: sums of dx over the block's pixels, or NULL. A block takes a range of pixels, a
// row at a time.
template <int N, bool RELU, class Source, class T>
static __global__ void __launch_bounds__(N == 4 ? THREADS : MOST_THREADS, N == 4 ? 3 : 1)
    lrn_backward(lrn l, size_t pixels, const T *x, Source source, T *dx, float *partial) {
    DYNAMIC_SHARED(float, room);
    float *row = room + static_cast<int>(threadIdx.y) * l.row,
          *ratios = row + static_cast<int>(blockDim.y) * l.row;
    int channel = static_cast<int>(threadIdx.x) * N, at = l.end + channel;
    float factor = 2 * l.alpha * l.beta, sum[N] = {};
    row_range range = rows_of_block(pixels);
    zero_ends(l, row);
    zero_ends(l, ratios);
    for (size_t first = range.begin; first < range.end; first += blockDim.y) {
        size_t pixel = first + threadIdx.y;
        bool here = pixel < range.end;
        pack<float, N> v = {}, own = {};
        if (here) {
            v = load_floats<N>(x + pixel * l.channels + channel);
            own = source.template get<N>(pixel, l.channels, channel);
            store<N>(row + at, v);
        }
        wait_for_row();
        if (here) {
            pack<float, N> ratio;
            float squares[N];
            window_sums<N, true>(l, row + at, squares);
            for (int c = 0; c < N; c++) {
                float n = l.bias + l.alpha * squares[c];
                own.at[c] *= power(l, n);
                ratio.at[c] = own.at[c] * v.at[c] / n;
            }
            store<N>(ratios + at, ratio);
        }
        wait_for_row();
        if (here) {
            float near[N];
            window_sums<N, false>(l, ratios + at, near);
            for (int c = 0; c < N; c++) {
                own.at[c] -= factor * v.at[c] * near[c];
                if (RELU && !(v.at[c] > 0))
                    own.at[c] = 0;
                sum[c] += own.at[c];
            }
            store_floats<N>(dx + pixel * l.channels + channel, own);
        }
        // the next turn writes x behind everyone's reading of it, and ratios behind the next wait
    }
    if (partial)
        write_row_sums<N>(sum, room, partial, l.channels);
}

// The normalisation with a max pool behind it: a block makes one row of outputs of one image. Shared memory
// holds the window's rows of x, then what they become.
template <int N, int K, class T>
static __global__ void __launch_bounds__(N == 4 ? THREADS : MOST_THREADS, N == 4 ? 4 : 1)
    lrn_pool(lrn l, pool p, const T *x, T *y, uint8_t *places) {
    DYNAMIC_SHARED(float, room);
    int channel = static_cast<int>(threadIdx.x) * N,
        i = static_cast<int>(blockIdx.x % static_cast<unsigned>(p.out_h));
    size_t image = blockIdx.x / static_cast<unsigned>(p.out_h);
    int top = i * p.stride - p.pad_top, bottom = top + p.kernel_h;
    top = top > 0 ? top : 0;
    bottom = bottom < p.in_h ? bottom : p.in_h;
    int pixels = (bottom - top) * p.in_w, step = static_cast<int>(blockDim.y);
    float *becomes = room + static_cast<size_t>(p.kernel_h) * p.in_w * l.row;
    x += (image * p.in_h + top) * p.in_w * l.channels + channel;
    for (int q = static_cast<int>(threadIdx.y); q < pixels; q += step) {
        zero_ends(l, room + q * l.row);
        store<N>(room + q * l.row + l.end + channel, load_floats<N>(x + static_cast<size_t>(q) * l.channels));
    }
    wait_for_row();
    for (int q = static_cast<int>(threadIdx.y); q < pixels; q += step)
        store<N>(becomes + q * l.channels + channel, normalised<N>(l, room + q * l.row + l.end + channel));
    __syncthreads();
    for (int j = static_cast<int>(threadIdx.y); j < p.out_w; j += step) {
        pack<uint8_t, N> won;
        pack<float, N> best = window_largest<N, K>(p, becomes + channel, top, i, j, &won);
        size_t to = ((image * p.out_h + i) * p.out_w + j) * l.channels + channel;
        store_floats<N>(y + to, best);
        if (places)
            store<N>(places + to, won);
    }
}

// ---- launching

namespace {

struct lrn_plan {
    lrn l;
    dim3 threads;
    size_t shared_bytes; // of one row of shared memory per pixel
};

bool plan_lrn(const struct op_lrn *op, int channels, bool wide, lrn_plan *out) {
    if (channels < 1 || channels > CUDA_LRN_MOST_CHANNELS || op->radius < 0 ||
        op->radius > CUDA_LRN_MOST_RADIUS)
        return false;
    int radius = op->radius < channels ? op->radius : channels - 1; // beyond it there are only zeros
    int end =
        static_cast<int>(divide_up(static_cast<size_t>(radius), 4)) * 4; // keeps the rows aligned for packs
    int row = static_cast<int>(divide_up(channels, 4)) * 4 + 2 * end, x = channels / (wide ? 4 : 1);
    out->l = {channels,
              radius,
              end,
              row,
              static_cast<float>(op->bias),
              static_cast<float>(op->alpha),
              static_cast<float>(op->beta),
              op->beta == 0.75};
    out->threads = dim3(x, x < THREADS ? THREADS / x : 1);
    out->shared_bytes = static_cast<size_t>(out->threads.y) * row * sizeof(float);
    return true;
}

template <class Source, class T>
cudaError_t forward(cudaStream_t stream, const struct op_lrn *op, size_t pixels, int channels, bool wide,
                    const Source &source, T *y) {
    lrn_plan plan;
    wide = wide && packs<4>(y, channels);
    if (pixels < 1 || !plan_lrn(op, channels, wide, &plan) || divide_up(pixels, plan.threads.y) > INT32_MAX)
        return cudaErrorInvalidValue;
    auto kernel = wide ? lrn_forward<4, Source, T> : lrn_forward<1, Source, T>;
    return LAUNCH(lrn_forward, dim3(static_cast<unsigned>(divide_up(pixels, plan.threads.y))), plan.threads,
                  plan.shared_bytes, stream, kernel, plan.l, pixels, source, y);
}

// dbias NULL: blocks take as few pixels as their threads can hold; else as many as the sums' scratch memory
// asks for.
template <bool RELU, class Source, class T>
cudaError_t backward(cudaStream_t stream, const struct op_lrn *op, size_t pixels, int channels, bool wide,
                     const T *x, const Source &source, T *dx, float *dbias, void *scratch) {
    lrn_plan plan;
    wide = wide && packs<4>(x, channels) && packs<4>(dx, channels);
    if (pixels < 1 || (dbias && !scratch) || !plan_lrn(op, channels, wide, &plan))
        return cudaErrorInvalidValue;
    size_t blocks = dbias ? row_blocks(pixels) : divide_up(pixels, plan.threads.y);
    if (blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    size_t shared = 2 * plan.shared_bytes,
           sums = static_cast<size_t>(plan.threads.y) * channels * sizeof(float);
    float *partial = dbias ? static_cast<float *>(scratch) : NULL;
    auto kernel = wide ? lrn_backward<4, RELU, Source, T> : lrn_backward<1, RELU, Source, T>;
    CUDA_TRY(LAUNCH(lrn_backward, dim3(static_cast<unsigned>(blocks)), plan.threads,
                    shared > sums ? shared : sums, stream, kernel, plan.l, pixels, x, source, dx, partial));
    return dbias ? launch_sum_columns(stream, partial, blocks, channels, dbias) : cudaSuccess;
}

template <class T>
cudaError_t pool_then_lrn(cudaStream_t stream, const struct op *pool_op, const struct op_lrn *op, int images,
                          const T *x, T *kept, void *places, T *y) {
    if (!pool_is_good(pool_op, images))
        return cudaErrorInvalidValue;
    int channels = pool_op->in.c;
    size_t pixels = static_cast<size_t>(images) * pool_op->out.h * pool_op->out.w;
    uint8_t *won = static_cast<uint8_t *>(places);
    bool wide = packs<4>(x, channels) && packs<4>(kept, channels) && packs<4>(won, channels);
    if (pool_is_three(pool_op))
        return forward(stream, op, pixels, channels, wide, pooled<3, T>{pool_of(pool_op), x, kept, won}, y);
    return forward(stream, op, pixels, channels, wide, pooled<0, T>{pool_of(pool_op), x, kept, won}, y);
}

template <class T>
cudaError_t lrn_then_pool(cudaStream_t stream, const struct op_lrn *op, const struct op *pool_op, int images,
                          const T *x, T *y, void *places) {
    if (!cuda_lrn_pool_fits(op, pool_op) || !pool_is_good(pool_op, images))
        return cudaErrorInvalidValue;
    int channels = pool_op->in.c;
    uint8_t *won = static_cast<uint8_t *>(places);
    bool wide = packs<4>(x, channels) && packs<4>(y, channels) && packs<4>(won, channels);
    bool three = pool_is_three(pool_op);
    lrn_plan plan;
    size_t blocks = static_cast<size_t>(images) * pool_op->out.h;
    if (!plan_lrn(op, channels, wide, &plan) || blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    auto kernel = three  ? wide ? lrn_pool<4, 3, T> : lrn_pool<1, 3, T>
                   : wide ? lrn_pool<4, 0, T>
                         : lrn_pool<1, 0, T>;
    size_t shared = static_cast<size_t>(pool_op->window.kernel_h) * pool_op->in.w * (plan.l.row + channels) *
                    sizeof(float);
    return LAUNCH(lrn_pool, dim3(static_cast<unsigned>(blocks)), plan.threads, shared, stream, kernel, plan.l,
                  pool_of(pool_op), x, y, won);
}

template <class T>
cudaError_t lrn_pool_backward(cudaStream_t stream, const struct op_lrn *op, const struct op *pool_op,
                              int images, const T *x, const T *dy, const void *places, T *dx, float *dbias,
                              void *scratch) {
    if (!pool_is_good(pool_op, images))
        return cudaErrorInvalidValue;
    int channels = pool_op->in.c;
    size_t pixels = static_cast<size_t>(images) * pool_op->in.h * pool_op->in.w;
    const uint8_t *won = static_cast<const uint8_t *>(places);
    return backward<true>(stream, op, pixels, channels, packs<4>(dy, channels) && packs<4>(won, channels), x,
                          handed_back<T>{pool_of(pool_op), dy, won}, dx, dbias, scratch);
}

} // namespace

cudaError_t cuda_lrn(cudaStream_t stream, enum cuda_type type, const struct op_lrn *op, size_t pixels,
                     int channels, const void *x, void *y) {
    return of_type(type, [&](auto value) {
        using T = decltype(value);
        const T *from = static_cast<const T *>(x);
        return forward(stream, op, pixels, channels, packs<4>(from, channels), plain<T>{from},
                       static_cast<T *>(y));
    });
}

cudaError_t cuda_lrn_backward(cudaStream_t stream, enum cuda_type type, const struct op_lrn *op,
                              size_t pixels, int channels, const void *x, const void *dy, void *dx) {
    return of_type(type, [&](auto value) {
        using T = decltype(value);
        const T *from = static_cast<const T *>(dy);
        return backward<false>(stream, op, pixels, channels, packs<4>(from, channels),
                               static_cast<const T *>(x), plain<T>{from}, static_cast<T *>(dx), NULL, NULL);
    });
}

cudaError_t cuda_lrn_relu_backward(cudaStream_t stream, enum cuda_type type, const struct op_lrn *op,
                                   size_t pixels, int channels, const void *x, const void *dy, void *dx,
                                   float *dbias, void *scratch) {
    return of_type(type, [&](auto value) {
        using T = decltype(value);
        const T *from = static_cast<const T *>(dy);
        return backward<true>(stream, op, pixels, channels, packs<4>(from, channels),
                              static_cast<const T *>(x), plain<T>{from}, static_cast<T *>(dx), dbias,
                              scratch);
    });
}

cudaError_t cuda_pool_lrn(cudaStream_t stream, enum cuda_type type, const struct op *pool,
                          const struct op_lrn *op, int images, const void *x, void *pooled, void *places,
                          void *y) {
    return of_type(type, [&](auto value) {
        using T = decltype(value);
        return pool_then_lrn(stream, pool, op, images, static_cast<const T *>(x), static_cast<T *>(pooled),
                             places, static_cast<T *>(y));
    });
}

cudaError_t cuda_lrn_pool(cudaStream_t stream, enum cuda_type type, const struct op_lrn *op,
                          const struct op *pool, int images, const void *x, void *y, void *places) {
    return of_type(type, [&](auto value) {
        using T = decltype(value);
        return lrn_then_pool(stream, op, pool, images, static_cast<const T *>(x), static_cast<T *>(y),
                             places);
    });
}

bool cuda_lrn_pool_fits(const struct op_lrn *op, const struct op *pool_op) {
    lrn_plan plan;
    return plan_lrn(op, pool_op->in.c, false, &plan) && static_cast<size_t>(pool_op->window.kernel_h) *
                                                                pool_op->in.w * (plan.l.row + pool_op->in.c) *
                                                                sizeof(float) <=
                                                            48 << 10;
}

cudaError_t cuda_lrn_pool_relu_backward(cudaStream_t stream, enum cuda_type type, const struct op_lrn *op,
                                        const struct op *pool, int images, const void *x, const void *dy,
                                        const void *places, void *dx, float *dbias, void *scratch) {
    return of_type(type, [&](auto value) {
        using T = decltype(value);
        return lrn_pool_backward(stream, op, pool, images, static_cast<const T *>(x),
                                 static_cast<const T *>(dy), places, static_cast<T *>(dx), dbias, scratch);
    });
}
