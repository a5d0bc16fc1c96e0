/* Figures in large type, for those who sit far away. */
#ifndef TOWERSCOPE_TUI_LARGE_H
#define TOWERSCOPE_TUI_LARGE_H

#include "tui/canvas.h"

/* Draw digits, blanks and . + - = ~ ( ) / > at the top left of the box, as large as it has room for: five
 * rows of dots, each two columns wide on a row of its own, or one column wide on half a row (a whole one
 * where there is only ASCII). Returns the rows it took; 0: it has no room at all, and nothing is drawn. */
int large_draw(struct canvas *canvas, struct box box, enum style style, const char *text);

#endif
