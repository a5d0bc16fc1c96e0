// To bfloat16: rounded to the nearest, of two the even one; what is not a number stays so.
#include "kernels/cuda/common.cuh"

// A thread rounds N values at once; those that are left over, one by one.
template <int N>
static __global__ void __launch_bounds__(THREADS)
    to_bf16(const float *from, __nv_bfloat16 *to, size_t count) {
    size_t at = (static_cast<size_t>(blockIdx.x) * THREADS + threadIdx.x) * N;
    if (at + N <= count)
        store_floats<N>(to + at, load<N>(from + at));
    else
        for (; at < count; at++)
            to[at] = narrow<__nv_bfloat16>(from[at]);
}

cudaError_t cuda_to_bf16(cudaStream_t stream, const float *from, void *to, size_t count) {
    __nv_bfloat16 *rounded = static_cast<__nv_bfloat16 *>(to);
    bool wide = packs<4>(from, 4) && packs<4>(rounded, 4);
    size_t blocks = divide_up(count, wide ? THREADS * 4 : THREADS);
    if (blocks < 1 || blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    return LAUNCH(to_bf16, dim3(static_cast<unsigned>(blocks)), dim3(THREADS), 0, stream,
                  wide ? to_bf16<4> : to_bf16<1>, from, rounded, count);
}
