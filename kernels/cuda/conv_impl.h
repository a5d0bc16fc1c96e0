/* What conv.c and conv_measure.c share. */
#ifndef TOWERSCOPE_KERNELS_CUDA_CONV_IMPL_H
#define TOWERSCOPE_KERNELS_CUDA_CONV_IMPL_H

#include "kernels/cuda/engines.h"

/* Addresses on the GPU by the names of a graph's tensors; NULL where the graph has no such tensor. */
struct conv_tensors {
    const void *at[CONV_BIAS + 1];
};

/* Queue one execution of an engine on the handle's stream. */
enum status conv_execute(cudnnHandle_t handle, const struct engine *engine,
                         const struct conv_tensors *tensors, void *workspace);

/* Measure `count` engines on zeros, on memory of its own, and return the index of the fastest in *best. Waits
 * for the stream. An engine that fails is out; where there is no memory to measure with, the first one is the
 * best. */
enum status conv_measure(cudnnHandle_t handle, cudaStream_t stream, const struct conv_request *request,
                         const struct conv_graph *graph, const struct engine *engines, int count, int *best);

/* Bytes of a tensor as cuDNN sees it. */
size_t conv_tensor_bytes(const struct conv_request *request, enum conv_tensor tensor);

#endif
