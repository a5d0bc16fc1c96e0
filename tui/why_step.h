/* A step taken apart, gathered from the state of the run: what is known of each tower's losses and gradient,
 * how far the step has come, the proof and the alternatives. Values that are not known (yet) are
 * wire_unknown(). */
#ifndef TOWERSCOPE_TUI_WHY_STEP_H
#define TOWERSCOPE_TUI_WHY_STEP_H

#include <stdbool.h>

#include "engine/wire/state.h"

enum why_phase {
    WHY_NOTHING = -1, /* nothing of the step is done */
    WHY_LOAD,
    WHY_FORWARD,
    WHY_LOSSES,
    WHY_BACKWARD,
    WHY_AVERAGE,
    WHY_UPDATE,
    WHY_PHASES
};

struct why_tower {
    int64_t images;
    double loss, grad_norm, cosine;
    const struct event_losses_tower *terms; /* NULL: not known */
};

struct why_step {
    bool have;              /* there is a step to show */
    bool frozen;            /* it stands between two phases */
    bool moving;            /* the run trains on */
    bool partial;           /* and is looked into, but not all that is told of this step has come yet */
    int64_t step;           /* unknown: WIRE_UNKNOWN_INT */
    enum why_phase reached; /* the last phase that is done */
    int64_t images;         /* of the batch */
    int towers, terms;      /* terms: of each tower's collection; 0: not known */
    bool values;            /* the terms' values are those of this step */
    double lr, loss, grad_norm, update_ratio;
    double momentum, clip_norm, ema;   /* of its update; 0: none; unknown: nobody looked into it */
    const char *applied;               /* name of the wrong rule that makes the step; NULL: none */
    bool taken_back;                   /* and it is no longer in force */
    const struct event_why *gradients; /* the towers' of this step; NULL: none */
    const struct event_why *why;       /* proof and alternatives of this step; NULL: none */
    const struct run_state *state;
};

/* Points into the state. */
void why_step_gather(struct why_step *out, const struct run_state *state, int towers);

/* The average is longer than the clip norm: the update takes it cut. */
bool why_step_clipped(const struct why_step *step);

/* What is known of one tower. */
struct why_tower why_step_tower(const struct why_step *step, int tower);

/* The name of term `i`, and its value (unknown when it is not this step's); NULL when there is none. */
const char *why_step_term(const struct why_step *step, int tower, int i, double *value);

/* The sum that a tower's add_n makes: of its own terms, or, without the scope, of every term that stands in
 * the collection when the tower is built: those of the towers before it and its own. */
double why_step_total(const struct why_step *step, int tower, bool scope);

/* The wrong rule in force from here on; NULL: none. */
const char *why_in_force(const struct run_state *state);

#endif
