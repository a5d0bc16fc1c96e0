#include "tui/screens.h"

#include <string.h>

#include "tui/view_scaling.h"

static const struct {
    enum action action;
    unsigned where;
} table[SCREENS] = {
    [SCREEN_TOWERS] = {ACTION_TOWERS, 0},
    [SCREEN_WHY] = {ACTION_WHY, WHERE_ON_WHY},
    [SCREEN_LAYERS] = {ACTION_LAYERS, 0},
    [SCREEN_DEVICES] = {ACTION_DEVICES, 0},
    [SCREEN_IMAGES] = {ACTION_IMAGES, WHERE_ON_IMAGES},
    [SCREEN_SCALING] = {ACTION_SCALING, 0},
    [SCREEN_LOG] = {ACTION_LOG, 0},
};

void screens_init(struct screens *screens) {
    memset(screens, 0, sizeof *screens);
    screens->why.asked_step = WIRE_UNKNOWN_INT;
}

void screens_free(struct screens *screens) {
    why_view_free(&screens->why);
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
}

bool screens_act(struct screens *screens, enum screen screen, enum action action, const struct scene *scene,
                 bool replay, struct view_orders *orders) {
    switch (screen) {
    case SCREEN_WHY:
        return why_view_act(&screens->why, action, scene, replay, orders);
    case SCREEN_LAYERS:
        return layers_view_act(&screens->layers, action);
    case SCREEN_DEVICES:
        return devices_view_act(&screens->devices, action);
    case SCREEN_IMAGES:
        return images_view_act(&screens->images, action, scene, replay, orders);
    default:
        return false;
    }
}

void screens_due(struct screens *screens, enum screen screen, const struct scene *scene,
                 struct view_orders *orders) {
    if (screen == SCREEN_WHY)
        why_view_due(&screens->why, scene, orders);
    if (screen == SCREEN_IMAGES)
        images_view_due(&screens->images, scene, orders);
}

void screens_draw(struct screens *screens, enum screen screen, const struct scene *scene, struct box body) {
    switch (screen) {
    case SCREEN_WHY:
        why_view_draw(&screens->why, scene, body);
        break;
    case SCREEN_LAYERS:
        layers_view_draw(&screens->layers, scene, body);
        break;
    case SCREEN_DEVICES:
        devices_view_draw(&screens->devices, scene, body);
        break;
    case SCREEN_IMAGES:
        images_view_draw(&screens->images, scene, body);
        break;
    case SCREEN_SCALING:
        scaling_draw(scene, body);
        break;
    default:
        break;
    }
}
