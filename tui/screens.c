#include "tui/screens.h"

#include <string.h>

static const struct {
    enum action action;
    unsigned where;
} table[SCREENS] = {
    [SCREEN_TOWERS] = {ACTION_TOWERS, 0},
    [SCREEN_WHY] = {ACTION_WHY, WHERE_ON_WHY},
    [SCREEN_LOG] = {ACTION_LOG, 0},
};

void screens_init(struct screens *screens) {
    memset(screens, 0, sizeof *screens);
    screens->why.asked_step = WIRE_UNKNOWN_INT;
}

enum screen screens_opened(enum action action) {
    for (int i = 0; i < SCREENS; i++)
        if (table[i].action == action)
            return (enum screen)i;
    return SCREENS;
}

enum action screens_opening(enum screen screen) {
    return table[screen].action;
}

unsigned screens_where(enum screen screen) {
    return table[screen].where;
}

void screens_change(enum screen from, enum screen to, struct view_orders *orders) {
    if (from == to)
        return;
    if (from == SCREEN_WHY)
        orders_add(orders, "why off");
    if (to == SCREEN_WHY)
        orders_add(orders, "why on");
}

bool screens_act(struct screens *screens, enum screen screen, enum action action, const struct scene *scene,
                 bool replay, struct view_orders *orders) {
    switch (screen) {
    case SCREEN_WHY:
        return why_view_act(&screens->why, action, scene, replay, orders);
    default:
        return false;
    }
}

void screens_due(struct screens *screens, enum screen screen, const struct scene *scene,
                 struct view_orders *orders) {
    if (screen == SCREEN_WHY)
        why_view_due(&screens->why, scene, orders);
}

void screens_draw(struct screens *screens, enum screen screen, const struct scene *scene, struct box body) {
    if (screen == SCREEN_WHY)
        why_view_draw(&screens->why, scene, body);
}
