/* Implementations "winograd-4x4-5x5" and "winograd-4x4-3x3": convolutions of stride 1, with bias, ReLU, and
 * LRN and max pool, where they follow. The transformed weights, and those of the convolution that makes the
 * input's gradient, are made once a step by prepare().
 *
 * Images go through all of it a few at a time, so that what one operation wrote is near when the next reads
 * it. */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/isa/max_pool.h"
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
        if (request->count > taken + 1 && lrn_pool_supported(&op[taken], &op[taken + 1]))
            taken += 2;
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

/* An operation of the plan; NULL: not there. */
static const struct op *find(const struct plan *plan, enum op_kind kind) {
    for (int i = 0; i < plan->info.taken; i++)
        if (plan->ops[i].kind == kind)
            return &plan->ops[i];
    return NULL;
}

/* Memory of the bias among params or grads; NULL: the plan has none. */
static float *bias_of(const struct plan *plan, const struct span *spans) {
    const struct op *bias = find(plan, OP_BIAS);
    return bias ? spans[bias - plan->ops].data : NULL;
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

enum { NEAR = 16 }; /* images at a time */

/* Scratch memory, in bytes. */
struct memory {
    size_t gradient;
    size_t values;  /* NEAR images of the convolution's output or its gradient, where LRN and pool follow */
    size_t kernels; /* of whichever kernel is at work */
};

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static struct memory memory_of(const struct plan *plan) {
    const struct winograd_kernels *kernels = kernels_of(plan);
    const struct op *lrn = find(plan, OP_LRN), *pool = find(plan, OP_MAX_POOL);
    struct winograd_shape shape = shape_of(plan), back = turned(plan);
    size_t scratch = kernels->forward_scratch_floats(&shape);
    if (plan->training) {
        scratch = larger(scratch, kernels->gradient_scratch_floats(&shape));
        scratch = larger(scratch, kernels->forward_scratch_floats(&back));
    }
    if (lrn)
        scratch = larger(scratch, lrn_pool_scratch_floats(lrn, pool));
    return (struct memory){.gradient = plan->training ? float_bytes(kernels->gradient_floats(&shape)) : 0,
                           .values = lrn ? float_bytes(NEAR * shape_size(shape.out)) : 0,
                           .kernels = float_bytes(scratch)};
}

/* Saved, where LRN and pool follow: the convolution's output after ReLU, then the arg-max. */
static size_t saved_values(const struct plan *plan) {
    return float_bytes((size_t)plan->images * shape_size(plan->ops->out));
}

static enum status plan(struct plan *plan) {
    const struct op *pool = find(plan, OP_MAX_POOL);
    const struct winograd_shape shape = shape_of(plan);
    const struct memory memory = memory_of(plan);
    plan->info.prepared_bytes =
        2 * float_bytes(kernels_of(plan)->weights_floats(&shape)) + float_bytes(op_parameter_size(plan->ops));
    plan->info.scratch_bytes = memory.gradient + memory.values + memory.kernels;
    if (pool && plan->training)
        plan->info.saved_bytes = saved_values(plan) + (size_t)plan->images * shape_size(pool->out);
    plan->info.backward_reads_x = true;
    plan->info.backward_reads_y = !pool && find(plan, OP_RELU);
    return STATUS_OK;
}

struct job {
    const struct plan *plan;
    const struct plan_args *args;
    const struct winograd_kernels *kernels;
    const struct max_pool_kernels *pool_kernels;
    struct winograd_shape shape, turned;
    float *gradient, *values, *scratch;          /* in `scratch` */
    float *weights, *turned_weights, *exchanged; /* in `prepared` */
};

static struct job job_of(const struct plan *plan, const struct plan_args *args) {
    struct job job = {.plan = plan,
                      .args = args,
                      .kernels = kernels_of(plan),
                      .pool_kernels = ISA_PICK(plan->device->isa, max_pool_kernels),
                      .shape = shape_of(plan),
                      .turned = turned(plan)};
    const struct memory memory = memory_of(plan);
    char *scratch = args->scratch.data;
    if (scratch) { /* prepare() has none */
        job.gradient = (float *)scratch;
        job.values = (float *)(scratch + memory.gradient);
        job.scratch = (float *)(scratch + memory.gradient + memory.values);
    }
    char *prepared = args->prepared.data;
    size_t bytes = float_bytes(job.kernels->weights_floats(&job.shape));
    job.weights = (float *)prepared;
    job.turned_weights = (float *)(prepared + bytes);
    job.exchanged = (float *)(prepared + 2 * bytes);
    return job;
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

/* Parts of the channels, each on a thread. */
struct preparation {
    struct job job;
    int parts;
};

static enum status prepare_part(void *context, int part, int thread) {
    (void)thread;
    const struct preparation *p = context;
    const struct job *job = &p->job;
    const struct op *conv = job->plan->ops;
    const float *w = job->args->params[0].data;
    struct part in = part_of(conv->in.c, p->parts, part), out = part_of(conv->out.c, p->parts, part);
    job->kernels->weights(&job->shape, w, in.first, in.count, job->weights);
    exchange(conv, w, out, job->exchanged);
    job->kernels->weights(&job->turned, job->exchanged, out.first, out.count, job->turned_weights);
    return STATUS_OK;
}

static enum status prepare(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct preparation p = {job_of(plan, args), stream->size < 16 ? stream->size : 16};
    return team_run(stream, p.parts, prepare_part, &p);
}

/* ---- images */

/* A few images on their way. */
struct batch {
    int images;
    size_t in, out, pooled; /* where they begin in the input, the convolution's output, the pool's output */
};

static struct batch batch_of(const struct job *job, int done) {
    const struct op *pool = find(job->plan, OP_MAX_POOL);
    const size_t at = (size_t)done;
    const int left = job->plan->images - done;
    return (struct batch){.images = left < NEAR ? left : NEAR,
                          .in = at * shape_size(job->shape.in),
                          .out = at * shape_size(job->shape.out),
                          .pooled = pool ? at * shape_size(pool->out) : 0};
}

/* The convolution's output of a batch: y itself, or kept for backward, or near. */
static float *convolved(const struct job *job, const struct batch *b) {
    if (!find(job->plan, OP_MAX_POOL))
        return (float *)job->args->y.data + b->out;
    return job->plan->training ? (float *)job->args->saved.data + b->out : job->values;
}

static uint8_t *won_of(const struct job *job, const struct batch *b) {
    return job->plan->training ? (uint8_t *)job->args->saved.data + saved_values(job->plan) + b->pooled
                               : NULL;
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    const struct job job = job_of(plan, args);
    const struct op *lrn = find(plan, OP_LRN), *pool = find(plan, OP_MAX_POOL);
    for (int done = 0; done < plan->images; done += NEAR) {
        const struct batch b = batch_of(&job, done);
        float *y = convolved(&job, &b);
        job.kernels->forward(&job.shape, b.images, (const float *)args->x.data + b.in, job.weights,
                             bias_of(plan, args->params), find(plan, OP_RELU) != NULL, y, job.scratch);
        if (lrn)
            job.pool_kernels->lrn_forward(lrn, pool, b.images, y, (float *)args->y.data + b.pooled,
                                          won_of(&job, &b), job.scratch);
    }
    return STATUS_OK;
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    const struct job job = job_of(plan, args);
    const struct op *lrn = find(plan, OP_LRN), *pool = find(plan, OP_MAX_POOL);
    const bool relu = find(plan, OP_RELU);
    for (int done = 0; done < plan->images; done += NEAR) {
        const struct batch b = batch_of(&job, done);
        float *y = relu || lrn ? convolved(&job, &b) : NULL;
        float *dy = lrn ? job.values : (float *)args->dy.data + b.out;
        if (lrn)
            job.pool_kernels->lrn_backward(lrn, pool, b.images, y, (const float *)args->dy.data + b.pooled,
                                           won_of(&job, &b), dy, relu, job.scratch);
        job.kernels->gradient(&job.shape, b.images, (const float *)args->x.data + b.in, dy,
                              relu && !lrn ? y : NULL, done > 0, job.gradient, job.scratch);
        if (args->dx.data)
            job.kernels->forward(&job.turned, b.images, dy, job.turned_weights, NULL, false,
                                 (float *)args->dx.data + b.in, job.scratch);
    }
    job.kernels->finish(&job.shape, job.gradient, args->grads[0].data, bias_of(plan, args->grads));
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
