/* The first line: which run, how it is, where it is. */
#ifndef TOWERSCOPE_TUI_HEADER_H
#define TOWERSCOPE_TUI_HEADER_H

#include "tui/scene.h"

/* alone: there is no other line, so the loss stands here too. run: the name before the run says it. */
void header_draw(const struct scene *scene, struct box box, const char *run, bool alone);

#endif
