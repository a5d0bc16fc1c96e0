/* The part of a run's state that is words: the lines of the log and the markers of the curves. For state.c,
 * which owns the memory that state->log and state->markers point to. */
#ifndef TOWERSCOPE_ENGINE_WIRE_STATE_LOG_H
#define TOWERSCOPE_ENGINE_WIRE_STATE_LOG_H

#include "engine/wire/state.h"

/* The most that is kept of both; then the oldest quarter goes. */
enum { STATE_LOG_LINES = 4000, STATE_MARKERS = 2000 };

/* Add the event's line to the log, if it is one that is told there. To be called before the event's phase or
 * control is folded: whether it is news depends on what was before. STATUS_NO_MEMORY. */
enum status state_log_fold(struct run_state *state, const struct event *event);

/* Add a line for a run that ended without saying so. */
enum status state_log_end(struct run_state *state, const char *text);

/* Add the event's marker, if it makes one. STATUS_NO_MEMORY. */
enum status state_markers_fold(struct run_state *state, const struct event *event);

/* Forget the markers beyond `step`. */
void state_markers_drop(struct run_state *state, int64_t step);

/* Copy both into a state that has none yet; false: no memory, and the copy has some of them. */
bool state_log_copy(struct run_state *copy, const struct run_state *state);

/* Free the texts of both. */
void state_log_free(struct run_state *state);

#endif
