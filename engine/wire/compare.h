/* Two events compared field by field. What depends on the wall clock, the machine or the run's name is left
 * out, by the flags of the table of fields. */
#ifndef TOWERSCOPE_ENGINE_WIRE_COMPARE_H
#define TOWERSCOPE_ENGINE_WIRE_COMPARE_H

#include <stdint.h>

#include "engine/wire/event.h"

struct difference {
    char field[120]; /* "towers[1].loss" */
    char a[80], b[80];
};

/* Call `visit` for each field that differs; returns how many. Events of different kinds differ in "event".
 * Numbers are equal when |a - b| <= tolerance * max(|a|, |b|), or both unknown, or both not finite. visit may
 * be NULL. */
int64_t event_compare(const struct event *a, const struct event *b, double tolerance,
                      void (*visit)(void *context, const struct difference *difference), void *context);

/* The step that an event speaks of; WIRE_UNKNOWN_INT: none. */
int64_t event_step(const struct event *event);

#endif
