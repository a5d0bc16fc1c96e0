/* The console on a terminal: feed, app and terminal brought together. */
#ifndef TOWERSCOPE_TUI_CONSOLE_H
#define TOWERSCOPE_TUI_CONSOLE_H

#include "tui/app.h"
#include "tui/feed.h"

/* How it was left, for the one who prints it. */
struct console_farewell {
    char run[RUN_NAME_MAX + 1]; /* its name, as the run says it; "": it has not */
    char text[512];             /* where the run is; "" when it ended or nothing is known */
    int signal;                 /* the signal that ended it; 0: none */
    bool gone;                  /* the terminal hung up: there is nobody to tell */
    bool live;                  /* the run goes on */
    bool stopping;              /* but it was told to end */
};

/* Show the feed until the person leaves, the terminal hangs up or a signal ends it. The terminal is as it
 * was afterwards, on every path. STATUS_UNSUPPORTED: no terminal, or one that can't place a cursor; nothing
 * was shown, and the sentence says what to use instead. Other failures: STATUS_NO_MEMORY, STATUS_IO. */
enum status console_run(struct feed *feed, const struct app_options *options,
                        struct console_farewell *farewell);

/* How the run of a feed stands, for one that was shown without console_run(): run, text and live are set. */
void console_part(const struct feed *feed, struct console_farewell *farewell);

#endif
