/* Commands at a step boundary: a table of what each does. A command that is refused changes nothing. */
#include "engine/train/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define REASON_MAX 800

/* Applies a command and says in `reason` what that means. Anything but STATUS_OK refuses it with the stored
 * sentence; STATUS_DEVICE ends the run. */
typedef enum status apply_fn(struct trainer *t, const struct command *c, char reason[REASON_MAX]);

/* Where a run stands its figures are those of the step it stands at. */
static void record_last_step(struct trainer *t) {
    if (t->step.kept_back)
        report_step(t, true);
    t->step.kept_back = false;
}

static enum status apply_pause(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    (void)c;
    t->run.single = 0;
    if (t->run.paused) {
        snprintf(reason, REASON_MAX, "was paused already");
        return STATUS_OK;
    }
    t->run.paused = true;
    record_last_step(t);
    report_state(t, "paused");
    return STATUS_OK;
}

static void go_on(struct trainer *t) {
    t->fault.text[0] = 0;
    if (!t->run.paused)
        return;
    t->run.paused = false;
    report_state(t, "training");
}

/* A device that is lost stays so: it would pause again at once, without a word. */
static enum status can_train(const struct trainer *t) {
    return t->run.lost
               ? status_fail(STATUS_REFUSED, "the device is lost: save, stop, and go on with --resume")
               : STATUS_OK;
}

static enum status apply_resume(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    (void)c;
    STATUS_TRY(can_train(t));
    if (!t->run.paused && !t->run.single)
        snprintf(reason, REASON_MAX, "was training already");
    t->run.single = 0;
    go_on(t);
    return STATUS_OK;
}

static enum status apply_step(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    if (trainer_finished(t))
        return status_fail(STATUS_REFUSED, "the run is done: there is no step left");
    STATUS_TRY(can_train(t));
    t->run.single = c->count;
    go_on(t);
    snprintf(reason, REASON_MAX, "pauses after step %lld", (long long)(t->progress.steps + t->run.single));
    return STATUS_OK;
}

static void say_batch(const struct trainer *t, char reason[REASON_MAX]) {
    long long towers = t->settings.towers, batch = settings_batch(&t->settings, towers);
    if (t->settings.batch_per_tower > 0)
        snprintf(
            reason, REASON_MAX,
            "%lld tower%s of %lld images: the batch is %lld, an epoch %lld steps; the learning rate stays",
            towers, towers == 1 ? "" : "s", (long long)t->settings.batch_per_tower, batch,
            (long long)steps_per_epoch(t));
    else if (towers == 1)
        snprintf(reason, REASON_MAX, "the batch of %lld image%s goes to the one tower whole", batch,
                 batch == 1 ? "" : "s");
    else if (batch % towers == 0)
        snprintf(reason, REASON_MAX, "the batch of %lld images is shared by %lld towers, %lld each", batch,
                 towers, batch / towers);
    else if (batch < towers)
        snprintf(reason, REASON_MAX,
                 "%lld of the %lld towers %s no images, and no weight in the average: the batch is %lld",
                 towers - batch, towers, towers - batch == 1 ? "has" : "have", batch);
    else
        snprintf(reason, REASON_MAX, "the batch of %lld images is shared by %lld towers, %lld or %lld each",
                 batch, towers, batch / towers, batch / towers + 1);
}

static enum status apply_towers(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    if (c->count < 1 || c->count > COMBINE_MAX_TOWERS)
        return status_fail(STATUS_REFUSED, "towers %lld: there are 1 to %d towers", (long long)c->count,
                           COMBINE_MAX_TOWERS);
    int64_t from = t->settings.towers;
    struct settings settings = t->settings;
    settings.towers = c->count;
    STATUS_TRY(trainer_reshape(t, &settings, t->progress.place));
    if (t->rules.in_force == RULE_NO_AVERAGE)
        STATUS_TRY(rule_set_out(t));
    say_batch(t, reason);
    if (from == c->count)
        return STATUS_OK;
    t->report.losses_due = true;
    struct event event = event_new(EVENT_TOWERS);
    event.towers.step = t->progress.steps;
    event.towers.from = from;
    event.towers.to = c->count;
    event.towers.reason = "command";
    report_emit(t, &event, true);
    return STATUS_OK;
}

static enum status set_lr(struct trainer *t, double value, char reason[REASON_MAX]) {
    schedule_set(&t->schedule, value, t->progress.images);
    t->settings.lr = value;
    double images = schedule_until_fall(&t->schedule, t->progress.images);
    if (t->schedule.decay < 1 && value > 0)
        snprintf(reason, REASON_MAX, "the rate is %g from step %lld and falls to %g after %.0f more images",
                 value, (long long)t->progress.steps + 1, value * t->schedule.decay, ceil(images));
    else
        snprintf(reason, REASON_MAX, "the rate is %g from step %lld", value,
                 (long long)t->progress.steps + 1);
    return STATUS_OK;
}

static enum status set_momentum(struct trainer *t, double value, char reason[REASON_MAX]) {
    if (value > 0 && !t->shared.velocity.data) {
        struct span velocity = {0}, good = {0};
        STATUS_TRY(machine_buffer_new(&t->machine, t->shared.flat_bytes, PLACE_SHARED, &velocity));
        enum status status = machine_buffer_new(&t->machine, t->shared.flat_bytes, PLACE_SHARED, &good);
        if (status != STATUS_OK) {
            machine_buffer_free(&t->machine, &velocity);
            return status;
        }
        t->shared.velocity = velocity; /* starts at 0, in the last good state too */
        t->good.velocity = good;
        if (t->rules.in_force == RULE_NO_AVERAGE)
            STATUS_TRY(rule_set_out(t));
    }
    t->settings.momentum = value;
    snprintf(reason, REASON_MAX, "the momentum is %g from step %lld", value,
             (long long)t->progress.steps + 1);
    return STATUS_OK;
}

static enum status set_weight_decay(struct trainer *t, double value, char reason[REASON_MAX]) {
    STATUS_TRY(trainer_weight_decay(t, value));
    t->settings.weight_decay = value;
    t->report.losses_due = true;
    snprintf(reason, REASON_MAX, "the weight decay is %g from step %lld, where the model has one", value,
             (long long)t->progress.steps + 1);
    return STATUS_OK;
}

static enum status set_clip_norm(struct trainer *t, double value, char reason[REASON_MAX]) {
    t->settings.clip_norm = value;
    if (value > 0)
        snprintf(reason, REASON_MAX, "the averaged gradient is cut to a norm of %g from step %lld", value,
                 (long long)t->progress.steps + 1);
    else
        snprintf(reason, REASON_MAX, "the averaged gradient is not cut from step %lld",
                 (long long)t->progress.steps + 1);
    return STATUS_OK;
}

static enum status set_batch(struct trainer *t, double value, char reason[REASON_MAX]) {
    struct settings settings = t->settings;
    if (settings.batch_per_tower > 0)
        settings.batch_per_tower = (int64_t)value;
    else
        settings.batch = (int64_t)value;
    STATUS_TRY(trainer_reshape(t, &settings, t->progress.place));
    say_batch(t, reason);
    return STATUS_OK;
}

static enum status set_every(int64_t *every, double value, char reason[REASON_MAX]) {
    *every = (int64_t)value;
    snprintf(reason, REASON_MAX, value > 0 ? "at each step that %.0f divides" : "never", value);
    return STATUS_OK;
}

static enum status set_eval_every(struct trainer *t, double value, char reason[REASON_MAX]) {
    return set_every(&t->settings.eval_every, value, reason);
}

static enum status set_checkpoint_every(struct trainer *t, double value, char reason[REASON_MAX]) {
    return set_every(&t->settings.checkpoint_every, value, reason);
}

static const struct {
    const char *key;
    enum status (*set)(struct trainer *t, double value, char reason[REASON_MAX]);
} setters[COMMAND_SETTINGS] = {
    [SETTING_LR] = {"lr", set_lr},
    [SETTING_MOMENTUM] = {"momentum", set_momentum},
    [SETTING_WEIGHT_DECAY] = {"weight-decay", set_weight_decay},
    [SETTING_CLIP_NORM] = {"clip-norm", set_clip_norm},
    [SETTING_BATCH] = {"batch", set_batch},
    [SETTING_EVAL_EVERY] = {"eval-every", set_eval_every},
    [SETTING_CHECKPOINT_EVERY] = {"checkpoint-every", set_checkpoint_every},
};

static enum status apply_set(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    if (c->setting >= COMMAND_SETTINGS)
        return status_fail(STATUS_REFUSED, "%s: no such setting of a live run", c->text);
    STATUS_TRY(settings_allow("set", setters[c->setting].key, c->value));
    return setters[c->setting].set(t, c->value, reason);
}

static enum status apply_save(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    (void)c;
    if (!t->options.store.save)
        return status_fail(STATUS_REFUSED, "this run stores nothing");
    bool already = trainer_is_saved(t);
    STATUS_TRY(trainer_save(t));
    snprintf(reason, REASON_MAX, already ? "step %lld is saved already" : "step %lld is saved",
             (long long)t->progress.steps);
    return STATUS_OK;
}

static enum status apply_eval(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    STATUS_TRY(trainer_evaluate(t, c->confusion));
    snprintf(reason, REASON_MAX, "precision @ 1 = %.4f on %lld test images", t->evaluation.precision,
             (long long)t->options.data->test.count);
    return STATUS_OK;
}

static enum status apply_note(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    (void)reason;
    struct event event = event_new(EVENT_NOTE);
    event.note.step = t->progress.steps;
    event.note.text = c->note;
    report_emit(t, &event, true);
    return STATUS_OK;
}

static enum status apply_status(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    (void)c;
    char loss[48] = "";
    if (t->progress.steps > 0)
        snprintf(loss, sizeof loss, ", loss %.4f", t->step.result.loss);
    snprintf(reason, REASON_MAX, "%s at step %lld, epoch %lld, %lld towers, batch %lld, lr %g%s%s%s",
             t->run.stopped  ? "stopping"
             : t->run.paused ? "paused"
                             : "training",
             (long long)t->progress.steps, (long long)t->progress.place.epoch, (long long)t->settings.towers,
             (long long)settings_batch(&t->settings, t->settings.towers),
             schedule_rate(&t->schedule, t->progress.images), loss, *t->fault.text ? "; " : "",
             t->fault.text);
    return STATUS_OK;
}

static enum status apply_stop(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    if (c->discard) {
        t->run.stopped = t->run.discard = true;
        if (t->options.store.save && !trainer_is_saved(t))
            snprintf(reason, REASON_MAX, "step %lld is not saved", (long long)t->progress.steps);
        return STATUS_OK;
    }
    enum status status = trainer_save(t);
    if (status != STATUS_OK) {
        char text[560];
        snprintf(text, sizeof text, "step %lld can't be saved, so the run stays, paused: %s",
                 (long long)t->progress.steps, status_text());
        if (!t->run.paused || !*t->fault.text)
            trainer_halt(t, text);
        return status_fail(STATUS_REFUSED, "%s; %s and stop again, or stop --discard", text,
                           status == STATUS_NO_SPACE ? "make room" : "mend that");
    }
    t->run.stopped = true;
    record_last_step(t);
    return STATUS_OK;
}

/* ---- the frozen step and the view of it */

static enum status apply_phase(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    static const char *const names[STEP_PHASES] = {"load",     "forward", "losses",
                                                   "backward", "average", "update"};
    if (trainer_finished(t))
        return status_fail(STATUS_REFUSED, "the run is done: there is no step left");
    if (!t->run.paused) {
        t->run.paused = true;
        report_state(t, "paused");
    }
    t->fault.text[0] = 0;
    enum step_phase phase = t->step.phase;
    long long step = t->progress.steps + 1;
    STATUS_TRY(trainer_advance(t, c->run ? STEP_PHASES : phase + 1));
    if (*t->fault.text) { /* not finite: the run went back */
        snprintf(reason, REASON_MAX, "%s", t->fault.text);
        return STATUS_OK;
    }
    report_phase(t, names[c->run ? PHASE_UPDATE : phase]);
    snprintf(reason, REASON_MAX, "step %lld: %s done", step, names[c->run ? PHASE_UPDATE : phase]);
    return STATUS_OK;
}

static enum status apply_rule(struct trainer *t, const char *name, char reason[REASON_MAX]) {
    enum rule rule = rule_find(name);
    if (rule == RULE_RIGHT)
        return status_fail(STATUS_REFUSED, "why apply: there is no rule \"%s\"; type why apply and Tab",
                           name);
    STATUS_TRY(rule_apply(t, rule));
    snprintf(reason, REASON_MAX, "%s from step %lld on, until why restore; --rewind goes back to step %lld",
             name, (long long)t->progress.steps + 1, (long long)t->progress.steps);
    return STATUS_OK;
}

static enum status apply_restore(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    const char *name = rule_name(t->rules.in_force);
    if (!name && !c->rewind)
        return status_fail(STATUS_REFUSED, "restore: no wrong rule is in force");
    rule_restore(t);
    if (c->rewind)
        STATUS_TRY(good_rewind(t, name ? name : "asked for"));
    snprintf(reason, REASON_MAX, "the towers are averaged as they should be from step %lld on",
             (long long)t->progress.steps + 1);
    return STATUS_OK;
}

static enum status apply_why(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    switch (c->why) {
    case WHY_ON:
        return why_open(t, reason, REASON_MAX);
    case WHY_OFF:
        why_close(t);
        return STATUS_OK;
    case WHY_APPLY:
        return apply_rule(t, c->name, reason);
    case WHY_RESTORE:
        return apply_restore(t, c, reason);
    }
    return status_fail(STATUS_REFUSED, "this run can't do \"%s\"", c->text);
}

static enum status apply_images(struct trainer *t, const struct command *c, char reason[REASON_MAX]) {
    (void)reason;
    return images_report(t, c->count, c->first);
}

/* Whether a frozen step has to begin again after the command: it changes what the step is made of. */
static bool changes_step(const struct command *c) {
    return c->kind == COMMAND_TOWERS || c->kind == COMMAND_SET || c->kind == COMMAND_RESTORE ||
           (c->kind == COMMAND_WHY && (c->why == WHY_APPLY || c->why == WHY_RESTORE));
}

static const struct {
    apply_fn *apply;
    bool live_only; /* a question: no part of the record */
    bool records;   /* the step after it is recorded */
} table[COMMAND_KINDS] = {
    [COMMAND_PAUSE] = {apply_pause, false, true},     [COMMAND_RESUME] = {apply_resume, false, true},
    [COMMAND_STEP] = {apply_step, false, true},       [COMMAND_TOWERS] = {apply_towers, false, true},
    [COMMAND_SET] = {apply_set, false, true},         [COMMAND_SAVE] = {apply_save, false, true},
    [COMMAND_EVAL] = {apply_eval, false, true},       [COMMAND_NOTE] = {apply_note, false, true},
    [COMMAND_STATUS] = {apply_status, true, false},   [COMMAND_STOP] = {apply_stop, false, true},
    [COMMAND_PHASE] = {apply_phase, false, false},    [COMMAND_WHY] = {apply_why, false, true},
    [COMMAND_RESTORE] = {apply_restore, false, true}, [COMMAND_IMAGES] = {apply_images, true, false},
};

/* What the next step takes, where the command set it or took the run back to another place. */
static void tell_settings(const struct trainer *t, const struct command *c, struct event_command *e) {
    if ((c->kind == COMMAND_SET && c->setting == SETTING_LR) || c->rewind)
        e->lr = schedule_rate(&t->schedule, t->progress.images);
    if (c->kind == COMMAND_TOWERS || (c->kind == COMMAND_SET && c->setting == SETTING_BATCH))
        e->batch = settings_batch(&t->settings, t->settings.towers);
}

enum status trainer_command(struct trainer *t, const struct command *command, bool *refused) {
    STATUS_TRY(trainer_settle(t)); /* a command is applied between two steps */
    char reason[REASON_MAX] = "";
    apply_fn *apply = command->kind < COMMAND_KINDS ? table[command->kind].apply : NULL;
    enum status status = apply ? apply(t, command, reason)
                               : status_fail(STATUS_REFUSED, "this run can't do \"%s\"", command->text);
    if (status == STATUS_OK && changes_step(command))
        status = step_take_back(t);
    if (status != STATUS_OK)
        snprintf(reason, sizeof reason, "%s", status_text());
    struct event event = event_new(EVENT_COMMAND);
    event.command.id = command->id;
    event.command.from = command->from;
    event.command.screen = *command->screen ? command->screen : NULL;
    event.command.text = command->text;
    event.command.status = status == STATUS_OK ? "applied" : "refused";
    event.command.step = t->progress.steps;
    event.command.reason = *reason ? reason : NULL;
    if (status == STATUS_OK)
        tell_settings(t, command, &event.command);
    report_emit(t, &event, !(apply && table[command->kind].live_only));
    if (status == STATUS_OK && table[command->kind].records)
        t->report.record_next = true;
    if (refused)
        *refused = status != STATUS_OK;
    return status == STATUS_DEVICE && !t->run.lost ? good_lost(t) : STATUS_OK;
}
