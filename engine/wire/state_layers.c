#include "engine/wire/state_layers.h"

#include <math.h>
#include <string.h>

/* Whether a wrong rule made the step. */
static bool is_wrong(const struct run_state *state, int64_t step) {
    const struct event *last = &state->step;
    return last->kind == EVENT_STEP && last->step.step == step ? last->step.applied != NULL
                                                               : *state->rule != 0;
}

void state_layers_fold(struct run_state *state, const struct event_layers *event) {
    struct state_layers_past *past = &state->layers_past;
    if (event->step == WIRE_UNKNOWN_INT)
        return;
    state_layers_drop(state, event->step - 1);
    if (past->count == STATE_LAYERS_PAST) {
        past->count--;
        memmove(past->step, past->step + 1, sizeof past->step - sizeof past->step[0]);
        memmove(past->wrong, past->wrong + 1, sizeof past->wrong - sizeof past->wrong[0]);
        memmove(past->grad_norm, past->grad_norm + 1, sizeof past->grad_norm - sizeof past->grad_norm[0]);
    }
    int at = past->count++;
    past->step[at] = event->step;
    past->wrong[at] = is_wrong(state, event->step);
    for (int64_t i = 0; i < STATE_LAYERS; i++)
        past->grad_norm[at][i] = i < event->layer_count ? (float)event->layers[i].grad_norm : NAN;
}

void state_layers_drop(struct run_state *state, int64_t step) {
    struct state_layers_past *past = &state->layers_past;
    while (past->count > 0 && past->step[past->count - 1] > step)
        past->count--;
}
