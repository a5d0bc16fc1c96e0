/* What plan.c makes and run.c runs. */
#ifndef TOWERSCOPE_KERNELS_CUDA_PLAN_IMPL_H
#define TOWERSCOPE_KERNELS_CUDA_PLAN_IMPL_H

#include "kernels/cuda/gpu.h"

struct plan {
    struct device *device;
    struct op op; /* the first of the group; a bias or ReLU that begins one is `bias` or `relu` alone */
    struct op pool, norm; /* behind a convolution, where `pool_at`, `norm_at` say so */
    struct shape out;     /* of the group */
    int images;
    bool training, input_gradient;
    int bias, relu, pool_at, norm_at; /* places in the group; -1: none */
    struct conv_plan *conv[DEVICE_GROUP_MAX];
    /* bytes of cuDNN's workspace; where the rest lies in the scratch memory, at `beside_at` another workspace
     */
    size_t workspace, weights_at, beside_at, bias_at, result_at, pooled_at;
    size_t rounded_bias_at; /* in the prepared memory, behind the weights */
    size_t before_at;       /* in the saved memory, behind the pool's places: what the normalisation read */
    struct plan_info info;
};

/* What its activations are in memory, and its output: the logits may be float where the others are not. */
static inline enum cuda_type plan_type(const struct plan *plan) {
    return device_type(plan->device);
}

static inline enum cuda_type plan_output_type(const struct plan *plan) {
    return plan->info.real_output ? CUDA_TYPE_F32 : plan_type(plan);
}

/* A dense layer's sums become bfloat16 once its bias and ReLU are done: until then they lie in the scratch
 * memory. */
static inline bool plan_rounds_later(const struct plan *plan) {
    return plan->op.kind == OP_DENSE && plan_output_type(plan) == CUDA_TYPE_BF16;
}

/* The convolution's own result is not the group's: a pool follows, alone or with a normalisation. */
static inline bool plan_is_block(const struct plan *plan) {
    return plan->pool_at >= 0;
}

/* A block whose normalisation stands before the pool. */
static inline bool plan_norm_first(const struct plan *plan) {
    return plan->norm_at >= 0 && plan->norm_at < plan->pool_at;
}

#endif
