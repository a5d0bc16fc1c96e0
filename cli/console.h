/* What run, attach and replay share: the options of the console, showing it, and the words on leaving it. */
#ifndef TOWERSCOPE_CLI_CONSOLE_H
#define TOWERSCOPE_CLI_CONSOLE_H

#include <stdio.h>

#include "tui/console.h"

/* The console as the person's settings want it. STATUS_BAD_INPUT: what they say is wrong. */
enum status console_begin(struct app_options *options);

/* Take argv[*i] (and its value, moving *i on) if it is an option of the console. *taken says whether it is.
 * STATUS_BAD_INPUT: its value is missing or wrong. */
enum status console_option(struct app_options *options, int argc, char **argv, int *i, bool *taken);

/* Those options, for --help. */
void console_help(FILE *to);

/* Show the feed until it is left, close it, tell where the run is and how to come back to it. Returns the
 * exit code. */
int console_show(struct feed *feed, const struct app_options *options);

/* The two halves of it: show and close the feed; say the words. */
enum status console_watch(struct feed *feed, const struct app_options *options,
                          struct console_farewell *farewell);
int console_tell(enum status status, const struct console_farewell *farewell,
                 const struct app_options *options);

#endif
