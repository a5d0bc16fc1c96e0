/* A line on stderr that says how far towerscope bench is, where that is a terminal; and whether somebody
 * wants it to end. */
#ifndef TOWERSCOPE_CLI_BENCH_PROGRESS_H
#define TOWERSCOPE_CLI_BENCH_PROGRESS_H

#include "kernels/status.h"

struct bench_progress {
    bool shown;
    double planned, done; /* seconds that all measurements are meant to take, and those made so far */
    double began, drawn;
    int width; /* columns of the line that stands there */
};

/* planned: seconds that are to come. */
void bench_progress_begin(struct bench_progress *progress, double planned);

/* `done` more seconds of what was planned; `words`: what comes now. STATUS_INTERRUPTED: a signal came,
 * nothing more is to be measured. */
enum status bench_progress_tell(struct bench_progress *progress, double done, const char *words);

/* The line goes. */
void bench_progress_end(struct bench_progress *progress);

#endif
