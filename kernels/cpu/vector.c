/* Implementation "vector": bias and ReLU that stand alone by plain vector loops, and LRN of any numbers by
 * simple ones, for what the faster implementations don't take. */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/isa/step.h"

#include <math.h>
#include <stdio.h>

static int takes(const struct device *device, const struct plan_request *request, char *reason, size_t size) {
    (void)device;
    enum op_kind kind = request->ops->kind;
    if (kind == OP_BIAS || kind == OP_RELU || kind == OP_LRN)
        return 1;
    snprintf(reason, size, "does bias, relu and lrn alone, not %s", op_kind_name(kind));
    return 0;
}

static enum status plan(struct plan *plan) {
    plan->info.backward_reads_y = plan->ops->kind == OP_RELU;
    plan->info.backward_reads_x = plan->ops->kind == OP_LRN;
    return STATUS_OK;
}

/* bias + alpha * sum of x_k^2 over the window around channel c, and where the window lies. */
static float lrn_scale(const struct op *op, const float *x, int c, int *first, int *last) {
    *first = c < op->lrn.radius ? 0 : c - op->lrn.radius;
    *last = op->in.c - 1 - c < op->lrn.radius ? op->in.c - 1 : c + op->lrn.radius;
    float sum = 0;
    for (int k = *first; k <= *last; k++)
        sum += x[k] * x[k];
    return (float)op->lrn.bias + (float)op->lrn.alpha * sum;
}

static void lrn(const struct op *op, const float *x, float *y, size_t pixels) {
    int first, last;
    for (size_t i = 0; i < pixels; i++, x += op->in.c, y += op->in.c)
        for (int c = 0; c < op->in.c; c++)
            y[c] = x[c] * powf(lrn_scale(op, x, c, &first, &last), -(float)op->lrn.beta);
}

static void lrn_backward(const struct op *op, const float *x, const float *dy, float *dx, size_t pixels) {
    float beta = (float)op->lrn.beta, factor = -2 * (float)op->lrn.alpha * beta;
    int first, last;
    for (size_t i = 0; i < pixels; i++, x += op->in.c, dy += op->in.c, dx += op->in.c) {
        for (int c = 0; c < op->in.c; c++)
            dx[c] = dy[c] * powf(lrn_scale(op, x, c, &first, &last), -beta);
        for (int c = 0; c < op->in.c; c++) {
            /* What channel c gives to each of its window: g y / N of it, times their values. */
            float scale = lrn_scale(op, x, c, &first, &last);
            float share = factor * dy[c] * x[c] * powf(scale, -beta - 1);
            for (int k = first; k <= last; k++)
                dx[k] += share * x[k];
        }
    }
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    const struct op *op = plan->ops;
    const struct step_kernels *kernels = ISA_PICK(plan->device->isa, step_kernels);
    const size_t count = (size_t)plan->images * shape_size(op->in), channels = (size_t)op->in.c;
    if (op->kind == OP_RELU)
        kernels->relu(args->x.data, args->y.data, count);
    else if (op->kind == OP_LRN)
        lrn(op, args->x.data, args->y.data, count / channels);
    else
        kernels->bias(args->x.data, args->params[0].data, args->y.data, count / channels, channels);
    return STATUS_OK;
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    const struct op *op = plan->ops;
    const struct step_kernels *kernels = ISA_PICK(plan->device->isa, step_kernels);
    const size_t count = (size_t)plan->images * shape_size(op->in), channels = (size_t)op->in.c;
    float *dx = args->dx.data;
    if (op->kind == OP_BIAS)
        kernels->column_sums(args->dy.data, args->grads[0].data, count / channels, channels);
    if (!dx)
        return STATUS_OK;
    if (op->kind == OP_RELU)
        kernels->relu_backward(args->y.data, args->dy.data, dx, count);
    else if (op->kind == OP_LRN)
        lrn_backward(op, args->x.data, args->dy.data, dx, count / channels);
    else
        kernels->copy(dx, args->dy.data, count);
    return STATUS_OK;
}

const struct cpu_implementation vector_implementation = {
    .name = "vector",
    .takes = takes,
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
