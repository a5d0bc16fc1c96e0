/* The figures that a lesson's sentences are made with. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/lesson.h"
#include "engine/base/text.h"

static void write(double value, char words[48]) {
    if (!words)
        return;
    if (wire_is_unknown(value))
        snprintf(words, 48, "unknown");
    else if (!isfinite(value))
        snprintf(words, 48, "%s", isnan(value) ? "NaN" : "infinite");
    else if (fabs(value - round(value)) < 1e-9 && fabs(value) < 1e6)
        snprintf(words, 48, "%.0f", value);
    else if (fabs(value) >= 1e4 || (value != 0 && fabs(value) < 1e-3))
        snprintf(words, 48, "%.1e", value);
    else
        snprintf(words, 48, "%.*f", fabs(value) < 10 ? 4 : 2, value);
}

struct named {
    const char *name;
    double value;
};

static bool look_up(const struct named *names, size_t count, const char *name, double *value) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i].name, name)) {
            *value = names[i].value;
            return true;
        }
    return false;
}
#define LOOK_UP(names, name, value) look_up(names, sizeof names / sizeof *names, name, value)

static double sum_of_losses(const struct event_step *step) {
    double sum = 0;
    for (int64_t k = 0; k < step->tower_count; k++)
        sum += step->towers[k].loss;
    return sum;
}

static bool of_step(const struct run_state *state, const char *name, double *value) {
    const struct event_step *s = &state->step.step;
    if (state->step.kind != EVENT_STEP)
        return false;
    const struct named names[] = {
        {"loss", s->loss},
        {"cross-entropy", s->cross_entropy},
        {"weight-decay", s->weight_decay},
        {"grad-norm", s->grad_norm},
        {"mean grad-norm", s->grad_norm_mean},
        {"lr", s->lr},
        {"step", (double)s->step},
        {"images", (double)s->images},
        {"towers", (double)s->tower_count},
        {"noise", s->noise_scale},
        {"spread", s->spread},
        {"sum of losses", sum_of_losses(s)},
        {"sum of losses / towers", sum_of_losses(s) / (double)s->tower_count},
        {"last tower", (double)(s->tower_count - 1)},
        {"lr x towers", s->lr * (double)s->tower_count},
        {"weight-decay x towers", s->weight_decay * (double)s->tower_count},
        {"steps per epoch", s->epoch > 0 ? ceil((double)s->step / s->epoch - 1e-6) : wire_unknown()},
        {"ms", 1000 * s->seconds},
    };
    return LOOK_UP(names, name, value);
}

static bool of_tower(const struct run_state *state, const char *name, double *value) {
    int k, at = 0;
    if (sscanf(name, "tower %d %n", &k, &at) != 1 || !at || state->step.kind != EVENT_STEP || k < 0 ||
        k >= state->step.step.tower_count)
        return false;
    const struct event_step_tower *t = &state->step.step.towers[k];
    const struct named names[] = {
        {"loss", t->loss},
        {"cross-entropy", t->cross_entropy},
        {"weight-decay", t->weight_decay},
        {"grad-norm", t->grad_norm},
        {"cosine", t->cosine},
        {"images", (double)t->images},
    };
    return LOOK_UP(names, name + at, value);
}

/* "sum prints", "unscoped step", "plain-mean cosine", "proof loss difference". */
static bool of_why(const struct run_state *state, const char *name, double *value) {
    const struct event_why *why = &state->why.why;
    if (state->why.kind != EVENT_WHY)
        return false;
    const struct named proof[] = {
        {"proof loss", why->proof_loss},
        {"proof loss difference", why->proof_loss_difference},
        {"proof gradient difference", why->proof_gradient_difference},
        {"why loss", why->loss},
    };
    if (LOOK_UP(proof, name, value))
        return true;
    for (int64_t i = 0; i < why->alternative_count; i++) {
        const struct event_alternative *a = &why->alternatives[i];
        size_t length = a->name ? strlen(a->name) : 0;
        const struct named names[] = {{"prints", a->printed_loss},
                                      {"grad-norm", a->grad_norm},
                                      {"cosine", a->cosine},
                                      {"step", a->step_size},
                                      {"identical", a->identical}};
        if (length && !strncmp(name, a->name, length) && name[length] == ' ')
            return LOOK_UP(names, name + length + 1, value);
    }
    return false;
}

/* "terms" of a tower, and "term 0 1": of tower 0 the second one. */
static bool of_losses(const struct run_state *state, const char *name, double *value) {
    const struct event_losses *losses = &state->losses.losses;
    int k, i;
    if (state->losses.kind != EVENT_LOSSES || losses->tower_count == 0)
        return false;
    if (!strcmp(name, "terms") || !strcmp(name, "all terms")) {
        *value = (double)(losses->towers[0].term_count * (*name == 'a' ? losses->tower_count : 1));
        return true;
    }
    if (sscanf(name, "term %d %d", &k, &i) != 2 || k < 0 || k >= losses->tower_count || i < 0 ||
        i >= losses->towers[k].term_count)
        return false;
    *value = losses->towers[k].terms[i].value;
    return true;
}

enum status lesson_figure(const struct lesson *lesson, const char *name, double *value, char words[48]) {
    for (int i = 0; i < lesson->kept; i++)
        if (!strcmp(lesson->keep[i].name, name)) {
            *value = lesson->keep[i].value;
            write(*value, words);
            return STATUS_OK;
        }
    if (!text_real(name, value) && !of_step(lesson->state, name, value) &&
        !of_tower(lesson->state, name, value) && !of_why(lesson->state, name, value) &&
        !of_losses(lesson->state, name, value))
        return status_fail(STATUS_NOT_FOUND, "lesson %s, line %d: there is no figure \"%s\" now",
                           lesson->name, lesson->line, name);
    write(*value, words);
    return STATUS_OK;
}

enum status lesson_fill(const struct lesson *lesson, const char *text, char *out, size_t size) {
    size_t length = 0;
    *out = 0;
    while (*text && length + 1 < size) {
        const char *end = *text == '{' ? strchr(text, '}') : NULL;
        char name[64], words[48];
        double value;
        if (!end || (size_t)(end - text) >= sizeof name) {
            out[length++] = *text++;
            out[length] = 0;
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)(end - text - 1), text + 1);
        STATUS_TRY(lesson_figure(lesson, name, &value, words));
        length += (size_t)snprintf(out + length, size - length, "%s", words);
        text = end + 1;
    }
    return STATUS_OK;
}
