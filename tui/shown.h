/* The figures on the screen: a copy of a step event, taken twice a second, since faster can't be read. Times
 * follow the steps slowly. What the engine gives on recorded steps only (the cosines, the noise scale) stays,
 * marked as older, until it comes again. */
#ifndef TOWERSCOPE_TUI_SHOWN_H
#define TOWERSCOPE_TUI_SHOWN_H

#include <stdbool.h>

#include "engine/wire/state.h"

struct shown_tower {
    struct event_step_tower figures; /* .device points to `device`, or NULL */
    char device[24];
    bool cosine_older;
};

struct shown {
    bool have;              /* a step is shown */
    struct event_step step; /* .towers is NULL and .applied points to `applied` or is NULL */
    char applied[32];
    bool noise_older;
    int tower_count;
    struct shown_tower *towers;
    double images_per_second; /* of the last tens of steps */
    double taken_at;          /* clock_seconds() */
    int64_t taken;            /* steps that were shown since the first */
    int64_t taken_events;     /* of the state, to see whether there is something newer */
    uint64_t generation;
};

/* Take the state's newest step, if there is a newer one and `interval` seconds have gone by since the last
 * (or a seek made it another past). Returns the seconds until it is worth calling again; infinite: nothing
 * newer. */
double shown_update(struct shown *shown, const struct run_state *state, uint64_t generation, double now,
                    double interval);

void shown_free(struct shown *shown);

/* What is out of the ordinary about the towers, worst first, as one sentence. */
enum shown_finding { FINDING_NONE, FINDING_REMARK, FINDING_WARNING };

/* A wrong rule in force, a loss that is not finite, a tower that strays from the others, averages that do not
 * add up, uneven shards. FINDING_NONE: out is "". *tower: whom it is about, -1 nobody. */
enum shown_finding shown_judge(const struct shown *shown, const struct run_state *state, char *out,
                               size_t size, int *tower);

#endif
