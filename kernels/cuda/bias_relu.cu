// Bias and ReLU in one pass, and backwards: the ReLU's mask and the bias' gradient in one pass, then the sum
// of its parts.
#include "kernels/cuda/rows.cuh"

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
    __shared__ float room[THREADS * N];
    int channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * N;
    row_range range = rows_of_block(rows);
    float sum[N] = {};
    if (channel < channels)
        for (size_t row = range.begin + threadIdx.y; row < range.end; row += blockDim.y) {
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
    if (partial)
        write_row_sums<N>(sum, room, partial, channels);
}

cudaError_t cuda_bias_relu(cudaStream_t stream, const float *x, const float *bias, float *y, size_t rows,
                           int channels, bool relu) {
    if (rows < 1 || channels < 1)
        return cudaErrorInvalidValue;
    bool wide = packs<4>(x, channels) && packs<4>(bias, channels) && packs<4>(y, channels);
    rows_grid g = rows_grid_of(channels / (wide ? 4 : 1), 1);
    size_t blocks = divide_up(rows, 4 * g.threads.y), most = 4 * MOST_ROW_BLOCKS;
    g.blocks.x = static_cast<unsigned>(blocks < most ? blocks : most);
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
    rows_grid g = rows_grid_of(channels / (wide ? 4 : 1), blocks);
    CUDA_TRY(LAUNCH(bias_relu_backward, g.blocks, g.threads, 0, stream,
                    wide ? bias_relu_backward<4> : bias_relu_backward<1>, dy, y, dx, partial, rows,
                    channels));
    return dbias ? launch_sum_columns(stream, partial, blocks, channels, dbias) : cudaSuccess;
}
