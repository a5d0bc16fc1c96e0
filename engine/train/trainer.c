/* The trainer as the rest of the program sees it: open, begin, step, end. */
#include "datasets/distort.h"
#include "engine/base/memory.h"
#include "engine/train/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening */

/* Letters and digits must not be mirrored: of the grey sets only fashion-mnist is known to hold none. */
static enum status choose_distortions(struct trainer *t) {
    if (!*t->settings.distort) {
        bool flip = t->options.data->train.shape.c > 1 || !strcmp(t->options.data->name, "fashion-mnist") ||
                    !strcmp(t->options.data->format, "generated");
        t->loading.distortions =
            DISTORT_CROP | DISTORT_BRIGHTNESS | DISTORT_CONTRAST | (flip ? DISTORT_FLIP : 0);
        distort_format(t->loading.distortions, t->settings.distort);
        return STATUS_OK;
    }
    return distort_parse(t->settings.distort, &t->loading.distortions);
}

static enum status check_fit(const struct trainer *t) {
    const struct model *model = t->options.model;
    const struct dataset *data = t->options.data;
    const struct shape *image = &data->train.shape, *input = &model->input;
    if (image->c != input->c || data->classes != model->classes)
        return status_fail(STATUS_BAD_INPUT,
                           "the model %s was read for %d channels and %d classes; %s has %d and %d",
                           model->name, input->c, model->classes, data->name, image->c, data->classes);
    if (input->h != input->w || image->h < input->h || image->w < input->w)
        return status_fail(
            STATUS_BAD_INPUT,
            "the model %s wants a square of %d x %d cut from each image; those of %s have %d x %d",
            model->name, input->h, input->w, data->name, image->h, image->w);
    if (data->train.count < 1 || data->test.count < 1)
        return status_fail(STATUS_BAD_INPUT,
                           "%s has %lld training and %lld test images; one of each is needed", data->name,
                           (long long)data->train.count, (long long)data->test.count);
    if (strcmp(t->settings.precision, t->machine.info.precision) != 0)
        return status_fail(
            STATUS_UNSUPPORTED,
            "--precision %s: the device %s computes in %s and nothing else; take --precision %s, "
            "or a GPU (--devices cuda:0)",
            t->settings.precision, t->machine.info.name, t->machine.info.precision,
            t->machine.info.precision);
    return STATUS_OK;
}

static enum status open_settings(struct trainer *t) {
    const struct model *model = t->options.model;
    t->settings = t->options.settings;
    STATUS_TRY(settings_check(&t->settings, "settings"));
    settings_complete(&t->settings, &model->defaults);
    STATUS_TRY(choose_distortions(t));
    STATUS_TRY(check_fit(t));
    t->segments = calloc((size_t)model->parameter_count, sizeof *t->segments);
    t->rules.segments = calloc((size_t)model->parameter_count, sizeof *t->rules.segments);
    if (!t->segments || !t->rules.segments)
        return status_fail(STATUS_NO_MEMORY, "no memory for %d parameter tensors", model->parameter_count);
    memcpy(t->segments, model->segments, (size_t)model->parameter_count * sizeof *t->segments);
    if (!isnan(t->settings.weight_decay))
        STATUS_TRY(trainer_weight_decay(t, t->settings.weight_decay));
    int64_t images = t->options.data->train.count;
    t->schedule = (struct schedule){.base = t->settings.lr,
                                    .decay = t->settings.lr_decay,
                                    .period_images = schedule_period(t->settings.decay_epochs, images)};
    t->planned = t->settings.steps;
    if (t->planned < 0 && t->settings.epochs >= 0)
        t->planned = t->settings.epochs * steps_per_epoch(t);
    return STATUS_OK;
}

static enum status open_all(struct trainer *t) {
    STATUS_TRY(machine_open(t->options.device, &t->machine));
    STATUS_TRY(open_settings(t));
    STATUS_TRY(resume_take_up(t));
    struct settings settings = t->settings;
    STATUS_TRY(trainer_reshape(t, &settings, t->progress.place));
    STATUS_TRY(evaluation_open(&t->evaluation, t->options.model, &t->machine, t->options.data->test.count));
    size_t before = t->machine.buffer_bytes;
    STATUS_TRY(shared_open(t, t->towers->prepared_bytes));
    STATUS_TRY(good_open(&t->good, &t->shared, &t->machine));
    t->shared.bytes = t->machine.buffer_bytes - before;
    if (t->rules.in_force == RULE_NO_AVERAGE) /* a resumed run under it */
        STATUS_TRY(apart_open(t));
    t->started = t->settings;
    t->report.losses_due = true;
    return good_take(t);
}

enum status trainer_open(const struct trainer_options *options, struct trainer **out) {
    struct trainer *t = calloc(1, sizeof *t);
    if (!t)
        return status_fail(STATUS_NO_MEMORY, "no memory for a trainer");
    t->options = *options;
    t->nets = (struct nets){.model = options->model, .device = options->device};
    t->evaluation.step = t->saving.step = t->resumed.from = -1;
    t->evaluation.best = -1;
    t->step.average_lap = t->step.update_lap = NAN;
    enum status status = open_all(t);
    t->options.resume = NULL;
    t->options.resume_notes = NULL;
    if (status != STATUS_OK) {
        trainer_close(t);
        return status;
    }
    *out = t;
    return STATUS_OK;
}

void trainer_close(struct trainer *t) {
    if (!t)
        return;
    if (t->queue.count)
        (void)machine_wait(&t->machine); /* its figures come to memory that goes */
    loader_close(t->loading.loader);
    why_close(t);
    apart_close(t);
    evaluation_close(&t->evaluation, &t->machine);
    good_close(&t->good, &t->machine);
    shared_close(&t->shared, &t->machine);
    towers_free(t->towers);
    nets_free(&t->nets);
    report_close(&t->report);
    free(t->step.losses);
    free(t->segments);
    free(t->rules.segments);
    free(t);
}

/* ---- what others ask */

struct trainer_sizes trainer_sizes(const struct trainer *t) {
    const struct towers *towers = t->towers;
    struct trainer_sizes s = {.towers = towers->count,
                              .workers = towers->workers,
                              .tower_bytes = towers->arena_bytes + towers->gradient_bytes,
                              .worker_bytes = towers->scratch_bytes,
                              .shared_bytes = t->shared.bytes,
                              .evaluation_bytes = t->evaluation.bytes};
    s.total_bytes = (size_t)s.towers * s.tower_bytes + (size_t)s.workers * s.worker_bytes + s.shared_bytes +
                    s.evaluation_bytes;
    return s;
}

const struct settings *trainer_settings(const struct trainer *t) {
    return &t->started;
}

bool trainer_paused(const struct trainer *t) {
    return t->run.paused;
}

bool trainer_stopped(const struct trainer *t) {
    return t->run.stopped;
}

/* The counters when all that is queued is done. */
static const struct progress *last_progress(const struct trainer *t) {
    return t->queue.count ? &t->queue.steps[t->queue.count - 1].after : &t->progress;
}

bool trainer_finished(const struct trainer *t) {
    const struct progress *p = last_progress(t);
    return t->run.stopped || (t->settings.steps >= 0 && p->steps >= t->settings.steps) ||
           (t->settings.epochs >= 0 && p->place.epoch >= t->settings.epochs);
}

int64_t trainer_steps(const struct trainer *t) {
    return last_progress(t)->steps;
}

const char *trainer_fault(const struct trainer *t) {
    return t->fault.text;
}

/* ---- running */

void trainer_begin(struct trainer *t) {
    report_run_start(t);
    report_sizes(t);
    resume_report(t);
    report_state(t, "starting"); /* the first step plans and allocates: it may take a while */
    t->report.starting = true;
}

/* A value was not finite: say so, go back, pause. */
static enum status handle_fault(struct trainer *t) {
    report_alarm(t, "error", t->progress.steps + 1, t->fault.tower, t->fault.tensor, t->fault.text);
    char reason[720];
    snprintf(reason, sizeof reason, "%s; paused: %s, then resume", t->fault.text,
             t->rules.in_force == RULE_RIGHT ? "set lr"
                                             : "restore, which takes the wrong rule back, or set lr");
    return good_rewind(t, reason);
}

/* Evaluation and checkpoint that are due at this step; the best state so far is saved as well. A save that
 * failed has raised an alarm: the run goes on and tries again when the next one is due. */
static enum status do_what_is_due(struct trainer *t) {
    int64_t step = t->progress.steps;
    const struct settings *s = &t->settings;
    bool best = false;
    if (s->eval_every > 0 && step % s->eval_every == 0) {
        enum status status = trainer_evaluate(t, false);
        if (status != STATUS_OK && status != STATUS_INTERRUPTED)
            return status;
        best = status == STATUS_OK && t->evaluation.precision > t->evaluation.best &&
               t->rules.in_force == RULE_RIGHT;
        if (best)
            t->evaluation.best = t->evaluation.precision;
    }
    if (s->checkpoint_every > 0 && (best || step % s->checkpoint_every == 0))
        (void)trainer_save(t);
    return STATUS_OK;
}

/* Whether the next step is recorded. */
static bool records(const struct trainer *t, enum step_phase until) {
    return recorded_by_count(trainer_steps(t) + 1, t->planned, t->settings.record_every) ||
           t->run.single > 0 || t->report.record_next || t->why || until < STEP_PHASES;
}

/* What follows a whole step: its events, the last good state, the pause after single steps, what is due. */
static enum status after_step(struct trainer *t) {
    int64_t step = t->progress.steps;
    t->report.record_next = false;
    if (t->report.starting)
        report_state(t, "training");
    report_step(t, t->step.recorded);
    t->step.kept_back = !t->step.recorded;
    if (t->report.losses_due && !t->why)
        report_losses(t, step);
    t->report.losses_due = false;
    if (t->step.result.layers)
        report_layers(t);
    if (step % GOOD_EVERY == 0 && t->rules.in_force == RULE_RIGHT &&
        running_good(&t->running, t->step.result.loss))
        STATUS_TRY(good_take(t));
    if (t->run.single > 0 && --t->run.single == 0) {
        t->run.paused = true;
        report_state(t, "paused");
    }
    return do_what_is_due(t);
}

/* ---- steps that are queued: each is told while the next one runs */

/* Whether the last of them is told before another one is queued: something is due after it. */
static bool told_at_once(const struct trainer *t) {
    const struct settings *s = &t->settings;
    int64_t step = trainer_steps(t);
    return layers_by_count(step) || step % GOOD_EVERY == 0 ||
           (s->eval_every > 0 && step % s->eval_every == 0) ||
           (s->checkpoint_every > 0 && step % s->checkpoint_every == 0) ||
           (t->run.single > 0 && t->run.single <= t->queue.count) || trainer_finished(t);
}

/* Until no more than `most` are queued, or the run went back. */
static enum status settle(struct trainer *t, int most) {
    while (t->queue.count > most) {
        enum status status = step_settle(t);
        if (status == STATUS_NON_FINITE)
            return handle_fault(t);
        STATUS_TRY(status);
        STATUS_TRY(after_step(t));
    }
    return STATUS_OK;
}

enum status trainer_settle(struct trainer *t) {
    enum status status = settle(t, 0);
    return status == STATUS_DEVICE ? good_lost(t) : status;
}

/* Queue a step, and tell of those before it. A step of another size waits for them: its towers have other
 * shards. */
static enum status advance_queued(struct trainer *t) {
    int64_t steps = trainer_steps(t);
    if (t->queue.count && step_images(t) != t->queue.steps[t->queue.count - 1].result.images)
        STATUS_TRY(settle(t, 0));
    if (trainer_steps(t) < steps) /* it went back */
        return STATUS_OK;
    t->step.recorded = records(t, STEP_PHASES);
    STATUS_TRY(step_queue(t));
    return settle(t, told_at_once(t) ? 0 : 1);
}

static enum status advance(struct trainer *t, enum step_phase until) {
    if (step_queues(t, until))
        return advance_queued(t);
    STATUS_TRY(settle(t, 0));
    int64_t step = t->progress.steps + 1;
    if (t->step.phase == PHASE_LOAD)
        t->step.recorded = records(t, until);
    bool losses_due = t->step.phase <= PHASE_LOSSES;
    do {
        enum step_phase phase = t->step.phase;
        enum status status = step_run(t, t->why ? phase + 1 : until);
        if (status == STATUS_NON_FINITE)
            return handle_fault(t);
        if (status != STATUS_OK)
            return status;
        if (t->why && phase == PHASE_BACKWARD && until < STEP_PHASES)
            STATUS_TRY(why_gradients(t));
        if (t->why && phase == PHASE_AVERAGE)
            STATUS_TRY(why_report(t));
        /* A step that is not walked tells them with the rest, so that what is seen of it is of one step. */
        if (t->why && losses_due && phase == (until < STEP_PHASES ? PHASE_LOSSES : PHASE_AVERAGE))
            report_losses(t, step);
    } while (t->step.phase != PHASE_LOAD && t->step.phase < until);
    return t->step.phase == PHASE_LOAD ? after_step(t) : STATUS_OK;
}

enum status trainer_advance(struct trainer *t, enum step_phase until) {
    enum status status = advance(t, until);
    return status == STATUS_DEVICE ? good_lost(t) : status;
}

enum status trainer_step(struct trainer *t) {
    return trainer_advance(t, STEP_PHASES);
}

void trainer_halt(struct trainer *t, const char *text) {
    (void)trainer_settle(t);
    snprintf(t->fault.text, sizeof t->fault.text, "%s", text);
    report_alarm(t, "error", t->progress.steps, -1, NULL, text);
    t->run.single = 0;
    t->run.paused = true;
    report_state(t, "paused");
}

enum status trainer_finish(struct trainer *t) {
    enum status status = trainer_settle(t);
    if (status == STATUS_OK && !t->run.lost && t->settings.eval_every > 0 &&
        t->evaluation.step != t->progress.steps)
        status = trainer_evaluate(t, false);
    return status == STATUS_OK || status == STATUS_INTERRUPTED ? trainer_save(t) : status;
}

enum status trainer_end(struct trainer *t, const char *reason, const char *text) {
    (void)trainer_settle(t); /* the last steps' events come before the end's */
    enum status status = !strcmp(reason, "done") ? trainer_finish(t)
                         : t->run.discard        ? STATUS_OK
                                                 : trainer_save(t);
    report_state(t, "ended");
    struct event event = event_new(EVENT_RUN_END);
    event.run_end.step = t->progress.steps;
    event.run_end.reason = reason;
    event.run_end.text = text;
    report_emit(t, &event, true);
    return status;
}
