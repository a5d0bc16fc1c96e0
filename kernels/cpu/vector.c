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

struct job {
    const struct plan *plan;
    const struct plan_args *args;
    const struct step_kernels *kernels;
    int parts;
};

static struct job job_for(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    return (struct job){plan, args, ISA_PICK(plan->device->isa, step_kernels),
                        image_parts(plan->images, stream->size)};
}

static enum status forward_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct op *op = job->plan->ops;
    struct part images = part_of(job->plan->images, job->parts, part);
    size_t at = (size_t)images.first * shape_size(op->in), count = (size_t)images.count * shape_size(op->in);
    const float *x = (const float *)job->args->x.data + at;
    float *y = (float *)job->args->y.data + at;
    if (op->kind == OP_RELU)
        job->kernels->relu(x, y, count);
    else if (op->kind == OP_LRN)
        lrn(op, x, y, count / (size_t)op->in.c);
    else
        job->kernels->bias(x, job->args->params[0].data, y, count / (size_t)op->in.c, (size_t)op->in.c);
    return STATUS_OK;
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_for(stream, plan, args);
    return team_run(stream, job.parts, forward_part, &job);
}

static enum status backward_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct op *op = job->plan->ops;
    struct part images = part_of(job->plan->images, job->parts, part);
    size_t at = (size_t)images.first * shape_size(op->in), count = (size_t)images.count * shape_size(op->in);
    const float *dy = (const float *)job->args->dy.data + at;
    float *dx = (float *)job->args->dx.data + at;
    if (op->kind == OP_RELU)
        job->kernels->relu_backward((const float *)job->args->y.data + at, dy, dx, count);
    else if (op->kind == OP_LRN)
        lrn_backward(op, (const float *)job->args->x.data + at, dy, dx, count / (size_t)op->in.c);
    else
        job->kernels->copy(dx, dy, count);
    return STATUS_OK;
}

/* The gradient of a bias: columns are shared out, so that each sum is made by one thread over all images. */
static enum status bias_gradient_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct op *op = job->plan->ops;
    size_t rows = (size_t)job->plan->images * (size_t)op->in.h * (size_t)op->in.w, columns = (size_t)op->in.c;
    struct part strip = part_of(op->in.c, job->parts, part);
    job->kernels->column_sums((const float *)job->args->dy.data + strip.first,
                              (float *)job->args->grads[0].data + strip.first, rows, (size_t)strip.count,
                              columns);
    return STATUS_OK;
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_for(stream, plan, args);
    if (args->dx.data)
        STATUS_TRY(team_run(stream, job.parts, backward_part, &job));
    if (plan->ops->kind == OP_BIAS) {
        job.parts = stream->size < plan->ops->in.c ? stream->size : plan->ops->in.c;
        STATUS_TRY(team_run(stream, job.parts, bias_gradient_part, &job));
    }
    return STATUS_OK;
}

const struct cpu_implementation vector_implementation = {
    .name = "vector",
    .takes = takes,
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
