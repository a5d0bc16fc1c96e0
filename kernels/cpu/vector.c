/* Implementation "vector": bias and ReLU that stand alone, by plain vector loops. */
#include "kernels/cpu/implementations.h"

#include "kernels/cpu/isa/step.h"

#include <stdio.h>

static int takes(const struct device *device, const struct plan_request *request, char *reason, size_t size) {
    (void)device;
    if (request->ops->kind == OP_BIAS || request->ops->kind == OP_RELU)
        return 1;
    snprintf(reason, size, "does bias and relu alone, not %s", op_kind_name(request->ops->kind));
    return 0;
}

static enum status plan(struct plan *plan) {
    plan->info.backward_reads_y = plan->ops->kind == OP_RELU;
    return STATUS_OK;
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
