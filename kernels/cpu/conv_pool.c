/* Implementation "conv-pool-lrn": convolution 5x5 of up to four channels, bias, ReLU, max pool and, where it
 * follows, LRN (kernels/cpu/isa/conv_pool.h). */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/isa/conv_pool.h"

#include <stdio.h>

enum { CONV, BIAS, RELU, POOL, LRN }; /* their places in a plan */

static struct conv_pool shape_of(const struct op *ops, int count) {
    return (struct conv_pool){&ops[CONV], &ops[POOL], count > LRN ? &ops[LRN] : NULL};
}

static bool kinds_fit(const struct plan_request *request) {
    static const enum op_kind expected[] = {OP_CONV, OP_BIAS, OP_RELU, OP_MAX_POOL};
    for (int i = 0; i < LRN; i++)
        if (i >= request->count || request->ops[i].kind != expected[i])
            return false;
    return true;
}

static int takes(const struct device *device, const struct plan_request *request, char *reason, size_t size) {
    (void)device;
    if (!kinds_fit(request)) {
        snprintf(reason, size, "does conv, bias, relu, max_pool and perhaps lrn, one after the other");
        return 0;
    }
    struct conv_pool shape = shape_of(request->ops, LRN);
    if (!conv_pool_supported(&shape)) {
        const struct op *conv = request->ops;
        snprintf(
            reason, size,
            "kernel %dx%d, stride %d, %d channels to %d: expected 5x5, stride 1, at most 4 channels to a "
            "multiple of 16",
            conv->window.kernel_h, conv->window.kernel_w, conv->window.stride, conv->in.c, conv->out.c);
        return 0;
    }
    if (request->count > LRN && request->ops[LRN].kind == OP_LRN) {
        struct conv_pool with = shape_of(request->ops, LRN + 1);
        return conv_pool_supported(&with) ? LRN + 1 : LRN;
    }
    return LRN;
}

static const struct conv_pool_kernels *kernels_of(const struct plan *plan) {
    return ISA_PICK(plan->device->isa, conv_pool_kernels);
}

static size_t float_bytes(size_t floats) {
    return align64(floats * sizeof(float));
}

/* Saved: where LRN follows, the pooled values; then the arg-max. */
static size_t pooled_bytes(const struct plan *plan) {
    return plan->info.taken > LRN ? float_bytes((size_t)plan->images * shape_size(plan->ops[POOL].out)) : 0;
}

/* Scratch: the gradient, then the kernels' own. */
static size_t gradient_bytes(const struct plan *plan) {
    struct conv_pool shape = shape_of(plan->ops, plan->info.taken);
    return plan->training ? float_bytes(kernels_of(plan)->gradient_floats(&shape)) : 0;
}

static size_t kernel_bytes(const struct plan *plan) {
    struct conv_pool shape = shape_of(plan->ops, plan->info.taken);
    size_t forward = kernels_of(plan)->forward_scratch_floats(&shape);
    size_t backward = plan->training ? kernels_of(plan)->gradient_scratch_floats(&shape) : 0;
    return float_bytes(forward > backward ? forward : backward);
}

static enum status plan(struct plan *plan) {
    struct conv_pool shape = shape_of(plan->ops, plan->info.taken);
    if (plan->training)
        plan->info.saved_bytes = pooled_bytes(plan) + (size_t)plan->images * shape_size(plan->ops[POOL].out);
    plan->info.scratch_bytes = gradient_bytes(plan) + kernel_bytes(plan);
    plan->info.prepared_bytes =
        float_bytes(kernels_of(plan)->weights_floats(&shape)) + float_bytes(op_parameter_size(plan->ops));
    plan->info.backward_reads_x = true;
    plan->info.backward_reads_y = plan->info.taken == LRN;
    return STATUS_OK;
}

struct job {
    const struct conv_pool_kernels *functions;
    struct conv_pool shape;
    float *gradient, *scratch; /* in `scratch` */
    float *weights, *kernels;  /* in `prepared` */
    float *pooled;
    uint8_t *won; /* NULL: nothing is saved */
};

static struct job job_of(const struct plan *plan, const struct plan_args *args) {
    struct job job = {.functions = kernels_of(plan),
                      .shape = shape_of(plan->ops, plan->info.taken),
                      .gradient = args->scratch.data,
                      .weights = args->prepared.data,
                      .pooled = args->y.data};
    if (args->scratch.data) /* prepare() has none */
        job.scratch = job.gradient + gradient_bytes(plan) / sizeof(float);
    job.kernels = job.weights + float_bytes(job.functions->weights_floats(&job.shape)) / sizeof(float);
    if (plan->training && args->saved.data) {
        job.won = (uint8_t *)args->saved.data + pooled_bytes(plan);
        if (pooled_bytes(plan) > 0)
            job.pooled = args->saved.data;
    }
    return job;
}

static enum status prepare(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    const struct job job = job_of(plan, args);
    job.functions->weights(&job.shape, args->params[CONV].data, job.weights);
    job.functions->kernels(&job.shape, args->params[CONV].data, job.kernels);
    return STATUS_OK;
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    const struct job job = job_of(plan, args);
    job.functions->forward(&job.shape, plan->images, args->x.data, job.weights, args->params[BIAS].data,
                           job.pooled, job.won, args->y.data, job.scratch);
    return STATUS_OK;
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    const struct job job = job_of(plan, args);
    const float *x = args->x.data, *dy = args->dy.data;
    job.functions->gradient(&job.shape, plan->images, x, job.pooled, job.won, dy, false, job.gradient,
                            job.scratch);
    if (args->dx.data)
        job.functions->input_gradient(&job.shape, plan->images, job.pooled, job.won, dy, job.kernels,
                                      args->dx.data, job.scratch);
    job.functions->finish(&job.shape, job.gradient, args->grads[CONV].data, args->grads[BIAS].data);
    return STATUS_OK;
}

const struct cpu_implementation conv_pool_implementation = {.name = "conv-pool-lrn",
                                                            .takes = takes,
                                                            .plan = plan,
                                                            .prepare = prepare,
                                                            .forward = forward,
                                                            .backward = backward};
