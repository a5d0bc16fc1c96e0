/* Which rule the towers are averaged by, as the events tell it. */
#ifndef TOWERSCOPE_ENGINE_WIRE_STATE_RULE_H
#define TOWERSCOPE_ENGINE_WIRE_STATE_RULE_H

#include "engine/wire/state.h"

/* Whether an event says by which rule the towers are averaged from here on: *rule is the wrong rule's name,
 * "" the right way. */
bool event_rule(const struct event *event, const char **rule);

/* Fold the same into state->rule. */
void state_rule_fold(struct run_state *state, const struct event *event);

/* The number of a wrong rule among those that were met, which it joins: 1 + its index in state->rules; 0 for
 * NULL. */
uint8_t state_rule_number(struct run_state *state, const char *name);

#endif
