/* The log of an engine process, FOLDER/engine.log: its stdout and stderr. At most 1 MiB, then it becomes
 * engine.log.1 and a new one begins. */
#ifndef TOWERSCOPE_CLI_LOG_H
#define TOWERSCOPE_CLI_LOG_H

#include "kernels/status.h"

struct log {
    int folder; /* descriptor of the run's folder; the caller's, and outlives the log */
};

/* Make the process's stdout and stderr the log of a run's folder, again when that is another one; `path` is
 * for sentences. STATUS_IO: they stay what they are. */
enum status log_open(struct log *log, int folder, const char *path);

/* Begin a new file when this one is full. */
void log_turn(const struct log *log);

/* A line with the time before it. */
void log_line(const struct log *log, const char *text);

#endif
