/* Events for tests, filled from the table of fields so that no field can be forgotten. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_EVENTS_H
#define TOWERSCOPE_TESTS_SUPPORT_EVENTS_H

#include "engine/base/arena.h"
#include "engine/base/random.h"
#include "engine/wire/event.h"

/* An event of `kind` with every field a value drawn from `random`; `share` of 0..1 of them are left unknown.
 */
struct event events_fill(enum event_kind kind, struct random *random, double share, struct arena *arena);

/* A step event as a trainer would make it; its towers live in the arena. */
struct event events_step(int64_t seq, int64_t step, int towers, struct arena *arena);

/* Whether two events say the same, bit by bit; unknown and not-finite values are told apart. Gives the name
 * of the first field that differs in *field (may be NULL). */
bool events_equal(const struct event *a, const struct event *b, const char **field);

#endif
