/* The third screen: the layers, with the sizes of parameters, gradients and updates, and how gradients went.
 */
#ifndef TOWERSCOPE_TUI_VIEW_LAYERS_H
#define TOWERSCOPE_TUI_VIEW_LAYERS_H

#include "tui/keymap.h"
#include "tui/scene.h"

struct layers_view {
    int scroll;
};

bool layers_view_act(struct layers_view *view, enum action action);
void layers_view_draw(struct layers_view *view, const struct scene *scene, struct box body);

#endif
