// Kernels that walk down rows of channels: a thread stays with its pack of channels. And the sums over rows
// that they leave, one row of sums per block, added up in a fixed order.
#ifndef TOWERSCOPE_KERNELS_CUDA_ROWS_CUH
#define TOWERSCOPE_KERNELS_CUDA_ROWS_CUH

#include "kernels/cuda/common.cuh"

enum { MOST_ROW_BLOCKS = 1024, ROWS_OF_BLOCK = 32, SUM_ROWS = 16 };

// Threads x: packs of channels, y: rows; blocks x: rows, y: packs of channels.
struct rows_grid {
    dim3 blocks, threads;
};

static inline rows_grid rows_grid_of(int packs_of_row, size_t row_blocks) {
    int x = packs_of_row < THREADS ? packs_of_row : THREADS, y = THREADS / x;
    return {dim3(static_cast<unsigned>(row_blocks), static_cast<unsigned>(divide_up(packs_of_row, x))),
            dim3(x, y)};
}

// Blocks of a pass that sums over rows. It must not hang on how wide loads are: the scratch memory's size
// follows.
static inline size_t row_blocks(size_t rows) {
    size_t blocks = divide_up(rows, ROWS_OF_BLOCK);
    return blocks < MOST_ROW_BLOCKS ? blocks : static_cast<size_t>(MOST_ROW_BLOCKS);
}

// The rows of a block of such a pass.
struct row_range {
    size_t begin, end;
};

static __device__ __forceinline__ row_range rows_of_block(size_t rows) {
    return {rows * blockIdx.x / gridDim.x, rows * (blockIdx.x + 1) / gridDim.x};
}

// Add up the sums of the block's threads that have the same channels, in the order of threads y, and put them
// into row blockIdx.x of `partial`. room: blockDim.x * blockDim.y * N values. All threads call it.
template <int N, class T>
static __device__ __forceinline__ void write_row_sums(const T (&sum)[N], T *room, T *partial, int channels) {
    int columns = static_cast<int>(blockDim.x) * N, x = static_cast<int>(threadIdx.x);
    int first = static_cast<int>(blockIdx.y) * columns;
    __syncthreads();
    for (int i = 0; i < N; i++)
        room[static_cast<int>(threadIdx.y) * columns + x * N + i] = sum[i];
    __syncthreads();
    int thread = static_cast<int>(threadIdx.y * blockDim.x) + x;
    for (int c = thread; c < columns && first + c < channels;
         c += static_cast<int>(blockDim.x * blockDim.y)) {
        T total = 0;
        for (unsigned r = 0; r < blockDim.y; r++)
            total += room[static_cast<int>(r) * columns + c];
        partial[static_cast<size_t>(blockIdx.x) * channels + first + c] = total;
    }
}

// out[c] = sum over the rows of partial[row][c], in double: rows SUM_ROWS apart by one thread, then in order.
static __global__ void __launch_bounds__(LANES *SUM_ROWS)
    sum_columns(const float *partial, int rows, int channels, float *out) {
    __shared__ double sums[SUM_ROWS][LANES];
    int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
    int channel = static_cast<int>(blockIdx.x) * LANES + x;
    double sum = 0;
    if (channel < channels)
#pragma unroll 8 // so many reads wait together
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

static inline cudaError_t launch_sum_columns(cudaStream_t stream, const float *partial, size_t rows,
                                             int channels, float *out) {
    return LAUNCH(sum_columns, dim3(static_cast<unsigned>(divide_up(channels, LANES))), dim3(LANES, SUM_ROWS),
                  0, stream, sum_columns, partial, static_cast<int>(rows), channels, out);
}

#endif
