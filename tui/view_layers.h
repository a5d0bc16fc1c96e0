/* The third screen: the layers, with the sizes of parameters, gradients and updates, and how they went. */
#ifndef TOWERSCOPE_TUI_VIEW_LAYERS_H
#define TOWERSCOPE_TUI_VIEW_LAYERS_H

#include "tui/keymap.h"
#include "tui/scene.h"

enum { LAYERS_MOST = 64, LAYERS_PAST = 48 };

struct layers_view {
    int scroll;
    uint64_t generation;
    int64_t step;                         /* newest that is in the past */
    int count;                            /* samples */
    float past[LAYERS_MOST][LAYERS_PAST]; /* gradient norms, the oldest first */
    bool wrong[LAYERS_PAST];              /* a wrong rule was in force then */
};

bool layers_view_act(struct layers_view *view, enum action action);
void layers_view_draw(struct layers_view *view, const struct scene *scene, struct box body);

#endif
