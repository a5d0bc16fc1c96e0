/* From scene to terminal: only the cells that differ from the last scene are put. */
#ifndef TOWERSCOPE_TUI_PAINT_H
#define TOWERSCOPE_TUI_PAINT_H

#include "tui/canvas.h"

struct painter {
    struct canvas *shown; /* what the terminal shows; NULL: unknown */
};

/* Bring the scene to the terminal. False when there is no memory: nothing is drawn. */
bool paint(struct painter *painter, const struct canvas *scene);

/* The terminal's contents are not to be trusted: the next paint puts every cell. */
void paint_distrust(struct painter *painter);

void paint_free(struct painter *painter);

#endif
