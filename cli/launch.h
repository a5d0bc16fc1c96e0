/* Starting an engine: this program again, by exec, in a session of its own. */
#ifndef TOWERSCOPE_CLI_LAUNCH_H
#define TOWERSCOPE_CLI_LAUNCH_H

#include <stdbool.h>

#include "engine/wire/live.h"

/* The word that makes this program an engine process, and the descriptor on which it says that it is live. */
#define LAUNCH_WORD "engine"
enum { LAUNCH_FD = 3 };

/* An engine that is starting. */
struct launched {
    long pid;
    int ready; /* can be read when it has become live, or has ended */
    int said;  /* a file with what it said meanwhile; -1: that went to our own stdout and stderr */
    char folder[4096];
    size_t length;
};

/* Start an engine with the options argv[1..] of `run`. aside: what it says before it is live is kept aside.
 * STATUS_IO: it can't be started. launch_end() afterwards. */
enum status launch_begin(int argc, char **argv, bool aside, struct launched *out);

/* Wait for at most so many milliseconds (-1: as long as it takes) until it is live or has ended. A SIGINT or
 * SIGTERM meanwhile is handed on to it. STATUS_BUSY: it is still starting. Live: *run is filled, *code is 0,
 * the engine goes on by itself. Ended: *code is its exit code, and it has said why; run->name is empty. */
enum status launch_wait(struct launched *launched, int milliseconds, struct live_run *run, int *code);

/* Write what it said, if that was kept aside, to a descriptor. */
void launch_repeat(const struct launched *launched, int to);

/* Close what was opened; the engine goes its own way. */
void launch_end(struct launched *launched);

/* For the engine: say that it is live, and where. Does nothing when nobody waits. */
void launch_tell(const char *folder);

#endif
