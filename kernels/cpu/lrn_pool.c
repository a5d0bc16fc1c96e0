/* Implementations "lrn-pool" (LRN and the max pool after it in one), "lrn" and "max-pool": kernels/cpu/isa.
 */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/isa/lrn.h"
#include "kernels/cpu/isa/max_pool.h"

#include <stdio.h>

/* The operations of a plan of any of the three; NULL: not there. */
static const struct op *lrn_of(const struct plan *plan) {
    return plan->ops->kind == OP_LRN ? plan->ops : NULL;
}

static const struct op *pool_of(const struct plan *plan) {
    const struct op *last = &plan->ops[plan->info.taken - 1];
    return last->kind == OP_MAX_POOL ? last : NULL;
}

static bool lrn_fits(const struct op *op, char *reason, size_t size) {
    if (op->kind != OP_LRN)
        snprintf(reason, size, "does lrn, not %s", op_kind_name(op->kind));
    else if (!lrn_supported(op))
        snprintf(reason, size,
                 "beta is %g, bias %g, alpha %g: expected beta 0.75, a positive bias, no negative alpha",
                 op->lrn.beta, op->lrn.bias, op->lrn.alpha);
    else
        return true;
    return false;
}

static bool pool_fits(const struct op *op, char *reason, size_t size) {
    if (op->kind != OP_MAX_POOL)
        snprintf(reason, size, "does max_pool, not %s", op_kind_name(op->kind));
    else if (!max_pool_supported(op))
        snprintf(reason, size, "the window is %dx%d: up to %dx%d is done, nowhere in the padding alone",
                 op->window.kernel_h, op->window.kernel_w, MAX_POOL_KERNEL, MAX_POOL_KERNEL);
    else
        return true;
    return false;
}

static int lrn_takes(const struct device *device, const struct plan_request *request, char *reason,
                     size_t size) {
    (void)device;
    return lrn_fits(request->ops, reason, size) ? 1 : 0;
}

static int pool_takes(const struct device *device, const struct plan_request *request, char *reason,
                      size_t size) {
    (void)device;
    return pool_fits(request->ops, reason, size) ? 1 : 0;
}

static int lrn_pool_takes(const struct device *device, const struct plan_request *request, char *reason,
                          size_t size) {
    (void)device;
    if (!lrn_fits(request->ops, reason, size))
        return 0;
    if (request->count < 2) {
        snprintf(reason, size, "nothing follows lrn; max_pool is expected to");
        return 0;
    }
    if (!pool_fits(&request->ops[1], reason, size))
        return 0;
    if (!lrn_pool_supported(&request->ops[0], &request->ops[1])) {
        snprintf(reason, size, "radius %d, %d channels: expected radius 4 and a multiple of 16 channels",
                 request->ops->lrn.radius, request->ops->in.c);
        return 0;
    }
    return 2;
}

static enum status plan(struct plan *plan) {
    const struct op *lrn = lrn_of(plan), *pool = pool_of(plan);
    if (pool && plan->training)
        plan->info.saved_bytes = (size_t)plan->images * shape_size(pool->out);
    size_t floats = lrn && pool ? lrn_pool_scratch_floats(lrn, pool) : lrn ? lrn_scratch_floats(lrn) : 0;
    plan->info.scratch_bytes = floats * sizeof(float);
    plan->info.backward_reads_x = lrn != NULL;
    return STATUS_OK;
}

static uint8_t *won_of(const struct plan *plan, const struct plan_args *args) {
    return plan->info.saved_bytes ? args->saved.data : NULL;
}

static size_t pixels_of(const struct plan *plan) {
    const struct shape in = plan->ops->in;
    return (size_t)plan->images * (size_t)in.h * (size_t)in.w;
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    const struct op *lrn = lrn_of(plan), *pool = pool_of(plan);
    const enum cpu_isa isa = plan->device->isa;
    const float *x = args->x.data;
    float *y = args->y.data, *scratch = args->scratch.data;
    uint8_t *won = won_of(plan, args);
    if (lrn && pool)
        ISA_PICK(isa, max_pool_kernels)->lrn_forward(lrn, pool, plan->images, x, y, won, scratch);
    else if (lrn)
        ISA_PICK(isa, lrn_kernels)->forward(lrn, pixels_of(plan), x, y, scratch);
    else
        ISA_PICK(isa, max_pool_kernels)->forward(pool, plan->images, x, y, won);
    return STATUS_OK;
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    (void)stream;
    const struct op *lrn = lrn_of(plan), *pool = pool_of(plan);
    const enum cpu_isa isa = plan->device->isa;
    const float *x = args->x.data, *dy = args->dy.data;
    float *dx = args->dx.data, *scratch = args->scratch.data;
    const uint8_t *won = won_of(plan, args);
    if (!dx)
        return STATUS_OK;
    if (lrn && pool)
        ISA_PICK(isa, max_pool_kernels)
            ->lrn_backward(lrn, pool, plan->images, x, dy, won, dx, false, scratch);
    else if (lrn)
        ISA_PICK(isa, lrn_kernels)->backward(lrn, pixels_of(plan), x, dy, dx, false, scratch);
    else
        ISA_PICK(isa, max_pool_kernels)->backward(pool, plan->images, dy, won, dx);
    return STATUS_OK;
}

const struct cpu_implementation lrn_pool_implementation = {
    .name = "lrn-pool", .takes = lrn_pool_takes, .plan = plan, .forward = forward, .backward = backward};
const struct cpu_implementation lrn_implementation = {
    .name = "lrn", .takes = lrn_takes, .plan = plan, .forward = forward, .backward = backward};
const struct cpu_implementation max_pool_implementation = {
    .name = "max-pool", .takes = pool_takes, .plan = plan, .forward = forward, .backward = backward};
