/* The console where no cursor can be placed (TERM=dumb, an editor's shell): a line now and then. */
#ifndef TOWERSCOPE_TUI_LINE_MODE_H
#define TOWERSCOPE_TUI_LINE_MODE_H

#include "tui/feed.h"

/* Shows a line; false: there is nobody left to show it to. */
typedef bool line_mode_print(void *context, const char *line);

/* Follow the feed until its run ends or descriptor `leave` is readable (-1: there is none): the towers'
 * losses each `seconds`, and what the log says as it happens. */
enum status line_mode_run(struct feed *feed, double seconds, int leave, line_mode_print *print,
                          void *context);

/* The step in one line: "step 1 240 of 100 000   loss 1.4061   towers 1.3808 1.4035 ...   |g| 0.672". */
void line_mode_step(const struct run_state *state, char *out, size_t size);

#endif
