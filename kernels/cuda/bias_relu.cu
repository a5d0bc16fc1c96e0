// Bias and ReLU in one pass, and backwards: the ReLU's mask and the bias' gradient in one pass, then the sum
// of its parts. A thread stays with its channels and walks down the rows.
#include "kernels/cuda/common.cuh"

namespace {

// Threads x: packs of channels, y: rows; blocks x: rows, y: packs of channels.
struct grid {
    dim3 blocks, threads;
};

enum { MOST_BLOCKS = 1024, ROWS_OF_BLOCK = 32 };

grid grid_of(size_t rows, int packs_of_row, size_t row_blocks) {
    int x = packs_of_row < THREADS ? packs_of_row : THREADS, y = THREADS / x;
    (void)rows;
    return {dim3(static_cast<unsigned>(row_blocks), static_cast<unsigned>(divide_up(packs_of_row, x))),
            dim3(x, y)};
}

// Of the gradient's first pass. It must not hang on how wide loads are: the scratch memory's size follows.
size_t row_blocks(size_t rows) {
    size_t blocks = divide_up(rows, ROWS_OF_BLOCK);
    return blocks < MOST_BLOCKS ? blocks : static_cast<size_t>(MOST_BLOCKS);
}

} // namespace

template <int N>
static __global__ void __launch_bounds__(THREADS)
    bias_relu(const float *x, const float *bias, float *y, size_t rows, int channels, bool relu) {
    int channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * N;
    if (channel >= channels)
        return;
    pack<float, N> b = {};
    if (bias)
        b = load<N>(bias + channel);
    for (size_t row = blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += gridDim.x * blockDim.y) {
        pack<float, N> v = load<N>(x + row * channels + channel);
        for (int i = 0; i < N; i++) {
            v.at[i] += b.at[i];
            v.at[i] = relu && v.at[i] < 0 ? 0 : v.at[i]; // what is not a number stays so
        }
        store<N>(y + row * channels + channel, v);
    }
}

template <int N>
static __global__ void __launch_bounds__(THREADS)
    bias_relu_backward(const float *dy, const float *y, float *dx, float *partial, size_t rows,
                       int channels) {
    __shared__ float sums[THREADS * N];
    int x = static_cast<int>(threadIdx.x), columns = static_cast<int>(blockDim.x) * N;
    int channel = static_cast<int>(blockIdx.y) * columns + x * N;
    size_t begin = rows * blockIdx.x / gridDim.x, end = rows * (blockIdx.x + 1) / gridDim.x;
    float sum[N] = {};
    if (channel < channels)
        for (size_t row = begin + threadIdx.y; row < end; row += blockDim.y) {
            size_t at = row * channels + channel;
            pack<float, N> v = load<N>(dy + at);
            if (y) {
                pack<float, N> passes = load<N>(y + at);
                for (int i = 0; i < N; i++)
                    v.at[i] = passes.at[i] > 0 ? v.at[i] : 0;
            }
            if (dx)
                store<N>(dx + at, v);
            for (int i = 0; i < N; i++)
                sum[i] += v.at[i];
        }
    if (!partial)
        return;
    for (int i = 0; i < N; i++)
        sums[static_cast<int>(threadIdx.y) * columns + x * N + i] = sum[i];
    __syncthreads();
    int thread = static_cast<int>(threadIdx.y * blockDim.x) + x,
        threads = static_cast<int>(blockDim.x * blockDim.y);
    for (int c = thread; c < columns; c += threads) {
        float total = 0;
        for (unsigned r = 0; r < blockDim.y; r++)
            total += sums[static_cast<int>(r) * columns + c];
        int to = static_cast<int>(blockIdx.y) * columns + c;
        if (to < channels)
            partial[static_cast<size_t>(blockIdx.x) * channels + to] = total;
    }
}

enum { SUM_ROWS = 16 };

// out[c] = sum over the rows of partial[row][c], in double: rows SUM_ROWS apart by one thread, then in order.
static __global__ void __launch_bounds__(LANES *SUM_ROWS)
    sum_columns(const float *partial, int rows, int channels, float *out) {
    __shared__ double sums[SUM_ROWS][LANES];
    int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
    int channel = static_cast<int>(blockIdx.x) * LANES + x;
    double sum = 0;
    if (channel < channels)
        for (int row = y; row < rows; row += SUM_ROWS)
            sum += partial[static_cast<size_t>(row) * channels + channel];
    sums[y][x] = sum;
    __syncthreads();
    if (y != 0 || channel >= channels)
        return;
    for (int r = 1; r < SUM_ROWS; r++)
        sum += sums[r][x];
    out[channel] = static_cast<float>(sum);
}

cudaError_t cuda_bias_relu(cudaStream_t stream, const float *x, const float *bias, float *y, size_t rows,
                           int channels, bool relu) {
    if (rows < 1 || channels < 1)
        return cudaErrorInvalidValue;
    bool wide = packs<4>(x, channels) && packs<4>(bias, channels) && packs<4>(y, channels);
    int packs_of_row = channels / (wide ? 4 : 1);
    grid g = grid_of(rows, packs_of_row, 1);
    size_t blocks = divide_up(rows, 4 * g.threads.y);
    g.blocks.x = static_cast<unsigned>(blocks > 4 * MOST_BLOCKS ? 4 * MOST_BLOCKS : blocks);
    return LAUNCH(bias_relu, g.blocks, g.threads, 0, stream, wide ? bias_relu<4> : bias_relu<1>, x, bias, y,
                  rows, channels, relu);
}

size_t cuda_bias_relu_scratch(size_t rows, int channels) {
    return row_blocks(rows) * static_cast<size_t>(channels) * sizeof(float);
}

cudaError_t cuda_bias_relu_backward(cudaStream_t stream, const float *dy, const float *y, float *dx,
                                    float *dbias, void *scratch, size_t rows, int channels) {
    if (rows < 1 || channels < 1 || (dbias && !scratch))
        return cudaErrorInvalidValue;
    if (!dbias && !dx)
        return cudaSuccess;
    bool wide = packs<4>(dy, channels) && packs<4>(y, channels) && packs<4>(dx, channels);
    float *partial = dbias ? static_cast<float *>(scratch) : NULL;
    size_t blocks = row_blocks(rows);
    grid g = grid_of(rows, channels / (wide ? 4 : 1), blocks);
    CUDA_TRY(LAUNCH(bias_relu_backward, g.blocks, g.threads, 0, stream,
                    wide ? bias_relu_backward<4> : bias_relu_backward<1>, dy, y, dx, partial, rows,
                    channels));
    if (!dbias)
        return cudaSuccess;
    return LAUNCH(sum_columns, dim3(static_cast<unsigned>(divide_up(channels, LANES))), dim3(LANES, SUM_ROWS),
                  0, stream, sum_columns, partial, static_cast<int>(blocks), channels, dbias);
}
