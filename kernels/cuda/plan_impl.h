/* What plan.c makes and run.c runs. */
#ifndef TOWERSCOPE_KERNELS_CUDA_PLAN_IMPL_H
#define TOWERSCOPE_KERNELS_CUDA_PLAN_IMPL_H

#include "kernels/cuda/gpu.h"

struct plan {
    struct device *device;
    struct op op;     /* the first of the group; a bias or ReLU that begins one is `bias` or `relu` alone */
    struct shape out; /* of the group */
    int images;
    bool training, input_gradient;
    int bias, relu; /* places of a bias and a ReLU in the group; -1: none */
    struct conv_plan *conv[DEVICE_GROUP_MAX];
    size_t workspace, weights_at, bias_at; /* bytes of cuDNN's workspace; the rest of the scratch memory */
    struct plan_info info;
};

#endif
