/* The way out to the terminal: what ncurses writes for a frame goes there in one piece.
 *
 * ncurses may write at each move of the cursor, dozens of times a frame, and every time whoever reads the
 * terminal (an SSH server, a multiplexer) is woken: that takes more of the machine than the frame itself, and
 * the frame arrives in shreds. */
#ifndef TOWERSCOPE_TUI_OUTLET_H
#define TOWERSCOPE_TUI_OUTLET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernels/status.h"

struct outlet {
    FILE *file;   /* for ncurses to write to: the terminal, but between begin and end */
    int terminal; /* whose output it is; the caller's */
    int gathered; /* what is written between begin and end; -1: nothing can be gathered */
    bool gathering;
    int64_t written; /* bytes of frames, since it was opened */
};

/* Open a way out to the descriptor `terminal`, which stays the caller's. STATUS_IO: no descriptor for it.
 * Where nothing can be gathered, all goes out as it is written. */
enum status outlet_open(struct outlet *outlet, int terminal);

void outlet_close(struct outlet *outlet);

/* From here on what is written to the file is gathered... */
void outlet_begin(struct outlet *outlet);

/* ...and here it goes to the terminal, with as few writes as it takes (one, where there is room). Waits while
 * the terminal takes nothing. */
void outlet_end(struct outlet *outlet);

/* A text to where the file leads now. */
void outlet_write(struct outlet *outlet, const char *bytes);

#endif
