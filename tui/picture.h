/* Images as half blocks: two pixels a cell, one above the other, in tones that a terminal of 256 colours has;
 * elsewhere the cell's brightness as a character. */
#ifndef TOWERSCOPE_TUI_PICTURE_H
#define TOWERSCOPE_TUI_PICTURE_H

#include "engine/wire/event.h"
#include "tui/canvas.h"

/* Draw the image as large as the box allows without stretching it, at most two pixels a cell. False: there
 * are no pixels, or too many to be an image of a data set. Returns the columns it took in *cols (may be
 * NULL). */
bool picture_draw(struct canvas *canvas, struct box box, const struct event_image *image, int *cols);

/* Columns and rows that a picture of this size takes in `rows` x `cols` cells. */
void picture_fit(int64_t width, int64_t height, int rows, int cols, int *out_rows, int *out_cols);

#endif
