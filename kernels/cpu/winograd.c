/* Implementations "winograd-4x4-5x5" and "winograd-4x4-3x3": convolutions of stride 1, with bias and ReLU
 * where they follow. The transformed weights, and those of the convolution that makes the input's gradient,
 * are made once a step by prepare(). */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/isa/winograd.h"

#include <stdio.h>

static const struct winograd_kernels *kernels_for(enum cpu_isa isa, int kernel) {
    return kernel == 5 ? ISA_PICK(isa, winograd_5x5_kernels) : ISA_PICK(isa, winograd_3x3_kernels);
}

static const struct winograd_kernels *kernels_of(const struct plan *plan) {
    return kernels_for(plan->device->isa, plan->ops->window.kernel_h);
}

static int takes(const struct plan_request *request, int kernel, char *reason, size_t size) {
    const struct op *op = request->ops;
    const struct op_window *w = &op->window;
    if (op->kind != OP_CONV)
        snprintf(reason, size, "does conv, not %s", op_kind_name(op->kind));
    else if (w->kernel_h != kernel || w->kernel_w != kernel || w->stride != 1)
        snprintf(reason, size, "kernel %dx%d, stride %d: expected %dx%d, stride 1", w->kernel_h, w->kernel_w,
                 w->stride, kernel, kernel);
    else if (op->in.c % 16 || op->out.c % 16)
        snprintf(reason, size, "%d channels to %d: expected multiples of 16", op->in.c, op->out.c);
    else if (w->pad_top >= kernel || w->pad_left >= kernel || w->pad_bottom >= kernel ||
             w->pad_right >= kernel)
        snprintf(reason, size, "the padding is as large as the kernel");
    else {
        int taken = 1;
        if (request->count > taken && op[taken].kind == OP_BIAS)
            taken++;
        if (request->count > taken && op[taken].kind == OP_RELU)
            taken++;
        return taken;
    }
    return 0;
}

static int takes_5x5(const struct device *device, const struct plan_request *request, char *reason,
                     size_t size) {
    (void)device;
    return takes(request, 5, reason, size);
}

static int takes_3x3(const struct device *device, const struct plan_request *request, char *reason,
                     size_t size) {
    (void)device;
    return takes(request, 3, reason, size);
}

/* Which operation of the plan is the bias; -1: none. */
static int bias_of(const struct plan *plan) {
    return plan->info.taken > 1 && plan->ops[1].kind == OP_BIAS ? 1 : -1;
}

static bool has_relu(const struct plan *plan) {
    return plan->ops[plan->info.taken - 1].kind == OP_RELU;
}

static struct winograd_shape shape_of(const struct plan *plan) {
    const struct op *conv = plan->ops;
    return (struct winograd_shape){conv->in, conv->out, conv->window.pad_top, conv->window.pad_left};
}

/* The convolution of dy with the turned kernel that makes dx. */
static struct winograd_shape turned(const struct plan *plan) {
    const struct op *conv = plan->ops;
    const int kernel = conv->window.kernel_h;
    return (struct winograd_shape){conv->out, conv->in, kernel - 1 - conv->window.pad_top,
                                   kernel - 1 - conv->window.pad_left};
}

static size_t float_bytes(size_t floats) {
    return align64(floats * sizeof(float));
}

/* Scratch: a gradient for each part, then memory of each part's own. */
static size_t gradient_bytes(const struct plan *plan) {
    struct winograd_shape shape = shape_of(plan);
    return plan->training ? float_bytes(kernels_of(plan)->gradient_floats(&shape)) : 0;
}

static size_t part_bytes(const struct plan *plan) {
    const struct winograd_kernels *kernels = kernels_of(plan);
    struct winograd_shape shape = shape_of(plan), back = turned(plan);
    size_t floats = kernels->forward_scratch_floats(&shape);
    if (plan->training) {
        size_t more = kernels->gradient_scratch_floats(&shape);
        floats = floats > more ? floats : more;
        more = kernels->forward_scratch_floats(&back);
        floats = floats > more ? floats : more;
    }
    return float_bytes(floats);
}

static enum status plan(struct plan *plan) {
    const struct winograd_kernels *kernels = kernels_of(plan);
    struct winograd_shape shape = shape_of(plan);
    plan->info.prepared_bytes =
        2 * float_bytes(kernels->weights_floats(&shape)) + float_bytes(op_parameter_size(plan->ops));
    plan->info.scratch_bytes =
        (size_t)pool_threads(plan->device->pool) * (part_bytes(plan) + gradient_bytes(plan));
    plan->info.backward_reads_x = true;
    plan->info.backward_reads_y = has_relu(plan);
    return STATUS_OK;
}

struct job {
    const struct plan *plan;
    const struct plan_args *args;
    const struct winograd_kernels *kernels;
    struct winograd_shape shape, turned;
    int parts;                                   /* of the images */
    int channels;                                /* parts of the channels */
    float *weights, *turned_weights, *exchanged; /* in `prepared` */
};

static struct job job_of(const struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = {.plan = plan,
                      .args = args,
                      .kernels = kernels_of(plan),
                      .shape = shape_of(plan),
                      .turned = turned(plan),
                      .parts = image_parts(plan->images, stream->size),
                      .channels = stream->size < 16 ? stream->size : 16};
    char *prepared = args->prepared.data;
    size_t bytes = float_bytes(job.kernels->weights_floats(&job.shape));
    job.weights = (float *)prepared;
    job.turned_weights = (float *)(prepared + bytes);
    job.exchanged = (float *)(prepared + 2 * bytes);
    return job;
}

static float *gradient_of(const struct job *job, int part) {
    return (float *)((char *)job->args->scratch.data + (size_t)part * gradient_bytes(job->plan));
}

static float *scratch_of(const struct job *job, int part) {
    return (float *)((char *)job->args->scratch.data + (size_t)job->parts * gradient_bytes(job->plan) +
                     (size_t)part * part_bytes(job->plan));
}

/* ---- weights */

/* out[K][K][out.c][in.c] = w[K][K][in.c][out.c] turned by 180 degrees, for some output channels; 16 x 16 at a
 * time, so that lines that were read are used up before they leave the cache. */
static void exchange(const struct op *conv, const float *w, struct part channels, float *to) {
    const int taps = conv->window.kernel_h * conv->window.kernel_w, in = conv->in.c, out = conv->out.c;
    for (int tap = 0; tap < taps; tap++, w += (ptrdiff_t)in * out) {
        float *turned_tap = to + (ptrdiff_t)(taps - 1 - tap) * in * out;
        for (int i = 0; i < in; i += 16)
            for (int o = channels.first; o < channels.first + channels.count; o++)
                for (int k = i; k < i + 16; k++)
                    turned_tap[(ptrdiff_t)o * in + k] = w[(ptrdiff_t)k * out + o];
    }
}

static enum status prepare_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct op *conv = job->plan->ops;
    const float *w = job->args->params[0].data;
    struct part in = part_of(conv->in.c, job->channels, part),
                out = part_of(conv->out.c, job->channels, part);
    job->kernels->weights(&job->shape, w, in.first, in.count, job->weights);
    exchange(conv, w, out, job->exchanged);
    job->kernels->weights(&job->turned, job->exchanged, out.first, out.count, job->turned_weights);
    return STATUS_OK;
}

static enum status prepare(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_of(stream, plan, args);
    return team_run(stream, job.channels, prepare_part, &job);
}

/* ---- images */

static enum status forward_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct plan *plan = job->plan;
    struct part images = part_of(plan->images, job->parts, part);
    int bias = bias_of(plan);
    job->kernels->forward(&job->shape, images.count,
                          (const float *)job->args->x.data + (size_t)images.first * shape_size(job->shape.in),
                          job->weights, bias < 0 ? NULL : job->args->params[bias].data, has_relu(plan),
                          (float *)job->args->y.data + (size_t)images.first * shape_size(job->shape.out),
                          scratch_of(job, part));
    return STATUS_OK;
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_of(stream, plan, args);
    return team_run(stream, job.parts, forward_part, &job);
}

/* Images whose dy is still near when its second use comes. */
enum { NEAR = 4 };

static enum status backward_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct plan_args *args = job->args;
    const size_t in = shape_size(job->shape.in), out = shape_size(job->shape.out);
    const bool relu = has_relu(job->plan);
    struct part images = part_of(job->plan->images, job->parts, part);
    for (int done = 0; done < images.count; done += NEAR) {
        const size_t at = (size_t)(images.first + done);
        const int count = images.count - done < NEAR ? images.count - done : NEAR;
        float *dy = (float *)args->dy.data + at * out;
        job->kernels->gradient(&job->shape, count, (const float *)args->x.data + at * in, dy,
                               relu ? (const float *)args->y.data + at * out : NULL, done > 0,
                               gradient_of(job, part), scratch_of(job, part));
        if (args->dx.data)
            job->kernels->forward(&job->turned, count, dy, job->turned_weights, NULL, false,
                                  (float *)args->dx.data + at * in, scratch_of(job, part));
    }
    return STATUS_OK;
}

/* The sum of the parts' gradients, input channels shared out. */
static enum status sum_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    struct part channels = part_of(job->shape.in.c, job->channels, part);
    job->kernels->gradient_sum(&job->shape, gradient_of(job, 0), gradient_bytes(job->plan) / sizeof(float),
                               job->parts, channels.first, channels.count, job->args->grads[0].data);
    return STATUS_OK;
}

static void sum_bias(const struct job *job, float *gradient) {
    const int channels = job->shape.out.c;
    const size_t at = job->kernels->gradient_floats(&job->shape) - (size_t)channels;
    for (int c = 0; c < channels; c++)
        gradient[c] = gradient_of(job, 0)[at + (size_t)c];
    for (int part = 1; part < job->parts; part++)
        for (int c = 0; c < channels; c++)
            gradient[c] += gradient_of(job, part)[at + (size_t)c];
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_of(stream, plan, args);
    STATUS_TRY(team_run(stream, job.parts, backward_part, &job));
    STATUS_TRY(team_run(stream, job.channels, sum_part, &job));
    if (bias_of(plan) >= 0)
        sum_bias(&job, args->grads[bias_of(plan)].data);
    return STATUS_OK;
}

const struct cpu_implementation winograd_5x5_implementation = {.name = "winograd-4x4-5x5",
                                                               .takes = takes_5x5,
                                                               .plan = plan,
                                                               .prepare = prepare,
                                                               .forward = forward,
                                                               .backward = backward};
const struct cpu_implementation winograd_3x3_implementation = {.name = "winograd-4x4-3x3",
                                                               .takes = takes_3x3,
                                                               .plan = plan,
                                                               .prepare = prepare,
                                                               .forward = forward,
                                                               .backward = backward};
