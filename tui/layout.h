/* Where everything stands, from the size of the terminal and the number of towers alone: pure geometry, the
 * same for the same input, for every size from 1x1 up. A part that has no room has no rows (or columns).
 * Nothing overlaps and nothing lies outside; tests/tui sweeps every size to prove it. */
#ifndef TOWERSCOPE_TUI_LAYOUT_H
#define TOWERSCOPE_TUI_LAYOUT_H

#include <stdbool.h>

#include "tui/canvas.h"

/* The frame around every screen. */
struct frame_layout {
    struct box header, rule, body;
    struct box message; /* command results, alarms, the prompt; the footer's line where there is no room */
    struct box footer;
    bool message_shares_footer;
};

void layout_frame(int rows, int cols, struct frame_layout *out);

enum tower_column {
    COLUMN_TOWER,
    COLUMN_WORKER,
    COLUMN_IMAGES,
    COLUMN_CROSS_ENTROPY,
    COLUMN_WEIGHT_DECAY,
    COLUMN_LOSS,
    COLUMN_GRAD_NORM,
    COLUMN_COSINE,
    COLUMN_TIME,
    TOWER_COLUMNS
};

struct column_span {
    int col, cols; /* cols 0: not shown */
};

struct towers_layout {
    struct box heads, towers, sum_rule, average, note, plot_rule;
    struct box plot[2]; /* loss, gradient norm */
    /* One row a tower when range_row is false; with more towers than rows the first `scrolling` rows scroll
     * and the last `pinned` hold the extremes. range_row: one row with the range over all towers. */
    bool range_row;
    int scrolling, pinned;
    struct column_span columns[TOWER_COLUMNS];
    bool long_heads; /* "cross-entropy" rather than "CE" */
    bool cosine_bar; /* a bar beside the cosine */
};

/* `body` of the frame; towers: how many there are (0: not known yet); worker_cols: columns the longest device
 * name wants. */
void layout_towers(struct box body, int towers, int worker_cols, struct towers_layout *out);

/* The parts of one plot. `label_cols` is the width of the numbers at the left. */
struct plot_layout {
    struct box caption, markers, labels, area, steps;
};

void layout_plot(struct box box, struct plot_layout *out);

#endif
