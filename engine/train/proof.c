#include "engine/train/proof.h"

#include "engine/base/memory.h"

#include <stdlib.h>

static enum status allocate(struct proof *p, const struct model *model, struct machine *machine,
                            size_t prepared_bytes) {
    struct net_options options = {
        .images = p->images, .lanes = net_lanes_for(machine->device, 1), .training = true};
    STATUS_TRY(net_plan(model, machine->device, &options, &p->net));
    struct net_sizes sizes = net_sizes(p->net);
    if (sizes.prepared_bytes != prepared_bytes)
        return status_fail(STATUS_UNSUPPORTED,
                           "the whole batch on one tower takes other kernels than its shards");
    p->bytes = sizes.arena_bytes + sizes.gradient_bytes + sizes.scratch_bytes;
    size_t available = machine->info.host_memory ? memory_available() : 0;
    char words[32], left[32];
    if (available && p->bytes > available)
        return status_fail(STATUS_NO_MEMORY, "the proof needs %s (%zu bytes) and %s are free",
                           memory_words(p->bytes, words), p->bytes, memory_words(available, left));
    p->losses = calloc((size_t)p->images, sizeof *p->losses);
    if (!p->losses)
        return status_fail(STATUS_NO_MEMORY, "no memory for the losses of %d images", p->images);
    STATUS_TRY(machine_buffer_new(machine, sizes.arena_bytes, 0, &p->memory.arena));
    STATUS_TRY(machine_buffer_new(machine, sizes.gradient_bytes, 0, &p->memory.gradient));
    return sizes.scratch_bytes ? machine_buffer_new(machine, sizes.scratch_bytes, 0, &p->scratch) : STATUS_OK;
}

enum status proof_open(struct proof *p, const struct model *model, struct machine *machine,
                       size_t prepared_bytes, int images) {
    *p = (struct proof){.images = images};
    enum status status = allocate(p, model, machine, prepared_bytes);
    if (status != STATUS_OK)
        proof_close(p, machine);
    return status;
}

void proof_close(struct proof *p, struct machine *machine) {
    machine_buffer_free(machine, &p->memory.arena);
    machine_buffer_free(machine, &p->memory.gradient);
    machine_buffer_free(machine, &p->scratch);
    net_free(p->net);
    free(p->losses);
    *p = (struct proof){0};
}

struct proof_work {
    struct trainer *t;
    struct proof *proof;
};

static enum status run(void *context, int item, int worker, struct stream *stream) {
    (void)item;
    (void)worker;
    const struct proof_work *work = context;
    struct trainer *t = work->t;
    struct proof *p = work->proof;
    const struct device_handle device = t->machine.device;
    const struct net_operands operands = {t->shared.values, t->shared.prepared, p->scratch,
                                          t->loading.batch->labels};
    STATUS_TRY(device.ops->write(device.device, stream, net_input(p->net, &p->memory),
                                 t->loading.batch->pixels,
                                 (size_t)p->images * shape_size(t->options.model->input)));
    STATUS_TRY(net_pass(p->net, stream, &p->memory, &operands, NET_STEP, NULL));
    return device.ops->read(device.device, stream, p->losses, net_losses(p->net, &p->memory),
                            (size_t)p->images);
}

enum status proof_run(struct trainer *t, struct proof *p, double *cross_entropy) {
    struct proof_work work = {t, p};
    trainer_pixels(t, 0, p->images);
    STATUS_TRY(t->machine.device.ops->each(t->machine.device.device, 1, run, &work));
    STATUS_TRY(machine_wait(&t->machine));
    *cross_entropy =
        machine_loss_sum(&t->machine, net_losses(p->net, &p->memory), p->losses, p->images) / p->images;
    return STATUS_OK;
}
