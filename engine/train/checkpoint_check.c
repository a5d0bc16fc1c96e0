/* Whether the numbers of a checkpoint agree with one another: each may be a good number and the whole no
 * state that a run can have been in. */
#include "engine/train/checkpoint_parts.h"

#include <stdio.h>

/* Images of a step: the settings' largest batch for a tower, of as many towers as there can be. */
#define STEP_IMAGES_MAX (INT64_C(1) << 30)

static enum status whole(const char *path, const char *name, int64_t found, const char *expected) {
    return status_fail(STATUS_BAD_INPUT, "%s: %s is %lld; %s is expected", path, name, (long long)found,
                       expected);
}

static enum status real(const char *path, const char *name, double found, const char *expected) {
    return status_fail(STATUS_BAD_INPUT, "%s: %s is %.16g; %s is expected", path, name, found, expected);
}

/* Every image of an epoch is used once, whatever the batch and the towers: so the images are as many as the
 * place in the data says. */
static enum status check_progress(const char *path, const struct snapshot *s) {
    const struct progress *p = &s->progress;
    char expected[160];
    int64_t images;
    if (s->epoch_images < 1)
        return whole(path, "counters/epoch_images", s->epoch_images, "at least 1");
    if (p->place.position >= s->epoch_images) {
        snprintf(expected, sizeof expected, "a place in an epoch of %lld images", (long long)s->epoch_images);
        return whole(path, "counters/position", p->place.position, expected);
    }
    if (__builtin_mul_overflow(p->place.epoch, s->epoch_images, &images) ||
        __builtin_add_overflow(images, p->place.position, &images) || images != p->images) {
        snprintf(expected, sizeof expected, "%lld epochs of %lld and %lld more", (long long)p->place.epoch,
                 (long long)s->epoch_images, (long long)p->place.position);
        return whole(path, "counters/images", p->images, expected);
    }
    int64_t most;
    if (__builtin_mul_overflow(p->steps, STEP_IMAGES_MAX, &most))
        most = INT64_MAX;
    if (p->steps > p->images || p->images > most) {
        snprintf(expected, sizeof expected, "a number of steps that used %lld images", (long long)p->images);
        return whole(path, "counters/step", p->steps, expected);
    }
    return STATUS_OK;
}

static enum status check_schedule(const char *path, const struct snapshot *s) {
    const struct schedule *schedule = &s->schedule;
    if (!(schedule->base >= 0 && schedule->base <= 1e30))
        return real(path, "schedule/base", schedule->base, "a learning rate from 0 to 1e+30");
    if (!(schedule->decay > 0 && schedule->decay <= 1))
        return real(path, "schedule/decay", schedule->decay, "more than 0 and at most 1");
    if (!(schedule->period_images >= 1e-3)) /* 2^53 images are then fewer than 2^63 periods */
        return real(path, "schedule/period_images", schedule->period_images, "at least 0.001 images");
    return STATUS_OK; /* its start may lie ahead: a rewind takes the place in the data back, not the settings
                       */
}

static enum status check_running(const char *path, const struct snapshot *s) {
    const struct running *running = &s->running;
    if (running->steps > s->progress.steps)
        return whole(path, "running/steps", running->steps, "no more than counters/step");
    if (!running->any)
        return STATUS_OK;
    if (running->steps < 1)
        return whole(path, "running/any", 1, "0 before the first step");
    if (!(running->loss_min <= running->loss_max))
        return real(path, "running/loss_min", running->loss_min, "at most running/loss_max");
    if (!(running->grad_norm_max >= 0))
        return real(path, "running/grad_norm_max", running->grad_norm_max, "at least 0");
    return STATUS_OK;
}

/* What the settings in force need: their values were checked against their ranges when they were read. */
static enum status check_settings(const char *path, const struct snapshot *s) {
    static const char *const needed[] = {"seed", "towers", "lr", "momentum", "ema"};
    int count;
    const struct setting_key *keys = settings_keys(&count);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!(s->settings.given >> (settings_find(needed[i]) - keys) & 1))
            return status_fail(STATUS_BAD_INPUT, "%s, config: %s is missing", path, needed[i]);
    if (s->settings.batch < 1 && s->settings.batch_per_tower < 1)
        return status_fail(STATUS_BAD_INPUT, "%s, config: batch is missing", path);
    if (s->settings.momentum > 0 && !s->velocity)
        return status_fail(
            STATUS_BAD_INPUT,
            "%s: its momentum is %g and \"momentum\" is not among its slots: the velocities are "
            "missing",
            path, s->settings.momentum);
    if (s->settings.ema > 0 && !s->average)
        return status_fail(
            STATUS_BAD_INPUT,
            "%s: its ema is %g and \"average\" is not among its slots: the averages are missing", path,
            s->settings.ema);
    return STATUS_OK;
}

enum status checkpoint_check(const char *path, const struct snapshot *s) {
    STATUS_TRY(check_progress(path, s));
    STATUS_TRY(check_schedule(path, s));
    STATUS_TRY(check_running(path, s));
    if (s->best != -1 && !(s->best >= 0 && s->best <= 1))
        return real(path, "counters/best_precision", s->best,
                    "a number from 0 to 1, or -1 before the first evaluation,");
    return check_settings(path, s);
}
