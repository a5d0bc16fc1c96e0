/* The view of a frozen step: its proof and its alternatives, from gradients that are there anyway. Nothing of
 * the run is touched: parameters, slots, averages, counters and the order of the images stay as they are. */
#include "engine/train/proof.h"

#include "engine/base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct why {
    struct proof proof;
    bool refused;                         /* no memory for the proof: said once */
    struct span right, other, difference; /* flat gradients */
    struct segment *plain;                /* [parameters] without weight decay */
    struct event_alternative alternatives[RULES];
    double *dots; /* [dots_room] of the towers' gradients with the right average */
    int dots_room;
    struct event_why_tower towers[WHY_TOWERS];
};

static enum status allocate(struct trainer *t, struct why *w) {
    int parameters = t->options.model->parameter_count;
    w->plain = calloc((size_t)parameters, sizeof *w->plain);
    if (!w->plain)
        return status_fail(STATUS_NO_MEMORY, "no memory for the view of a step");
    segments_with_decay(t->segments, parameters, 0, w->plain);
    STATUS_TRY(machine_buffer_new(&t->machine, t->shared.flat_bytes, PLACE_SHARED, &w->right));
    STATUS_TRY(machine_buffer_new(&t->machine, t->shared.flat_bytes, PLACE_SHARED, &w->other));
    return machine_buffer_new(&t->machine, t->shared.flat_bytes, PLACE_SHARED, &w->difference);
}

enum status why_open(struct trainer *t, char *words, size_t size) {
    enum status status = STATUS_OK;
    if (!t->why) {
        struct why *w = calloc(1, sizeof *w);
        if (!w)
            return status_fail(STATUS_NO_MEMORY, "no memory for the view of a step");
        t->why = w;
        status = allocate(t, w);
        if (status != STATUS_OK) {
            why_close(t);
            return status;
        }
    }
    struct why *w = t->why;
    int batch = (int)t->loading.full;
    if (w->proof.images != batch) {
        proof_close(&w->proof, &t->machine);
        status = proof_open(&w->proof, t->options.model, &t->machine, t->shared.prepared.bytes, batch);
    }
    w->refused = status != STATUS_OK;
    char bytes[32];
    if (w->refused)
        snprintf(words, size, "no proof: %s", status_text());
    else
        snprintf(words, size, "the proof takes %s: the same %d images on one tower",
                 memory_words(w->proof.bytes, bytes), batch);
    return STATUS_OK;
}

void why_close(struct trainer *t) {
    struct why *w = t->why;
    if (!w)
        return;
    proof_close(&w->proof, &t->machine);
    machine_buffer_free(&t->machine, &w->right);
    machine_buffer_free(&t->machine, &w->other);
    machine_buffer_free(&t->machine, &w->difference);
    free(w->plain);
    free(w->dots);
    free(w);
    t->why = NULL;
}

/* ---- linear combinations of gradients that are kept */

/* out = sum_k weights[k] * G_k by a rule; its squared norm, and dots[k] = G_k . out when they are wanted. */
static enum status combine_by(struct trainer *t, enum rule rule, struct span out, double *norm2,
                              double *dots) {
    double decay;
    struct rule_step step = rule_step_of(t);
    rule_weights(rule, &step, t->towers->rule_weights, &decay);
    struct combine_args args = {
        .towers = t->towers->count,
        .gradients = t->towers->gradients,
        .weights = t->towers->rule_weights,
        .parameters = t->shared.values,
        .segments = rule_segments(t, decay),
        .segment_count = t->options.model->parameter_count,
        .want_dots = dots != NULL,
        .average = out,
        .norms2 = t->towers->rule_norms2,
        .dots = dots,
        .average_norm2 = norm2,
    };
    STATUS_TRY(t->machine.device.ops->combine(t->machine.device.device, &args));
    return machine_wait(&t->machine);
}

/* difference = right * scales[0] - other * scales[1]; its squared norm, and right . difference in *dot. */
static enum status subtract(struct trainer *t, const double scales[2], double *norm2, double *dot) {
    struct why *w = t->why;
    const struct span pair[2] = {w->right, w->other};
    const double weights[2] = {scales[0], -scales[1]};
    double norms2[2], dots[2];
    struct combine_args args = {
        .towers = 2,
        .gradients = pair,
        .weights = weights,
        .parameters = t->shared.values,
        .segments = w->plain,
        .segment_count = t->options.model->parameter_count,
        .want_dots = true,
        .average = w->difference,
        .norms2 = norms2,
        .dots = dots,
        .average_norm2 = norm2,
    };
    STATUS_TRY(t->machine.device.ops->combine(t->machine.device.device, &args));
    *dot = dots[0];
    return machine_wait(&t->machine);
}

/* ---- alternatives */

/* Whether a rule's gradient is the right one by its weights alone, whatever the gradients are. */
static bool same_weights(const struct trainer *t, enum rule rule) {
    double decay;
    struct rule_step step = rule_step_of(t);
    rule_weights(rule, &step, t->towers->rule_weights, &decay);
    bool decays = step.weight_decay != 0;
    for (int k = 0; k < t->towers->count; k++)
        if (!(fabs(t->towers->rule_weights[k] - t->towers->weights[k]) <= 1e-12))
            return false;
    return decay == 1 || !decays;
}

static enum status alternative(struct trainer *t, enum rule rule, double right_norm2,
                               struct event_alternative *out) {
    double norm2, difference2, dot;
    struct rule_step step = rule_step_of(t);
    STATUS_TRY(combine_by(t, rule, t->why->other, &norm2, NULL));
    STATUS_TRY(subtract(t, (const double[]){1, 1}, &difference2, &dot));
    double right = sqrt(right_norm2), norm = sqrt(norm2);
    double right_scale = clip_scale(t->settings.clip_norm, right);
    double scale = rule_clips_after(rule) ? clip_scale(t->settings.clip_norm, norm) : 1;
    *out = (struct event_alternative){
        .name = rule_name(rule),
        .printed_loss = rule_printed(rule, &step),
        .grad_norm = norm,
        .cosine = right > 0 && norm > 0 ? (right_norm2 - dot) / (right * norm) : wire_unknown(),
        .step_size = right > 0 ? scale * norm / (right_scale * right) : wire_unknown(),
    };
    double printed = rule_printed(RULE_RIGHT, &step);
    out->identical = same_weights(t, rule) && fabs(scale - right_scale) <= 1e-12 &&
                     fabs(out->printed_loss - printed) <= 1e-9 * fabs(printed);
    return STATUS_OK;
}

/* ---- the proof */

static enum status prove(struct trainer *t, double right_norm2, struct event_why *e) {
    struct why *w = t->why;
    if (w->refused || t->rules.apart) /* towers with parameters of their own have nothing to be equal to */
        return STATUS_OK;
    int images = (int)t->step.result.images;
    if (w->proof.images != images) { /* the short end of an epoch, or another batch since */
        proof_close(&w->proof, &t->machine);
        enum status status =
            proof_open(&w->proof, t->options.model, &t->machine, t->shared.prepared.bytes, images);
        if (status != STATUS_OK) {
            w->refused = true;
            report_alarm(t, "warning", t->progress.steps + 1, -1, NULL, status_text());
            return STATUS_OK;
        }
    }
    double cross_entropy, one = 1, norm2, own, difference2, dot;
    STATUS_TRY(proof_run(t, &w->proof, &cross_entropy));
    struct combine_args args = {
        .towers = 1,
        .gradients = &w->proof.memory.gradient,
        .weights = &one,
        .parameters = t->shared.values,
        .segments = t->segments,
        .segment_count = t->options.model->parameter_count,
        .average = w->other,
        .norms2 = &own,
        .average_norm2 = &norm2,
    };
    STATUS_TRY(t->machine.device.ops->combine(t->machine.device.device, &args));
    STATUS_TRY(machine_wait(&t->machine));
    STATUS_TRY(subtract(t, (const double[]){1, 1}, &difference2, &dot));
    double loss = cross_entropy + t->step.result.weight_decay;
    double towers = t->step.result.cross_entropy + t->step.result.weight_decay;
    e->proof_loss = loss;
    e->proof_loss_difference = loss != 0 ? fabs(towers - loss) / fabs(loss) : fabs(towers);
    e->proof_gradient_difference = norm2 > 0 ? sqrt(difference2 / norm2) : wire_unknown();
    e->proof_bytes = (int64_t)w->proof.bytes;
    /* Both updates start from the same parameters and slots, so they differ by lr times the difference of the
     * (clipped) gradients; the norm of the parameters stands for that of the updated ones. */
    const double scales[2] = {clip_scale(t->settings.clip_norm, sqrt(right_norm2)),
                              clip_scale(t->settings.clip_norm, sqrt(norm2))};
    STATUS_TRY(subtract(t, scales, &difference2, &dot));
    double parameters2 = 0;
    for (int i = 0; i < t->options.model->parameter_count; i++)
        parameters2 += t->shared.norms2[i];
    e->proof_parameter_difference =
        parameters2 > 0 ? t->step.result.lr * sqrt(difference2 / parameters2) : wire_unknown();
    return STATUS_OK;
}

/* ---- the right way, tower by tower */

static enum status make_dots(struct trainer *t) {
    struct why *w = t->why;
    if (w->dots_room >= t->towers->count)
        return STATUS_OK;
    double *dots = realloc(w->dots, (size_t)t->towers->count * sizeof *dots);
    if (!dots)
        return status_fail(STATUS_NO_MEMORY, "no memory for the view of %d towers", t->towers->count);
    w->dots = dots;
    w->dots_room = t->towers->count;
    return STATUS_OK;
}

/* After combine_by(RULE_RIGHT): what it was made from. Without the average (unknown) the cosines are unknown.
 */
static void fill_towers(struct trainer *t, struct event_why *e) {
    struct why *w = t->why;
    e->images = t->step.result.images;
    e->lr = t->step.result.lr;
    e->momentum = t->settings.momentum;
    e->clip_norm = t->settings.clip_norm;
    e->ema = t->settings.ema;
    e->towers = w->towers;
    e->tower_count = t->towers->count < WHY_TOWERS ? t->towers->count : WHY_TOWERS;
    for (int k = 0; k < e->tower_count; k++) {
        bool active = t->towers->weights[k] > 0;
        double norm = active ? sqrt(t->towers->rule_norms2[k]) : wire_unknown();
        bool averaged = active && !wire_is_unknown(e->grad_norm) && norm * e->grad_norm > 0;
        w->towers[k] = (struct event_why_tower){
            .tower = k,
            .images = t->towers->tower[k].images,
            .loss = active ? t->towers->losses[k] : wire_unknown(),
            .grad_norm = norm,
            .cosine = averaged ? w->dots[k] / (norm * e->grad_norm) : wire_unknown(),
        };
    }
}

enum status why_gradients(struct trainer *t) {
    struct event event = event_new(EVENT_WHY);
    double right_norm2;
    STATUS_TRY(combine_by(t, RULE_RIGHT, t->why->right, &right_norm2, NULL));
    fill_towers(t, &event.why);
    event.why.step = t->progress.steps + 1;
    report_emit(t, &event, true);
    return STATUS_OK;
}

enum status why_report(struct trainer *t) {
    struct event event = event_new(EVENT_WHY);
    struct rule_step step = rule_step_of(t);
    double right_norm2;
    int count = 0;
    STATUS_TRY(make_dots(t));
    STATUS_TRY(combine_by(t, RULE_RIGHT, t->why->right, &right_norm2, t->why->dots));
    event.why.loss = rule_printed(RULE_RIGHT, &step);
    event.why.grad_norm = sqrt(right_norm2);
    fill_towers(t, &event.why);
    STATUS_TRY(prove(t, right_norm2, &event.why));
    for (enum rule rule = RULE_RIGHT + 1; rule < RULE_NO_AVERAGE; rule++)
        STATUS_TRY(alternative(t, rule, right_norm2, &t->why->alternatives[count++]));
    event.why.step = t->progress.steps + 1;
    event.why.alternative_count = count;
    event.why.alternatives = t->why->alternatives;
    report_emit(t, &event, true);
    return STATUS_OK;
}
