/* Implementation "dense": dense layers with their bias and ReLU by our own matrix products (isa/dense.h). */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/isa/dense.h"

#include <stdio.h>

static int takes(const struct device *device, const struct plan_request *request, char *reason, size_t size) {
    (void)device;
    const struct op *ops = request->ops;
    if (ops->kind != OP_DENSE) {
        snprintf(reason, size, "does dense, not %s", op_kind_name(ops->kind));
        return 0;
    }
    int taken = 1;
    if (taken < request->count && ops[taken].kind == OP_BIAS)
        taken++;
    if (taken < request->count && ops[taken].kind == OP_RELU)
        taken++;
    return taken;
}

static int whole_vectors(int images) {
    return (images + 15) / 16 * 16;
}

static bool has(const struct plan *plan, enum op_kind kind) {
    for (int i = 1; i < plan->info.taken; i++)
        if (plan->ops[i].kind == kind)
            return true;
    return false;
}

static enum status plan(struct plan *plan) {
    if (plan->training && plan->input_gradient)
        plan->info.scratch_bytes =
            (size_t)plan->ops->out.c * (size_t)whole_vectors(plan->images) * sizeof(float);
    plan->info.backward_reads_x = true;
    plan->info.backward_reads_y = has(plan, OP_RELU);
    plan->info.gradients_later = true;
    return STATUS_OK;
}

static struct dense dense_of(const struct plan *plan, const struct plan_args *args) {
    bool bias = has(plan, OP_BIAS);
    return (struct dense){.images = plan->images,
                          .inputs = (int)shape_size(plan->ops->in),
                          .outputs = plan->ops->out.c,
                          .x = args->x.data,
                          .w = args->params[0].data,
                          .bias = bias ? args->params[1].data : NULL,
                          .y = args->y.data,
                          .relu = has(plan, OP_RELU),
                          .dy = args->dy.data,
                          .turned = args->dx.data ? args->scratch.data : NULL,
                          .turned_images = whole_vectors(plan->images),
                          .dx = args->dx.data,
                          .dw = args->grads[0].data,
                          .db = bias ? args->grads[1].data : NULL};
}

static const struct dense_kernels *kernels_of(const struct plan *plan) {
    return ISA_PICK(plan->device->isa, dense_kernels);
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    const struct dense dense = dense_of(plan, args);
    kernels_of(plan)->forward(&dense);
    return STATUS_OK;
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    const struct dense dense = dense_of(plan, args);
    kernels_of(plan)->turn(&dense);
    kernels_of(plan)->gradients(&dense, 0, dense.inputs);
    return STATUS_OK;
}

/* Shares are of inputs, in cache lines; since every sum is made in one piece, they change no bit. */
static enum status gradients(struct stream *stream, const struct plan *plan, const struct plan_args *args,
                             int part, int parts, bool add) {
    (void)stream;
    enum { LINE = 16 };
    struct dense dense = dense_of(plan, args);
    dense.dx = NULL; /* backward() has made it, and finished dy */
    dense.add = add;
    if (dense.db && part == 0)
        kernels_of(plan)->bias(&dense);
    struct part lines = part_of((dense.inputs + LINE - 1) / LINE, parts, part);
    int first = lines.first * LINE, end = first + lines.count * LINE;
    end = end < dense.inputs ? end : dense.inputs;
    if (first < end)
        kernels_of(plan)->gradients(&dense, first, end - first);
    return STATUS_OK;
}

const struct cpu_implementation dense_implementation = {
    .name = "dense",
    .takes = takes,
    .plan = plan,
    .forward = forward,
    .backward = backward,
    .gradients = gradients,
};
