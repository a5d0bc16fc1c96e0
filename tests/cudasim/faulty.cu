// Kernels that are wrong, each in one way, for the test that the shim finds it.
#include "kernels/cuda/common.cuh"

#include "tests/cudasim/faulty.h"

// Some threads wait, others are gone.
static __global__ void divergent_barrier(float *out) {
    if (threadIdx.x < 40)
        __syncthreads();
    out[threadIdx.x] = 1;
}

// All wait, but at two barriers.
static __global__ void two_barriers(float *out) {
    if (threadIdx.x < 32) {
        out[threadIdx.x] = 1;
        __syncthreads();
    } else {
        __syncthreads();
        out[threadIdx.x] = 2;
    }
}

// Half of a warp is named in the mask and does not come.
static __global__ void missing_lanes(float *out) {
    float value = 1;
    if (threadIdx.x % 32 < 16)
        value = __shfl_xor_sync(~0u, value, 1);
    out[threadIdx.x] = value;
}

// Lanes take the values of lanes that the mask does not name.
static __global__ void outside_mask(float *out) {
    float value = 1;
    if (threadIdx.x % 32 < 16)
        value = __shfl_xor_sync(0xffffu, value, 16);
    out[threadIdx.x] = value;
}

// One thread writes what all read, with no barrier between: right in one order of the threads only.
static __global__ void missing_barrier(float *out) {
    __shared__ float value;
    if (threadIdx.x == 0)
        value = out[0] + 1;
    out[threadIdx.x] = value;
}

// Adds to shared memory that nobody set.
static __global__ void unset_shared(float *out) {
    __shared__ float sums[64];
    sums[threadIdx.x] += 1;
    out[blockIdx.x * blockDim.x + threadIdx.x] = sums[threadIdx.x];
}

static __global__ void beyond_the_end(float *out) {
    out[threadIdx.x + 1] = 1;
}

static __global__ void beyond_shared(float *out) {
    DYNAMIC_SHARED(float, room);
    room[threadIdx.x + 1] = 1;
    out[threadIdx.x] = 1;
}

cudaError_t faulty_run(enum faulty which, float *out) {
    static void (*const kernels[])(float *) = {divergent_barrier, two_barriers,    missing_lanes,
                                               outside_mask,      missing_barrier, unset_shared,
                                               beyond_the_end,    beyond_shared};
    return LAUNCH(faulty, dim3(which == FAULTY_UNSET_SHARED ? 2 : 1), dim3(FAULTY_THREADS),
                  FAULTY_THREADS * sizeof(float), NULL, kernels[which], out);
}

cudaError_t faulty_launch(unsigned blocks, unsigned threads, size_t shared_bytes, float *out) {
    return LAUNCH(missing_barrier, dim3(blocks), dim3(threads), shared_bytes, NULL, missing_barrier, out);
}
