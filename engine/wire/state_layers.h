/* The part of a run's state that is the past of its layers: state->layers_past. */
#ifndef TOWERSCOPE_ENGINE_WIRE_STATE_LAYERS_H
#define TOWERSCOPE_ENGINE_WIRE_STATE_LAYERS_H

#include "engine/wire/state.h"

/* Add what an event tells of the layers; the oldest goes when there is no room. Told of a step again, it
 * counts as it was told last. To be called when the state knows the rule of that step. */
void state_layers_fold(struct run_state *state, const struct event_layers *event);

/* Forget what lies beyond `step`. */
void state_layers_drop(struct run_state *state, int64_t step);

#endif
