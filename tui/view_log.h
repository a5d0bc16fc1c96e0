/* What happened, in words, newest at the bottom; it follows until one scrolls up. */
#ifndef TOWERSCOPE_TUI_VIEW_LOG_H
#define TOWERSCOPE_TUI_VIEW_LOG_H

#include "tui/keymap.h"
#include "tui/scene.h"

struct log_view {
    int64_t up; /* lines scrolled up from the newest; 0 follows */
    int page;
    char filter[64]; /* lines that hold this, whatever the case; "": all */
};

bool log_view_act(struct log_view *view, enum action action);
void log_view_draw(struct log_view *view, const struct scene *scene, struct box body);

#endif
