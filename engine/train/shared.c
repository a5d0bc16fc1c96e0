/* What all towers share: parameters, their averaged gradient, optimizer slots and moving averages. */
#include "engine/base/memory.h"
#include "engine/train/internal.h"
#include "engine/wire/repeats.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum status buffer_new(struct trainer *t, size_t bytes, int place, struct span *out) {
    enum status status = t->options.device.ops->buffer_new(t->options.device.device, bytes, place, out);
    if (status == STATUS_OK)
        t->buffer_bytes += bytes;
    return status;
}

void buffer_free(struct trainer *t, struct span *span) {
    if (!span->data)
        return;
    t->buffer_bytes -= span->bytes;
    t->options.device.ops->buffer_free(t->options.device.device, *span);
    *span = (struct span){0};
}

static enum status wait_until(struct trainer *t, enum status (*look)(struct device *)) {
    const struct timespec moment = {0, 20000};
    enum status status;
    /* A step of a small network takes less time than it takes to fall asleep and wake up. */
    for (int looks = 0; (status = look(t->options.device.device)) == STATUS_BUSY; looks++)
        if (looks < 500)
            sched_yield();
        else
            nanosleep(&moment, NULL);
    return status;
}

enum status trainer_wait(struct trainer *t) {
    return wait_until(t, t->options.device.ops->poll);
}

enum status trainer_wait_mark(struct trainer *t) {
    return wait_until(t, t->options.device.ops->reached);
}

/* ---- host and device */

struct exchange {
    struct trainer *t;
    struct span span;
    const float *from; /* to the device, or */
    float *to;         /* from it */
};

static enum status exchange_item(void *context, int item, int worker, struct stream *stream) {
    (void)item;
    (void)worker;
    const struct exchange *x = context;
    const struct device_handle device = x->t->options.device;
    size_t count = x->t->options.model->flat_count;
    return x->from ? device.ops->write(device.device, stream, x->span, x->from, count)
                   : device.ops->read(device.device, stream, x->to, x->span, count);
}

static enum status exchange(struct exchange x) {
    STATUS_TRY(x.t->options.device.ops->each(x.t->options.device.device, 1, exchange_item, &x));
    return trainer_wait(x.t);
}

static enum status to_device(struct trainer *t, struct span to, const float *from) {
    return exchange((struct exchange){.t = t, .span = to, .from = from});
}

static enum status to_host(struct trainer *t, float *to, struct span from) {
    const struct device_handle device = t->options.device;
    if (t->lost) /* at once, from what is left of it */
        return device.ops->read(device.device, NULL, to, from, t->options.model->flat_count);
    return exchange((struct exchange){.t = t, .span = from, .to = to});
}

static float *flat_array(const struct trainer *t) {
    return calloc(t->options.model->flat_count, sizeof(float));
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
    float *values = flat_array(t);
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
    size_t tensors = (size_t)t->options.model->parameter_count;
    s->flat_bytes = t->options.model->flat_count * (size_t)t->info.element_bytes;
    s->norms2 = calloc(tensors, sizeof *s->norms2);
    s->next_norms2 = calloc(tensors, sizeof *s->next_norms2);
    s->update_norms2 = calloc(tensors, sizeof *s->update_norms2);
    s->gradient_norms2 = calloc(tensors, sizeof *s->gradient_norms2);
    if (!s->norms2 || !s->next_norms2 || !s->update_norms2 || !s->gradient_norms2)
        return no_memory();
    STATUS_TRY(buffer_new(t, s->flat_bytes, PLACE_SHARED, &s->values));
    STATUS_TRY(buffer_new(t, s->flat_bytes, PLACE_SHARED, &s->gradient));
    /* after `set momentum 0` the velocity is still there: setting it again goes on from it */
    if (t->settings.momentum > 0 || (t->options.resume && t->options.resume->velocity))
        STATUS_TRY(buffer_new(t, s->flat_bytes, PLACE_SHARED, &s->velocity));
    if (t->settings.ema > 0)
        STATUS_TRY(buffer_new(t, s->flat_bytes, PLACE_SHARED, &s->average));
    if (prepared_bytes)
        STATUS_TRY(buffer_new(t, prepared_bytes, PLACE_SHARED, &s->prepared));
    STATUS_TRY(initialise(t));
    return trainer_norms(t);
}

void shared_close(struct trainer *t) {
    struct shared *s = &t->shared;
    buffer_free(t, &s->values);
    buffer_free(t, &s->gradient);
    buffer_free(t, &s->velocity);
    buffer_free(t, &s->average);
    buffer_free(t, &s->prepared);
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
    STATUS_TRY(t->options.device.ops->update(t->options.device.device, &args));
    return trainer_wait(t);
}

/* ---- plans and parameters */

struct preparation {
    struct net *net;
    struct span values, prepared;
};

static enum status prepare_item(void *context, int item, int worker, struct stream *stream) {
    (void)item;
    (void)worker;
    const struct preparation *p = context;
    return net_prepare(p->net, stream, p->values, p->prepared);
}

enum status trainer_prepare(struct trainer *t, struct net *net, struct span values, struct span prepared) {
    struct preparation p = {net, values, prepared};
    return t->options.device.ops->each(t->options.device.device, 1, prepare_item, &p);
}

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
            return to_host(t, out, known[i].span);
        }
    return status_fail(STATUS_BAD_INPUT, "\"%s\" is none of parameters, gradient, average, velocity", what);
}

static enum status save_snapshot(struct trainer *t, float *const copies[3]) {
    const struct span good[3] = {t->good.values, t->good.velocity, t->good.average};
    const struct span now[3] = {t->shared.values, t->shared.velocity, t->shared.average};
    const struct span *spans = t->lost ? good : now;
    if (t->lost && !t->good.valid)
        return status_fail(STATUS_DEVICE, "nothing to save: %s", t->fault.text);
    for (int i = 0; i < 3; i++)
        if (spans[i].data)
            STATUS_TRY(to_host(t, copies[i], spans[i]));
    struct snapshot snapshot = {
        .progress = t->progress,
        .schedule = t->schedule,
        .noise = t->noise,
        .running = t->running,
        .settings = t->settings,
        .model = t->options.model,
        /* what a wrong rule made is never kept as the best */
        .precision = t->evaluated == t->progress.steps && t->rule == RULE_RIGHT ? t->precision : NAN,
        .applied = rule_name(t->rule),
        .best = t->best,
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
    if (strncmp(reason, t->save_reason, sizeof t->save_reason - 1) != 0)
        t->save_failures = 0;
    snprintf(t->save_reason, sizeof t->save_reason, "%.119s", reason);
    int64_t n = ++t->save_failures;
    size_t length = strlen(text);
    if (n > 1)
        snprintf(text + length, sizeof text - length, " (%lld saves in a row failed)", (long long)n);
    if (repeats_told(n))
        report_alarm(t, "error", t->progress.steps, -1, NULL, text);
}

bool trainer_is_saved(const struct trainer *t) {
    const struct trainer_store *store = &t->options.store;
    return t->saved == t->progress.steps && (!store->there || store->there(store->context, t->saved));
}

enum status trainer_save(struct trainer *t) {
    STATUS_TRY(trainer_settle(t));
    if (!t->options.store.save || trainer_is_saved(t))
        return STATUS_OK;
    report_state(t, "saving");
    float *copies[3] = {flat_array(t), flat_array(t), flat_array(t)};
    enum status status = copies[0] && copies[1] && copies[2] ? save_snapshot(t, copies) : no_memory();
    for (int i = 0; i < 3; i++)
        free(copies[i]);
    if (status == STATUS_OK) {
        t->saved = t->progress.steps;
        t->save_failures = 0;
    } else {
        tell_failure(t);
    }
    report_state(t, t->paused ? "paused" : "training");
    return status;
}
