// Bias and ReLU in one pass, and backwards: the ReLU's mask and the bias' gradient in one pass, then the sum
// of its parts.
#include "kernels/cuda/rows.cuh"

template <int N, class X, class Y>
static __global__ void __launch_bounds__(THREADS)
    bias_relu(const X *x, const float *bias, Y *y, size_t rows, int channels, bool relu) {
    int channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * N;
    if (channel >= channels)
        return;
    pack<float, N> b = {};
    if (bias)
        b = load<N>(bias + channel);
    for (size_t row = blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += gridDim.x * blockDim.y) {
        pack<float, N> v = load_floats<N>(x + row * channels + channel);
        for (int i = 0; i < N; i++) {
            v.at[i] += b.at[i];
            v.at[i] = relu && v.at[i] < 0 ? 0 : v.at[i]; // what is not a number stays so
        }
        store_floats<N>(y + row * channels + channel, v);
    }
}

template <int N, class T>
static __global__ void __launch_bounds__(THREADS)
    bias_relu_backward(const T *dy, const T *y, T *dx, float *partial, size_t rows, int channels) {
    __shared__ float room[THREADS * N];
    int channel = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) * N;
    row_range range = rows_of_block(rows);
    float sum[N] = {};
    if (channel < channels)
        for (size_t row = range.begin + threadIdx.y; row < range.end; row += blockDim.y) {
            size_t at = row * channels + channel;
            pack<float, N> v = load_floats<N>(dy + at);
            if (y) {
                pack<float, N> passes = load_floats<N>(y + at);
                for (int i = 0; i < N; i++)
                    v.at[i] = passes.at[i] > 0 ? v.at[i] : 0;
            }
            if (dx)
                store_floats<N>(dx + at, v);
            for (int i = 0; i < N; i++)
                sum[i] += v.at[i];
        }
    if (partial)
        write_row_sums<N>(sum, room, partial, channels);
}

// Where there are few rows, as behind a dense layer: with the sums to their end, by one launch. Threads x:
// channels, y: rows, FEW_LANES apart.
enum { FEW_ROWS = 512, FEW_LANES = 32 };

template <class T>
static __global__ void __launch_bounds__(LANES *FEW_LANES)
    bias_relu_backward_few(const T *dy, const T *y, T *dx, float *dbias, int rows, int channels) {
    __shared__ float sums[FEW_LANES][LANES];
    int channel = static_cast<int>(blockIdx.x) * LANES + static_cast<int>(threadIdx.x);
    float sum = 0;
    if (channel < channels)
#pragma unroll 4
        for (int row = static_cast<int>(threadIdx.y); row < rows; row += FEW_LANES) {
            size_t at = static_cast<size_t>(row) * channels + channel;
            float v = widen(dy[at]);
            if (y && !(widen(y[at]) > 0))
                v = 0;
            if (dx)
                dx[at] = narrow<T>(v);
            sum += v;
        }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y != 0 || channel >= channels)
        return;
    double total = 0;
    for (int r = 0; r < FEW_LANES; r++)
        total += sums[r][threadIdx.x];
    dbias[channel] = static_cast<float>(total);
}

template <class X, class Y>
static cudaError_t forward(cudaStream_t stream, const X *x, const float *bias, Y *y, size_t rows,
                           int channels, bool relu) {
    bool wide = packs<4>(x, channels) && packs<4>(bias, channels) && packs<4>(y, channels);
    rows_grid g = rows_grid_of(channels / (wide ? 4 : 1), 1);
    size_t blocks = divide_up(rows, 4 * g.threads.y), most = 4 * MOST_ROW_BLOCKS;
    g.blocks.x = static_cast<unsigned>(blocks < most ? blocks : most);
    return LAUNCH(bias_relu, g.blocks, g.threads, 0, stream, wide ? bias_relu<4, X, Y> : bias_relu<1, X, Y>,
                  x, bias, y, rows, channels, relu);
}

cudaError_t cuda_bias_relu(cudaStream_t stream, enum cuda_type x_type, const void *x, const float *bias,
                           enum cuda_type y_type, void *y, size_t rows, int channels, bool relu) {
    const float *f = static_cast<const float *>(x);
    const __nv_bfloat16 *b = static_cast<const __nv_bfloat16 *>(x);
    if (rows < 1 || channels < 1 || (x_type == CUDA_TYPE_BF16 && y_type == CUDA_TYPE_F32))
        return cudaErrorInvalidValue;
    if (y_type == CUDA_TYPE_F32)
        return forward(stream, f, bias, static_cast<float *>(y), rows, channels, relu);
    __nv_bfloat16 *to = static_cast<__nv_bfloat16 *>(y);
    return x_type == CUDA_TYPE_F32 ? forward(stream, f, bias, to, rows, channels, relu)
                                   : forward(stream, b, bias, to, rows, channels, relu);
}

size_t cuda_bias_relu_scratch(size_t rows, int channels) {
    return row_blocks(rows) * static_cast<size_t>(channels) * sizeof(float);
}

template <class T>
static cudaError_t backward(cudaStream_t stream, const T *dy, const T *y, T *dx, float *dbias, void *scratch,
                            size_t rows, int channels) {
    if (dbias && rows <= FEW_ROWS)
        return LAUNCH(bias_relu_backward_few, dim3(static_cast<unsigned>(divide_up(channels, LANES))),
                      dim3(LANES, FEW_LANES), 0, stream, bias_relu_backward_few<T>, dy, y, dx, dbias,
                      static_cast<int>(rows), channels);
    bool wide = packs<4>(dy, channels) && packs<4>(y, channels) && packs<4>(dx, channels);
    float *partial = dbias ? static_cast<float *>(scratch) : NULL;
    size_t blocks = row_blocks(rows);
    rows_grid g = rows_grid_of(channels / (wide ? 4 : 1), blocks);
    CUDA_TRY(LAUNCH(bias_relu_backward, g.blocks, g.threads, 0, stream,
                    wide ? bias_relu_backward<4, T> : bias_relu_backward<1, T>, dy, y, dx, partial, rows,
                    channels));
    return dbias ? launch_sum_columns(stream, partial, blocks, channels, dbias) : cudaSuccess;
}

cudaError_t cuda_bias_relu_backward(cudaStream_t stream, enum cuda_type type, const void *dy, const void *y,
                                    void *dx, float *dbias, void *scratch, size_t rows, int channels) {
    if (rows < 1 || channels < 1 || (dbias && !scratch))
        return cudaErrorInvalidValue;
    if (!dbias && !dx)
        return cudaSuccess;
    return of_type(type, [&](auto value) {
        using T = decltype(value);
        return backward(stream, static_cast<const T *>(dy), static_cast<const T *>(y), static_cast<T *>(dx),
                        dbias, scratch, rows, channels);
    });
}
