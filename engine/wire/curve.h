/* The curves of a run: points in the order of their steps, bounded, shared by copies of a state.
 *
 * A copy costs nothing: it reads the same points up to its own count. Points are only ever appended in place;
 * whoever has to change one gets a store of its own first. A copy that goes the way of the others finds its
 * points written and goes on sharing them. Copies of one state belong to one thread. */
#ifndef TOWERSCOPE_ENGINE_WIRE_CURVE_H
#define TOWERSCOPE_ENGINE_WIRE_CURVE_H

#include <stdint.h>

#include "engine/wire/state.h"
#include "kernels/status.h"

enum { CURVE_POINTS = 40000, CURVE_TOWER_POINTS = 4000000 };

struct curve_store; /* counted references */

struct curve { /* what one state sees */
    struct curve_store *store;
    struct state_curve_point *points;
    struct state_tower_point *tower_points;
    int64_t point_count, tower_point_count;
};

/* STATUS_NO_MEMORY. */
enum status curve_open(struct curve *curve);
void curve_close(struct curve *curve);

/* A second reader of the same points; never fails. */
struct curve curve_share(const struct curve *curve);

/* Append a point with its towers (point->first_tower is set here). When the store is full the older half of
 * the points is merged pair by pair: minimum and maximum are kept, a value that is not finite wins. */
enum status curve_append(struct curve *curve, const struct state_curve_point *point,
                         const struct state_tower_point *towers);

/* Forget the points beyond `step`. */
void curve_drop(struct curve *curve, int64_t step);

#endif
