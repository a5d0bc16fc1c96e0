/* Lanes: the parts of a tower that the threads of its team take through all operations, each by itself. */
#include "kernels/cpu/impl.h"
#include "kernels/cpu/isa/step.h"

struct lanes {
    struct stream *team;
    enum status (*work)(void *context, int lane, struct stream *stream);
    void *context;
};

static enum status run_lane(void *context, int part, int thread) {
    const struct lanes *lanes = context;
    struct stream alone = {lanes->team->pool, lanes->team->worker, thread, 1};
    return lanes->work(lanes->context, part, &alone);
}

enum status cpu_lanes(struct stream *stream, int count,
                      enum status (*work)(void *context, int lane, struct stream *stream), void *context) {
    struct lanes lanes = {stream, work, context};
    return team_run(stream, count, run_lane, &lanes);
}

struct gather {
    float *all;
    size_t apart, count; /* in floats: from one array to the next, of one array */
    int arrays, parts;
    const struct step_kernels *kernels;
};

/* Block by block, so that what is added to stays in the first cache. */
static enum status gather_part(void *context, int part, int thread) {
    (void)thread;
    const struct gather *g = context;
    const struct part blocks = part_of((int)((g->count + STEP_BLOCK - 1) / STEP_BLOCK), g->parts, part);
    for (int b = blocks.first; b < blocks.first + blocks.count; b++) {
        size_t at = (size_t)b * STEP_BLOCK, left = g->count - at;
        for (int i = 1; i < g->arrays; i++)
            g->kernels->add(g->all + at, g->all + at + (size_t)i * g->apart,
                            left < STEP_BLOCK ? left : STEP_BLOCK);
    }
    return STATUS_OK;
}

enum status cpu_gather(struct device *device, struct stream *stream, struct span all, int count,
                       size_t apart) {
    size_t others = (size_t)(count - 1) * apart;
    if (count < 1 || others > all.bytes || (count > 1 && all.bytes - others > apart))
        return status_fail(STATUS_INTERNAL, "%d arrays, %zu bytes apart, in %zu bytes", count, apart,
                           all.bytes);
    struct gather gather = {.all = all.data,
                            .apart = apart / sizeof(float),
                            .count = (all.bytes - others) / sizeof(float),
                            .arrays = count,
                            .parts = stream->size,
                            .kernels = ISA_PICK(device->isa, step_kernels)};
    return team_run(stream, gather.parts, gather_part, &gather);
}
