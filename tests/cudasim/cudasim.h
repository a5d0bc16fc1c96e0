// A GPU's threads on the processor: with this header in front, an unchanged .cu file is C++.
//
//     g++ -std=c++17 -x c++ -include tests/cudasim/cudasim.h -c kernels/cuda/NAME.cu
//
// Every CUDA thread is a fibre; the blocks of a grid run one after another. The prototypes are those of the
// real cuda_runtime_api.h, so that they can't drift. What CUDA leaves undefined ends the program here, with
// the kernel, block and thread: a barrier that not all threads of a block reach, two barriers that threads
// take for one, a shuffle from a lane outside the mask. Threads, warps and blocks run in ascending order
// or, with CUDASIM_REVERSE=1 in the environment, in descending order, a warp always as far as it can without
// the others: a kernel that is right gives the same bytes both ways. Shared memory holds 0xFF bytes (no number) when a block begins.
//
// A source keeps to two rules: kernels are launched by LAUNCH of kernels/cuda/common.cuh, and shared memory
// whose size the launch gives is declared by DYNAMIC_SHARED. Kernels are static functions.
#ifndef TOWERSCOPE_TESTS_CUDASIM_CUDASIM_H
#define TOWERSCOPE_TESTS_CUDASIM_CUDASIM_H

#include <cuda_runtime_api.h>

#include "tests/cudasim/enqueue.h"

#include <cstring>
#include <math.h>
#include <tuple>
#include <utility>

#define CUDASIM 1

#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))

// One copy is right, since blocks run one after another. The section is what is filled before each block;
// under ASan the arrays keep their red zones instead, which variables of a section do not have.
#undef __shared__
#ifdef __SANITIZE_ADDRESS__
#define __shared__ static
#else
#define __shared__ static __attribute__((section("cudasim_shared")))
#endif
#define DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(cudasim::dynamic_shared())

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace cudasim {

// The launched block's dynamic shared memory.
void *dynamic_shared();

// Wait for the block, or for the lanes of `mask` in the own warp. file and line: where, to tell barriers
// apart.
void wait_block(const char *file, int line);
void wait_warp(unsigned mask, const char *file, int line);

// Put *value (`size` bytes, at most 8) down, wait for the lanes of `mask`, and take that of lane `source`.
void exchange(unsigned mask, void *value, size_t size, unsigned source, const char *file, int line);

// Lane of the calling thread.
unsigned lane();

// Run a whole grid now.
void run_grid(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
              const std::function<void()> &thread);

// Whether a kernel of the GPU that is current may read there. Anywhere, in a program without streams of its own.
bool visible(const void *at);

template <class T> bool visible_argument(const T &) {
    return true;
}
template <class T> bool visible_argument(T *const &pointer) {
    return !pointer || visible(pointer);
}

// What a launch with these sizes would return.
cudaError_t check_launch(dim3 grid, dim3 block, size_t shared_bytes);

// Queue a kernel as a launch does: its arguments are copied now, as the kernel's own types.
template <class... Parameters, class... Arguments>
cudaError_t launch(const char *name, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                   void (*kernel)(Parameters...), Arguments &&...arguments) {
    cudaError_t error = check_launch(grid, block, shared_bytes);
    if (error != cudaSuccess)
        return error;
    std::tuple<std::decay_t<Parameters>...> copy(std::forward<Arguments>(arguments)...);
    if (!std::apply([](const auto &...argument) { return (visible_argument(argument) && ...); }, copy))
        return cudaErrorIllegalAddress; // the real one says so later, and is of no use any more
    return enqueue(stream, name,
                   [=] { run_grid(name, grid, block, shared_bytes, [&] { std::apply(kernel, copy); }); });
}

} // namespace cudasim

static inline void __syncthreads(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    cudasim::wait_block(file, line);
}

static inline void __syncwarp(unsigned mask = ~0u, const char *file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
    cudasim::wait_warp(mask, file, line);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, const char *file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
    cudasim::exchange(mask, &value, sizeof value, cudasim::lane() ^ static_cast<unsigned>(lanes), file, line);
    return value;
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, const char *file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
    unsigned from = cudasim::lane() + lanes;
    cudasim::exchange(mask, &value, sizeof value, from < 32 ? from : cudasim::lane(), file, line);
    return value;
}

template <class T>
T __shfl_sync(unsigned mask, T value, int from, const char *file = __builtin_FILE(),
              int line = __builtin_LINE()) {
    cudasim::exchange(mask, &value, sizeof value, static_cast<unsigned>(from) & 31, file, line);
    return value;
}

static inline float rsqrtf(float x) {
    return 1 / sqrtf(x);
}

#endif
