#include "tui/curves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void curves_free(struct curves *curves) {
    free(curves->buckets);
    memset(curves, 0, sizeof *curves);
}

static bool same_request(const struct curves_request *a, const struct curves_request *b) {
    if (a->quantity != b->quantity || a->columns != b->columns || a->generation != b->generation ||
        a->tower_count != b->tower_count || a->smoothing < b->smoothing || a->smoothing > b->smoothing ||
        a->steps.low < b->steps.low || a->steps.low > b->steps.low || a->steps.high < b->steps.high ||
        a->steps.high > b->steps.high)
        return false;
    for (int i = 0; i < a->tower_count; i++)
        if (a->towers[i] != b->towers[i])
            return false;
    return true;
}

static double average_of(const struct state_curve_point *point, enum curve_quantity quantity) {
    return quantity == CURVE_LOSS ? point->loss : point->grad_norm;
}

/* The state still begins with the points that were taken. */
static bool continues(const struct curves *curves, const struct run_state *state) {
    if (curves->taken == 0)
        return true;
    if (curves->taken > state->point_count)
        return false;
    const struct state_curve_point *last = &state->points[curves->taken - 1];
    double value = average_of(last, curves->request.quantity);
    return last->step == curves->last_step && !memcmp(&value, &curves->last_value, sizeof value);
}

static bool start_over(struct curves *curves, const struct curves_request *request) {
    curves->request = *request;
    curves->series = SERIES_TOWERS + (request->tower_count < 0 ? 2 : request->tower_count);
    curves->taken = 0;
    memset(curves->smooth, 0, sizeof curves->smooth);
    memset(curves->smooth_begun, 0, sizeof curves->smooth_begun);
    size_t count = (size_t)curves->series * (size_t)request->columns;
    struct bucket *buckets = realloc(curves->buckets, count * sizeof *buckets);
    if (!buckets) {
        curves_free(curves);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        buckets[i] = (struct bucket){.low = INFINITY, .high = -INFINITY, .least = INFINITY};
    curves->buckets = buckets;
    return true;
}

static void widen(struct bucket *bucket, double value) {
    if (!isfinite(value))
        return;
    float single = (float)value;
    if (single < bucket->low) /* not fminf(): a call, for every sample of a long run */
        bucket->low = single;
    if (single > bucket->high)
        bucket->high = single;
}

/* One sample into its bucket (NULL: outside the axis, only the moving average takes note). */
static void add(struct curves *curves, int series, struct bucket *bucket, double value) {
    if (wire_is_unknown(value))
        return;
    if (!isfinite(value)) {
        if (bucket)
            bucket->bad++;
        return;
    }
    double weight = curves->request.smoothing;
    double *smooth = &curves->smooth[series];
    *smooth = curves->smooth_begun[series] ? weight * *smooth + (1 - weight) * value : value;
    curves->smooth_begun[series] = true;
    if (!bucket)
        return;
    widen(bucket, value);
    if (value > 0)
        bucket->least = fminf(bucket->least, (float)value);
    else
        bucket->negative++;
    bucket->sum += value;
    bucket->count++;
    bucket->smooth = (float)*smooth;
}

static double tower_value(const struct run_state *state, const struct state_curve_point *point, int tower,
                          enum curve_quantity quantity) {
    const struct state_tower_point *t = &state->tower_points[point->first_tower + tower];
    return state_tower_value(quantity == CURVE_LOSS ? t->loss : t->grad_norm);
}

/* Of the finite values; low > high: there is none. */
static void towers_range(const struct state_tower_point *towers, int count, enum curve_quantity quantity,
                         float *low, float *high) {
    const float *values = quantity == CURVE_LOSS ? &towers->loss : &towers->grad_norm;
    enum { STRIDE = sizeof *towers / sizeof *values };
    float least = INFINITY, most = -INFINITY;
    for (int i = 0; i < count; i++) {
        float value = values[i * STRIDE];
        value +=
            0 * value; /* NaN when it is not finite, and NaN is neither: no jump that can't be foretold */
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    *low = least;
    *high = most;
}

static void add_point(struct curves *curves, const struct run_state *state,
                      const struct state_curve_point *point) {
    const struct curves_request *request = &curves->request;
    double place = axis_place(&request->steps, (double)point->step);
    struct bucket *at = NULL;
    if (place >= 0 && place <= 1) {
        int column = (int)floor(place * request->columns);
        at = curves->buckets + (column < request->columns ? column : request->columns - 1);
    }
    size_t stride = (size_t)request->columns;
    add(curves, SERIES_AVERAGE, at, average_of(point, request->quantity));
    if (at && point->applied)
        at->applied = point->applied;
    if (at && request->quantity == CURVE_LOSS) {
        widen(at, point->loss_min);
        widen(at, point->loss_max);
    } else if (at) {
        widen(at, point->grad_norm_max);
    }
    if (request->quantity == CURVE_GRAD_NORM)
        add(curves, SERIES_MEAN, at ? at + stride : NULL, point->grad_norm_mean);
    if (request->tower_count >= 0) {
        for (int i = 0; i < request->tower_count; i++)
            if (request->towers[i] < point->tower_count)
                add(curves, SERIES_TOWERS + i, at ? at + (size_t)(SERIES_TOWERS + i) * stride : NULL,
                    tower_value(state, point, request->towers[i], request->quantity));
        return;
    }
    float low, high;
    towers_range(state->tower_points + point->first_tower, point->tower_count, request->quantity, &low,
                 &high);
    if (low <= high) {
        add(curves, SERIES_TOWERS, at ? at + SERIES_TOWERS * stride : NULL, (double)low);
        add(curves, SERIES_TOWERS + 1, at ? at + (SERIES_TOWERS + 1) * stride : NULL, (double)high);
    }
}

bool curves_update(struct curves *curves, const struct run_state *state,
                   const struct curves_request *request) {
    if (request->columns <= 0)
        return true;
    if (!curves->buckets || !same_request(&curves->request, request) || !continues(curves, state))
        if (!start_over(curves, request))
            return false;
    for (; curves->taken < state->point_count; curves->taken++)
        add_point(curves, state, &state->points[curves->taken]);
    if (curves->taken > 0) {
        const struct state_curve_point *last = &state->points[curves->taken - 1];
        curves->last_step = last->step;
        curves->last_value = average_of(last, request->quantity);
    }
    return true;
}

const struct bucket *curves_series(const struct curves *curves, int series) {
    if (!curves->buckets || series < 0 || series >= curves->series)
        return NULL;
    return curves->buckets + (size_t)series * (size_t)curves->request.columns;
}

bool curves_range(const struct curves *curves, bool log, double *low, double *high) {
    *low = INFINITY;
    *high = -INFINITY;
    if (!curves->buckets)
        return false;
    for (int i = 0; i < curves->series * curves->request.columns; i++) {
        const struct bucket *b = &curves->buckets[i];
        *low = fmin(*low, log ? b->least : b->low);
        *high = fmax(*high, b->high);
    }
    return *low <= *high && (!log || *high > 0);
}
