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

/* Bytes of scratch of one part. */
static size_t part_scratch(const struct plan *plan) {
    const struct op *lrn = lrn_of(plan), *pool = pool_of(plan);
    size_t floats = lrn && pool ? lrn_pool_scratch_floats(lrn, pool) : lrn ? lrn_scratch_floats(lrn) : 0;
    return align64(floats * sizeof(float));
}

static enum status plan(struct plan *plan) {
    const struct op *pool = pool_of(plan);
    if (pool && plan->training)
        plan->info.saved_bytes = (size_t)plan->images * shape_size(pool->out);
    plan->info.scratch_bytes = part_scratch(plan) * (size_t)plan->threads;
    plan->info.backward_reads_x = lrn_of(plan) != NULL;
    return STATUS_OK;
}

struct job {
    const struct plan *plan;
    const struct plan_args *args;
    int parts;
};

/* The share of a part: where its images begin in the input and the output. */
struct share {
    int images;
    size_t in, out;
    uint8_t *won;
    float *scratch;
};

static struct share share_of(const struct job *job, int part) {
    const struct plan *p = job->plan;
    struct part images = part_of(p->images, job->parts, part);
    struct share share = {.images = images.count,
                          .in = (size_t)images.first * shape_size(p->ops[0].in),
                          .out = (size_t)images.first * shape_size(p->ops[p->info.taken - 1].out)};
    if (p->info.saved_bytes)
        share.won = (uint8_t *)job->args->saved.data + share.out;
    if (p->info.scratch_bytes)
        share.scratch = (float *)((char *)job->args->scratch.data + (size_t)part * part_scratch(p));
    return share;
}

static enum status forward_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct share s = share_of(job, part);
    const struct op *lrn = lrn_of(job->plan), *pool = pool_of(job->plan);
    const float *x = (const float *)job->args->x.data + s.in;
    float *y = (float *)job->args->y.data + s.out;
    const enum cpu_isa isa = job->plan->device->isa;
    if (lrn && pool)
        ISA_PICK(isa, max_pool_kernels)->lrn_forward(lrn, pool, s.images, x, y, s.won, s.scratch);
    else if (lrn)
        ISA_PICK(isa, lrn_kernels)
            ->forward(lrn, (size_t)s.images * (size_t)lrn->in.h * (size_t)lrn->in.w, x, y, s.scratch);
    else
        ISA_PICK(isa, max_pool_kernels)->forward(pool, s.images, x, y, s.won);
    return STATUS_OK;
}

static enum status backward_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct share s = share_of(job, part);
    const struct op *lrn = lrn_of(job->plan), *pool = pool_of(job->plan);
    const float *x = lrn ? (const float *)job->args->x.data + s.in : NULL;
    const float *dy = (const float *)job->args->dy.data + s.out;
    float *dx = (float *)job->args->dx.data + s.in;
    const enum cpu_isa isa = job->plan->device->isa;
    if (lrn && pool)
        ISA_PICK(isa, max_pool_kernels)
            ->lrn_backward(lrn, pool, s.images, x, dy, s.won, dx, false, s.scratch);
    else if (lrn)
        ISA_PICK(isa, lrn_kernels)
            ->backward(lrn, (size_t)s.images * (size_t)lrn->in.h * (size_t)lrn->in.w, x, dy, dx, false,
                       s.scratch);
    else
        ISA_PICK(isa, max_pool_kernels)->backward(pool, s.images, dy, s.won, dx);
    return STATUS_OK;
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = {plan, args, image_parts(plan->images, stream->size)};
    return team_run(stream, job.parts, forward_part, &job);
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = {plan, args, image_parts(plan->images, stream->size)};
    return args->dx.data ? team_run(stream, job.parts, backward_part, &job) : STATUS_OK;
}

const struct cpu_implementation lrn_pool_implementation = {
    .name = "lrn-pool", .takes = lrn_pool_takes, .plan = plan, .forward = forward, .backward = backward};
const struct cpu_implementation lrn_implementation = {
    .name = "lrn", .takes = lrn_takes, .plan = plan, .forward = forward, .backward = backward};
const struct cpu_implementation max_pool_implementation = {
    .name = "max-pool", .takes = pool_takes, .plan = plan, .forward = forward, .backward = backward};
