/* Implementation "dense": dense layers with their bias and ReLU by our own matrix products (isa/dense.h). The
 * team shares out pieces of the products; since every sum is made in one piece, the split changes no bit. */
#include "kernels/cpu/implementations.h"
#include "kernels/cpu/isa/dense.h"

#include <stdio.h>

enum { ROWS = 48 }; /* images or inputs of a piece */

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
    return STATUS_OK;
}

struct job {
    struct dense dense;
    const struct dense_kernels *kernels;
    int parts;
};

static struct job job_for(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    bool bias = has(plan, OP_BIAS);
    return (struct job){
        .dense = {.images = plan->images,
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
                  .db = bias ? args->grads[1].data : NULL},
        .kernels = ISA_PICK(plan->device->isa, dense_kernels),
        .parts = stream->size,
    };
}

/* Do this part's share of `panels` x `rows` pieces, panel by panel. */
static void do_pieces(const struct job *job, int part, int panels, int rows,
                      void (*piece)(const struct dense *, int panel, int first, int count)) {
    int pieces = (rows + ROWS - 1) / ROWS;
    struct part mine = part_of(panels * pieces, job->parts, part);
    for (int i = mine.first; i < mine.first + mine.count; i++) {
        int first = i % pieces * ROWS;
        piece(&job->dense, i / pieces, first, rows - first < ROWS ? rows - first : ROWS);
    }
}

static int panels_of(const struct job *job, int columns) {
    return (columns + job->kernels->width - 1) / job->kernels->width;
}

static enum status forward_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    do_pieces(job, part, panels_of(job, job->dense.outputs), job->dense.images, job->kernels->forward);
    return STATUS_OK;
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_for(stream, plan, args);
    return team_run(stream, job.parts, forward_part, &job);
}

static enum status turn_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    enum { STRIP = 16 }; /* threads write to lines of their own */
    struct part strips = part_of((job->dense.outputs + STRIP - 1) / STRIP, job->parts, part);
    int first = strips.first * STRIP, left = job->dense.outputs - first;
    job->kernels->turn(&job->dense, first, left < strips.count * STRIP ? left : strips.count * STRIP);
    return STATUS_OK;
}

static enum status products_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct dense *d = &job->dense;
    do_pieces(job, part, panels_of(job, d->outputs), d->inputs, job->kernels->weights_gradient);
    if (d->dx)
        do_pieces(job, part, panels_of(job, d->images), d->inputs, job->kernels->input_gradient);
    return STATUS_OK;
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_for(stream, plan, args);
    STATUS_TRY(team_run(stream, job.parts, turn_part, &job));
    return team_run(stream, job.parts, products_part, &job);
}

const struct cpu_implementation dense_implementation = {
    .name = "dense",
    .takes = takes,
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
