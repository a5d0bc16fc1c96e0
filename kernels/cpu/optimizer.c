/* Averaging of the towers' gradients and the update of the parameters, over the whole pool. Every segment is
 * cut into blocks of STEP_BLOCK elements; each block leaves its sums in its own place, and they are added in
 * order after all are done: so neither the number of threads nor which thread did what changes a bit. */
#include "kernels/cpu/impl.h"
#include "kernels/cpu/isa/step.h"

#include <stdlib.h>
#include <string.h>

static size_t blocks_of(const struct segment *segment) {
    return (segment->count + STEP_BLOCK - 1) / STEP_BLOCK;
}

static enum status check_segments(const struct segment *segments, int count, size_t elements,
                                  size_t *blocks) {
    *blocks = 0;
    for (int i = 0; i < count; i++) {
        if (segments[i].offset > elements || segments[i].count > elements - segments[i].offset)
            return status_fail(STATUS_INTERNAL, "parameter tensor %d ends at %zu of %zu elements", i,
                               segments[i].offset + segments[i].count, elements);
        *blocks += blocks_of(&segments[i]);
    }
    return STATUS_OK;
}

static enum status check_bytes(struct span span, size_t bytes, const char *what) {
    if (span.data && span.bytes >= bytes)
        return STATUS_OK;
    return status_fail(STATUS_INTERNAL, "%s: %zu bytes, expected %zu", what, span.data ? span.bytes : 0,
                       bytes);
}

/* Room for the blocks' sums, zeroed. It grows when a larger model or more towers come, and stays. */
static enum status want_partial(struct device *device, size_t count) {
    if (device->partial_count < count) {
        double *larger = realloc(device->partial, count * sizeof *larger);
        if (!larger)
            return status_fail(STATUS_NO_MEMORY, "no memory for %zu partial sums", count);
        device->partial = larger;
        device->partial_count = count;
    }
    memset(device->partial, 0, count * sizeof *device->partial);
    return STATUS_OK;
}

/* One pass over blocks: visit(context, segment, first element, elements, the block's sums). */
struct pass {
    struct device *device;
    const struct segment *segments;
    int segment_count;
    size_t blocks;
    size_t width; /* sums of a block */
    int parts;
    void (*visit)(const struct pass *pass, const struct segment *segment, size_t first, size_t count,
                  double *sums);
    const void *args;
    const struct step_kernels *kernels;
};

static enum status pass_part(void *context, int part, int thread) {
    (void)thread;
    const struct pass *pass = context;
    /* Blocks [begin, end) of all, in segment order. */
    size_t begin = pass->blocks * (size_t)part / (size_t)pass->parts;
    size_t end = pass->blocks * ((size_t)part + 1) / (size_t)pass->parts;
    size_t base = 0; /* number of the segment's first block */
    for (int s = 0; s < pass->segment_count && base < end; s++) {
        const struct segment *segment = &pass->segments[s];
        size_t blocks = blocks_of(segment);
        size_t from = begin > base ? begin - base : 0, to = end - base < blocks ? end - base : blocks;
        for (size_t b = from; b < to; b++) {
            size_t at = b * STEP_BLOCK, left = segment->count - at;
            pass->visit(pass, segment, segment->offset + at, left < STEP_BLOCK ? left : STEP_BLOCK,
                        pass->device->partial + (base + b) * pass->width);
        }
        base += blocks;
    }
    return STATUS_OK;
}

static enum status pass_run(struct pass *pass) {
    STATUS_TRY(want_partial(pass->device, pass->blocks * pass->width));
    pass->kernels = ISA_PICK(pass->device->isa, step_kernels);
    pass->parts = pool_threads(pass->device->pool);
    return pool_run(pass->device->pool, pass->parts, pass_part, pass);
}

/* A block's sums: of each tower |G|^2, then of each tower G . average, then |average|^2. */
static void combine_visit(const struct pass *pass, const struct segment *segment, size_t first, size_t count,
                          double *sums) {
    const struct combine_args *args = pass->args;
    pass->kernels->combine(args, first, count, segment->weight_decay, sums, sums + args->towers,
                           sums + 2 * args->towers);
}

static enum status combine_check(const struct combine_args *args, size_t *blocks) {
    if (args->towers < 1 || args->towers > COMBINE_MAX_TOWERS)
        return status_fail(STATUS_INTERNAL, "gradients of %d towers: expected 1 to %d", args->towers,
                           COMBINE_MAX_TOWERS);
    size_t bytes = args->average.bytes;
    STATUS_TRY(check_segments(args->segments, args->segment_count, bytes / sizeof(float), blocks));
    STATUS_TRY(check_bytes(args->parameters, bytes, "the parameters"));
    for (int k = 0; k < args->towers; k++)
        if (args->weights[k] != 0)
            STATUS_TRY(check_bytes(args->gradients[k], bytes, "a tower's gradient"));
    return STATUS_OK;
}

enum status cpu_combine(struct device *device, const struct combine_args *args) {
    struct pass pass = {.device = device,
                        .segments = args->segments,
                        .segment_count = args->segment_count,
                        .visit = combine_visit,
                        .args = args};
    STATUS_TRY(combine_check(args, &pass.blocks));
    int towers = args->towers;
    pass.width = 2 * (size_t)towers + 1;
    STATUS_TRY(pass_run(&pass));

    memset(args->norms2, 0, (size_t)towers * sizeof *args->norms2);
    if (args->want_dots)
        memset(args->dots, 0, (size_t)towers * sizeof *args->dots);
    *args->average_norm2 = 0;
    const double *sums = device->partial;
    for (int s = 0; s < args->segment_count; s++) {
        double norm2 = 0;
        for (size_t b = blocks_of(&args->segments[s]); b > 0; b--, sums += pass.width) {
            for (int k = 0; k < towers; k++)
                args->norms2[k] += sums[k];
            for (int k = 0; args->want_dots && k < towers; k++)
                args->dots[k] += sums[towers + k];
            norm2 += sums[2 * towers];
        }
        if (args->segment_norms2)
            args->segment_norms2[s] = norm2;
        *args->average_norm2 += norm2;
    }
    return STATUS_OK;
}

static void update_visit(const struct pass *pass, const struct segment *segment, size_t first, size_t count,
                         double *sums) {
    (void)segment;
    pass->kernels->update(pass->args, first, count, &sums[0], &sums[1]);
}

enum status cpu_update(struct device *device, const struct update_args *args) {
    struct pass pass = {.device = device,
                        .segments = args->segments,
                        .segment_count = args->segment_count,
                        .width = 2,
                        .visit = update_visit,
                        .args = args};
    size_t bytes = args->parameters.bytes;
    STATUS_TRY(check_segments(args->segments, args->segment_count, bytes / sizeof(float), &pass.blocks));
    STATUS_TRY(check_bytes(args->average, bytes, "the averaged gradient"));
    if (args->velocity.data)
        STATUS_TRY(check_bytes(args->velocity, bytes, "the momentum"));
    if (args->shadow.data)
        STATUS_TRY(check_bytes(args->shadow, bytes, "the moving average"));
    STATUS_TRY(pass_run(&pass));

    const double *sums = device->partial;
    for (int s = 0; s < args->segment_count; s++) {
        args->parameter_norms2[s] = args->update_norms2[s] = 0;
        for (size_t b = blocks_of(&args->segments[s]); b > 0; b--, sums += pass.width) {
            args->parameter_norms2[s] += sums[0];
            args->update_norms2[s] += sums[1];
        }
    }
    return STATUS_OK;
}
