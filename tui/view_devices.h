/* The fourth screen: the devices, and one step as a bar per tower. What is not known is shown as unknown. */
#ifndef TOWERSCOPE_TUI_VIEW_DEVICES_H
#define TOWERSCOPE_TUI_VIEW_DEVICES_H

#include "tui/keymap.h"
#include "tui/scene.h"

struct devices_view {
    int scroll; /* the first tower shown */
};

bool devices_view_act(struct devices_view *view, enum action action);
void devices_view_draw(struct devices_view *view, const struct scene *scene, struct box body);

#endif
