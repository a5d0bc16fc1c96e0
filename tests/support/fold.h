/* Events for the fold (engine/wire/state.h), and folding them in. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_FOLD_H
#define TOWERSCOPE_TESTS_SUPPORT_FOLD_H

#include "engine/wire/event.h"
#include "engine/wire/state.h"

/* Fold one event in; fails the test when that fails. */
void fold_apply(struct run_state *state, struct event event);

/* The start of a run of 2 towers, resumed from a step or not (WIRE_UNKNOWN_INT). */
struct event fold_start(int64_t seq, int64_t resumed_from);

/* Fold in the steps from first to last (events_step), numbered from seq on; seq 0: live only, all of them. */
void fold_steps(struct run_state *state, int64_t seq, int64_t first, int64_t last, int towers);

/* What became of a command after a step. */
struct event fold_command(int64_t seq, const char *text, const char *status, int64_t step);

#endif
