#include "engine/wire/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct curve_store {
    int references;
    int64_t points_written, tower_points_written;
    struct state_curve_point *points;
    struct state_tower_point *tower_points;
};

/* Address space for the largest curve; the system gives memory as it is written. So a pointer into a curve
 * stays good while it grows. */
static void *reserve(size_t bytes) {
    void *place =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return place == MAP_FAILED ? NULL : place;
}

enum {
    POINT_BYTES = CURVE_POINTS * sizeof(struct state_curve_point),
    TOWER_BYTES = CURVE_TOWER_POINTS * sizeof(struct state_tower_point)
};

static void store_free(struct curve_store *store) {
    if (!store || --store->references > 0)
        return;
    if (store->points)
        munmap(store->points, POINT_BYTES);
    if (store->tower_points)
        munmap(store->tower_points, TOWER_BYTES);
    free(store);
}

enum status curve_open(struct curve *curve) {
    struct curve_store *store = calloc(1, sizeof *store);
    if (store) {
        store->references = 1;
        store->points = reserve(POINT_BYTES);
        store->tower_points = reserve(TOWER_BYTES);
    }
    if (!store || !store->points || !store->tower_points) {
        store_free(store);
        return status_fail(STATUS_NO_MEMORY, "no memory for the curves of a run");
    }
    *curve = (struct curve){store, store->points, store->tower_points, 0, 0};
    return STATUS_OK;
}

void curve_close(struct curve *curve) {
    store_free(curve->store);
    *curve = (struct curve){0};
}

struct curve curve_share(const struct curve *curve) {
    curve->store->references++;
    return *curve;
}

/* Make the store one that may be written from this curve's end on (`changing`: anywhere). */
static enum status make_own(struct curve *curve, bool changing) {
    struct curve_store *store = curve->store;
    if (store->references == 1) {
        store->points_written = curve->point_count;
        store->tower_points_written = curve->tower_point_count;
        return STATUS_OK;
    }
    if (!changing && store->points_written == curve->point_count &&
        store->tower_points_written == curve->tower_point_count)
        return STATUS_OK;
    struct curve own;
    STATUS_TRY(curve_open(&own));
    memcpy(own.points, curve->points, (size_t)curve->point_count * sizeof *own.points);
    memcpy(own.tower_points, curve->tower_points,
           (size_t)curve->tower_point_count * sizeof *own.tower_points);
    own.point_count = own.store->points_written = curve->point_count;
    own.tower_point_count = own.store->tower_points_written = curve->tower_point_count;
    store_free(store);
    *curve = own;
    return STATUS_OK;
}

static struct state_curve_point merge(const struct state_curve_point *a, const struct state_curve_point *b) {
    struct state_curve_point kept = !isfinite(a->loss) && isfinite(b->loss) ? *a : *b;
    kept.loss_min = fmin(a->loss_min, b->loss_min);
    kept.loss_max = fmax(a->loss_max, b->loss_max);
    kept.grad_norm_max = fmax(a->grad_norm_max, b->grad_norm_max);
    kept.applied = b->applied ? b->applied : a->applied;
    return kept;
}

/* Half of the older half goes. */
static enum status thin(struct curve *curve) {
    STATUS_TRY(make_own(curve, true));
    int64_t pairs = curve->point_count / 4, out = 0, towers = 0;
    for (int64_t in = 0; in < curve->point_count; out++) {
        struct state_curve_point point = curve->points[in];
        if (out < pairs) {
            point = merge(&curve->points[in], &curve->points[in + 1]);
            in += 2;
        } else {
            in++;
        }
        memmove(curve->tower_points + towers, curve->tower_points + point.first_tower,
                (size_t)point.tower_count * sizeof *curve->tower_points);
        point.first_tower = towers;
        towers += point.tower_count;
        curve->points[out] = point;
    }
    curve->point_count = curve->store->points_written = out;
    curve->tower_point_count = curve->store->tower_points_written = towers;
    return STATUS_OK;
}

/* Whether the store holds this very point behind the curve's end, written by another reader of it: a state of
 * the same run that is further on. */
static bool is_there(const struct curve *curve, const struct state_curve_point *point,
                     const struct state_tower_point *towers) {
    const struct curve_store *store = curve->store;
    if (curve->point_count >= store->points_written ||
        curve->tower_point_count + point->tower_count > store->tower_points_written)
        return false;
    const struct state_curve_point *there = &curve->points[curve->point_count];
    return there->first_tower == curve->tower_point_count && there->tower_count == point->tower_count &&
           there->applied == point->applied &&
           !memcmp(there, point, offsetof(struct state_curve_point, first_tower)) &&
           !memcmp(curve->tower_points + curve->tower_point_count, towers,
                   (size_t)point->tower_count * sizeof *towers);
}

enum status curve_append(struct curve *curve, const struct state_curve_point *point,
                         const struct state_tower_point *towers) {
    if (point->tower_count > CURVE_TOWER_POINTS / 8)
        return status_fail(STATUS_BAD_INPUT, "a step of %d towers", point->tower_count);
    while (curve->point_count >= CURVE_POINTS ||
           curve->tower_point_count + point->tower_count > CURVE_TOWER_POINTS)
        STATUS_TRY(thin(curve));
    if (is_there(curve, point, towers)) {
        curve->point_count++;
        curve->tower_point_count += point->tower_count;
        return STATUS_OK;
    }
    STATUS_TRY(make_own(curve, false));
    struct state_curve_point *new = &curve->points[curve->point_count++];
    *new = *point;
    new->first_tower = curve->tower_point_count;
    memcpy(curve->tower_points + curve->tower_point_count, towers,
           (size_t)point->tower_count * sizeof *towers);
    curve->tower_point_count += point->tower_count;
    curve->store->points_written = curve->point_count;
    curve->store->tower_points_written = curve->tower_point_count;
    return STATUS_OK;
}

void curve_drop(struct curve *curve, int64_t step) {
    int64_t low = 0, high = curve->point_count; /* the first point beyond `step` */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (curve->points[middle].step > step)
            high = middle;
        else
            low = middle + 1;
    }
    if (low < curve->point_count)
        curve->tower_point_count = curve->points[low].first_tower;
    curve->point_count = low;
}
