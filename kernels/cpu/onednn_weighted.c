/* Convolution and dense layers by oneDNN, with the bias and ReLU that follow. Activations stay NHWC; the
 * weights are brought into the layouts that oneDNN likes by prepare(), the gradients back after each backward
 * pass.
 *
 * ReLU is our own loop over what has just been computed: oneDNN's turns what is not a number into 0, and a
 * network that has gone wrong would look well. */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/isa/step.h"
#include "kernels/cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>

/* The layouts of the weights are those for this many images, whatever the plan's: all plans share `prepared`.
 */
enum { TYPICAL_IMAGES = 32 };

struct weighted {
    bool bias, relu;
    dnnl_memory_desc_t plain, forward_layout, backward_layout;
    struct onednn_call to_forward, to_backward;
    size_t backward_at, room_at[2]; /* in `prepared`: the second layout, room for the reorders to work in */
    struct onednn_call forward, backward_data, backward_weights;
    struct onednn_call to_plain; /* of the weights' gradient */
    size_t gradient_at;          /* in scratch, behind the library's own: that in oneDNN's layout */
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
                                 dnnl_primitive_desc_t forward, struct weighted *s) {
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
                               &s->backward_weights, &weights));
    enum status status =
        onednn_reorder_new(onednn, dnnl_primitive_desc_query_md(weights, dnnl_query_diff_weights_md, 0),
                           &s->plain, &s->to_plain);
    dnnl_primitive_desc_destroy(weights);
    STATUS_TRY(status);
    if (!plan->input_gradient)
        return STATUS_OK;
    STATUS_TRY(describe_backward_data(layer, &s->backward_layout, &description));
    return onednn_call_new(onednn, &description, forward, data_names, 3, &s->backward_data, NULL);
}

static enum status plan_calls(struct plan *plan, struct weighted *s) {
    static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS};
    struct layer layer;
    union description description;
    dnnl_primitive_desc_t forward;
    STATUS_TRY(layer_describe(plan->ops, s->bias, plan->images, &layer));
    STATUS_TRY(describe_forward(&layer, &s->forward_layout, &description));
    STATUS_TRY(onednn_call_new(plan->device->onednn, &description, NULL, names, s->bias ? 4 : 3, &s->forward,
                               &forward));
    onednn_name(plan, &s->forward);
    enum status status = plan->training ? plan_backward(plan, &layer, forward, s) : STATUS_OK;
    dnnl_primitive_desc_destroy(forward);
    return status;
}

static void plan_memory(struct plan *plan, struct weighted *s) {
    const struct onednn_call *calls[] = {&s->forward, &s->backward_data, &s->backward_weights, &s->to_plain};
    size_t scratchpad = 0;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        scratchpad = calls[i]->scratchpad_bytes > scratchpad ? calls[i]->scratchpad_bytes : scratchpad;
    s->gradient_at = align64(scratchpad);
    plan->info.scratch_bytes = s->gradient_at + (plan->training ? s->backward_weights.bytes[2] : 0);
    s->backward_at = align64(s->to_forward.bytes[1]);
    s->room_at[0] = s->backward_at + align64(s->to_backward.bytes[1]);
    s->room_at[1] = s->room_at[0] + align64(s->to_forward.scratchpad_bytes);
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
    STATUS_TRY(plan_weights(plan->device->onednn, plan->ops, s));
    STATUS_TRY(plan_calls(plan, s));
    plan_memory(plan, s);
    return STATUS_OK;
}

static void plan_release(struct plan *plan) {
    struct weighted *s = plan->state;
    if (!s)
        return;
    struct onednn_call *calls[] = {&s->to_forward,    &s->to_backward,      &s->forward,
                                   &s->backward_data, &s->backward_weights, &s->to_plain};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        onednn_call_free(calls[i]);
    free(s);
}

/* ---- running */

struct preparation {
    const struct weighted *s;
    const struct plan_args *args;
};

static enum status prepare_part(void *context, int part, int thread) {
    const struct preparation *p = context;
    const struct onednn_call *call = part ? &p->s->to_backward : &p->s->to_forward;
    char *prepared = p->args->prepared.data;
    void *data[] = {p->args->params[0].data, prepared + (part ? p->s->backward_at : 0)};
    return onednn_call_run(call, thread, data, prepared + p->s->room_at[part]);
}

static enum status prepare(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct preparation p = {plan->state, args};
    return team_run(stream, 2, prepare_part, &p); /* one part for each layout */
}

static size_t outputs_of(const struct plan *plan) {
    return (size_t)plan->images * shape_size(plan->ops->out);
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    const struct weighted *s = plan->state;
    float *y = args->y.data;
    void *data[] = {args->x.data, args->prepared.data, y, s->bias ? args->params[1].data : NULL};
    STATUS_TRY(onednn_call_run(&s->forward, stream->first, data, args->scratch.data));
    if (s->relu)
        ISA_PICK(plan->device->isa, step_kernels)->relu(y, y, outputs_of(plan));
    return STATUS_OK;
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    const struct weighted *s = plan->state;
    const int thread = stream->first;
    float *dy = args->dy.data;
    char *scratch = args->scratch.data;
    if (s->relu)
        ISA_PICK(plan->device->isa, step_kernels)->relu_backward(args->y.data, dy, dy, outputs_of(plan));
    void *of_weights[] = {args->x.data, dy, scratch + s->gradient_at, s->bias ? args->grads[1].data : NULL};
    STATUS_TRY(onednn_call_run(&s->backward_weights, thread, of_weights, scratch));
    void *reordered[] = {scratch + s->gradient_at, args->grads[0].data};
    STATUS_TRY(onednn_call_run(&s->to_plain, thread, reordered, scratch));
    if (!plan->input_gradient || !args->dx.data)
        return STATUS_OK;
    void *of_data[] = {dy, (char *)args->prepared.data + s->backward_at, args->dx.data};
    return onednn_call_run(&s->backward_data, thread, of_data, scratch);
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
