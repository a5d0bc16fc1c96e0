/* What all towers share: parameters, their averaged gradient, optimizer slots and moving averages. */
#include "engine/train/internal.h"

#include <stdlib.h>
#include <string.h>

static enum status to_device(struct trainer *t, struct span to, const float *from) {
    return machine_write(&t->machine, to, from, t->options.model->flat_count);
}

static enum status no_memory(void) {
    return status_fail(STATUS_NO_MEMORY, "no memory for a copy of the parameters");
}

/* ---- beginning */

static enum status initialise(struct trainer *t) {
    const struct snapshot *resume = t->options.resume;
    if (resume) {
        STATUS_TRY(to_device(t, t->shared.values, resume->parameters));
        if (t->shared.velocity.data && resume->velocity)
            STATUS_TRY(to_device(t, t->shared.velocity, resume->velocity));
        if (t->shared.average.data)
            STATUS_TRY(
                to_device(t, t->shared.average, resume->average ? resume->average : resume->parameters));
        return STATUS_OK;
    }
    float *values = calloc(t->options.model->flat_count, sizeof *values);
    if (!values)
        return no_memory();
    model_initialise(t->options.model, (uint64_t)t->settings.seed, values);
    enum status status = to_device(t, t->shared.values, values);
    if (status == STATUS_OK && t->shared.average.data)
        status = to_device(t, t->shared.average, values); /* the average starts at the initial value */
    free(values);
    return status;
}

enum status shared_open(struct trainer *t, size_t prepared_bytes) {
    struct shared *s = &t->shared;
    struct machine *machine = &t->machine;
    size_t tensors = (size_t)t->options.model->parameter_count;
    s->flat_bytes = t->options.model->flat_count * (size_t)t->machine.info.element_bytes;
    s->norms2 = calloc(tensors, sizeof *s->norms2);
    s->next_norms2 = calloc(tensors, sizeof *s->next_norms2);
    s->update_norms2 = calloc(tensors, sizeof *s->update_norms2);
    s->gradient_norms2 = calloc(tensors, sizeof *s->gradient_norms2);
    if (!s->norms2 || !s->next_norms2 || !s->update_norms2 || !s->gradient_norms2)
        return no_memory();
    STATUS_TRY(machine_buffer_new(machine, s->flat_bytes, PLACE_SHARED, &s->values));
    STATUS_TRY(machine_buffer_new(machine, s->flat_bytes, PLACE_SHARED, &s->gradient));
    /* after `set momentum 0` the velocity is still there: setting it again goes on from it */
    if (t->settings.momentum > 0 || (t->options.resume && t->options.resume->velocity))
        STATUS_TRY(machine_buffer_new(machine, s->flat_bytes, PLACE_SHARED, &s->velocity));
    if (t->settings.ema > 0)
        STATUS_TRY(machine_buffer_new(machine, s->flat_bytes, PLACE_SHARED, &s->average));
    if (prepared_bytes)
        STATUS_TRY(machine_buffer_new(machine, prepared_bytes, PLACE_SHARED, &s->prepared));
    STATUS_TRY(initialise(t));
    return trainer_norms(t);
}

void shared_close(struct shared *s, struct machine *machine) {
    machine_buffer_free(machine, &s->values);
    machine_buffer_free(machine, &s->gradient);
    machine_buffer_free(machine, &s->velocity);
    machine_buffer_free(machine, &s->average);
    machine_buffer_free(machine, &s->prepared);
    free(s->norms2);
    free(s->next_norms2);
    free(s->update_norms2);
    free(s->gradient_norms2);
}

/* An update with a learning rate of 0 changes nothing and fills in the norms, just as an update does. */
enum status trainer_norms(struct trainer *t) {
    struct update_args args = {
        .parameters = t->shared.values,
        .average = t->shared.values, /* finite; times 0 */
        .segments = t->segments,
        .segment_count = t->options.model->parameter_count,
        .gradient_scale = 1,
        .parameter_norms2 = t->shared.norms2,
        .update_norms2 = t->shared.update_norms2,
    };
    t->shared.stale = true;
    STATUS_TRY(t->machine.device.ops->update(t->machine.device.device, &args));
    return machine_wait(&t->machine);
}

/* ---- weight decay */

enum status trainer_weight_decay(struct trainer *t, double value) {
    const struct model *model = t->options.model;
    int changed = 0;
    for (int i = 0; i < model->parameter_count; i++)
        if (model->parameters[i].has_decay && model->parameters[i].weight_decay != 0) {
            t->segments[i].weight_decay = value;
            changed++;
        }
    if (!changed)
        return status_fail(
            STATUS_REFUSED,
            "weight-decay: no layer of the model %s has one to replace; give a layer weight_decay in "
            "its file",
            model->name);
    return STATUS_OK;
}

/* ---- copies for others */

enum status shared_to_host(const struct trainer *t, struct span from, float *to) {
    const struct device_handle device = t->machine.device;
    size_t count = t->options.model->flat_count;
    if (t->run.lost) /* at once, from what is left of it */
        return device.ops->read(device.device, NULL, to, from, count);
    return machine_read(&t->machine, from, 0, count, to);
}

enum status trainer_read(struct trainer *t, const char *what, float *out, size_t count) {
    const struct {
        const char *name;
        struct span span;
    } known[] = {{"parameters", t->shared.values},
                 {"gradient", t->shared.gradient},
                 {"average", t->shared.average},
                 {"velocity", t->shared.velocity}};
    STATUS_TRY(trainer_settle(t));
    if (count != t->options.model->flat_count)
        return status_fail(STATUS_BAD_INPUT, "%zu values asked for; the flat buffer has %zu", count,
                           t->options.model->flat_count);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(what, known[i].name)) {
            if (!known[i].span.data)
                return status_fail(STATUS_NOT_FOUND, "this run has no %s", what);
            return shared_to_host(t, known[i].span, out);
        }
    return status_fail(STATUS_BAD_INPUT, "\"%s\" is none of parameters, gradient, average, velocity", what);
}
