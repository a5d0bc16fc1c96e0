/* The keys and the commands, from the tables that carry them out. */
#ifndef TOWERSCOPE_TUI_VIEW_HELP_H
#define TOWERSCOPE_TUI_VIEW_HELP_H

#include "tui/keymap.h"
#include "tui/scene.h"

struct help_view {
    int scroll;
    int page;
};

bool help_view_act(struct help_view *view, enum action action);
void help_view_draw(struct help_view *view, struct canvas *canvas, const struct keymap *keymap,
                    unsigned where, struct box body);

#endif
