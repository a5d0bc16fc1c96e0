/* A run's curves gathered into buckets, one per dot column of a plot. A bucket keeps the least, the greatest
 * and the mean of its samples, so that a spike of one step is never lost however many steps share a column.
 * Samples are added as they come; only a new axis, a new smoothing or a run that went back gathers everything
 * again. */
#ifndef TOWERSCOPE_TUI_CURVES_H
#define TOWERSCOPE_TUI_CURVES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/wire/state.h"
#include "tui/axis.h"
#include "tui/canvas.h"

enum curve_quantity { CURVE_LOSS, CURVE_GRAD_NORM, CURVE_QUANTITIES };

struct bucket {
    float low, high; /* of the finite samples */
    float least;     /* the least positive sample, for a log axis; infinite: none */
    int32_t applied; /* state.rules[applied - 1] made one of the average's samples; 0: they are right */
    double sum;
    float smooth;     /* the moving average after the last sample */
    int32_t count;    /* finite samples */
    int32_t negative; /* of them at or below 0: a log axis can't place them */
    int32_t bad;      /* samples that are not finite */
};

/* More towers than this are drawn as their range. */
enum { CURVES_TOWERS = 8, CURVES_SERIES = 2 + CURVES_TOWERS };

/* Which series: the average, the mean of the towers' norms (gradient norms only), then the towers, or the
 * lowest and the highest of them all. */
enum { SERIES_AVERAGE, SERIES_MEAN, SERIES_TOWERS };

struct curves_request {
    enum curve_quantity quantity;
    struct axis steps;
    int columns;
    double smoothing;    /* weight of the past in the moving average: 0 (none) to below 1 */
    uint64_t generation; /* of the state: another number, another past */
    int tower_count;     /* towers to draw one by one; -1: the range of all */
    int towers[CURVES_TOWERS];
};

struct curves {
    struct curves_request request;
    int series;             /* in use */
    struct bucket *buckets; /* [series * columns + column] */
    double smooth[CURVES_SERIES];
    bool smooth_begun[CURVES_SERIES];
    int64_t taken;     /* points of the state that are in */
    int64_t last_step; /* of the last of them, to notice a run that went back */
    double last_value;
};

/* Bring the buckets up to date with the state. False when there is no memory (the curves are then empty). An
 * all zero struct curves is empty and ready; curves_free gives its memory back. */
bool curves_update(struct curves *curves, const struct run_state *state,
                   const struct curves_request *request);
void curves_free(struct curves *curves);

/* The buckets of a series, request.columns of them; NULL when it is not there. */
const struct bucket *curves_series(const struct curves *curves, int series);

/* The range of the finite values of every series (for a log axis of the positive ones); false: none yet. With
 * smoothing the raw samples count too. */
bool curves_range(const struct curves *curves, bool log, double *low, double *high);

#endif
