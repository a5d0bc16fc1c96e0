/* Axes that stand still: their ends are round numbers, so that a curve grows over a fixed axis and the axis
 * jumps now and then. Redrawing a plot that scrolls costs sixteen times the bytes of one that only gains
 * points. */
#ifndef TOWERSCOPE_TUI_AXIS_H
#define TOWERSCOPE_TUI_AXIS_H

#include <stdbool.h>
#include <stdint.h>

struct axis {
    double low, high; /* low < high */
    bool log;         /* then both are above 0 */
    double tick;      /* distance of ticks (linear) */
};

/* An axis of values that holds [low, high] with about `ticks` ticks. Not finite, empty or (log) not positive
 * input gives an axis that holds what is left of it. */
struct axis axis_values(double low, double high, int ticks, bool log);

/* The axis of steps. window 0: all from `first` on; else the last `window` steps. planned: the run's length
 * (WIRE_UNKNOWN_INT: none); ended: no more steps will come, the axis ends with the last. */
struct axis axis_steps(int64_t first, int64_t last, int64_t window, int64_t planned, bool ended);

/* Where a value stands, 0 at low and 1 at high; outside it goes beyond. Log of a value <= 0: -1. */
double axis_place(const struct axis *axis, double value);

/* The ticks inside the axis, at most `max`, ascending; returns how many. */
int axis_ticks(const struct axis *axis, double *out, int max);

#endif
