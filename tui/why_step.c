#include "tui/why_step.h"

#include <string.h>

static enum why_phase phase_named(const char *name) {
    static const char *const names[WHY_PHASES] = {"load",     "forward", "losses",
                                                  "backward", "average", "update"};
    for (int i = 0; name && i < WHY_PHASES; i++)
        if (!strcmp(names[i], name))
            return (enum why_phase)i;
    return WHY_NOTHING;
}

const char *why_in_force(const struct run_state *state) {
    return *state->rule ? state->rule : NULL;
}

static int64_t step_of(const struct run_state *state) {
    return state->step.kind == EVENT_STEP ? state->step.step.step : WIRE_UNKNOWN_INT;
}

/* A run that trains on tells a step's losses, proof and alternatives just before the step itself. */
static bool told_before_whole(const struct run_state *state, int64_t whole) {
    return state->why.kind == EVENT_WHY && state->losses.kind == EVENT_LOSSES &&
           state->why.why.step == state->losses.losses.step &&
           (whole == WIRE_UNKNOWN_INT || state->why.why.step > whole);
}

/* Which step it is about, and how far that has come. */
static void find_step(struct why_step *out) {
    const struct run_state *state = out->state;
    int64_t whole = step_of(state);
    out->step = whole;
    out->reached = whole == WIRE_UNKNOWN_INT ? WHY_NOTHING : WHY_UPDATE;
    out->have = whole != WIRE_UNKNOWN_INT;
    out->moving = !strcmp(state->phase, "training");
    const struct event_phase *phase = &state->step_phase.phase;
    bool stands = state->step_phase.kind == EVENT_PHASE && phase->step != WIRE_UNKNOWN_INT && !out->moving;
    if (stands && (whole == WIRE_UNKNOWN_INT || phase->step > whole) &&
        (state->at_step == WIRE_UNKNOWN_INT || phase->step - 1 == state->at_step)) {
        out->step = phase->step;
        out->reached = phase_named(phase->phase);
        out->frozen = out->have = true;
        out->images = phase->images;
    } else if (out->moving && told_before_whole(state, whole)) {
        out->step = state->why.why.step;
        out->reached = WHY_UPDATE;
        out->have = true;
    } else if (out->have) {
        out->images = state->step.step.images;
    }
}

static int count_terms(const struct why_step *step) {
    const struct event_losses *losses = &step->state->losses.losses;
    return step->state->losses.kind == EVENT_LOSSES && losses->tower_count > 0
               ? (int)losses->towers[0].term_count
               : 0;
}

static int count_towers(const struct why_step *step, int towers) {
    const struct run_state *state = step->state;
    if (step->gradients && step->gradients->tower_count > 0 && step->gradients->tower_count < WHY_TOWERS)
        return (int)step->gradients->tower_count;
    if (step->values && state->losses.losses.tower_count > towers)
        return (int)state->losses.losses.tower_count;
    return towers;
}

void why_step_gather(struct why_step *out, const struct run_state *state, int towers) {
    double unknown = wire_unknown();
    *out = (struct why_step){.state = state,
                             .images = WIRE_UNKNOWN_INT,
                             .lr = unknown,
                             .loss = unknown,
                             .grad_norm = unknown,
                             .update_ratio = unknown,
                             .momentum = unknown,
                             .clip_norm = unknown,
                             .ema = unknown};
    find_step(out);
    out->applied = out->frozen                      ? why_in_force(state)
                   : state->step.kind == EVENT_STEP ? state->step.step.applied
                                                    : NULL;
    out->taken_back = out->applied && !why_in_force(state);
    bool looked_into = state->why.kind == EVENT_WHY && state->why.why.step == out->step;
    if (looked_into && out->reached >= WHY_BACKWARD)
        out->gradients = &state->why.why;
    if (looked_into && out->reached >= WHY_AVERAGE && state->why.why.alternative_count > 0)
        out->why = &state->why.why;
    out->terms = count_terms(out);
    out->values = out->terms > 0 && state->losses.losses.step == out->step && out->reached >= WHY_LOSSES;
    out->partial = out->moving && state->why.kind == EVENT_WHY && state->why.why.step >= out->step &&
                   !(out->why && out->values);
    out->towers = count_towers(out, towers);
    if (state->step.kind == EVENT_STEP && state->step.step.step == out->step) {
        out->lr = state->step.step.lr;
        out->loss = state->step.step.loss;
        out->grad_norm = state->step.step.grad_norm;
        out->update_ratio = state->step.step.update_ratio;
    }
    if (out->why) {
        out->lr = out->why->lr;
        out->loss = out->why->loss;
        out->grad_norm = out->why->grad_norm;
        out->images = out->why->images;
    }
    if (out->gradients) {
        out->momentum = out->gradients->momentum;
        out->clip_norm = out->gradients->clip_norm;
        out->ema = out->gradients->ema;
    }
}

bool why_step_clipped(const struct why_step *step) {
    return step->why && step->clip_norm > 0 && step->grad_norm > step->clip_norm;
}

/* What the step itself tells of a tower; NULL: nothing. */
static const struct event_step_tower *whole_tower(const struct why_step *step, int tower) {
    const struct event_step *whole = &step->state->step.step;
    bool told = step->state->step.kind == EVENT_STEP && whole->step == step->step;
    return told && tower >= 0 && tower < whole->tower_count ? &whole->towers[tower] : NULL;
}

static int64_t shard(int64_t images, int towers, int tower) {
    if (images == WIRE_UNKNOWN_INT || towers <= 0)
        return WIRE_UNKNOWN_INT;
    return images / towers + (tower < images % towers); /* as the loader cuts it */
}

struct why_tower why_step_tower(const struct why_step *step, int tower) {
    double unknown = wire_unknown();
    struct why_tower out = {shard(step->images, step->towers, tower), unknown, unknown, unknown, NULL};
    const struct run_state *state = step->state;
    const struct event_step_tower *whole = whole_tower(step, tower);
    if (tower < 0) /* of a step that tells of none */
        return out;
    if (whole)
        out = (struct why_tower){whole->images, whole->loss, whole->grad_norm, whole->cosine, NULL};
    if (step->gradients && tower < step->gradients->tower_count) {
        const struct event_why_tower *t = &step->gradients->towers[tower];
        out = (struct why_tower){t->images, t->loss, t->grad_norm, t->cosine, NULL};
    }
    if (step->terms > 0 && tower < state->losses.losses.tower_count)
        out.terms = &state->losses.losses.towers[tower];
    if (step->values)
        out.loss = why_step_total(step, tower, true);
    return out;
}

/* A term whose step told no terms, as when nobody looks into it: the cross-entropy is known all the same, and
 * so is a decay that stands alone. */
static double term_of_whole(const struct why_step *step, int tower, const char *name) {
    const struct event_step_tower *t = whole_tower(step, tower);
    const char *last = name ? strrchr(name, '/') : NULL;
    if (!t || !last || step->reached < WHY_LOSSES)
        return wire_unknown();
    if (!strcmp(last, "/cross_entropy"))
        return t->cross_entropy;
    return step->terms == 2 ? t->weight_decay : wire_unknown();
}

const char *why_step_term(const struct why_step *step, int tower, int i, double *value) {
    const struct event_losses *losses = &step->state->losses.losses;
    *value = wire_unknown();
    if (step->terms == 0 || tower < 0 || tower >= losses->tower_count ||
        i >= losses->towers[tower].term_count)
        return NULL;
    const struct event_term *term = &losses->towers[tower].terms[i];
    *value = step->values ? term->value : term_of_whole(step, tower, term->name);
    return term->name;
}

static double own_total(const struct why_step *step, int tower) {
    double sum = 0, value;
    const struct event_step_tower *whole = whole_tower(step, tower);
    if (!step->values && whole && step->reached >= WHY_LOSSES)
        return whole->cross_entropy + whole->weight_decay;
    for (int i = 0; i < step->terms; i++) {
        if (!why_step_term(step, tower, i, &value) || wire_is_unknown(value))
            return wire_unknown();
        sum += value;
    }
    return step->terms > 0 ? sum : wire_unknown();
}

double why_step_total(const struct why_step *step, int tower, bool scope) {
    double sum = 0;
    for (int k = scope ? tower : 0; k <= tower; k++) {
        double own = own_total(step, k);
        if (wire_is_unknown(own) && k < tower && shard(step->images, step->towers, k) == 0)
            continue; /* a tower without images adds nothing */
        if (wire_is_unknown(own))
            return own;
        sum += own;
    }
    return sum;
}
