/* Dots finer than a character: braille (2x4 a cell), quarter blocks (2x2) or ASCII (1x3). Curves are drawn as
 * dots; each cell then becomes one character in the style of the strongest curve that touches it. */
#ifndef TOWERSCOPE_TUI_RASTER_H
#define TOWERSCOPE_TUI_RASTER_H

#include "tui/canvas.h"

struct raster {
    int rows, cols;         /* in cells */
    int dot_rows, dot_cols; /* in dots */
    enum glyphs glyphs;
    uint8_t *dots; /* [row * cols + col], a bit per dot; those of braille as Unicode numbers them */
    uint8_t *style, *rank;
};

/* Dots per cell. */
int glyphs_across(enum glyphs glyphs);
int glyphs_down(enum glyphs glyphs);

/* An empty raster for `rows` x `cols` cells; false when there is no memory. raster_free afterwards. */
bool raster_init(struct raster *raster, int rows, int cols, enum glyphs glyphs);
void raster_free(struct raster *raster);

/* One dot, counted from the top left; outside is ignored. A cell takes the style of the highest rank in it,
 * and a higher rank drops the dots of lower ones there, so that a strong curve stays thin. */
void raster_dot(struct raster *raster, int row, int col, enum style style, int rank);

/* All dots of a column from one row to another, either order, cut to the raster. */
void raster_column(struct raster *raster, int col, int from, int to, enum style style, int rank);

/* Draw the cells that have dots; the others are left as they are. */
void raster_paint(const struct raster *raster, struct canvas *canvas, int row, int col);

#endif
