/* Where runs and their records are, from what a person typed. */
#ifndef TOWERSCOPE_CLI_FIND_H
#define TOWERSCOPE_CLI_FIND_H

#include <stddef.h>

#include "engine/wire/live.h"
#include "engine/wire/summary.h"
#include "kernels/status.h"

/* The folder of runs: the one given, else $TOWERSCOPE_RUNS, else ./runs. */
const char *find_runs(const char *given);

/* The record that `what` names: a file or a folder as it is written, else a run of that name in the folder of
 * runs, else a live run in any folder. STATUS_NOT_FOUND: none. */
enum status find_record(const char *what, const char *runs, char *path, size_t size);

/* The live run that live_find() finds. One that is there and not live is told by its state, and what can be
 * done with it. */
enum status find_live(const char *name, const char *runs, struct live_run *run);

/* run_summary_read() and what is saved. */
enum status find_summary(const struct live_run *run, struct run_summary *out);

#endif
