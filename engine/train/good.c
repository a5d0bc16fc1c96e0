/* The last good state: parameters, slots, averages and counters to go back to when a value is not finite. */
#include "engine/train/internal.h"

#include <stdio.h>

enum status good_open(struct good_state *good, const struct shared *shared, struct machine *machine) {
    STATUS_TRY(machine_buffer_new(machine, shared->flat_bytes, PLACE_SHARED, &good->values));
    if (shared->velocity.data)
        STATUS_TRY(machine_buffer_new(machine, shared->flat_bytes, PLACE_SHARED, &good->velocity));
    if (shared->average.data)
        STATUS_TRY(machine_buffer_new(machine, shared->flat_bytes, PLACE_SHARED, &good->average));
    return STATUS_OK;
}

void good_close(struct good_state *good, struct machine *machine) {
    machine_buffer_free(machine, &good->values);
    machine_buffer_free(machine, &good->velocity);
    machine_buffer_free(machine, &good->average);
}

struct transfer {
    struct trainer *t;
    bool back;
};

static enum status transfer(void *context, int item, int worker, struct stream *stream) {
    (void)item;
    (void)worker;
    const struct transfer *transfer = context;
    struct trainer *t = transfer->t;
    const struct device_handle device = t->machine.device;
    struct span *const there[] = {&t->good.values, &t->good.velocity, &t->good.average};
    struct span *const here[] = {&t->shared.values, &t->shared.velocity, &t->shared.average};
    for (int i = 0; i < 3; i++)
        if (here[i]->data && there[i]->data)
            STATUS_TRY(device.ops->copy(device.device, stream, transfer->back ? *here[i] : *there[i],
                                        transfer->back ? *there[i] : *here[i]));
    return STATUS_OK;
}

static enum status move(struct trainer *t, bool back) {
    struct transfer transfer_all = {t, back};
    STATUS_TRY(t->machine.device.ops->each(t->machine.device.device, 1, transfer, &transfer_all));
    return machine_wait(&t->machine);
}

enum status good_take(struct trainer *t) {
    t->good.valid = false; /* while it is half a copy */
    STATUS_TRY(move(t, false));
    t->good.progress = t->progress;
    t->good.noise = t->noise;
    t->good.running = t->running;
    t->good.valid = true;
    return STATUS_OK;
}

/* The counters of the last good state, and the events that tell of it. */
static void good_counters(struct trainer *t, int64_t from, const char *reason) {
    t->step.phase = PHASE_LOAD;
    t->step.kept_back = false;
    t->progress = t->good.progress;
    t->noise = t->good.noise;
    t->running = t->good.running;
    running_recorded(&t->running);
    if (t->evaluation.step > t->progress.steps)
        t->evaluation.step = -1;
    if (t->saving.step > t->progress.steps)
        t->saving.step = -1;
    t->run.single = 0;
    t->run.paused = true;
    t->report.record_next = true;
    struct event event = event_new(EVENT_REWIND);
    event.rewind.step = from;
    event.rewind.to = t->progress.steps;
    event.rewind.reason = reason;
    report_emit(t, &event, true);
    report_state(t, "paused");
}

enum status good_rewind(struct trainer *t, const char *reason) {
    int64_t from = t->progress.steps;
    if (!t->good.valid)
        return status_fail(STATUS_INTERNAL, "no good state to go back to");
    STATUS_TRY(trainer_reshape(t, &t->settings, t->good.progress.place));
    STATUS_TRY(move(t, true));
    STATUS_TRY(trainer_norms(t));
    if (t->rules.apart) /* the towers set out again, together */
        STATUS_TRY(rule_set_out(t));
    good_counters(t, from, reason);
    return STATUS_OK;
}

enum status good_lost(struct trainer *t) {
    bool before = t->run.lost;
    t->queue.count = 0;
    snprintf(t->fault.text, sizeof t->fault.text, "%s", status_text());
    t->fault.tower = -1;
    t->fault.tensor[0] = 0;
    report_alarm(t, "error", t->progress.steps + 1, -1, NULL, t->fault.text);
    t->run.lost = true;
    t->loading.batch = NULL;
    if (before || !t->good.valid) { /* the counters are where they belong */
        t->step.phase = PHASE_LOAD;
        t->run.paused = true;
        report_state(t, "paused");
        return STATUS_OK;
    }
    char reason[720];
    snprintf(reason, sizeof reason, "%s; paused: save, stop, and go on with --resume", t->fault.text);
    good_counters(t, t->progress.steps, reason);
    return STATUS_OK;
}
