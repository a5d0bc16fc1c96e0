/* Starting an engine: this program again, by exec, in a session of its own. */
#ifndef TOWERSCOPE_CLI_LAUNCH_H
#define TOWERSCOPE_CLI_LAUNCH_H

#include "engine/wire/live.h"

/* The word that makes this program an engine process, and the descriptor on which it says that it is live. */
#define LAUNCH_WORD "engine"
enum { LAUNCH_FD = 3 };

/* Start an engine with the options argv[1..] of `run` and wait until it is live or has ended. Live: *run is
 * filled, *code is 0 and the engine goes on by itself. Ended: *code is its exit code, and it has said why on
 * stderr; run->name is empty. A SIGINT meanwhile ends the engine, too. STATUS_IO: it can't be started. */
enum status launch(int argc, char **argv, struct live_run *run, int *code);

/* For the engine: say that it is live, and where. Does nothing when nobody waits. */
void launch_tell(const char *folder);

#endif
