/* The terminal: the one place that knows ncurses. One terminal a process.
 *
 * Opening takes over the screen, the keys, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCONT and the signals of a
 * crash, and puts standard error aside; closing, leaving by a signal and crashing all give the terminal back
 * as it was. */
#ifndef TOWERSCOPE_TUI_TERM_H
#define TOWERSCOPE_TUI_TERM_H

#include <stdint.h>

#include "kernels/status.h"
#include "tui/canvas.h"
#include "tui/keymap.h"
#include "tui/preferences.h"

/* STATUS_UNSUPPORTED: standard input or output is no terminal, or its TERM can't place the cursor; the
 * sentence says which. The preferences' theme, palette, glyphs and synchronized are taken as they are now. */
enum status term_open(const struct preferences *preferences);

/* Give everything back; what was written to standard error meanwhile follows. Without term_open it does
 * nothing. */
void term_close(void);

/* Whether standard input and output are terminals that term_open could take. The sentence of the failure says
 * what is missing. Nothing is changed. */
enum status term_check(void);

/* Colours of the terminal that TERM names, as terminfo has it; -1: no such terminal is known. Needs and opens
 * nothing. */
int term_known_colours(void);

void term_size(int *rows, int *cols);

/* What plots and bars can be drawn with here. */
enum glyphs term_glyphs(void);

/* Looks for other preferences. */
void term_restyle(const struct preferences *preferences);

enum term_news {
    TERM_KEYS = 1,    /* ask term_key until it gives PRESS_NONE */
    TERM_SOURCE = 2,  /* the descriptor that was given can be read, or written */
    TERM_LEAVE = 4,   /* interrupted (^C) or told to end: close and go */
    TERM_GONE = 8,    /* the terminal has hung up: nothing to draw on */
    TERM_REPAINT = 16 /* it was put back to the foreground: draw everything again */
};

/* Wait for keys, signals, and `fd` (-1: none; `writing`: also for its room) at most `seconds` (infinite: no
 * limit). Returns bits of enum term_news. */
unsigned term_wait(int fd, bool writing, double seconds);

/* The next key; PRESS_RESIZE when the size has changed. Never waits. */
int term_key(void);

/* The signal that TERM_LEAVE speaks of; 0: none. */
int term_signal(void);

/* Put a character where paint.c found a difference, then show all of them at once. cursor_row -1 hides it. */
void term_put(int row, int col, const struct cell *cell);
void term_show(int cursor_row, int cursor_col);

/* Forget what the terminal is believed to show: the next term_show draws everything. */
void term_distrust(void);

/* Whether the terminal takes more output now without making us wait. */
bool term_has_room(void);

/* Bytes of the frames that were shown since term_open. */
int64_t term_bytes_written(void);

#endif
