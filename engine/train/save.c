/* Saving: a copy of the run as it is, or as it was before its device failed, to where checkpoints go. */
#include "engine/train/internal.h"
#include "engine/wire/repeats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status save_snapshot(struct trainer *t, float *const copies[3]) {
    const struct span good[3] = {t->good.values, t->good.velocity, t->good.average};
    const struct span now[3] = {t->shared.values, t->shared.velocity, t->shared.average};
    const struct span *spans = t->run.lost ? good : now;
    if (t->run.lost && !t->good.valid)
        return status_fail(STATUS_DEVICE, "nothing to save: %s", t->fault.text);
    for (int i = 0; i < 3; i++)
        if (spans[i].data)
            STATUS_TRY(shared_to_host(t, spans[i], copies[i]));
    struct snapshot snapshot = {
        .progress = t->progress,
        .schedule = t->schedule,
        .noise = t->noise,
        .running = t->running,
        .settings = t->settings,
        .model = t->options.model,
        /* what a wrong rule made is never kept as the best */
        .precision = t->evaluation.step == t->progress.steps && t->rules.in_force == RULE_RIGHT
                         ? t->evaluation.precision
                         : NAN,
        .applied = rule_name(t->rules.in_force),
        .best = t->evaluation.best,
        .epoch_images = t->options.data->train.count,
        .train_content = t->options.data->train.content,
        .test_content = t->options.data->test.content,
        .parameters = copies[0],
        .velocity = spans[1].data ? copies[1] : NULL,
        .average = spans[2].data ? copies[2] : NULL,
    };
    struct event event = event_new(EVENT_CHECKPOINT);
    STATUS_TRY(t->options.store.save(t->options.store.context, &snapshot, &event.checkpoint));
    event.checkpoint.step = t->progress.steps;
    report_emit(t, &event, true);
    return STATUS_OK;
}

/* A disk stays full for long: the same reason again is counted, whatever the file's name. */
static void tell_failure(struct trainer *t) {
    char text[1400];
    snprintf(text, sizeof text, "%s", status_text());
    const char *colon = strrchr(text, ':'), *reason = colon ? colon + 1 : text;
    if (strncmp(reason, t->saving.reason, sizeof t->saving.reason - 1) != 0)
        t->saving.failures = 0;
    snprintf(t->saving.reason, sizeof t->saving.reason, "%.119s", reason);
    int64_t n = ++t->saving.failures;
    size_t length = strlen(text);
    if (n > 1)
        snprintf(text + length, sizeof text - length, " (%lld saves in a row failed)", (long long)n);
    if (repeats_told(n))
        report_alarm(t, "error", t->progress.steps, -1, NULL, text);
}

bool trainer_is_saved(const struct trainer *t) {
    const struct trainer_store *store = &t->options.store;
    return t->saving.step == t->progress.steps &&
           (!store->there || store->there(store->context, t->saving.step));
}

enum status trainer_save(struct trainer *t) {
    STATUS_TRY(trainer_settle(t));
    if (!t->options.store.save || trainer_is_saved(t))
        return STATUS_OK;
    report_state(t, "saving");
    float *copies[3];
    for (int i = 0; i < 3; i++)
        copies[i] = calloc(t->options.model->flat_count, sizeof *copies[i]);
    enum status status = copies[0] && copies[1] && copies[2]
                             ? save_snapshot(t, copies)
                             : status_fail(STATUS_NO_MEMORY, "no memory for a copy of the parameters");
    for (int i = 0; i < 3; i++)
        free(copies[i]);
    if (status == STATUS_OK) {
        t->saving.step = t->progress.steps;
        t->saving.failures = 0;
    } else {
        tell_failure(t);
    }
    report_state(t, t->run.paused ? "paused" : "training");
    return status;
}
