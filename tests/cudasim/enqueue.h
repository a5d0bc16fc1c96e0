// How simulated work gets onto a simulated stream: kernels (cudasim.h), convolutions, matrix products.
//
// Streams are lazy: work runs later, in the order of its stream, interleaved with the other streams at random
// (fake_cudart.cpp). While a stream is being captured the work is stored, and may run many times.
#ifndef TOWERSCOPE_TESTS_CUDASIM_ENQUEUE_H
#define TOWERSCOPE_TESTS_CUDASIM_ENQUEUE_H

#include <cuda_runtime_api.h>

#include <functional>

namespace cudasim {

// `name` is for messages. Returns cudaErrorInvalidResourceHandle for a stream that is not there (any more),
// and for one of another GPU than the current one.
cudaError_t enqueue(cudaStream_t stream, const char *name, std::function<void()> work);

} // namespace cudasim

#endif
