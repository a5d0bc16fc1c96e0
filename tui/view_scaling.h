/* The sixth screen: what more towers would give, worked out from the measured phases of the newest step, with
 * a fixed batch and with one that grows; and the batch against the noise scale. */
#ifndef TOWERSCOPE_TUI_VIEW_SCALING_H
#define TOWERSCOPE_TUI_VIEW_SCALING_H

#include "tui/scene.h"

/* What the model is fed with. */
struct scaling {
    double image_ms; /* forward and backward of one image on one tower */
    double update_ms;
    double bytes;      /* of the gradient */
    double bandwidth;  /* bytes a millisecond of the averaging, as measured */
    double latency_ms; /* of one message, assumed */
    int64_t images, towers;
    bool known;
};

void scaling_measure(struct scaling *out, const struct run_state *state);

/* A step of `towers` towers with `images` in all, each tower on a device of its own, in ms: the largest
 * shard's forward and backward, a ring all-reduce of the gradient, the update. The ring: 2(N-1)/N * bytes /
 * bandwidth + 2(N-1) * latency (Patarasuk and Yuan 2009; Thakur, Rabenseifner and Gropp 2005). */
double scaling_step(const struct scaling *scaling, int64_t towers, int64_t images);

void scaling_draw(const struct scene *scene, struct box body);

#endif
