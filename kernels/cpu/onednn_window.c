/* Max pooling and LRN by oneDNN: operations without parameters. What they keep for the way back (which value
 * won in each window) lies in the library's workspace, which is linear in the images: so parts of the team
 * use parts of `saved`. */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>

struct window_calls {
    int images;
    struct onednn_call forward, backward;
};

struct window_state {
    size_t saved_per_image, scratchpad_bytes;
    int sizes;
    struct window_calls *calls;
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
                                 dnnl_primitive_desc_t forward, struct window_calls *calls) {
    int names[4] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST}, count = 2;
    if (layer->op->kind == OP_LRN)
        names[count++] = DNNL_ARG_SRC;
    if (saves)
        names[count++] = DNNL_ARG_WORKSPACE;
    union description description;
    STATUS_TRY(describe(layer, true, true, &description));
    return onednn_call_new(plan->device->onednn, &description, forward, names, count, &calls->backward, NULL);
}

static enum status plan_calls(const struct plan *plan, struct window_state *s, struct window_calls *calls) {
    static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_DST, DNNL_ARG_WORKSPACE};
    struct layer layer = {.op = plan->ops};
    STATUS_TRY(onednn_images_layout(&layer.x, calls->images, layer.op->in));
    STATUS_TRY(onednn_images_layout(&layer.y, calls->images, layer.op->out));
    union description description;
    STATUS_TRY(describe(&layer, false, plan->training, &description));
    size_t saved;
    STATUS_TRY(workspace_of(plan, &description, &saved));
    s->saved_per_image = saved / (size_t)calls->images;
    if (s->saved_per_image * (size_t)calls->images != saved)
        return status_fail(STATUS_UNSUPPORTED, "oneDNN: the workspace of %s is not split by images",
                           op_kind_name(layer.op->kind));
    dnnl_primitive_desc_t forward;
    STATUS_TRY(onednn_call_new(plan->device->onednn, &description, NULL, names, saved ? 3 : 2,
                               &calls->forward, &forward));
    enum status status = plan->training ? plan_backward(plan, &layer, saved > 0, forward, calls) : STATUS_OK;
    dnnl_primitive_desc_destroy(forward);
    STATUS_TRY(status);
    if (s->scratchpad_bytes < calls->forward.scratchpad_bytes)
        s->scratchpad_bytes = calls->forward.scratchpad_bytes;
    if (s->scratchpad_bytes < calls->backward.scratchpad_bytes)
        s->scratchpad_bytes = calls->backward.scratchpad_bytes;
    return STATUS_OK;
}

static enum status plan(struct plan *plan) {
    struct window_state *s = calloc(1, sizeof *s);
    plan->state = s;
    if (!s)
        return status_fail(STATUS_NO_MEMORY, "no memory for a plan");
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
    s->scratchpad_bytes = align64(s->scratchpad_bytes);
    int parts = image_parts(plan->images, pool_threads(plan->device->pool));
    plan->info.saved_bytes = (size_t)plan->images * s->saved_per_image;
    plan->info.scratch_bytes = (size_t)parts * s->scratchpad_bytes;
    plan->info.backward_reads_x = plan->ops->kind == OP_LRN;
    snprintf(plan->info.implementation, sizeof plan->info.implementation, "onednn %s",
             s->calls[0].forward.implementation);
    return STATUS_OK;
}

static void plan_release(struct plan *plan) {
    struct window_state *s = plan->state;
    if (!s)
        return;
    for (int i = 0; i < s->sizes; i++) {
        onednn_call_free(&s->calls[i].forward);
        onednn_call_free(&s->calls[i].backward);
    }
    free(s->calls);
    free(s);
}

/* ---- running */

struct job {
    const struct plan *plan;
    const struct plan_args *args;
    bool backward;
    int parts;
};

static float *from_image(struct span span, int first, struct shape shape) {
    return span.data ? (float *)span.data + (size_t)first * shape_size(shape) : NULL;
}

static enum status run_part(void *context, int part, int thread) {
    const struct job *job = context;
    const struct plan_args *args = job->args;
    const struct window_state *s = job->plan->state;
    const struct op *op = job->plan->ops;
    struct part images = part_of(job->plan->images, job->parts, part);
    const struct window_calls *calls = s->calls;
    while (calls->images != images.count)
        calls++;
    float *x = from_image(args->x, images.first, op->in);
    char *saved =
        s->saved_per_image ? (char *)args->saved.data + (size_t)images.first * s->saved_per_image : NULL;
    char *scratch =
        s->scratchpad_bytes ? (char *)args->scratch.data + (size_t)part * s->scratchpad_bytes : NULL;
    if (!job->backward) {
        void *data[] = {x, from_image(args->y, images.first, op->out), saved};
        return onednn_call_run(&calls->forward, thread, data, scratch);
    }
    void *data[4] = {from_image(args->dx, images.first, op->in), from_image(args->dy, images.first, op->out)};
    int count = 2;
    if (op->kind == OP_LRN)
        data[count++] = x;
    data[count] = saved;
    return onednn_call_run(&calls->backward, thread, data, scratch);
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = {plan, args, false, image_parts(plan->images, stream->size)};
    return team_run(stream, job.parts, run_part, &job);
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = {plan, args, true, image_parts(plan->images, stream->size)};
    return args->dx.data ? team_run(stream, job.parts, run_part, &job) : STATUS_OK;
}

const struct cpu_implementation onednn_window = {
    .name = "onednn",
    .takes = takes,
    .plan = plan,
    .free = plan_release,
    .forward = forward,
    .backward = backward,
};
