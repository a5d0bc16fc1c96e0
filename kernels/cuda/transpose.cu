// Transpose of a matrix, in tiles through shared memory so that reads and writes both run along rows.
#include "kernels/cuda/common.cuh"

enum { TILE = 32, TILE_ROWS = 8 };

template <class From, class To>
static __global__ void __launch_bounds__(TILE *TILE_ROWS)
    transpose(const From *from, To *to, size_t rows, size_t columns, unsigned tile_columns) {
    __shared__ float tile[TILE][TILE + 1]; // one more: a column's values lie in different banks
    size_t top = static_cast<size_t>(blockIdx.x / tile_columns) * TILE,
           left = static_cast<size_t>(blockIdx.x % tile_columns) * TILE;
    for (unsigned r = threadIdx.y; r < TILE; r += TILE_ROWS)
        if (top + r < rows && left + threadIdx.x < columns)
            tile[r][threadIdx.x] = widen(from[(top + r) * columns + left + threadIdx.x]);
    __syncthreads();
    for (unsigned c = threadIdx.y; c < TILE; c += TILE_ROWS)
        if (left + c < columns && top + threadIdx.x < rows)
            to[(left + c) * rows + top + threadIdx.x] = narrow<To>(tile[threadIdx.x][c]);
}

template <class From, class To>
static cudaError_t run(cudaStream_t stream, const From *from, To *to, size_t rows, size_t columns) {
    size_t across = divide_up(columns, TILE), tiles = across * divide_up(rows, TILE);
    if (tiles < 1 || tiles > INT32_MAX)
        return cudaErrorInvalidValue;
    return LAUNCH(transpose, dim3(static_cast<unsigned>(tiles)), dim3(TILE, TILE_ROWS), 0, stream,
                  (transpose<From, To>), from, to, rows, columns, static_cast<unsigned>(across));
}

cudaError_t cuda_transpose(cudaStream_t stream, enum cuda_type from_type, const void *from,
                           enum cuda_type to_type, void *to, size_t rows, size_t columns) {
    if (from_type == CUDA_TYPE_BF16)
        return to_type == CUDA_TYPE_BF16 ? cudaErrorInvalidValue
                                         : run(stream, static_cast<const __nv_bfloat16 *>(from),
                                               static_cast<float *>(to), rows, columns);
    return of_type(to_type, [&](auto value) {
        return run(stream, static_cast<const float *>(from), static_cast<decltype(value) *>(to), rows,
                   columns);
    });
}
