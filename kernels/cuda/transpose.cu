// Transpose of a matrix, in tiles through shared memory so that reads and writes both run along rows.
#include "kernels/cuda/common.cuh"

enum { TILE = 32, TILE_ROWS = 8 };

static __global__ void __launch_bounds__(TILE *TILE_ROWS)
    transpose(const float *from, float *to, size_t rows, size_t columns, unsigned tile_columns) {
    __shared__ float tile[TILE][TILE + 1]; // one more: a column's values lie in different banks
    size_t top = static_cast<size_t>(blockIdx.x / tile_columns) * TILE,
           left = static_cast<size_t>(blockIdx.x % tile_columns) * TILE;
    for (unsigned r = threadIdx.y; r < TILE; r += TILE_ROWS)
        if (top + r < rows && left + threadIdx.x < columns)
            tile[r][threadIdx.x] = from[(top + r) * columns + left + threadIdx.x];
    __syncthreads();
    for (unsigned c = threadIdx.y; c < TILE; c += TILE_ROWS)
        if (left + c < columns && top + threadIdx.x < rows)
            to[(left + c) * rows + top + threadIdx.x] = tile[threadIdx.x][c];
}

cudaError_t cuda_transpose(cudaStream_t stream, const float *from, float *to, size_t rows, size_t columns) {
    size_t across = divide_up(columns, TILE), tiles = across * divide_up(rows, TILE);
    if (tiles < 1 || tiles > INT32_MAX)
        return cudaErrorInvalidValue;
    return LAUNCH(transpose, dim3(static_cast<unsigned>(tiles)), dim3(TILE, TILE_ROWS), 0, stream, transpose,
                  from, to, rows, columns, static_cast<unsigned>(across));
}
