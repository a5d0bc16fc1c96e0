/* What stands where nothing can be shown yet. */
#ifndef TOWERSCOPE_TUI_WAITING_H
#define TOWERSCOPE_TUI_WAITING_H

#include "tui/scene.h"

/* Before the first step: what is known of the run, and what it waits for. */
void waiting_draw(const struct scene *scene, struct box box);

#endif
