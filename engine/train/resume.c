/* Going on from a snapshot: its state, with the settings that were changed for it, and what is said about
 * that. */
#include "engine/train/internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum status check_same_run(const struct trainer *t) {
    const struct snapshot *from = t->options.resume;
    const struct dataset *data = t->options.data;
    if (t->settings.seed != from->settings.seed)
        return status_fail(
            STATUS_REFUSED,
            "the seed %lld can't become %lld in the middle of a run: each image of an epoch would no "
            "longer be used once; start another run",
            (long long)from->settings.seed, (long long)t->settings.seed);
    if (data->train.count != from->epoch_images)
        return status_fail(
            STATUS_REFUSED,
            "%s has %lld training images and the run has %lld: it goes on with the data it began "
            "with; start another run",
            data->name, (long long)data->train.count, (long long)from->epoch_images);
    return STATUS_OK;
}

/* The schedule goes on; settings of it that were changed hold from here. */
static void take_schedule(struct trainer *t) {
    const struct snapshot *from = t->options.resume;
    const struct settings *was = &from->settings, *is = &t->settings;
    double rate = schedule_rate(&from->schedule, from->progress.images);
    double period = t->schedule.period_images; /* as the settings say now */
    t->schedule = from->schedule;
    if (is->lr_decay != was->lr_decay || is->decay_epochs != was->decay_epochs) {
        t->schedule.decay = is->lr_decay;
        t->schedule.period_images = period;
        schedule_set(&t->schedule, rate, from->progress.images);
    }
    if (is->lr != was->lr)
        schedule_set(&t->schedule, is->lr, from->progress.images);
}

/* The sentence about it: trainer_resumed(). */
static void say(struct trainer *t) {
    const struct snapshot *from = t->options.resume;
    const struct progress *p = &from->progress;
    double was = schedule_rate(&from->schedule, p->images), is = schedule_rate(&t->schedule, p->images);
    char changes[1024], rate[64] = "";
    int count = settings_changes(&from->settings, &t->settings, changes, sizeof changes);
    if (is != was)
        snprintf(rate, sizeof rate, " (it would have been %g)", was);
    snprintf(t->resumed.words, sizeof t->resumed.words,
             "goes on after step %lld, at image %lld of epoch %lld; %s%s; a step is one update with %lld "
             "images over "
             "all towers, the learning rate of step %lld is %g%s",
             (long long)p->steps, (long long)p->place.position, (long long)p->place.epoch + 1,
             count ? "changed: " : "no setting changed", changes,
             (long long)settings_batch(&t->settings, t->settings.towers), (long long)p->steps + 1, is, rate);
}

static void warn(struct trainer *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void warn(struct trainer *t, const char *format, ...) {
    size_t used = strlen(t->resumed.warning), room = sizeof t->resumed.warning - used;
    int length = used ? snprintf(t->resumed.warning + used, room, "; ") : 0;
    va_list arguments;
    va_start(arguments, format);
    if (length >= 0 && (size_t)length < room)
        vsnprintf(t->resumed.warning + used + length, room - (size_t)length, format, arguments);
    va_end(arguments);
}

/* What is not as it was, beside the settings. */
static void compare(struct trainer *t) {
    const struct snapshot *from = t->options.resume;
    const struct dataset *data = t->options.data;
    if (from->train_content && data->train.content && from->train_content != data->train.content)
        warn(t, "the training images or labels of %s are not those the run was trained with", data->name);
    if (from->test_content && data->test.content && from->test_content != data->test.content)
        warn(t, "the test images or labels of %s are not those of before: its precision can't be compared",
             data->name);
    if (t->rules.in_force != RULE_RIGHT)
        warn(t, "the wrong rule %s is in force, as it was at the checkpoint, until why restore%s",
             from->applied,
             t->rules.in_force == RULE_NO_AVERAGE ? "; the towers set out again from their mean" : "");
}

enum status resume_take_up(struct trainer *t) {
    const struct snapshot *from = t->options.resume;
    if (!from) {
        if (t->settings.resume) {
            t->resumed.from = 0;
            snprintf(t->resumed.words, sizeof t->resumed.words, "begins again at step 0: %s",
                     t->options.resume_notes ? t->options.resume_notes
                                             : "it ended before its first checkpoint");
        }
        return STATUS_OK;
    }
    if (t->options.resume_notes)
        warn(t, "%s", t->options.resume_notes);
    STATUS_TRY(check_same_run(t));
    take_schedule(t);
    t->progress = from->progress;
    t->noise = from->noise;
    t->running = from->running;
    t->evaluation.best = from->best;
    t->resumed.from = t->saving.step = from->progress.steps;
    if (!isnan(from->precision)) {
        t->evaluation.precision = from->precision;
        t->evaluation.step = from->progress.steps;
    }
    t->rules.in_force = from->applied ? rule_find(from->applied) : RULE_RIGHT;
    compare(t);
    say(t);
    return STATUS_OK;
}

const char *trainer_resumed(const struct trainer *t) {
    return t->resumed.words;
}

void resume_report(struct trainer *t) {
    if (*t->resumed.words)
        report_alarm(t, "info", t->progress.steps, -1, NULL, t->resumed.words);
    if (*t->resumed.warning)
        report_alarm(t, "warning", t->progress.steps, -1, NULL, t->resumed.warning);
}
