/* The log of an engine process, FOLDER/engine.log: its stdout and stderr. At most 1 MiB, then it becomes
 * engine.log.1 and a new one begins. */
#ifndef TOWERSCOPE_CLI_LOG_H
#define TOWERSCOPE_CLI_LOG_H

#include "kernels/status.h"

struct log {
    char path[900];
};

/* Make the process's stdout and stderr the log of a run's folder. STATUS_IO: they stay what they are. */
enum status log_open(struct log *log, const char *folder);

/* Begin a new file when this one is full. */
void log_turn(const struct log *log);

/* A line with the time before it. */
void log_line(const struct log *log, const char *text);

#endif
