/* A convolution as cuDNN's backend API describes it: a graph of operations on tensors, for which cuDNN then
 * has engines (engines.h). Descriptors need no GPU. */
#ifndef TOWERSCOPE_KERNELS_CUDA_CUDNN_GRAPH_H
#define TOWERSCOPE_KERNELS_CUDA_CUDNN_GRAPH_H

#include "kernels/cuda/conv.h"

#include <cudnn.h>

enum conv_pass { CONV_FORWARD, CONV_INPUT_GRADIENT, CONV_WEIGHTS_GRADIENT, CONV_PASSES };

/* Names of the tensors of a graph, for a call's addresses. Z is what the convolution itself gives: y, or its
 * gradient dz. */
enum conv_tensor { CONV_X = 1, CONV_WEIGHTS, CONV_Z, CONV_BIAS };

struct conv_graph {
    cudnnBackendDescriptor_t made[24]; /* all of them, in the order of making */
    int made_count;
    cudnnBackendDescriptor_t graph;
    cudnnHandle_t handle; /* NULL: no GPU */
    bool fused;           /* bias and ReLU are part of it */
};

/* Hand cuDNN's refusal on as a status: "cuDNN 9.19 cannot WHAT: its own words". STATUS_OK for success. */
enum status cudnn_checked(cudnnStatus_t status, const char *what);

/* Shorter names for what is done again and again. */
enum status cudnn_make(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out);
enum status cudnn_set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type, int64_t count, const void *value);
enum status cudnn_finish(cudnnBackendDescriptor_t descriptor, const char *what);

/* The graph of one pass of the request. fused: forward with its bias and ReLU, else the bare convolution.
 * Tensors are NHWC, bfloat16 where the request's precision is, sums always float. Free with conv_graph_free
 * (also after a failure; a zeroed one is fine). */
enum status conv_graph_make(const struct conv_request *request, enum conv_pass pass, bool fused,
                            cudnnHandle_t handle, struct conv_graph *out);
void conv_graph_free(struct conv_graph *graph);

#endif
