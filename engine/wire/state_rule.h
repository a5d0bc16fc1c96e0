/* Which rule the towers are averaged by, and what taking a wrong one back goes back to, as the events tell
 * it.
 */
#ifndef TOWERSCOPE_ENGINE_WIRE_STATE_RULE_H
#define TOWERSCOPE_ENGINE_WIRE_STATE_RULE_H

#include "engine/wire/state.h"

/* Whether an event says by which rule the towers are averaged from here on: *rule is the wrong rule's name,
 * "" the right way. */
bool event_rule(const struct event *event, const char **rule);

/* Where a rewind would go back to. false: the step is not told to readers, and *to is the latest that it can
 * be. *to is WIRE_UNKNOWN_INT when nothing is known. */
bool state_rewind(const struct run_state *state, int64_t *to);

/* Whether an event is a live step that the record has overtaken: it says nothing of now. */
bool state_late(const struct run_state *state, const struct event *event);

/* Fold the same into state->rule and state->good_step. */
void state_rule_fold(struct run_state *state, const struct event *event);

/* The number of a wrong rule among those that were met, which it joins: 1 + its index in state->rules; 0 for
 * NULL. */
uint8_t state_rule_number(struct run_state *state, const char *name);

#endif
