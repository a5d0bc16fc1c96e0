// To and from bfloat16: rounded to the nearest, of two the even one; what is not a number stays so.
#include "kernels/cuda/common.cuh"

#include <cuda_bf16.h>

enum { WIDTH = 4 };

static __device__ __forceinline__ void convert(float from, __nv_bfloat16 *to) {
    *to = __float2bfloat16_rn(from);
}
static __device__ __forceinline__ void convert(__nv_bfloat16 from, float *to) {
    *to = __bfloat162float(from);
}

// A thread converts WIDTH values at once; those that are left over, one by one.
template <class From, class To>
static __global__ void __launch_bounds__(THREADS) convert_packs(const From *from, To *to, size_t count) {
    size_t at = (static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x) * WIDTH;
    if (at + WIDTH <= count) {
        pack<From, WIDTH> values = load<WIDTH>(from + at);
        pack<To, WIDTH> out;
        for (int i = 0; i < WIDTH; i++)
            convert(values.at[i], &out.at[i]);
        store<WIDTH>(to + at, out);
    } else {
        for (; at < count; at++)
            convert(from[at], &to[at]);
    }
}

template <class From, class To>
static __global__ void __launch_bounds__(THREADS) convert_singly(const From *from, To *to, size_t count) {
    size_t at = static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (at < count)
        convert(from[at], &to[at]);
}

template <class From, class To>
static cudaError_t convert_all(cudaStream_t stream, const From *from, To *to, size_t count) {
    bool wide = packs<WIDTH>(from, WIDTH) && packs<WIDTH>(to, WIDTH);
    size_t blocks = divide_up(count, wide ? THREADS * WIDTH : THREADS);
    if (blocks < 1 || blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    return LAUNCH(convert, dim3(static_cast<unsigned>(blocks)), dim3(THREADS), 0, stream,
                  wide ? convert_packs<From, To> : convert_singly<From, To>, from, to, count);
}

cudaError_t cuda_to_bf16(cudaStream_t stream, const float *from, void *to, size_t count) {
    return convert_all(stream, from, static_cast<__nv_bfloat16 *>(to), count);
}

cudaError_t cuda_from_bf16(cudaStream_t stream, const void *from, float *to, size_t count) {
    return convert_all(stream, static_cast<const __nv_bfloat16 *>(from), to, count);
}
