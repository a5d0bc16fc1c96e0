/* The same alarm over and over is counted, not written each time. */
#ifndef TOWERSCOPE_ENGINE_WIRE_REPEATS_H
#define TOWERSCOPE_ENGINE_WIRE_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/wire/event.h"

enum { REPEATS = 16 };

struct repeats { /* all zero: nothing seen */
    struct {
        uint64_t hash; /* of level, tower, tensor and text */
        int64_t count, newest;
    } seen[REPEATS];
    int64_t alarms;
};

/* How often this alarm has come, this time included, as far back as the last 16 different ones; the step does
 * not count. */
int64_t repeats_count(struct repeats *repeats, const struct event_alarm *alarm);

/* Whether the n-th time is told: the 1st, 10th, 100th, ... By number, not by time, so that a run records the
 * same twice. */
bool repeats_told(int64_t n);

#endif
