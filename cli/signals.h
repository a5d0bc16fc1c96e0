/* Signals of an engine: the first asks the loop to end after its step; the following ones break no save in
 * progress: only where a last state can't be saved do they give it up. */
#ifndef TOWERSCOPE_CLI_SIGNALS_H
#define TOWERSCOPE_CLI_SIGNALS_H

#include <stdbool.h>

/* Catch SIGINT, SIGTERM and the signals by which batch systems warn, and SIGHUP unless `background` (then it
 * means nothing: there is no terminal); ignore SIGPIPE (a reader that leaves does not end the run) and
 * SIGXFSZ (a file size limit is a full disk). A signal that was ignored from the start (nohup) stays so. */
void signals_catch(bool background);

/* The signal that asked for the end, the last of them; 0: none yet. */
int signals_asked(void);

/* A descriptor that is readable once a signal has come; -1: none could be had. */
int signals_fd(void);

/* How many have come so far; from now on signals_fd() is readable when another one comes. */
int signals_seen(void);

#endif
