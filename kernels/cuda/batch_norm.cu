// Batch normalisation (Ioffe, Szegedy, "Batch normalization", 2015) over rows of channels. Means and
// variances are made without losing digits to a large mean: a thread sums distances from the first of its
// rows, and what threads and blocks found is joined as in Chan, Golub, LeVeque, "Updating formulae and a
// pairwise algorithm for computing sample variances", 1979.
#include "kernels/cuda/batch_norm.h"

#include "kernels/cuda/rows.cuh"

namespace {

// Of some values: how many, their mean, and the sum of the squares of their distances from it.
struct moments {
    double count, mean, squares;
};

__device__ __forceinline__ void join(moments *to, const moments &other) {
    if (other.count == 0)
        return;
    double count = to->count + other.count, distance = other.mean - to->mean;
    to->squares += other.squares + distance * distance * to->count * other.count / count;
    to->mean += distance * other.count / count;
    to->count = count;
}

__device__ __forceinline__ float inverse_deviation(float variance, float epsilon) {
    return 1 / sqrtf(variance + epsilon);
}

} // namespace

template <int N>
static __global__ void __launch_bounds__(THREADS)
    batch_norm_moments(const float *x, size_t rows, int channels, moments *partial) {
    __shared__ moments room[THREADS];
    int first = static_cast<int>(blockIdx.y * blockDim.x) * N,
        thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
    int channel = first + static_cast<int>(threadIdx.x) * N;
    row_range range = rows_of_block(rows);
    float shift[N] = {}, sum[N] = {}, squares[N] = {};
    double count = 0;
    if (channel < channels)
        for (size_t row = range.begin + threadIdx.y; row < range.end; row += blockDim.y) {
            pack<float, N> v = load<N>(x + row * channels + channel);
            for (int i = 0; i < N; i++) {
                if (count == 0)
                    shift[i] = v.at[i];
                float distance = v.at[i] - shift[i];
                sum[i] += distance;
                squares[i] += distance * distance;
            }
            count++;
        }
    for (int i = 0; i < N; i++) {
        double mean = count > 0 ? sum[i] / count : 0;
        __syncthreads();
        room[thread] = {count, shift[i] + mean, squares[i] - mean * sum[i]};
        __syncthreads();
        if (threadIdx.y == 0 && channel < channels) {
            moments all = room[threadIdx.x];
            for (unsigned r = 1; r < blockDim.y; r++)
                join(&all, room[r * blockDim.x + threadIdx.x]);
            partial[static_cast<size_t>(blockIdx.x) * channels + channel + i] = all;
        }
    }
}

static __global__ void __launch_bounds__(LANES *SUM_ROWS)
    batch_norm_join(const moments *partial, int blocks, int channels, float *mean, float *variance) {
    __shared__ moments room[SUM_ROWS][LANES];
    int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
    int channel = static_cast<int>(blockIdx.x) * LANES + x;
    moments all = {0, 0, 0};
    if (channel < channels)
        for (int b = y; b < blocks; b += SUM_ROWS)
            join(&all, partial[static_cast<size_t>(b) * channels + channel]);
    room[y][x] = all;
    __syncthreads();
    if (y != 0 || channel >= channels)
        return;
    for (int r = 1; r < SUM_ROWS; r++)
        join(&all, room[r][x]);
    mean[channel] = static_cast<float>(all.mean);
    variance[channel] = static_cast<float>(all.squares > 0 ? all.squares / all.count : all.squares * 0);
}

template <int N>
static __global__ void __launch_bounds__(THREADS)
    batch_norm_forward(cuda_batch_norm b, const float *x, float *y, size_t rows, bool relu) {
    int channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * N;
    if (channel >= b.channels)
        return;
    float scale[N], mean[N], beta[N];
    for (int i = 0; i < N; i++) {
        scale[i] = b.gamma[channel + i] * inverse_deviation(b.variance[channel + i], b.epsilon);
        mean[i] = b.mean[channel + i];
        beta[i] = b.beta[channel + i];
    }
    for (size_t row = blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += gridDim.x * blockDim.y) {
        pack<float, N> v = load<N>(x + row * b.channels + channel);
        for (int i = 0; i < N; i++) {
            v.at[i] = (v.at[i] - mean[i]) * scale[i] + beta[i];
            v.at[i] = relu && v.at[i] < 0 ? 0 : v.at[i];
        }
        store<N>(y + row * b.channels + channel, v);
    }
}

// The gradient that passes the ReLU; y NULL: there is none.
template <int N>
static __device__ __forceinline__ pack<float, N> passed(const float *dy, const float *y, size_t at) {
    pack<float, N> g = load<N>(dy + at);
    if (y) {
        pack<float, N> passes = load<N>(y + at);
        for (int i = 0; i < N; i++)
            g.at[i] = passes.at[i] > 0 ? g.at[i] : 0;
    }
    return g;
}

template <int N>
static __global__ void __launch_bounds__(THREADS)
    batch_norm_sums(cuda_batch_norm b, const float *x, const float *dy, const float *y, size_t rows,
                    float *partial) {
    __shared__ float room[THREADS * N];
    int channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * N;
    row_range range = rows_of_block(rows);
    float of_gamma[N] = {}, of_beta[N] = {};
    if (channel < b.channels) {
        float mean[N], inverse[N];
        for (int i = 0; i < N; i++) {
            mean[i] = b.mean[channel + i];
            inverse[i] = inverse_deviation(b.variance[channel + i], b.epsilon);
        }
        for (size_t row = range.begin + threadIdx.y; row < range.end; row += blockDim.y) {
            size_t at = row * b.channels + channel;
            pack<float, N> v = load<N>(x + at), g = passed<N>(dy, y, at);
            for (int i = 0; i < N; i++) {
                of_gamma[i] += g.at[i] * ((v.at[i] - mean[i]) * inverse[i]);
                of_beta[i] += g.at[i];
            }
        }
    }
    write_row_sums<N>(of_gamma, room, partial, b.channels);
    write_row_sums<N>(of_beta, room, partial + static_cast<size_t>(gridDim.x) * b.channels, b.channels);
}

template <int N>
static __global__ void __launch_bounds__(THREADS)
    batch_norm_backward(cuda_batch_norm b, const float *x, const float *dy, const float *y,
                        const float *dgamma, const float *dbeta, float per_value, size_t rows, float *dx) {
    int channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * N;
    if (channel >= b.channels)
        return;
    float mean[N], inverse[N], gamma[N], of_gamma[N], of_beta[N];
    for (int i = 0; i < N; i++) {
        mean[i] = b.mean[channel + i];
        inverse[i] = inverse_deviation(b.variance[channel + i], b.epsilon);
        gamma[i] = b.gamma[channel + i] * inverse[i];
        of_gamma[i] = dgamma[channel + i] * per_value;
        of_beta[i] = dbeta[channel + i] * per_value;
    }
    for (size_t row = blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += gridDim.x * blockDim.y) {
        size_t at = row * b.channels + channel;
        pack<float, N> v = load<N>(x + at), g = passed<N>(dy, y, at);
        for (int i = 0; i < N; i++)
            g.at[i] = gamma[i] * (g.at[i] - of_beta[i] - (v.at[i] - mean[i]) * inverse[i] * of_gamma[i]);
        store<N>(dx + at, g);
    }
}

static __global__ void __launch_bounds__(THREADS)
    batch_norm_running(int channels, const float *mean, const float *variance, float unbiased, float keep,
                       float *running_mean, float *running_variance) {
    int c = static_cast<int>(blockIdx.x * THREADS + threadIdx.x);
    if (c >= channels)
        return;
    running_mean[c] += (1 - keep) * (mean[c] - running_mean[c]);
    running_variance[c] += (1 - keep) * (variance[c] * unbiased - running_variance[c]);
}

// Of kernels that write each row once.
static rows_grid once(size_t rows, int packs_of_row) {
    rows_grid g = rows_grid_of(packs_of_row, 1);
    size_t blocks = divide_up(rows, 4 * g.threads.y), most = 4 * MOST_ROW_BLOCKS;
    g.blocks.x = static_cast<unsigned>(blocks < most ? blocks : most);
    return g;
}

size_t cuda_batch_norm_scratch(size_t rows, int channels) {
    return row_blocks(rows) * static_cast<size_t>(channels) * sizeof(moments);
}

cudaError_t cuda_batch_norm_statistics(cudaStream_t stream, const float *x, size_t rows, int channels,
                                       void *scratch, float *mean, float *variance) {
    if (rows < 1 || channels < 1)
        return cudaErrorInvalidValue;
    bool wide = packs<4>(x, channels);
    size_t blocks = row_blocks(rows);
    rows_grid g = rows_grid_of(channels / (wide ? 4 : 1), blocks);
    moments *partial = static_cast<moments *>(scratch);
    CUDA_TRY(LAUNCH(batch_norm_moments, g.blocks, g.threads, 0, stream,
                    wide ? batch_norm_moments<4> : batch_norm_moments<1>, x, rows, channels, partial));
    return LAUNCH(batch_norm_join, dim3(static_cast<unsigned>(divide_up(channels, LANES))),
                  dim3(LANES, SUM_ROWS), 0, stream, batch_norm_join, partial, static_cast<int>(blocks),
                  channels, mean, variance);
}

cudaError_t cuda_batch_norm_forward(cudaStream_t stream, const struct cuda_batch_norm *b, const float *x,
                                    size_t rows, bool relu, float *y) {
    if (rows < 1 || b->channels < 1)
        return cudaErrorInvalidValue;
    bool wide = packs<4>(x, b->channels) && packs<4>(y, b->channels);
    rows_grid g = once(rows, b->channels / (wide ? 4 : 1));
    return LAUNCH(batch_norm_forward, g.blocks, g.threads, 0, stream,
                  wide ? batch_norm_forward<4> : batch_norm_forward<1>, *b, x, y, rows, relu);
}

cudaError_t cuda_batch_norm_running(cudaStream_t stream, int channels, size_t rows, const float *mean,
                                    const float *variance, double keep, float *running_mean,
                                    float *running_variance) {
    if (rows < 1 || channels < 1)
        return cudaErrorInvalidValue;
    float unbiased =
        rows > 1 ? static_cast<float>(static_cast<double>(rows) / (static_cast<double>(rows) - 1)) : 1;
    return LAUNCH(batch_norm_running, dim3(static_cast<unsigned>(divide_up(channels, THREADS))),
                  dim3(THREADS), 0, stream, batch_norm_running, channels, mean, variance, unbiased,
                  static_cast<float>(keep), running_mean, running_variance);
}

cudaError_t cuda_batch_norm_sums(cudaStream_t stream, const struct cuda_batch_norm *b, const float *x,
                                 const float *dy, const float *y, size_t rows, void *scratch, float *dgamma,
                                 float *dbeta) {
    if (rows < 1 || b->channels < 1)
        return cudaErrorInvalidValue;
    bool wide = packs<4>(x, b->channels) && packs<4>(dy, b->channels) && packs<4>(y, b->channels);
    size_t blocks = row_blocks(rows);
    rows_grid g = rows_grid_of(b->channels / (wide ? 4 : 1), blocks);
    float *partial = static_cast<float *>(scratch);
    CUDA_TRY(LAUNCH(batch_norm_sums, g.blocks, g.threads, 0, stream,
                    wide ? batch_norm_sums<4> : batch_norm_sums<1>, *b, x, dy, y, rows, partial));
    CUDA_TRY(launch_sum_columns(stream, partial, blocks, b->channels, dgamma));
    return launch_sum_columns(stream, partial + blocks * b->channels, blocks, b->channels, dbeta);
}

cudaError_t cuda_batch_norm_backward(cudaStream_t stream, const struct cuda_batch_norm *b, const float *x,
                                     const float *dy, const float *y, const float *dgamma, const float *dbeta,
                                     size_t all_rows, size_t rows, float *dx) {
    if (rows < 1 || all_rows < rows || b->channels < 1)
        return cudaErrorInvalidValue;
    bool wide = packs<4>(x, b->channels) && packs<4>(dy, b->channels) && packs<4>(y, b->channels) &&
                packs<4>(dx, b->channels);
    rows_grid g = once(rows, b->channels / (wide ? 4 : 1));
    return LAUNCH(batch_norm_backward, g.blocks, g.threads, 0, stream,
                  wide ? batch_norm_backward<4> : batch_norm_backward<1>, *b, x, dy, y, dgamma, dbeta,
                  static_cast<float>(1.0 / static_cast<double>(all_rows)), rows, dx);
}
