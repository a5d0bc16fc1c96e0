/* One plot: caption, markers, curves over fixed axes, and what the axes say. */
#ifndef TOWERSCOPE_TUI_PLOT_H
#define TOWERSCOPE_TUI_PLOT_H

#include "engine/wire/state.h"
#include "tui/curves.h"
#include "tui/layout.h"

struct plot {
    const char *title;
    const char *legend;          /* what is faint and what is strong */
    const char *setting;         /* at the right: "log · last 1 000 · smoothed" */
    const struct curves *curves; /* gathered over curves->request.columns dot columns */
    bool log;                    /* the values' axis */
    struct axis *values;         /* the axis of the last drawing, kept while it fits; all zero: none yet */
    bool smoothed;               /* draw the moving average, the samples faint behind it */
    bool quiet;                  /* without what is faint behind the average: fewer bytes */
    int64_t cursor;              /* a step to mark; WIRE_UNKNOWN_INT: none */
    const char (*rules)[STATE_RULE_NAME]; /* names for bucket.applied - 1 */
    const struct state_marker *markers;
    int64_t marker_count;
};

/* Dot columns of a plot in this box: what curves_request.columns must be. */
int plot_columns(struct box box, enum glyphs glyphs);

/* Draw it. Without a bucket that holds a value there are axes and no curve. */
void plot_draw(struct canvas *canvas, struct box box, const struct plot *plot);

#endif
