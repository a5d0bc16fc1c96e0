/* A screen of the console as a picture: the very scene that a terminal would show, as SVG. */
#ifndef TOWERSCOPE_CLI_SVG_H
#define TOWERSCOPE_CLI_SVG_H

#include "tui/app.h"

struct svg_options {
    const char *record; /* run folder or events file */
    const char *file;   /* to write; replaced whole */
    int64_t at;         /* the last step shown; WIRE_UNKNOWN_INT: all of the record */
    const char *screen; /* its name ("why"); NULL: Towers */
    int rows, cols;
};

/* STATUS_BAD_INPUT: no such screen (they are named); STATUS_IO; what reading a record says. */
enum status svg_draw(const struct svg_options *options, const struct app_options *app);

#endif
