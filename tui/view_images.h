/* The fifth screen: a tower's shard as pictures, what the network took them for, and the confusion matrix of
 * the newest evaluation that made one. */
#ifndef TOWERSCOPE_TUI_VIEW_IMAGES_H
#define TOWERSCOPE_TUI_VIEW_IMAGES_H

#include "tui/keymap.h"
#include "tui/scene.h"
#include "tui/view_orders.h"

struct images_view {
    int tower;
    int64_t first; /* of the shard's images, in eights */
    bool confusion;
    bool asked;
    int64_t asked_step, asked_first;
    int asked_tower;
    char refused[128]; /* why the newest request, for refused_tower, got no images; "": it did */
    int refused_tower;
};

bool images_view_act(struct images_view *view, enum action action, const struct scene *scene, bool replay,
                     struct view_orders *orders);
void images_view_due(struct images_view *view, const struct scene *scene, struct view_orders *orders);
void images_view_draw(struct images_view *view, const struct scene *scene, struct box body);

#endif
