/* A run as lines on stdout, in the spirit of the tutorial's, or as one progress line on a terminal. */
#ifndef TOWERSCOPE_CLI_LINES_H
#define TOWERSCOPE_CLI_LINES_H

#include <stdio.h>

#include "engine/wire/event.h"
#include "engine/wire/repeats.h"

struct lines {
    FILE *out, *errors; /* events of a run; warnings and errors */
    int64_t every;      /* steps between two lines */
    bool progress;      /* one line, written over again */
    int64_t planned;    /* steps; unknown: no end */
    /* since the last line */
    int64_t images, steps;
    double seconds, drawn; /* of the steps; when the progress line was drawn (clock) */
    int width;             /* columns of the progress line that stands there; 0: none */
    struct repeats repeats; /* of alarms: the 1st, 10th, 100th ... time is told */
};

/* Tell of an event. */
void lines_event(struct lines *lines, const struct event *event);

/* End the progress line, if one stands there. */
void lines_break(struct lines *lines);

#endif
