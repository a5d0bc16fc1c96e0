// What the kernels share: launching, loads of several values at once, sums over a block in a fixed order.
//
// Every .cu file is compiled twice: by nvcc, and as C++ behind tests/cudasim/cudasim.h. Kernels are static,
// are launched by LAUNCH and declare shared memory of a size given at launch by DYNAMIC_SHARED.
#ifndef TOWERSCOPE_KERNELS_CUDA_COMMON_CUH
#define TOWERSCOPE_KERNELS_CUDA_COMMON_CUH

#include "kernels/cuda/kernels.h"

#include <cuda_bf16.h>
#include <math.h>
#include <stdint.h>

#ifndef CUDASIM
#include <cuda_runtime.h>

#include <utility>

#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]

// Queue a kernel; its own error is returned, not an earlier one's.
template <class... Parameters, class... Arguments>
static cudaError_t launch(const char *, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                          void (*kernel)(Parameters...), Arguments &&...arguments) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}
#define LAUNCH(kernel, ...) launch(#kernel, __VA_ARGS__)
#else
#define LAUNCH(kernel, ...) cudasim::launch(#kernel, __VA_ARGS__)
#endif

#define CUDA_TRY(expression)                                                                                 \
    do {                                                                                                     \
        cudaError_t try_error_ = (expression);                                                               \
        if (try_error_ != cudaSuccess)                                                                       \
            return try_error_;                                                                               \
    } while (0)

// Call work with a value of the type: work's body is compiled for each.
template <class Work> static cudaError_t of_type(enum cuda_type type, const Work &work) {
    return type == CUDA_TYPE_BF16 ? work(__nv_bfloat16()) : work(float());
}

enum { LANES = 32, THREADS = 256, WARPS = THREADS / LANES };
enum { PER_THREAD = CUDA_PIECE / THREADS }; // elements of a piece

static inline size_t divide_up(size_t a, size_t b) {
    return (a + b - 1) / b;
}

// N values that are moved by one instruction where N * sizeof(T) is 4, 8 or 16.
template <class T, int N> struct alignas(sizeof(T) * N) pack { T at[N]; };

template <int N, class T> static __device__ __forceinline__ pack<T, N> load(const T *from) {
    return *reinterpret_cast<const pack<T, N> *>(from);
}

template <int N, class T> static __device__ __forceinline__ void store(T *to, const pack<T, N> &values) {
    *reinterpret_cast<pack<T, N> *>(to) = values;
}

// A value as it is computed with, and back: rounded to the nearest, a tie to even.
static __device__ __forceinline__ float widen(float value) {
    return value;
}
static __device__ __forceinline__ float widen(__nv_bfloat16 value) {
    return __bfloat162float(value);
}
template <class T> static __device__ __forceinline__ T narrow(float value);
template <> __device__ __forceinline__ float narrow<float>(float value) {
    return value;
}
template <> __device__ __forceinline__ __nv_bfloat16 narrow<__nv_bfloat16>(float value) {
    return __float2bfloat16_rn(value);
}

// N values of memory as floats, and back.
template <int N, class T> static __device__ __forceinline__ pack<float, N> load_floats(const T *from) {
    pack<T, N> values = load<N>(from);
    pack<float, N> out;
    for (int i = 0; i < N; i++)
        out.at[i] = widen(values.at[i]);
    return out;
}

template <int N, class T>
static __device__ __forceinline__ void store_floats(T *to, const pack<float, N> &values) {
    pack<T, N> out;
    for (int i = 0; i < N; i++)
        out.at[i] = narrow<T>(values.at[i]);
    store<N>(to, out);
}

// Whether rows of `channels` values at p can be read as packs of N. A pointer that is NULL is not read.
template <int N, class T> static bool packs(const T *p, int channels) {
    return channels % N == 0 && reinterpret_cast<uintptr_t>(p) % (N * sizeof(T)) == 0;
}

// The sum over a warp, in lane 0: of lanes 16 apart first, then 8, 4, 2, 1.
template <class T> static __device__ __forceinline__ T warp_sum(T value) {
    for (unsigned lanes = LANES / 2; lanes > 0; lanes /= 2)
        value += __shfl_down_sync(~0u, value, lanes);
    return value;
}

// The sum over a block of THREADS threads (1-D), in thread 0: each warp's, then the warps' in order. All
// threads call it; `room` may be used again after the next barrier.
static __device__ __forceinline__ double block_sum(double value, double (&room)[WARPS]) {
    value = warp_sum(value);
    if (threadIdx.x % LANES == 0)
        room[threadIdx.x / LANES] = value;
    __syncthreads();
    double sum = 0;
    if (threadIdx.x == 0)
        for (int w = 0; w < WARPS; w++)
            sum += room[w];
    return sum;
}

#endif
