#include "kernels/cpu/onednn_parts.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_SIZES = 160 };

/* The sizes of parts into which teams of the pool may split `images` images, without repetition. */
static int part_sizes(int images, int threads, int sizes[MAX_SIZES]) {
    int count = 0;
    for (int workers = 1; workers <= threads; workers++) {
        int parts = image_parts(images, threads / workers);
        /* The first part is of the larger size, the last of the smaller. */
        for (int end = 0; end < 2; end++) {
            int size = part_of(images, parts, end ? parts - 1 : 0).count;
            bool seen = false;
            for (int i = 0; i < count; i++)
                seen = seen || sizes[i] == size;
            if (!seen && count < MAX_SIZES)
                sizes[count++] = size;
        }
    }
    return count;
}

enum status onednn_parts_plan(struct plan *plan, struct onednn_parts *out,
                              enum status (*make)(const struct plan *plan, struct onednn_part_calls *calls)) {
    int sizes[MAX_SIZES], count = part_sizes(plan->images, plan->threads, sizes);
    *out = (struct onednn_parts){.calls = calloc((size_t)count, sizeof *out->calls)};
    if (!out->calls)
        return status_fail(STATUS_NO_MEMORY, "no memory for a plan");
    out->sizes = count;
    for (int i = 0; i < count; i++) {
        out->calls[i].images = sizes[i];
        STATUS_TRY(make(plan, &out->calls[i]));
    }
    snprintf(plan->info.implementation, sizeof plan->info.implementation, "onednn %s",
             out->calls[0].forward.implementation);
    return STATUS_OK;
}

void onednn_parts_free(struct onednn_parts *parts) {
    for (int i = 0; i < parts->sizes; i++) {
        onednn_call_free(&parts->calls[i].forward);
        onednn_call_free(&parts->calls[i].backward_data);
        onednn_call_free(&parts->calls[i].backward_weights);
        onednn_call_free(&parts->calls[i].gradient);
    }
    free(parts->calls);
    *parts = (struct onednn_parts){0};
}

size_t onednn_parts_scratchpad(const struct onednn_parts *parts) {
    size_t most = 0;
    for (int i = 0; i < parts->sizes; i++) {
        const struct onednn_part_calls *c = &parts->calls[i];
        const struct onednn_call *calls[] = {&c->forward, &c->backward_data, &c->backward_weights,
                                             &c->gradient};
        for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
            most = calls[k]->scratchpad_bytes > most ? calls[k]->scratchpad_bytes : most;
    }
    return align64(most);
}

int onednn_parts_most(const struct plan *plan) {
    return image_parts(plan->images, plan->threads);
}

struct onednn_job onednn_job_of(const struct stream *stream, const struct plan *plan,
                                const struct plan_args *args, const struct onednn_parts *parts,
                                size_t part_bytes) {
    return (struct onednn_job){plan, args, parts, part_bytes, image_parts(plan->images, stream->size)};
}

static float *from_image(struct span span, int first, struct shape shape) {
    return span.data ? (float *)span.data + (size_t)first * shape_size(shape) : NULL;
}

struct onednn_share onednn_share_of(const struct onednn_job *job, int part) {
    const struct plan_args *args = job->args;
    struct shape in = job->plan->ops->in, out = job->plan->ops->out;
    struct onednn_share share = {.calls = job->parts->calls,
                                 .images = part_of(job->plan->images, job->count, part)};
    while (share.calls->images != share.images.count)
        share.calls++;
    share.x = from_image(args->x, share.images.first, in);
    share.y = from_image(args->y, share.images.first, out);
    share.dx = from_image(args->dx, share.images.first, in);
    share.dy = from_image(args->dy, share.images.first, out);
    share.scratch = job->part_bytes ? (char *)args->scratch.data + (size_t)part * job->part_bytes : NULL;
    return share;
}
