/* The first screen: each tower's losses in a row, under a rule their average in the same columns, and the
 * curves. */
#ifndef TOWERSCOPE_TUI_VIEW_TOWERS_H
#define TOWERSCOPE_TUI_VIEW_TOWERS_H

#include "tui/curves.h"
#include "tui/keymap.h"
#include "tui/layout.h"
#include "tui/scene.h"

struct towers_view {
    int scroll;                   /* the first tower shown, of those that pass the filter */
    int page;                     /* rows that scroll, from the last drawing */
    int focus;                    /* the plot shown where there is room for one */
    int64_t cursor;               /* the step the cursor stands on; WIRE_UNKNOWN_INT: none */
    int64_t shown_from, shown_to; /* steps on the axis, from the last drawing */
    char filter[64];              /* towers shown: "0,2,8-11"; "": all */
    struct curves curves[CURVE_QUANTITIES];
    struct axis values[CURVE_QUANTITIES];
};

void towers_view_init(struct towers_view *view);
void towers_view_free(struct towers_view *view);

/* What a key does here; false: nothing. */
bool towers_view_act(struct towers_view *view, enum action action, const struct run_state *state);

void towers_view_draw(struct towers_view *view, const struct scene *scene, struct box body);

/* Whether a tower passes a filter. STATUS_BAD_INPUT from _check: it is not a list of numbers and ranges. */
bool towers_filter_passes(const char *filter, int tower);
enum status towers_filter_check(const char *filter);

#endif
