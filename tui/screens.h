/* The screens that look into a run: which there are, what their keys do, and what coming and going asks of
 * the run. */
#ifndef TOWERSCOPE_TUI_SCREENS_H
#define TOWERSCOPE_TUI_SCREENS_H

#include "tui/view_devices.h"
#include "tui/view_images.h"
#include "tui/view_layers.h"
#include "tui/view_why.h"

enum screen {
    SCREEN_TOWERS,
    SCREEN_WHY,
    SCREEN_LAYERS,
    SCREEN_DEVICES,
    SCREEN_IMAGES,
    SCREEN_SCALING,
    SCREEN_LOG,
    SCREENS
};

struct screens {
    struct why_view why;
    struct layers_view layers;
    struct devices_view devices;
    struct images_view images;
};

void screens_init(struct screens *screens);
void screens_free(struct screens *screens);

/* The screen that an action opens; SCREENS: it opens none. And the action that opens a screen. */
enum screen screens_opened(enum action action);
enum action screens_opening(enum screen screen);

/* Where keys mean something on that screen: WHERE_ON_... or 0. */
unsigned screens_where(enum screen screen);

/* Leaving a screen for another: what is asked of the run. */
void screens_change(enum screen from, enum screen to, struct view_orders *orders);

/* A key on a screen other than Towers and Log; false: it does nothing there. */
bool screens_act(struct screens *screens, enum screen screen, enum action action, const struct scene *scene,
                 bool replay, struct view_orders *orders);

/* What the screen asks of the run without a key. Only where commands may be sent. */
void screens_due(struct screens *screens, enum screen screen, const struct scene *scene,
                 struct view_orders *orders);

void screens_draw(struct screens *screens, enum screen screen, const struct scene *scene, struct box body);

#endif
