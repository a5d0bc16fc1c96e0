/* The console's settings: config.ini of the person, and what the prompt changes. One table each of
 * preferences and of keys; a wrong line is refused with the file, the line and what may stand there. */
#ifndef TOWERSCOPE_TUI_CONFIG_H
#define TOWERSCOPE_TUI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/status.h"
#include "tui/keymap.h"
#include "tui/preferences.h"

/* $XDG_CONFIG_HOME/towerscope/config.ini, else ~/.config/towerscope/config.ini; "" when neither is known. */
void config_path(char *out, size_t size);

/* Read `[console]` (preferences) and `[keys]` (action = key). A file that is not there changes nothing and is
 * STATUS_OK. STATUS_BAD_INPUT, STATUS_IO: nothing is changed. */
enum status config_read(const char *path, struct preferences *preferences, struct keymap *keymap);

/* A line of the prompt: "set KEY VALUE" of a preference, "key ACTION KEY". *taken: it was one of these;
 * then said[size] has what is so now, and which actions lost the key. STATUS_BAD_INPUT: it was, and is wrong.
 */
enum status config_line(const char *text, struct preferences *preferences, struct keymap *keymap, bool *taken,
                        char *said, size_t size);

/* Completions of a line of the prompt: what the console does itself, and command_complete's. Static memory.
 */
int config_complete(const char *text, const char **out, int max);

#endif
