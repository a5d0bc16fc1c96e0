// What is asked of many values now and then: how many are 0, which is the first that is not finite. Two
// passes: a number per block, then those of the blocks.
#include "kernels/cuda/common.cuh"

enum { MOST_BLOCKS = 1024, OF_BLOCK = 16 * THREADS };

// How many are 0.
struct zeros {
    static __device__ __forceinline__ long long none() { return 0; }
    static __device__ __forceinline__ long long of(float value, size_t) { return value == 0; }
    static __device__ __forceinline__ long long both(long long a, long long b) { return a + b; }
};

// The first index of what is not finite.
struct first_non_finite {
    static __device__ __forceinline__ long long none() { return INT64_MAX; }
    static __device__ __forceinline__ long long of(float value, size_t at) {
        return isfinite(value) ? none() : static_cast<long long>(at);
    }
    static __device__ __forceinline__ long long both(long long a, long long b) { return a < b ? a : b; }
};

// The numbers of a block's threads as one, in thread 0.
template <class Measure>
static __device__ __forceinline__ long long of_block(long long value, long long (&room)[WARPS]) {
    for (unsigned lanes = LANES / 2; lanes > 0; lanes /= 2)
        value = Measure::both(value, __shfl_down_sync(~0u, value, lanes));
    if (threadIdx.x % LANES == 0)
        room[threadIdx.x / LANES] = value;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < WARPS; w++)
            value = Measure::both(value, room[w]);
    return value;
}

template <class Measure, class T>
static __global__ void __launch_bounds__(THREADS)
    measure_values(const T *values, size_t count, long long *partial) {
    __shared__ long long room[WARPS];
    size_t begin = count * blockIdx.x / gridDim.x, end = count * (blockIdx.x + 1) / gridDim.x;
    long long all = Measure::none();
#pragma unroll 4
    for (size_t i = begin + threadIdx.x; i < end; i += THREADS)
        all = Measure::both(all, Measure::of(widen(values[i]), i));
    all = of_block<Measure>(all, room);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = all;
}

template <class Measure>
static __global__ void __launch_bounds__(THREADS)
    measure_blocks(const long long *partial, int blocks, long long *out) {
    __shared__ long long room[WARPS];
    long long all = Measure::none();
    for (int i = static_cast<int>(threadIdx.x); i < blocks; i += THREADS)
        all = Measure::both(all, partial[i]);
    all = of_block<Measure>(all, room);
    if (threadIdx.x == 0)
        *out = all == INT64_MAX ? -1 : all;
}

static unsigned blocks_of(size_t count) {
    size_t blocks = divide_up(count, OF_BLOCK);
    return static_cast<unsigned>(blocks < MOST_BLOCKS ? blocks : static_cast<size_t>(MOST_BLOCKS));
}

size_t cuda_measure_scratch(size_t count) {
    return blocks_of(count) * sizeof(long long);
}

template <class Measure, class T>
static cudaError_t measure(cudaStream_t stream, const T *values, size_t count, void *scratch,
                           long long *out) {
    long long *partial = static_cast<long long *>(scratch);
    unsigned blocks = blocks_of(count);
    CUDA_TRY(LAUNCH(measure_values, dim3(blocks), dim3(THREADS), 0, stream, (measure_values<Measure, T>),
                    values, count, partial));
    return LAUNCH(measure_blocks, dim3(1), dim3(THREADS), 0, stream, measure_blocks<Measure>, partial,
                  static_cast<int>(blocks), out);
}

template <class Measure>
static cudaError_t measure_type(cudaStream_t stream, enum cuda_type type, const void *values, size_t count,
                                void *scratch, long long *out) {
    if (count < 1)
        return cudaErrorInvalidValue;
    return of_type(type, [&](auto value) {
        return measure<Measure>(stream, static_cast<const decltype(value) *>(values), count, scratch, out);
    });
}

cudaError_t cuda_count_zeros(cudaStream_t stream, enum cuda_type type, const void *values, size_t count,
                             void *scratch, long long *out) {
    return measure_type<zeros>(stream, type, values, count, scratch, out);
}

cudaError_t cuda_first_non_finite(cudaStream_t stream, enum cuda_type type, const void *values, size_t count,
                                  void *scratch, long long *out) {
    return measure_type<first_non_finite>(stream, type, values, count, scratch, out);
}
