// Transposes of matrices, in tiles through shared memory so that reads and writes both run along rows; and
// what the libraries multiply with, made of all parameters at once: turned, rounded, or both.
#include "kernels/cuda/common.cuh"

namespace {

enum { TILE = 32, TILE_ROWS = 8, OF_BLOCK = 4 * THREADS };
static_assert(TILE * TILE_ROWS == THREADS, "a block turns a tile, or rounds OF_BLOCK values");

struct rewrite_list {
    cuda_rewrite of[CUDA_REWRITES_AT_ONCE];
    unsigned blocks[CUDA_REWRITES_AT_ONCE];
};

template <class From, class To>
__device__ __forceinline__ void turn_tile(const From *from, To *to, size_t rows, size_t columns,
                                          unsigned number) {
    __shared__ float tile[TILE][TILE + 1]; // one more: a column's values lie in different banks
    unsigned across = static_cast<unsigned>((columns + TILE - 1) / TILE);
    size_t top = static_cast<size_t>(number / across) * TILE,
           left = static_cast<size_t>(number % across) * TILE;
    for (unsigned r = threadIdx.y; r < TILE; r += TILE_ROWS)
        if (top + r < rows && left + threadIdx.x < columns)
            tile[r][threadIdx.x] = widen(from[(top + r) * columns + left + threadIdx.x]);
    __syncthreads();
    for (unsigned c = threadIdx.y; c < TILE; c += TILE_ROWS)
        if (left + c < columns && top + threadIdx.x < rows)
            to[(left + c) * rows + top + threadIdx.x] = narrow<To>(tile[threadIdx.x][c]);
}

size_t tiles_of(size_t rows, size_t columns) {
    return divide_up(columns, TILE) * divide_up(rows, TILE);
}

} // namespace

template <class From, class To>
static __global__ void __launch_bounds__(THREADS)
    transpose(const From *from, To *to, size_t rows, size_t columns) {
    turn_tile(from, to, rows, columns, blockIdx.x);
}

template <class To> static __global__ void __launch_bounds__(THREADS) rewrite(rewrite_list list) {
    unsigned block = blockIdx.x;
    int job = 0;
    while (block >= list.blocks[job])
        block -= list.blocks[job++];
    const cuda_rewrite &of = list.of[job];
    To *to = static_cast<To *>(of.to);
    if (of.turned) {
        turn_tile(of.from, to, of.rows, of.columns, block);
        return;
    }
    size_t first = static_cast<size_t>(block) * OF_BLOCK + threadIdx.y * TILE + threadIdx.x;
    for (size_t at = first; at < first + OF_BLOCK && at < of.rows * of.columns; at += THREADS)
        to[at] = narrow<To>(of.from[at]);
}

template <class From, class To>
static cudaError_t run(cudaStream_t stream, const From *from, To *to, size_t rows, size_t columns) {
    size_t tiles = tiles_of(rows, columns);
    if (tiles < 1 || tiles > INT32_MAX)
        return cudaErrorInvalidValue;
    return LAUNCH(transpose, dim3(static_cast<unsigned>(tiles)), dim3(TILE, TILE_ROWS), 0, stream,
                  (transpose<From, To>), from, to, rows, columns);
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

cudaError_t cuda_rewrite_all(cudaStream_t stream, enum cuda_type to_type, const struct cuda_rewrite *of,
                             int count) {
    rewrite_list list = {};
    size_t blocks = 0;
    if (count < 1 || count > CUDA_REWRITES_AT_ONCE)
        return cudaErrorInvalidValue;
    for (int i = 0; i < count; i++) {
        size_t own = of[i].turned ? tiles_of(of[i].rows, of[i].columns)
                                  : divide_up(of[i].rows * of[i].columns, OF_BLOCK);
        blocks += own;
        if (own < 1 || blocks > INT32_MAX)
            return cudaErrorInvalidValue;
        list.of[i] = of[i];
        list.blocks[i] = static_cast<unsigned>(own);
    }
    return of_type(to_type, [&](auto value) {
        return LAUNCH(rewrite, dim3(static_cast<unsigned>(blocks)), dim3(TILE, TILE_ROWS), 0, stream,
                      rewrite<decltype(value)>, list);
    });
}
