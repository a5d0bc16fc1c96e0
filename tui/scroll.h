/* Rows that scroll: what the moving keys do to the first that is shown. */
#ifndef TOWERSCOPE_TUI_SCROLL_H
#define TOWERSCOPE_TUI_SCROLL_H

#include <stdbool.h>

#include "tui/keymap.h"

/* Move `first` by a row, a page, or to an end. It may go beyond either: who draws cuts it with scroll_within.
 * False: no moving key. */
bool scroll_act(int *first, int page, enum action action);

/* `first` between 0 and `most`. */
int scroll_within(int first, int most);

#endif
