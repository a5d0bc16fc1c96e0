#include "tui/shown.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/format.h"

/* Points looked at for a tower that strays, and how far from the others it must be: several times the others'
 * own distance, a share of the loss that matters, and more than chance explains from one point to the next.
 */
enum { STRAY_POINTS = 32, STRAY_POINTS_MIN = 8 };
static const double STRAY_TIMES = 6, STRAY_SHARE = 0.05; /* six median distances: four deviations */
static const double STRAY_ERRORS = 4;                    /* standard errors of its mean distance */
/* Rounding of float32 sums; more than this is another rule. */
static const double SUM_TOLERANCE = 1e-4;

void shown_free(struct shown *shown) {
    free(shown->towers);
    memset(shown, 0, sizeof *shown);
}

/* Times jitter from step to step and say nothing by it: bars that follow slowly can be read, and cost no
 * bytes. The first steps plan and allocate: at first the weight of the new time is more, so that they are
 * soon forgotten. */
static double follow_slowly(double old, double value, int64_t taken) {
    if (wire_is_unknown(value) || !isfinite(value) || wire_is_unknown(old) || !isfinite(old))
        return value;
    double weight = taken < 10 ? 1 / (double)taken : 0.1;
    return (1 - weight) * old + weight * value;
}

static void follow_times(struct event_step_tower *now, const struct event_step_tower *before, int64_t taken) {
    now->load_ms = follow_slowly(before->load_ms, now->load_ms, taken);
    now->forward_ms = follow_slowly(before->forward_ms, now->forward_ms, taken);
    now->backward_ms = follow_slowly(before->backward_ms, now->backward_ms, taken);
    now->wait_ms = follow_slowly(before->wait_ms, now->wait_ms, taken);
}

static bool take(struct shown *shown, const struct event_step *step, double image_seconds, bool fresh) {
    int count = (int)(step->tower_count < 0 ? 0 : step->tower_count);
    if (count != shown->tower_count || !shown->towers) {
        struct shown_tower *towers = calloc((size_t)count + 1, sizeof *towers);
        if (!towers)
            return false;
        free(shown->towers);
        shown->towers = towers;
        shown->tower_count = count;
        fresh = true;
    }
    shown->taken = fresh ? 0 : shown->taken + 1;
    double noise = step->noise_scale;
    shown->noise_older = !fresh && wire_is_unknown(noise) && !wire_is_unknown(shown->step.noise_scale);
    if (shown->noise_older)
        noise = shown->step.noise_scale;
    for (int i = 0; i < count; i++) {
        struct shown_tower *tower = &shown->towers[i];
        const struct event_step_tower before = tower->figures;
        double cosine = step->towers[i].cosine;
        tower->cosine_older = !fresh && wire_is_unknown(cosine) && !wire_is_unknown(tower->figures.cosine);
        if (tower->cosine_older)
            cosine = tower->figures.cosine;
        tower->figures = step->towers[i];
        tower->figures.cosine = cosine;
        if (!fresh)
            follow_times(&tower->figures, &before, shown->taken);
        snprintf(tower->device, sizeof tower->device, "%s",
                 step->towers[i].device ? step->towers[i].device : "");
        tower->figures.device = step->towers[i].device ? tower->device : NULL;
    }
    struct event_step before = shown->step;
    shown->images_per_second = 1 / image_seconds;
    shown->step = *step;
    if (!fresh) {
        shown->step.seconds = follow_slowly(before.seconds, step->seconds, shown->taken);
        shown->step.average_ms = follow_slowly(before.average_ms, step->average_ms, shown->taken);
        shown->step.update_ms = follow_slowly(before.update_ms, step->update_ms, shown->taken);
    }
    shown->step.noise_scale = noise;
    shown->step.towers = NULL;
    snprintf(shown->applied, sizeof shown->applied, "%s", step->applied ? step->applied : "");
    shown->step.applied = step->applied && *step->applied ? shown->applied : NULL;
    shown->have = true;
    return true;
}

/* The same number may be another step: after a rewind it comes again. */
static bool same_step(const struct shown *shown, const struct event_step *step) {
    const struct event_step *old = &shown->step;
    return step->step == old->step && !memcmp(&step->loss, &old->loss, sizeof step->loss) &&
           !memcmp(&step->grad_norm, &old->grad_norm, sizeof step->grad_norm) &&
           !strcmp(step->applied ? step->applied : "", shown->applied);
}

double shown_update(struct shown *shown, const struct run_state *state, uint64_t generation, double now,
                    double interval) {
    bool another = generation != shown->generation;
    if (!another && state->events == shown->taken_events)
        return INFINITY;
    if (state->step.kind != EVENT_STEP) {
        shown->have = false; /* a rewind takes the newest step away */
        shown->generation = generation;
        shown->taken_events = state->events;
        return INFINITY;
    }
    if (!another && shown->have && same_step(shown, &state->step.step)) {
        shown->taken_events = state->events;
        return INFINITY;
    }
    double wait = shown->have && !another ? shown->taken_at + interval - now : 0;
    if (wait > 0)
        return wait;
    if (!take(shown, &state->step.step, state->image_seconds, another || !shown->have))
        return interval;
    shown->generation = generation;
    shown->taken_events = state->events;
    shown->taken_at = now;
    return INFINITY;
}

/* ---- judging */

static bool off(double a, double b) {
    return isfinite(a) && isfinite(b) && fabs(a - b) > SUM_TOLERANCE * fmax(fabs(a), fabs(b)) + 1e-9;
}

/* The mean of a tower's loss over the last points that have the same towers. */
static bool mean_loss(const struct run_state *state, int towers, int tower, double *out) {
    double sum = 0;
    int count = 0;
    for (int64_t i = state->point_count - 1; i >= 0 && count < STRAY_POINTS; i--, count++) {
        const struct state_curve_point *point = &state->points[i];
        if (point->tower_count != towers)
            break;
        sum += (double)state->tower_points[point->first_tower + tower].loss;
    }
    *out = count ? sum / count : 0;
    return count >= STRAY_POINTS_MIN && isfinite(sum);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* Whether a tower's distance from the mean of all is the same way in most of the last points: few towers are
 * far from each other's means by chance alone. */
static bool keeps_away(const struct run_state *state, int towers, int tower) {
    double sum = 0, squares = 0;
    int count = 0;
    for (int64_t i = state->point_count - 1; i >= 0 && count < STRAY_POINTS; i--, count++) {
        const struct state_curve_point *point = &state->points[i];
        if (point->tower_count != towers)
            break;
        double all = 0;
        for (int k = 0; k < towers; k++)
            all += (double)state->tower_points[point->first_tower + k].loss / towers;
        double distance = (double)state->tower_points[point->first_tower + tower].loss - all;
        sum += distance;
        squares += distance * distance;
    }
    double mean = sum / count, variance = (squares - sum * mean) / (count - 1);
    return mean * mean > STRAY_ERRORS * STRAY_ERRORS * variance / count;
}

/* The tower whose loss keeps away from the others', or -1. *distance: from the middle one. */
static int straying(const struct shown *shown, const struct run_state *state, double *distance) {
    enum { MOST = 256 };
    double means[MOST], sorted[MOST];
    int n = shown->tower_count, worst = 0;
    if (n < 3 || n > MOST)
        return -1;
    for (int i = 0; i < n; i++)
        if (!mean_loss(state, n, i, &means[i]))
            return -1;
    memcpy(sorted, means, (size_t)n * sizeof *means);
    double middle = median(sorted, n);
    for (int i = 0; i < n; i++) {
        sorted[i] = fabs(means[i] - middle);
        if (sorted[i] > fabs(means[worst] - middle))
            worst = i;
    }
    *distance = means[worst] - middle;
    double usual = median(sorted, n), size = fabs(*distance);
    bool far = size > STRAY_TIMES * usual && size > STRAY_SHARE * fabs(middle);
    return far && keeps_away(state, n, worst) ? worst : -1;
}

static int not_finite(const struct shown *shown) {
    for (int i = 0; i < shown->tower_count; i++) {
        const struct event_step_tower *t = &shown->towers[i].figures;
        if ((!wire_is_unknown(t->loss) && !isfinite(t->loss)) ||
            (!wire_is_unknown(t->grad_norm) && !isfinite(t->grad_norm)))
            return i;
    }
    return -1;
}

static enum shown_finding judge_sums(const struct shown *shown, char *out, size_t size) {
    double sum = 0, images = 0;
    for (int i = 0; i < shown->tower_count; i++) {
        const struct event_step_tower *t = &shown->towers[i].figures;
        if (t->images <= 0)
            continue;
        if (off(t->weight_decay, shown->step.weight_decay)) {
            snprintf(out, size, "weight decay differs between towers: their parameters are not the same");
            return FINDING_WARNING;
        }
        sum += t->loss * (double)t->images;
        images += (double)t->images;
    }
    if (images > 0 && off(sum / images, shown->step.loss)) {
        snprintf(out, size, "the average, %.4f, is not the mean of the towers' losses, %.4f",
                 shown->step.loss, sum / images);
        return FINDING_WARNING;
    }
    return FINDING_NONE;
}

static enum shown_finding judge_shards(const struct shown *shown, char *out, size_t size) {
    int64_t least = INT64_MAX, most = 0;
    int idle = 0;
    double plain = 0;
    for (int i = 0; i < shown->tower_count; i++) {
        const struct event_step_tower *t = &shown->towers[i].figures;
        if (t->images == WIRE_UNKNOWN_INT)
            return FINDING_NONE;
        least = t->images < least ? t->images : least;
        most = t->images > most ? t->images : most;
        idle += t->images == 0;
        plain += t->loss / shown->tower_count;
    }
    if (shown->tower_count < 2 || least == most)
        return FINDING_NONE;
    if (least == 0) {
        snprintf(out, size, "%d of %d towers ha%s no images (batch %lld) and no weight in the average", idle,
                 shown->tower_count, idle == 1 ? "s" : "ve", (long long)shown->step.images);
    } else {
        char text[FORMAT_SIZE];
        format_fixed(text, plain, 6, 4);
        snprintf(out, size, "uneven shards count by their images; the plain mean would be %s", text);
    }
    return FINDING_REMARK;
}

enum shown_finding shown_judge(const struct shown *shown, const struct run_state *state, char *out,
                               size_t size, int *tower) {
    *tower = -1;
    *out = 0;
    if (!shown->have)
        return FINDING_NONE;
    double right = shown->step.cross_entropy + shown->step.weight_decay;
    if (*state->rule && shown->step.applied && off(shown->step.loss, right)) {
        snprintf(out, size, "wrong rule %s in force: it prints %.4f; the right loss is %.4f",
                 shown->step.applied, shown->step.loss, right);
        return FINDING_WARNING;
    }
    if (*state->rule) {
        snprintf(out, size, "a wrong rule is in force: %s (why restore takes it back)", state->rule);
        return FINDING_WARNING;
    }
    if (shown->step.applied) {
        snprintf(out, size, "the last step was made under the wrong rule %s, which is taken back",
                 shown->step.applied);
        return FINDING_WARNING;
    }
    if ((*tower = not_finite(shown)) >= 0) {
        snprintf(out, size, "tower %d: its loss or gradient is not finite", *tower);
        return FINDING_WARNING;
    }
    double distance = 0;
    if ((*tower = straying(shown, state, &distance)) >= 0) {
        snprintf(out, size, "tower %d strays: its loss stays %.3f %s the others', beyond chance", *tower,
                 fabs(distance), distance > 0 ? "above" : "below");
        return FINDING_WARNING;
    }
    if (!strcmp(state->phase, "paused") && state->towers > 0 && state->towers != shown->tower_count) {
        char step[FORMAT_SIZE];
        format_count(step, shown->step.step);
        snprintf(out, size, "%lld tower%s from the next step on; these are the figures of step %s",
                 (long long)state->towers, state->towers == 1 ? "" : "s", step);
        return FINDING_REMARK;
    }
    enum shown_finding finding = judge_sums(shown, out, size);
    return finding != FINDING_NONE ? finding : judge_shards(shown, out, size);
}
