/* Convolution and dense layers by oneDNN, with the bias and ReLU that follow. Activations stay NHWC; the
 * weights are brought into the layouts that oneDNN likes by prepare(), the gradients back after each backward
 * pass. The team splits by images; the parts' gradients are added in order.
 *
 * ReLU is our own loop over the part that has just been computed: oneDNN's turns what is not a number into 0,
 * and a network that has gone wrong would look well. */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/isa/step.h"
#include "kernels/cpu/onednn_parts.h"

#include <stdio.h>
#include <stdlib.h>

/* The layouts of the weights are those for this many images, whatever the plan's: all plans share `prepared`.
 */
enum { TYPICAL_IMAGES = 32 };

struct weighted {
    bool bias, relu;
    size_t weights; /* values */
    dnnl_memory_desc_t plain, forward_layout, backward_layout;
    struct onednn_call to_forward, to_backward;
    size_t backward_at, room_at[2]; /* in `prepared`: the second layout, room for the reorders to work in */
    struct onednn_parts parts;
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
                                 struct onednn_part_calls *calls) {
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

static enum status plan_calls(const struct plan *plan, struct onednn_part_calls *calls) {
    struct weighted *s = plan->state;
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
    size_t blocked = 0;
    for (int i = 0; i < s->parts.sizes; i++) {
        const struct onednn_call *of_weights = &s->parts.calls[i].backward_weights;
        blocked = larger(blocked, of_weights->primitive ? of_weights->bytes[2] : 0);
    }
    s->gradient_at = onednn_parts_scratchpad(&s->parts);
    s->plain_at = s->gradient_at + align64(blocked);
    s->bias_at = s->plain_at + (plan->training ? align64(s->weights * sizeof(float)) : 0);
    s->part_bytes = s->bias_at + (plan->training ? align64((size_t)plan->ops->out.c * sizeof(float)) : 0);
    s->backward_at = align64(s->to_forward.bytes[1]);
    s->room_at[0] = s->backward_at + align64(s->to_backward.bytes[1]);
    s->room_at[1] = s->room_at[0] + align64(s->to_forward.scratchpad_bytes);
    plan->info.scratch_bytes = (size_t)onednn_parts_most(plan) * s->part_bytes;
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
    STATUS_TRY(onednn_parts_plan(plan, &s->parts, plan_calls));
    plan_memory(plan, s);
    return STATUS_OK;
}

static void plan_release(struct plan *plan) {
    struct weighted *s = plan->state;
    if (!s)
        return;
    onednn_call_free(&s->to_forward);
    onednn_call_free(&s->to_backward);
    onednn_parts_free(&s->parts);
    free(s);
}

/* ---- running */

struct job {
    struct onednn_job parts;
    const struct weighted *s;
    const struct step_kernels *kernels;
};

static struct job job_of(const struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    const struct weighted *s = plan->state;
    return (struct job){onednn_job_of(stream, plan, args, &s->parts, s->part_bytes), s,
                        ISA_PICK(plan->device->isa, step_kernels)};
}

static enum status prepare_part(void *context, int part, int thread) {
    const struct job *job = context;
    const struct onednn_call *call = part ? &job->s->to_backward : &job->s->to_forward;
    char *prepared = job->parts.args->prepared.data;
    void *data[] = {job->parts.args->params[0].data, prepared + (part ? job->s->backward_at : 0)};
    return onednn_call_run(call, thread, data, prepared + job->s->room_at[part]);
}

static enum status prepare(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_of(stream, plan, args);
    return team_run(stream, 2, prepare_part, &job); /* one part for each layout */
}

static size_t outputs_of(const struct job *job, const struct onednn_share *share) {
    return (size_t)share->images.count * shape_size(job->parts.plan->ops->out);
}

static enum status forward_part(void *context, int part, int thread) {
    const struct job *job = context;
    const struct plan_args *args = job->parts.args;
    struct onednn_share share = onednn_share_of(&job->parts, part);
    void *data[] = {share.x, args->prepared.data, share.y, job->s->bias ? args->params[1].data : NULL};
    STATUS_TRY(onednn_call_run(&share.calls->forward, thread, data, share.scratch));
    if (job->s->relu)
        job->kernels->relu(share.y, share.y, outputs_of(job, &share));
    return STATUS_OK;
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_of(stream, plan, args);
    return team_run(stream, job.parts.count, forward_part, &job);
}

static enum status backward_part(void *context, int part, int thread) {
    const struct job *job = context;
    const struct weighted *s = job->s;
    const struct plan_args *args = job->parts.args;
    struct onednn_share share = onednn_share_of(&job->parts, part);
    char *scratch = share.scratch;
    if (s->relu)
        job->kernels->relu_backward(share.y, share.dy, share.dy, outputs_of(job, &share));
    /* The first part's gradients go where the sum will be. */
    void *weights = part ? scratch + s->plain_at : args->grads[0].data;
    void *bias = !s->bias ? NULL : part ? scratch + s->bias_at : args->grads[1].data;
    void *of_weights[] = {share.x, share.dy, scratch + s->gradient_at, bias};
    STATUS_TRY(onednn_call_run(&share.calls->backward_weights, thread, of_weights, scratch));
    void *reordered[] = {scratch + s->gradient_at, weights};
    STATUS_TRY(onednn_call_run(&share.calls->gradient, thread, reordered, scratch));
    if (!job->parts.plan->input_gradient || !share.dx)
        return STATUS_OK;
    void *of_data[] = {share.dy, (char *)args->prepared.data + s->backward_at, share.dx};
    return onednn_call_run(&share.calls->backward_data, thread, of_data, scratch);
}

/* Add the other parts' gradients to the first's, in order; each thread does a range of the weights. */
static enum status sum_part(void *context, int range, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct weighted *s = job->s;
    const struct plan_args *args = job->parts.args;
    struct part values = part_of((int)s->weights, job->parts.count, range);
    float *sum = (float *)args->grads[0].data + values.first;
    for (int part = 1; part < job->parts.count; part++) {
        const char *scratch = (const char *)args->scratch.data + (size_t)part * s->part_bytes;
        job->kernels->add(sum, (const float *)(scratch + s->plain_at) + values.first, (size_t)values.count);
        if (range == 0 && s->bias)
            job->kernels->add(args->grads[1].data, (const float *)(scratch + s->bias_at),
                              (size_t)job->parts.plan->ops->out.c);
    }
    return STATUS_OK;
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_of(stream, plan, args);
    STATUS_TRY(team_run(stream, job.parts.count, backward_part, &job));
    return job.parts.count > 1 ? team_run(stream, job.parts.count, sum_part, &job) : STATUS_OK;
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
