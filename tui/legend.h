/* What the parts of a bar are drawn with, beside the bars: every part that can be drawn is explained. */
#ifndef TOWERSCOPE_TUI_LEGEND_H
#define TOWERSCOPE_TUI_LEGEND_H

#include "tui/canvas.h"

struct legend_part {
    uint32_t glyph;
    char ascii; /* in its place where there is only ASCII */
    enum style style;
    const char *name, *brief; /* brief: where there is no room for all names */
};

/* Draw `count` parts over the lines, each one row high, in order. The words get shorter and closer until all
 * parts have room; where even that is too much the last are missing. */
void legend_draw(struct canvas *canvas, const struct box *lines, int line_count,
                 const struct legend_part *parts, int count);

/* One cell of a part. */
void legend_put(struct canvas *canvas, int row, int col, const struct legend_part *part, enum style style);

#endif
