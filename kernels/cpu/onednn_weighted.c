/* Convolution and dense layers by oneDNN, with the bias and ReLU that follow. Activations stay NHWC; the
 * weights are brought into the layouts that oneDNN likes by prepare(), the gradients back after each backward
 * pass. The team splits by images; the parts' gradients are added in order.
 *
 * ReLU is our own loop over the part that has just been computed: oneDNN's turns what is not a number into 0,
 * and a network that has gone wrong would look well. */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/isa/step.h"
#include "kernels/cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>

/* The layouts of the weights are those for this many images, whatever the plan's: all plans share `prepared`.
 */
enum { TYPICAL_IMAGES = 32 };

struct weighted_calls {
    int images;
    struct onednn_call forward, backward_data, backward_weights, gradient;
};

struct weighted {
    bool bias, relu;
    size_t weights; /* values */
    dnnl_memory_desc_t plain, forward_layout, backward_layout;
    struct onednn_call to_forward, to_backward;
    size_t backward_at, room_at[2]; /* in `prepared`: the second layout, room for the reorders to work in */
    int sizes;
    struct weighted_calls *calls;
    /* A part's scratch: the library's own, then the gradient in oneDNN's layout and in ours, and the bias'
     * gradient. */
    size_t gradient_at, plain_at, bias_at, part_bytes;
};

/* How many of the operations from the front are the layer's. */
static int takes(const struct device *device, const struct plan_request *request, char *reason, size_t size) {
    (void)device;
    const struct op *ops = request->ops;
    if (ops->kind != OP_CONV && ops->kind != OP_DENSE) {
        snprintf(reason, size, "does conv and dense here, not %s", op_kind_name(ops->kind));
        return 0;
    }
    int taken = 1;
    if (taken < request->count && ops[taken].kind == OP_BIAS)
        taken++;
    if (taken < request->count && ops[taken].kind == OP_RELU)
        taken++;
    return taken;
}

/* ---- descriptions in oneDNN's words */

struct layer {
    const struct op *op;
    bool bias;
    dnnl_memory_desc_t x, y, b;
};

static enum status layer_describe(const struct op *op, bool bias, int images, struct layer *out) {
    *out = (struct layer){.op = op, .bias = bias};
    const dnnl_dims_t channels = {op->out.c};
    STATUS_TRY(onednn_layout(&out->b, 1, channels, dnnl_a));
    if (op->kind == OP_CONV) {
        STATUS_TRY(onednn_images_layout(&out->x, images, op->in));
        return onednn_images_layout(&out->y, images, op->out);
    }
    const dnnl_dims_t x = {images, (dnnl_dim_t)shape_size(op->in)};
    const dnnl_dims_t y = {images, (dnnl_dim_t)shape_size(op->out)};
    STATUS_TRY(onednn_layout(&out->x, 2, x, dnnl_ab));
    return onednn_layout(&out->y, 2, y, dnnl_ab);
}

static enum status weights_layout(const struct op *op, bool plain, dnnl_memory_desc_t *out) {
    if (op->kind == OP_CONV) {
        const dnnl_dims_t sizes = {op->out.c, op->in.c, op->window.kernel_h, op->window.kernel_w};
        return onednn_layout(out, 4, sizes, plain ? dnnl_hwio : dnnl_format_tag_any);
    }
    const dnnl_dims_t sizes = {(dnnl_dim_t)shape_size(op->out), (dnnl_dim_t)shape_size(op->in)};
    return onednn_layout(out, 2, sizes, plain ? dnnl_ba : dnnl_format_tag_any);
}

union description {
    dnnl_convolution_desc_t conv;
    dnnl_inner_product_desc_t dense;
};

static enum status describe_forward(const struct layer *l, const dnnl_memory_desc_t *weights,
                                    union description *out) {
    const struct onednn_window w = onednn_window_of(&l->op->window);
    const dnnl_memory_desc_t *bias = l->bias ? &l->b : NULL;
    if (l->op->kind == OP_DENSE)
        return onednn_check(dnnl_inner_product_forward_desc_init(&out->dense, dnnl_forward_training, &l->x,
                                                                 weights, bias, &l->y),
                            "a dense layer");
    return onednn_check(dnnl_convolution_forward_desc_init(&out->conv, dnnl_forward_training,
                                                           dnnl_convolution_direct, &l->x, weights, bias,
                                                           &l->y, w.strides, w.before, w.after),
                        "a convolution");
}

static enum status describe_backward_data(const struct layer *l, const dnnl_memory_desc_t *weights,
                                          union description *out) {
    const struct onednn_window w = onednn_window_of(&l->op->window);
    if (l->op->kind == OP_DENSE)
        return onednn_check(dnnl_inner_product_backward_data_desc_init(&out->dense, &l->x, weights, &l->y),
                            "the input's gradient of a dense layer");
    return onednn_check(dnnl_convolution_backward_data_desc_init(&out->conv, dnnl_convolution_direct, &l->x,
                                                                 weights, &l->y, w.strides, w.before,
                                                                 w.after),
                        "the input's gradient of a convolution");
}

static enum status describe_backward_weights(const struct layer *l, const dnnl_memory_desc_t *weights,
                                             union description *out) {
    const struct onednn_window w = onednn_window_of(&l->op->window);
    const dnnl_memory_desc_t *bias = l->bias ? &l->b : NULL;
    if (l->op->kind == OP_DENSE)
        return onednn_check(
            dnnl_inner_product_backward_weights_desc_init(&out->dense, &l->x, weights, bias, &l->y),
            "the weights' gradient of a dense layer");
    return onednn_check(dnnl_convolution_backward_weights_desc_init(&out->conv, dnnl_convolution_direct,
                                                                    &l->x, weights, bias, &l->y, w.strides,
                                                                    w.before, w.after),
                        "the weights' gradient of a convolution");
}

/* ---- planning */

/* Which layouts oneDNN wants for the weights, and what brings them there. */
static enum status plan_weights(const struct onednn *onednn, const struct op *op, struct weighted *s) {
    struct layer layer;
    union description description;
    dnnl_memory_desc_t any;
    STATUS_TRY(weights_layout(op, true, &s->plain));
    STATUS_TRY(weights_layout(op, false, &any));
    STATUS_TRY(layer_describe(op, s->bias, TYPICAL_IMAGES, &layer));
    dnnl_primitive_desc_t forward, backward;
    STATUS_TRY(describe_forward(&layer, &any, &description));
    ONEDNN_TRY(dnnl_primitive_desc_create(&forward, &description, onednn->attributes, onednn->engine, NULL));
    s->forward_layout = *dnnl_primitive_desc_query_md(forward, dnnl_query_weights_md, 0);
    enum status status = describe_backward_data(&layer, &any, &description);
    if (status == STATUS_OK)
        status = onednn_check(
            dnnl_primitive_desc_create(&backward, &description, onednn->attributes, onednn->engine, forward),
            "the input's gradient");
    dnnl_primitive_desc_destroy(forward);
    STATUS_TRY(status);
    s->backward_layout = *dnnl_primitive_desc_query_md(backward, dnnl_query_weights_md, 0);
    dnnl_primitive_desc_destroy(backward);
    STATUS_TRY(onednn_reorder_new(onednn, &s->plain, &s->forward_layout, &s->to_forward));
    return onednn_reorder_new(onednn, &s->plain, &s->backward_layout, &s->to_backward);
}

static enum status plan_backward(const struct plan *plan, const struct layer *layer,
                                 dnnl_primitive_desc_t forward, struct weighted *s,
                                 struct weighted_calls *calls) {
    const struct onednn *onednn = plan->device->onednn;
    static const int weights_names[] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS,
                                        DNNL_ARG_DIFF_BIAS};
    static const int data_names[] = {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC};
    union description description;
    dnnl_memory_desc_t any;
    STATUS_TRY(weights_layout(layer->op, false, &any));
    STATUS_TRY(describe_backward_weights(layer, &any, &description));
    dnnl_primitive_desc_t weights;
    STATUS_TRY(onednn_call_new(onednn, &description, forward, weights_names, layer->bias ? 4 : 3,
                               &calls->backward_weights, &weights));
    enum status status =
        onednn_reorder_new(onednn, dnnl_primitive_desc_query_md(weights, dnnl_query_diff_weights_md, 0),
                           &s->plain, &calls->gradient);
    dnnl_primitive_desc_destroy(weights);
    STATUS_TRY(status);
    if (!plan->input_gradient)
        return STATUS_OK;
    STATUS_TRY(describe_backward_data(layer, &s->backward_layout, &description));
    return onednn_call_new(onednn, &description, forward, data_names, 3, &calls->backward_data, NULL);
}

static enum status plan_calls(const struct plan *plan, struct weighted *s, struct weighted_calls *calls) {
    static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS};
    struct layer layer;
    union description description;
    dnnl_primitive_desc_t forward;
    STATUS_TRY(layer_describe(plan->ops, s->bias, calls->images, &layer));
    STATUS_TRY(describe_forward(&layer, &s->forward_layout, &description));
    STATUS_TRY(onednn_call_new(plan->device->onednn, &description, NULL, names, s->bias ? 4 : 3,
                               &calls->forward, &forward));
    enum status status = plan->training ? plan_backward(plan, &layer, forward, s, calls) : STATUS_OK;
    dnnl_primitive_desc_destroy(forward);
    return status;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static void plan_memory(struct plan *plan, struct weighted *s) {
    size_t scratchpad = 0, blocked = 0;
    for (int i = 0; i < s->sizes; i++) {
        const struct weighted_calls *c = &s->calls[i];
        scratchpad =
            larger(scratchpad, larger(c->forward.scratchpad_bytes, c->backward_data.scratchpad_bytes));
        scratchpad =
            larger(scratchpad, larger(c->backward_weights.scratchpad_bytes, c->gradient.scratchpad_bytes));
        blocked = larger(blocked, c->backward_weights.primitive ? c->backward_weights.bytes[2] : 0);
    }
    s->gradient_at = align64(scratchpad);
    s->plain_at = s->gradient_at + align64(blocked);
    s->bias_at = s->plain_at + (plan->training ? align64(s->weights * sizeof(float)) : 0);
    s->part_bytes = s->bias_at + (plan->training ? align64((size_t)plan->ops->out.c * sizeof(float)) : 0);
    s->backward_at = align64(s->to_forward.bytes[1]);
    s->room_at[0] = s->backward_at + align64(s->to_backward.bytes[1]);
    s->room_at[1] = s->room_at[0] + align64(s->to_forward.scratchpad_bytes);
    int parts = image_parts(plan->images, pool_threads(plan->device->pool));
    plan->info.scratch_bytes = (size_t)parts * s->part_bytes;
    plan->info.prepared_bytes = s->room_at[1] + align64(s->to_backward.scratchpad_bytes);
    plan->info.backward_reads_x = true;
    plan->info.backward_reads_y = s->relu;
}

static enum status plan(struct plan *plan) {
    struct weighted *s = calloc(1, sizeof *s);
    plan->state = s;
    if (!s)
        return status_fail(STATUS_NO_MEMORY, "no memory for a plan");
    for (int i = 1; i < plan->info.taken; i++) {
        s->bias = s->bias || plan->ops[i].kind == OP_BIAS;
        s->relu = s->relu || plan->ops[i].kind == OP_RELU;
    }
    s->weights = op_parameter_size(plan->ops);
    STATUS_TRY(plan_weights(plan->device->onednn, plan->ops, s));
    struct onednn_sizes sizes;
    onednn_sizes(&sizes, plan->images, pool_threads(plan->device->pool));
    s->calls = calloc((size_t)sizes.count, sizeof *s->calls);
    if (!s->calls)
        return status_fail(STATUS_NO_MEMORY, "no memory for a plan");
    s->sizes = sizes.count;
    for (int i = 0; i < sizes.count; i++) {
        s->calls[i].images = sizes.images[i];
        STATUS_TRY(plan_calls(plan, s, &s->calls[i]));
    }
    plan_memory(plan, s);
    snprintf(plan->info.implementation, sizeof plan->info.implementation, "onednn %s",
             s->calls[0].forward.implementation);
    return STATUS_OK;
}

static void plan_release(struct plan *plan) {
    struct weighted *s = plan->state;
    if (!s)
        return;
    for (int i = 0; i < s->sizes; i++) {
        onednn_call_free(&s->calls[i].forward);
        onednn_call_free(&s->calls[i].backward_data);
        onednn_call_free(&s->calls[i].backward_weights);
        onednn_call_free(&s->calls[i].gradient);
    }
    onednn_call_free(&s->to_forward);
    onednn_call_free(&s->to_backward);
    free(s->calls);
    free(s);
}

/* ---- running */

struct job {
    const struct plan *plan;
    const struct plan_args *args;
    const struct weighted *s;
    const struct step_kernels *kernels;
    int parts;
};

static struct job job_for(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    return (struct job){plan, args, plan->state, ISA_PICK(plan->device->isa, step_kernels),
                        image_parts(plan->images, stream->size)};
}

static const struct weighted_calls *calls_for(const struct weighted *s, int images) {
    const struct weighted_calls *calls = s->calls;
    while (calls->images != images)
        calls++;
    return calls;
}

static char *scratch_of(const struct job *job, int part) {
    return (char *)job->args->scratch.data + (size_t)part * job->s->part_bytes;
}

static enum status prepare_part(void *context, int part, int thread) {
    const struct job *job = context;
    const struct onednn_call *call = part ? &job->s->to_backward : &job->s->to_forward;
    char *prepared = job->args->prepared.data;
    void *data[] = {job->args->params[0].data, prepared + (part ? job->s->backward_at : 0)};
    return onednn_call_run(call, thread, data, prepared + job->s->room_at[part]);
}

static enum status prepare(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_for(stream, plan, args);
    return team_run(stream, 2, prepare_part, &job); /* one part for each layout */
}

static enum status forward_part(void *context, int part, int thread) {
    const struct job *job = context;
    const struct op *op = job->plan->ops;
    struct part images = part_of(job->plan->images, job->parts, part);
    float *x = (float *)job->args->x.data + (size_t)images.first * shape_size(op->in);
    float *y = (float *)job->args->y.data + (size_t)images.first * shape_size(op->out);
    void *data[] = {x, job->args->prepared.data, y, job->s->bias ? job->args->params[1].data : NULL};
    STATUS_TRY(
        onednn_call_run(&calls_for(job->s, images.count)->forward, thread, data, scratch_of(job, part)));
    if (job->s->relu)
        job->kernels->relu(y, y, (size_t)images.count * shape_size(op->out));
    return STATUS_OK;
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_for(stream, plan, args);
    return team_run(stream, job.parts, forward_part, &job);
}

static enum status backward_part(void *context, int part, int thread) {
    const struct job *job = context;
    const struct weighted *s = job->s;
    const struct op *op = job->plan->ops;
    struct part images = part_of(job->plan->images, job->parts, part);
    size_t in_at = (size_t)images.first * shape_size(op->in),
           out_at = (size_t)images.first * shape_size(op->out);
    float *dy = (float *)job->args->dy.data + out_at;
    if (s->relu)
        job->kernels->relu_backward((const float *)job->args->y.data + out_at, dy, dy,
                                    (size_t)images.count * shape_size(op->out));
    const struct weighted_calls *calls = calls_for(s, images.count);
    char *scratch = scratch_of(job, part);
    /* The first part's gradients go where the sum will be. */
    void *weights = part ? scratch + s->plain_at : job->args->grads[0].data;
    void *bias = !s->bias ? NULL : part ? scratch + s->bias_at : job->args->grads[1].data;
    void *of_weights[] = {(float *)job->args->x.data + in_at, dy, scratch + s->gradient_at, bias};
    STATUS_TRY(onednn_call_run(&calls->backward_weights, thread, of_weights, scratch));
    void *reordered[] = {scratch + s->gradient_at, weights};
    STATUS_TRY(onednn_call_run(&calls->gradient, thread, reordered, scratch));
    if (!job->plan->input_gradient || !job->args->dx.data)
        return STATUS_OK;
    char *prepared = job->args->prepared.data;
    void *of_data[] = {dy, prepared + s->backward_at, (float *)job->args->dx.data + in_at};
    return onednn_call_run(&calls->backward_data, thread, of_data, scratch);
}

/* Add the other parts' gradients to the first's, in order; each thread does a range of the weights. */
static enum status sum_part(void *context, int range, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct weighted *s = job->s;
    struct part values = part_of((int)s->weights, job->parts, range);
    float *sum = (float *)job->args->grads[0].data + values.first;
    for (int part = 1; part < job->parts; part++)
        job->kernels->add(sum, (const float *)(scratch_of(job, part) + s->plain_at) + values.first,
                          (size_t)values.count);
    for (int part = 1; range == 0 && s->bias && part < job->parts; part++)
        job->kernels->add(job->args->grads[1].data, (const float *)(scratch_of(job, part) + s->bias_at),
                          (size_t)job->plan->ops->out.c);
    return STATUS_OK;
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_for(stream, plan, args);
    STATUS_TRY(team_run(stream, job.parts, backward_part, &job));
    return job.parts > 1 ? team_run(stream, job.parts, sum_part, &job) : STATUS_OK;
}

const struct cpu_implementation onednn_weighted = {
    .name = "onednn",
    .takes = takes,
    .plan = plan,
    .free = plan_release,
    .prepare = prepare,
    .forward = forward,
    .backward = backward,
};
