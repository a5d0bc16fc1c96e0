/* The parts of the Why screen. */
#ifndef TOWERSCOPE_TUI_WHY_DRAW_H
#define TOWERSCOPE_TUI_WHY_DRAW_H

#include "tui/scene.h"
#include "tui/view_why.h"
#include "tui/why_layout.h"
#include "tui/why_words.h"

struct why_picture { /* what of the step is drawn */
    const struct why_step *step;
    const struct why_view *view;
    const struct why_layout *at;
    enum why_phase phase; /* nothing later than this is shown */
};

/* Batch, shards, collection, totals, gradients, average, update. */
void why_draw_flow(const struct scene *scene, const struct why_picture *picture);

/* The sum of the phase in large type, at the top left of the box; nothing where it has no room. */
void why_draw_sum(const struct scene *scene, const struct why_picture *picture, struct box box);

/* The proof, the table of alternatives, and the selected one in words. */
void why_draw_proof(const struct scene *scene, const struct why_picture *picture);
void why_draw_table(const struct scene *scene, const struct why_picture *picture);
void why_draw_details(const struct scene *scene, const struct why_picture *picture);

/* The alternatives as they stand in the table; before the average only their names. Returns how many. */
int why_alternatives(const struct why_step *step, const struct event_alternative **out);

#endif
