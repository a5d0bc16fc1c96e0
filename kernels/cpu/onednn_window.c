/* Max pooling and LRN by oneDNN: operations without parameters. What they keep for the way back (which value
 * won in each window) lies in the library's workspace, which is `saved`. */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>

struct window_state {
    struct onednn_call forward, backward;
};

static int takes(const struct device *device, const struct plan_request *request, char *reason, size_t size) {
    (void)device;
    const struct op *op = request->ops;
    if (op->kind == OP_MAX_POOL)
        return 1;
    if (op->kind != OP_LRN)
        snprintf(reason, size, "does max_pool and lrn here, not %s", op_kind_name(op->kind));
    else if (op->in.c % 16 != 0) /* 2.6.3 computes wrong gradients of, for one, 47 channels */
        snprintf(reason, size, "does lrn of a multiple of 16 channels, not of %d", op->in.c);
    else
        return 1;
    return 0;
}

/* ---- planning */

union description {
    dnnl_pooling_desc_t pool;
    dnnl_lrn_desc_t lrn;
};

struct layer {
    const struct op *op;
    dnnl_memory_desc_t x, y;
};

static enum status describe(const struct layer *l, bool backward, bool training, union description *out) {
    dnnl_prop_kind_t kind = training ? dnnl_forward_training : dnnl_forward_inference;
    if (l->op->kind == OP_LRN) {
        /* oneDNN divides alpha by the window; ours is not divided. */
        int window = 2 * l->op->lrn.radius + 1;
        float alpha = (float)(l->op->lrn.alpha * window), beta = (float)l->op->lrn.beta,
              k = (float)l->op->lrn.bias;
        dnnl_status_t status = backward
                                   ? dnnl_lrn_backward_desc_init(&out->lrn, dnnl_lrn_across_channels, &l->x,
                                                                 &l->x, window, alpha, beta, k)
                                   : dnnl_lrn_forward_desc_init(&out->lrn, kind, dnnl_lrn_across_channels,
                                                                &l->x, window, alpha, beta, k);
        return onednn_check(status, "an LRN");
    }
    const struct onednn_window w = onednn_window_of(&l->op->window);
    dnnl_status_t status =
        backward ? dnnl_pooling_backward_desc_init(&out->pool, dnnl_pooling_max, &l->x, &l->y, w.strides,
                                                   w.kernel, w.before, w.after)
                 : dnnl_pooling_forward_desc_init(&out->pool, kind, dnnl_pooling_max, &l->x, &l->y, w.strides,
                                                  w.kernel, w.before, w.after);
    return onednn_check(status, "a max pool");
}

/* Bytes of the workspace of a forward description; 0 when it keeps none. */
static enum status workspace_of(const struct plan *plan, const union description *description,
                                size_t *bytes) {
    const struct onednn *onednn = plan->device->onednn;
    dnnl_primitive_desc_t built;
    ONEDNN_TRY(dnnl_primitive_desc_create(&built, description, onednn->attributes, onednn->engine, NULL));
    const dnnl_memory_desc_t *workspace = dnnl_primitive_desc_query_md(built, dnnl_query_workspace_md, 0);
    *bytes = workspace ? dnnl_memory_desc_get_size(workspace) : 0;
    dnnl_primitive_desc_destroy(built);
    return STATUS_OK;
}

static enum status plan_backward(const struct plan *plan, const struct layer *layer, bool saves,
                                 dnnl_primitive_desc_t forward, struct window_state *s) {
    int names[4] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST}, count = 2;
    if (layer->op->kind == OP_LRN)
        names[count++] = DNNL_ARG_SRC;
    if (saves)
        names[count++] = DNNL_ARG_WORKSPACE;
    union description description;
    STATUS_TRY(describe(layer, true, true, &description));
    return onednn_call_new(plan->device->onednn, &description, forward, names, count, &s->backward, NULL);
}

static enum status plan_calls(struct plan *plan, struct window_state *s) {
    static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WORKSPACE};
    struct layer layer = {.op = plan->ops};
    STATUS_TRY(onednn_images_layout(&layer.x, plan->images, layer.op->in));
    STATUS_TRY(onednn_images_layout(&layer.y, plan->images, layer.op->out));
    union description description;
    STATUS_TRY(describe(&layer, false, plan->training, &description));
    size_t *saved = &plan->info.saved_bytes;
    STATUS_TRY(workspace_of(plan, &description, saved));
    dnnl_primitive_desc_t forward;
    STATUS_TRY(onednn_call_new(plan->device->onednn, &description, NULL, names, *saved ? 3 : 2, &s->forward,
                               &forward));
    onednn_name(plan, &s->forward);
    enum status status = plan->training ? plan_backward(plan, &layer, *saved > 0, forward, s) : STATUS_OK;
    dnnl_primitive_desc_destroy(forward);
    return status;
}

static enum status plan(struct plan *plan) {
    struct window_state *s = calloc(1, sizeof *s);
    plan->state = s;
    if (!s)
        return status_fail(STATUS_NO_MEMORY, "no memory for a plan");
    STATUS_TRY(plan_calls(plan, s));
    size_t forward = s->forward.scratchpad_bytes, backward = s->backward.scratchpad_bytes;
    plan->info.scratch_bytes = forward > backward ? forward : backward;
    plan->info.backward_reads_x = plan->ops->kind == OP_LRN;
    return STATUS_OK;
}

static void plan_release(struct plan *plan) {
    struct window_state *s = plan->state;
    if (!s)
        return;
    onednn_call_free(&s->forward);
    onednn_call_free(&s->backward);
    free(s);
}

/* ---- running */

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    const struct window_state *s = plan->state;
    void *data[] = {args->x.data, args->y.data, args->saved.data};
    return onednn_call_run(&s->forward, stream->first, data, args->scratch.data);
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    const struct window_state *s = plan->state;
    if (!args->dx.data)
        return STATUS_OK;
    void *data[4] = {args->dx.data, args->dy.data};
    int count = 2;
    if (plan->ops->kind == OP_LRN)
        data[count++] = args->x.data;
    data[count] = args->saved.data;
    return onednn_call_run(&s->backward, stream->first, data, args->scratch.data);
}

const struct cpu_implementation onednn_window = {
    .name = "onednn",
    .takes = takes,
    .plan = plan,
    .free = plan_release,
    .forward = forward,
    .backward = backward,
};
