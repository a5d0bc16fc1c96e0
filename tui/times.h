/* Where the parts of a tower's step stand in time: the bars of the Towers and the Devices screen. */
#ifndef TOWERSCOPE_TUI_TIMES_H
#define TOWERSCOPE_TUI_TIMES_H

#include "engine/wire/event.h"

enum times_part {
    TIMES_LOAD,
    TIMES_FORWARD,
    TIMES_BACKWARD,
    TIMES_WAIT,
    TIMES_AVERAGE,
    TIMES_UPDATE,
    TIMES_PARTS
};

/* The milliseconds of each part, 0 where unknown, into ms[TIMES_PARTS]. Returns the whole step's
 * milliseconds, never less than the sum of the parts. */
double times_of(const struct event_step *step, const struct event_step_tower *tower, double ms[TIMES_PARTS]);

/* Place a tower's parts on `cols` columns that stand for `whole` milliseconds: part p takes the columns
 * edges[p] to edges[p + 1] - 1. Towers that share a worker take turns: the time that is none of the parts
 * goes by before a tower's turn, so that all towers average and update together at the end. */
void times_place(const double ms[TIMES_PARTS], double whole, int cols, int edges[TIMES_PARTS + 1]);

#endif
