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

enum status cpu_add(struct device *device, struct stream *stream, struct span to, struct span from) {
    (void)stream;
    if (from.bytes < to.bytes)
        return status_fail(STATUS_INTERNAL, "%zu bytes to be added to %zu", from.bytes, to.bytes);
    ISA_PICK(device->isa, step_kernels)->add(to.data, from.data, to.bytes / sizeof(float));
    return STATUS_OK;
}
