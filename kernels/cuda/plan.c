/* Groups of operations: a convolution or dense layer takes the bias and ReLU that follow it, a convolution
 * also the pool and the normalisation behind those, in either order. All of these wait for memory, and the
 * pooled values are a quarter of the others: see kernels.h. */
#include "kernels/cuda/plan_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t align(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

/* Take the bias and the ReLU that stand at `next`. */
static void take_bias_relu(const struct plan_request *request, struct plan *plan, int next) {
    if (next < request->count && request->ops[next].kind == OP_BIAS)
        plan->bias = next++;
    if (next < request->count && request->ops[next].kind == OP_RELU)
        plan->relu = next++;
    plan->info.taken = next;
}

static bool is(const struct plan_request *request, int at, enum op_kind kind) {
    return at < request->count && request->ops[at].kind == kind;
}

static bool norm_fits(const struct op *op) {
    return op->in.c <= CUDA_LRN_MOST_CHANNELS && op->lrn.radius <= CUDA_LRN_MOST_RADIUS;
}

/* The pool, and with a ReLU before it the normalisation, that stand behind a convolution. */
static void take_block(const struct plan_request *request, struct plan *plan) {
    int at = plan->info.taken;
    bool norm_first = plan->relu >= 0 && is(request, at, OP_LRN) && is(request, at + 1, OP_MAX_POOL) &&
                      norm_fits(&request->ops[at]) &&
                      cuda_lrn_pool_fits(&request->ops[at].lrn, &request->ops[at + 1]);
    if (norm_first)
        plan->norm_at = at++;
    else if (!is(request, at, OP_MAX_POOL))
        return;
    plan->pool_at = at++;
    if (!norm_first && plan->relu >= 0 && is(request, at, OP_LRN) && norm_fits(&request->ops[at]))
        plan->norm_at = at++;
    plan->pool = request->ops[plan->pool_at];
    if (plan->norm_at >= 0)
        plan->norm = request->ops[plan->norm_at];
    plan->out = request->ops[at - 1].out;
    plan->info.taken = at;
}

static enum status plan_convolutions(struct plan *plan) {
    struct device *device = plan->device;
    struct conv_request request = {
        .op = &plan->op,
        .images = plan->images,
        .bias = plan->bias >= 0,
        .relu = plan->relu >= 0,
        .training = plan->training,
        .input_gradient = plan->training && plan->input_gradient,
        .deterministic = device->options.deterministic,
        .precision = device->precision,
    };
    for (int g = 0; g < device->count; g++) {
        cudaStream_t main;
        STATUS_TRY(gpu_join(device, g, &main));
        bool alike = g > 0 && !strcmp(device->gpu[g].model, device->gpu[0].model);
        STATUS_TRY(
            conv_plan_new(device->gpu[g].main.conv, &request, alike ? plan->conv[0] : NULL, &plan->conv[g]));
        STATUS_TRY(gpu_leave(device, g));
        size_t bytes = align(conv_plan_workspace(plan->conv[g]));
        if (bytes > plan->workspace)
            plan->workspace = bytes;
    }
    return STATUS_OK;
}

/* Pixels that the bias is summed over: at the pool's size where the normalisation does not stand before it.
 */
static size_t rows_of(const struct plan *plan) {
    struct shape shape = plan_norm_first(plan) ? plan->op.out : plan->out;
    return (size_t)plan->images * (size_t)shape.h * (size_t)shape.w;
}

static size_t bytes_of(const struct plan *plan, struct shape shape) {
    return align((size_t)plan->images * shape_size(shape) * cuda_type_bytes(plan_type(plan)));
}

/* What a block needs beside: the convolution's result and its gradient, the pool's places, what the
 * normalisation read. */
static void plan_block(struct plan *plan) {
    struct plan_info *info = &plan->info;
    plan->result_at = align(info->scratch_bytes);
    info->scratch_bytes = plan->result_at + bytes_of(plan, plan->op.out);
    plan->pooled_at = info->scratch_bytes;
    if (plan->norm_at >= 0 && !plan_norm_first(plan))
        info->scratch_bytes += bytes_of(plan, plan->pool.out);
    if (!plan->training)
        return;
    plan->before_at = info->saved_bytes = align(cuda_max_pool_places(&plan->pool, plan->images));
    if (plan->norm_at >= 0)
        info->saved_bytes += bytes_of(plan, plan_norm_first(plan) ? plan->op.out : plan->pool.out);
    info->backward_reads_y = plan->norm_at < 0 && plan->relu >= 0;
}

/* Prepared parameters: a convolution's weights as cuDNN lays them out, and as bfloat16 what is multiplied
 * with and cuDNN adds. */
static void plan_prepared(struct plan *plan) {
    struct plan_info *info = &plan->info;
    bool rounds = plan_type(plan) == CUDA_TYPE_BF16;
    size_t element = cuda_type_bytes(plan_type(plan));
    if (plan->op.kind == OP_CONV || rounds)
        info->prepared_bytes = align(op_parameter_size(&plan->op) * element);
    plan->rounded_bias_at = info->prepared_bytes;
    if (plan->op.kind == OP_CONV && rounds && plan->bias >= 0)
        info->prepared_bytes += align((size_t)plan->op.out.c * element);
}

/* Scratch memory: cuDNN's workspace, the gradient of the weights as cuDNN lays them out, another workspace
 * for what is done beside that, sums for the bias, a dense layer's sums before they are rounded. */
static enum status plan_matrix(struct plan *plan) {
    struct plan_info *info = &plan->info;
    plan_prepared(plan);
    if (plan->op.kind == OP_CONV) {
        STATUS_TRY(plan_convolutions(plan));
        size_t weights = align(op_parameter_size(&plan->op) * cuda_type_bytes(plan_type(plan)));
        plan->weights_at = plan->workspace;
        plan->beside_at = plan->weights_at + (plan->training ? weights : 0);
        plan->bias_at = plan->beside_at + (plan->training && plan->input_gradient ? plan->workspace : 0);
        snprintf(info->implementation, sizeof info->implementation,
                 "cudnn"); /* whatever the engine: see net_shares_prepared */
    } else {
        snprintf(info->implementation, sizeof info->implementation,
                 plan->device->options.deterministic ? "own+cublas" : "cublas");
    }
    info->scratch_bytes = plan->bias_at;
    if (plan->training) {
        info->backward_reads_x = true;
        info->backward_reads_y = plan->relu >= 0;
        if (plan->bias >= 0)
            info->scratch_bytes += cuda_bias_relu_scratch(rows_of(plan), plan->out.c);
    }
    if (plan_is_block(plan))
        plan_block(plan);
    if (plan_rounds_later(plan)) { /* forwards, when the bias' sums are not there yet */
        size_t sums = (size_t)plan->images * shape_size(plan->out) * sizeof(float);
        info->scratch_bytes = sums > info->scratch_bytes ? sums : info->scratch_bytes;
    }
    return STATUS_OK;
}

static enum status choose(const struct plan_request *request, struct plan *plan) {
    struct plan_info *info = &plan->info;
    info->taken = 1;
    snprintf(info->implementation, sizeof info->implementation, "own");
    switch (plan->op.kind) {
    case OP_CONV:
    case OP_DENSE:
        take_bias_relu(request, plan, 1);
        if (plan->op.kind == OP_CONV)
            take_block(request, plan);
        info->real_output = plan->op.kind == OP_DENSE && plan_type(plan) == CUDA_TYPE_BF16 &&
                            plan->relu < 0 && request->reaches_end && info->taken == request->count;
        return plan_matrix(plan);
    case OP_BIAS:
    case OP_RELU:
        take_bias_relu(request, plan, 0);
        if (plan->training && plan->bias >= 0)
            info->scratch_bytes = cuda_bias_relu_scratch(rows_of(plan), plan->out.c);
        info->backward_reads_y = plan->training && plan->relu >= 0;
        return STATUS_OK;
    case OP_MAX_POOL:
        if (plan->training)
            info->saved_bytes = cuda_max_pool_places(&plan->op, plan->images);
        return STATUS_OK;
    case OP_LRN:
        info->backward_reads_x = plan->training;
        return norm_fits(&plan->op)
                   ? STATUS_OK
                   : status_fail(STATUS_UNSUPPORTED,
                                 "lrn of %d channels with radius %d: a GPU has it for up to %d channels and "
                                 "radius %d; choose less, or train on the processor",
                                 plan->op.in.c, plan->op.lrn.radius, CUDA_LRN_MOST_CHANNELS,
                                 CUDA_LRN_MOST_RADIUS);
    default:
        return status_fail(STATUS_UNSUPPORTED, "no kernel for %s", op_kind_name(plan->op.kind));
    }
}

enum status cuda_plan(struct device *device, const struct plan_request *request, struct plan **out) {
    *out = NULL;
    if (request->count < 1 || request->images < 1)
        return status_fail(STATUS_INTERNAL, "a plan of %d operations for %d images", request->count,
                           request->images);
    if (request->force)
        return status_fail(STATUS_UNSUPPORTED,
                           "there is one implementation of each operation on a GPU, not \"%s\"",
                           request->force);
    for (int i = 0; i < request->count; i++)
        STATUS_TRY(op_verify(&request->ops[i]));
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return status_fail(STATUS_NO_MEMORY, "no memory for a plan");
    *plan = (struct plan){.device = device,
                          .op = request->ops[0],
                          .out = request->ops[0].out,
                          .images = request->images,
                          .training = request->training,
                          .input_gradient = request->input_gradient,
                          .bias = -1,
                          .relu = -1,
                          .pool_at = -1,
                          .norm_at = -1};
    enum status status = choose(request, plan);
    if (status != STATUS_OK) {
        cuda_plan_free(plan);
        return status;
    }
    *out = plan;
    return STATUS_OK;
}

const struct plan_info *cuda_plan_info(const struct plan *plan) {
    return &plan->info;
}

void cuda_plan_free(struct plan *plan) {
    if (!plan)
        return;
    graphs_forget(plan->device, NULL);
    for (int g = 0; g < plan->device->count; g++)
        if (plan->conv[g]) {
            gpu_use(&plan->device->gpu[g]);
            conv_plan_free(plan->conv[g]);
        }
    free(plan);
}
