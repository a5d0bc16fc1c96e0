/* A plan of ref is one operation: there is nothing to choose and nothing to fuse. */
#include "kernels/ref/operation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plan {
    struct op op;
    const struct operation *operation;
    int images;
    bool training;
    struct plan_info info;
};

static const char implementation[] = "plain";

static const struct operation *const operations[OP_KINDS] = {
    [OP_CONV] = &REF(conv),         [OP_BIAS] = &REF(bias), [OP_RELU] = &REF(relu),
    [OP_MAX_POOL] = &REF(max_pool), [OP_LRN] = &REF(lrn),   [OP_DENSE] = &REF(dense),
};

enum status REF(plan)(struct device *device, const struct plan_request *request, struct plan **out) {
    (void)device;
    if (request->count < 1 || request->images < 1)
        return status_fail(STATUS_INTERNAL, "a plan of %d operations for %d images", request->count,
                           request->images);
    if (request->force && strcmp(request->force, implementation) != 0)
        return status_fail(STATUS_UNSUPPORTED, "the plain C device has no implementation \"%s\", only \"%s\"",
                           request->force, implementation);
    STATUS_TRY(op_verify(request->ops));
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return status_fail(STATUS_NO_MEMORY, "no memory for a plan");
    const struct operation *operation = operations[request->ops->kind];
    plan->op = *request->ops;
    plan->operation = operation;
    plan->images = request->images;
    plan->training = request->training;
    plan->info.taken = 1;
    snprintf(plan->info.implementation, sizeof plan->info.implementation, "%s", implementation);
    if (operation->scratch)
        plan->info.scratch_bytes = operation->scratch(&plan->op);
    if (request->training) {
        if (operation->saved)
            plan->info.saved_bytes = operation->saved(&plan->op, plan->images);
        plan->info.backward_reads_x = operation->backward_reads_x;
        plan->info.backward_reads_y = operation->backward_reads_y;
    }
    *out = plan;
    return STATUS_OK;
}

const struct plan_info *REF(plan_info)(const struct plan *plan) {
    return &plan->info;
}

void REF(plan_free)(struct plan *plan) {
    free(plan);
}

enum status REF(need)(struct span span, size_t bytes, const char *name) {
    if (bytes == 0 || (span.data && span.bytes >= bytes))
        return STATUS_OK;
    return status_fail(STATUS_INTERNAL, "%s: a buffer of %zu bytes, expected %zu", name,
                       span.data ? span.bytes : 0, bytes);
}

enum status REF(need_segments)(const struct segment *segments, int segment_count, size_t count) {
    for (int s = 0; s < segment_count; s++)
        if (segments[s].offset > count || segments[s].count > count - segments[s].offset)
            return status_fail(STATUS_INTERNAL, "tensor %d (%zu values at %zu) reaches beyond the %zu values",
                               s, segments[s].count, segments[s].offset, count);
    return STATUS_OK;
}

/* What forward and backward both need. */
static enum status need_common(const struct plan *plan, const struct plan_args *args) {
    STATUS_TRY(REF(need)(args->params[0], op_parameter_size(&plan->op) * sizeof(real), "the parameter"));
    STATUS_TRY(REF(need)(args->saved, plan->info.saved_bytes, "the saved values"));
    return REF(need)(args->scratch, plan->info.scratch_bytes, "the scratch memory");
}

enum status REF(forward)(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    size_t pixel = (size_t)plan->images * sizeof(real);
    STATUS_TRY(REF(need)(args->x, pixel * shape_size(plan->op.in), "the input"));
    STATUS_TRY(REF(need)(args->y, pixel * shape_size(plan->op.out), "the output"));
    STATUS_TRY(need_common(plan, args));
    struct plan_args own = *args;
    if (!plan->training)
        own.saved = (struct span){NULL, 0};
    plan->operation->forward(&plan->op, plan->images, &own);
    return STATUS_OK;
}

enum status REF(backward)(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    if (!plan->training)
        return status_fail(STATUS_INTERNAL, "backward of a plan that was made for forward only");
    size_t in = (size_t)plan->images * sizeof(real) * shape_size(plan->op.in);
    size_t out = (size_t)plan->images * sizeof(real) * shape_size(plan->op.out);
    STATUS_TRY(REF(need)(args->x, plan->info.backward_reads_x ? in : 0, "the input"));
    STATUS_TRY(REF(need)(args->y, plan->info.backward_reads_y ? out : 0, "the output"));
    STATUS_TRY(REF(need)(args->dy, out, "the output's gradient"));
    STATUS_TRY(REF(need)(args->dx, args->dx.data ? in : 0, "the input's gradient"));
    STATUS_TRY(
        REF(need)(args->grads[0], op_parameter_size(&plan->op) * sizeof(real), "the parameter's gradient"));
    STATUS_TRY(need_common(plan, args));
    plan->operation->backward(&plan->op, plan->images, args);
    return STATUS_OK;
}
