/* A screen of the console as a picture: the very scene that a terminal would show, as SVG. */
#ifndef TOWERSCOPE_CLI_SVG_H
#define TOWERSCOPE_CLI_SVG_H

#include "tui/app.h"

/* In a smaller one there is no table; a larger one is no screen of a terminal's. */
enum { SVG_COLS_MIN = 40, SVG_ROWS_MIN = 10, SVG_MAX = 500 };

struct svg_options {
    const char *record; /* run folder or events file */
    const char *file;   /* to write; replaced whole */
    int64_t at;         /* the last step shown; WIRE_UNKNOWN_INT: all of the record */
    const char *screen; /* its name ("why"); NULL: Towers */
    int rows, cols;
};

/* STATUS_BAD_INPUT: no such screen (they are named), or the record ends before `at`; STATUS_IO; what reading a record says. */
enum status svg_draw(const struct svg_options *options, const struct app_options *app);

#endif
