/* The second screen: a step taken apart. Left to right as the data goes: batch, shards, the collection of
 * losses and the scope, totals, gradients, average, update; under it the proof and the wrong ways. */
#ifndef TOWERSCOPE_TUI_VIEW_WHY_H
#define TOWERSCOPE_TUI_VIEW_WHY_H

#include "tui/keymap.h"
#include "tui/scene.h"
#include "tui/view_orders.h"
#include "tui/why_step.h"

struct why_view {
    int tower;      /* whose scope is looked at */
    bool no_scope;  /* the scope is taken away */
    bool presenter; /* for a room: fewer numbers, more space, whole sentences */
    bool details;   /* the selected rule explained where the flow was */
    int selected;   /* of the alternatives */
    bool back;      /* an earlier phase is looked at: `phase` of `step` */
    enum why_phase phase;
    int64_t step, reached; /* what `back` was about: when the step moves on, it ends */
    int64_t asked_step;    /* images were asked for */
    int asked_tower;
    /* The last picture of a whole step while the run trained on, and where it stood; NULL: none. */
    struct cell *whole;
    struct box whole_at;
};

void why_view_free(struct why_view *view);

/* What a key does here; false: nothing. replay: the phases of a record are walked, nothing is ordered. */
bool why_view_act(struct why_view *view, enum action action, const struct scene *scene, bool replay,
                  struct view_orders *orders);

/* The question before the orders, a command that rewinds, are sent; none if that drops nothing. */
void why_ask_to_rewind(const struct run_state *state, struct view_orders *orders);

/* The question before the orders, a command that applies a wrong rule, are sent. keys: those of the screen
 * act. */
void why_ask_to_apply(const char *rule, bool keys, struct view_orders *orders);

/* Orders that nobody pressed a key for: the pictures of a shard that has just been loaded. */
void why_view_due(struct why_view *view, const struct scene *scene, struct view_orders *orders);

void why_view_draw(struct why_view *view, const struct scene *scene, struct box body);

#endif
