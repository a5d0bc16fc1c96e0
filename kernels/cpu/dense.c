/* Implementation "dense": dense layers with their bias and ReLU by our own matrix products (isa/dense.h). The
 * team shares out pieces of the products; since every sum is made in one piece, the split changes no bit. */
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

static int pieces_of(int count, int size) {
    return (count + size - 1) / size;
}

/* Pieces of `size` things that are this part's: the first thing, and how many. */
static struct part share(const struct job *job, int part, int count, int size) {
    struct part pieces = part_of(pieces_of(count, size), job->parts, part);
    int first = pieces.first * size, end = (pieces.first + pieces.count) * size;
    return (struct part){first, (end < count ? end : count) - first};
}

/* Columns are shared out where they share out evenly, so that each weight is read by one thread; else images.
 */
static enum status forward_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    const struct dense *d = &job->dense;
    struct part images = {0, d->images}, columns = {0, d->outputs};
    enum { IMAGES = 6 };
    if (pieces_of(d->outputs, job->kernels->width) % job->parts == 0)
        columns = share(job, part, d->outputs, job->kernels->width);
    else
        images = share(job, part, d->images, IMAGES);
    if (images.count > 0 && columns.count > 0)
        job->kernels->forward(d, images.first, images.count, columns.first, columns.count);
    return STATUS_OK;
}

static enum status forward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_for(stream, plan, args);
    return team_run(stream, job.parts, forward_part, &job);
}

static enum status turn_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    enum { LINE = 16 }; /* threads write to cache lines of their own */
    struct part outputs = share(job, part, job->dense.outputs, LINE);
    if (outputs.count > 0)
        job->kernels->turn(&job->dense, outputs.first, outputs.count);
    return STATUS_OK;
}

static enum status gradients_part(void *context, int part, int thread) {
    (void)thread;
    const struct job *job = context;
    enum { LINE = 16 };
    struct part inputs = share(job, part, job->dense.inputs, LINE);
    if (inputs.count > 0)
        job->kernels->gradients(&job->dense, inputs.first, inputs.count);
    return STATUS_OK;
}

static enum status gradients(struct stream *stream, const struct plan *plan, const struct plan_args *args,
                             int part, int parts, bool add) {
    struct job job = job_for(stream, plan, args);
    job.parts = parts;
    job.dense.dx = NULL; /* backward() has made it, and finished dy */
    job.dense.add = add;
    if (job.dense.db && part == 0)
        job.kernels->bias(&job.dense);
    return gradients_part(&job, part, 0);
}

static enum status backward(struct stream *stream, const struct plan *plan, const struct plan_args *args) {
    struct job job = job_for(stream, plan, args);
    STATUS_TRY(team_run(stream, job.parts, turn_part, &job));
    return team_run(stream, job.parts, gradients_part, &job);
}

const struct cpu_implementation dense_implementation = {
    .name = "dense",
    .takes = takes,
    .plan = plan,
    .forward = forward,
    .backward = backward,
    .gradients = gradients,
};
