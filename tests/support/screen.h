/* Screens as text, and golden files to compare them with. A golden screen is tests/tui/golden/NAME.txt: what
 * is written, and below it what it means, a letter per cell (see screen.c). GENERATE=1 writes the files anew.
 */
#ifndef TOWERSCOPE_TESTS_SUPPORT_SCREEN_H
#define TOWERSCOPE_TESTS_SUPPORT_SCREEN_H

#include "tui/canvas.h"

/* A scene as text, in memory of the caller (free it). NULL when there is no memory. */
char *screen_text(const struct canvas *canvas);

/* Whether `text` is the golden screen NAME. */
bool screen_is(const char *name, const char *text);

/* The same; prints both where they differ. */
bool screen_is_golden(const char *name, const char *text);

#endif
