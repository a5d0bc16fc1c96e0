/* A run in one line, from the end of its record and its lock: what `ls` shows. */
#ifndef TOWERSCOPE_ENGINE_WIRE_SUMMARY_H
#define TOWERSCOPE_ENGINE_WIRE_SUMMARY_H

#include "engine/wire/event.h"
#include "engine/wire/live.h"
#include "kernels/status.h"

struct run_summary {
    char name[RUN_NAME_MAX + 1], folder[PATH_MAX];
    char state[16]; /* starting, training, paused, evaluating, saving, ending, ended, crashed; "empty":
                       nothing recorded */
    bool live;
    int64_t step, towers; /* WIRE_UNKNOWN_INT: not known */
    int64_t saved;        /* step of the newest checkpoint, for the caller to fill in; WIRE_UNKNOWN_INT */
    double loss;          /* averaged, of the last recorded step; unknown */
    double time;          /* of the last event, seconds since 1970; unknown */
};

/* Look at a run. Reads only the end of its record, however long that is. STATUS_IO, STATUS_NO_MEMORY; a run
 * without a record is no failure. */
enum status run_summary_read(const struct live_run *run, struct run_summary *out);

/* As a JSON array, freed by the caller; NULL: no memory. */
char *run_summaries_json(const struct run_summary *summaries, int count);

#endif
