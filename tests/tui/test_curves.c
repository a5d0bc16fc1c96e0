/* Curves in buckets and the axes they stand on: nothing lost, nothing counted twice, whatever way they came
 * in. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/stream.h"
#include "tui/axis.h"
#include "tui/curves.h"

/* A state of points only; the towers' losses are those of the average and half of it. */
static struct run_state *points_new(int64_t count) {
    struct run_state *state = state_new();
    assert_non_null(state);
    for (int64_t i = 1; i <= count; i++) {
        struct event_step_tower towers[2];
        struct event event = event_new(EVENT_STEP);
        memset(towers, 0, sizeof towers);
        event.seq = i;
        event.time = (double)i;
        event.step.step = i;
        event.step.loss = 2 + sin((double)i);
        event.step.grad_norm = 1;
        event.step.grad_norm_mean = 1.5;
        event.step.tower_count = 2;
        event.step.towers = towers;
        for (int k = 0; k < 2; k++) {
            towers[k].loss = event.step.loss / (k + 1);
            towers[k].grad_norm = 1;
        }
        if (i == 777)
            event.step.loss = 50; /* a spike of one step */
        if (i == 900)
            event.step.loss = NAN;
        if (i == 950)
            event.step.loss = -1;
        assert_int_equal(state_apply(state, &event), STATUS_OK);
    }
    return state;
}

static struct curves_request request(int64_t last, int columns) {
    struct curves_request r = {.quantity = CURVE_LOSS, .columns = columns, .generation = 1, .tower_count = 2};
    r.steps = axis_steps(1, last, 0, WIRE_UNKNOWN_INT, false);
    r.towers[1] = 1;
    return r;
}

static void samples_are_kept(void **state) {
    (void)state;
    struct run_state *run = points_new(1000);
    struct curves curves = {0};
    struct curves_request r = request(1000, 40);
    assert_true(curves_update(&curves, run, &r));
    const struct bucket *average = curves_series(&curves, SERIES_AVERAGE);
    int64_t count = 0, bad = 0, negative = 0;
    float high = -INFINITY, low = INFINITY;
    for (int c = 0; c < 40; c++) {
        count += average[c].count;
        bad += average[c].bad;
        negative += average[c].negative;
        high = fmaxf(high, average[c].high);
        low = fminf(low, average[c].low);
    }
    assert_int_equal(count, 999);
    assert_int_equal(bad, 1);
    assert_int_equal(negative, 1);
    assert_true(high >= 50); /* the spike */
    assert_true(low <= -1);
    double from, to;
    assert_true(curves_range(&curves, true, &from, &to));
    assert_true(from > 0);
    curves_free(&curves);
    state_free(run);
}

/* The same buckets, whether the points came one by one or all at once. */
static void as_they_come(void **state) {
    (void)state;
    struct run_state *whole = points_new(600);
    struct curves one = {0}, other = {0};
    struct curves_request r = request(600, 77);
    r.smoothing = 0.9;
    assert_true(curves_update(&one, whole, &r));
    for (int64_t count = 1; count <= 600; count += 13) {
        struct run_state *part = points_new(count);
        assert_true(curves_update(&other, part, &r));
        state_free(part);
    }
    assert_true(curves_update(&other, whole, &r));
    assert_memory_equal(one.buckets, other.buckets, (size_t)one.series * 77 * sizeof *one.buckets);
    curves_free(&one);
    curves_free(&other);
    state_free(whole);
}

/* A run that went back, and another past, are gathered anew. */
static void going_back(void **state) {
    (void)state;
    struct run_state *longer = points_new(500), *shorter = points_new(200);
    struct curves curves = {0}, fresh = {0};
    struct curves_request r = request(500, 50);
    assert_true(curves_update(&curves, longer, &r));
    assert_true(curves_update(&curves, shorter, &r));
    assert_true(curves_update(&fresh, shorter, &r));
    assert_memory_equal(curves.buckets, fresh.buckets, (size_t)fresh.series * 50 * sizeof *fresh.buckets);
    r.generation = 2;
    assert_true(curves_update(&curves, longer, &r));
    assert_int_equal(curves.taken, 500);
    curves_free(&curves);
    curves_free(&fresh);
    state_free(longer);
    state_free(shorter);
}

/* The range of many towers is that of their finite values. */
static void ranges(void **state) {
    (void)state;
    const double losses[][5] = {{3, 1, 2, 5, 4},
                                {NAN, 1, HUGE_VAL, 5, -HUGE_VAL},
                                {-HUGE_VAL, NAN, NAN, -2, NAN},
                                {NAN, NAN, HUGE_VAL, HUGE_VAL, NAN}};
    const float low[] = {1, 1, -2, INFINITY}, high[] = {5, 5, -2, -INFINITY};
    for (int i = 0; i < 4; i++) {
        struct event_step_tower towers[5];
        struct event event = event_new(EVENT_STEP);
        memset(towers, 0, sizeof towers);
        for (int k = 0; k < 5; k++)
            towers[k].loss = losses[i][k];
        event.seq = event.step.step = 1;
        event.step.tower_count = 5;
        event.step.towers = towers;
        struct run_state *run = state_new();
        assert_int_equal(state_apply(run, &event), STATUS_OK);
        struct curves curves = {0};
        struct curves_request r = request(1, 1);
        r.tower_count = -1;
        assert_true(curves_update(&curves, run, &r));
        assert_true(curves_series(&curves, SERIES_TOWERS)[0].low == low[i]);
        assert_true(curves_series(&curves, SERIES_TOWERS + 1)[0].high == high[i]);
        curves_free(&curves);
        state_free(run);
    }
}

/* The columns under a wrong rule know its number, and no others do. */
static void wrong_rules(void **state) {
    (void)state;
    struct stream_script script = {
        .towers = 2, .steps = 1000, .applied = "last", .applied_after = 300, .applied_until = 500};
    struct run_state *run = stream_state(&script);
    struct curves curves = {0};
    struct curves_request r = request(1000, 100);
    assert_non_null(run);
    assert_true(curves_update(&curves, run, &r));
    const struct bucket *average = curves_series(&curves, SERIES_AVERAGE);
    int first = -1, last = -1, count = 0;
    for (int c = 0; c < 100; c++)
        if (average[c].applied) {
            assert_string_equal(run->rules[average[c].applied - 1], "last");
            first = first < 0 ? c : first;
            last = c;
            count++;
        }
    assert_in_range(first, (int)floor(100 * axis_place(&r.steps, 301)), 31);
    assert_int_equal(last, (int)floor(100 * axis_place(&r.steps, 500)));
    assert_int_equal(count, last - first + 1);
    curves_free(&curves);
    state_free(run);
}

static void range_of_many(void **state) {
    (void)state;
    struct run_state *run = points_new(100);
    struct curves curves = {0};
    struct curves_request r = request(100, 10);
    r.tower_count = -1;
    assert_true(curves_update(&curves, run, &r));
    const struct bucket *low = curves_series(&curves, SERIES_TOWERS),
                        *high = curves_series(&curves, SERIES_TOWERS + 1);
    for (int c = 0; c < 10; c++)
        assert_true(low[c].high <= high[c].high && low[c].count == high[c].count);
    assert_null(curves_series(&curves, SERIES_TOWERS + 2));
    curves_free(&curves);
    state_free(run);
}

/* ---- axes */

static void value_axes_hold_their_values(void **state) {
    (void)state;
    static const double values[] = {-1e9, -3.7, -1e-9, 0, 1e-12, 0.03, 0.97, 1, 4.676, 12345, 1e30};
    enum { VALUES = sizeof values / sizeof *values };
    for (int a = 0; a < VALUES; a++)
        for (int b = a; b < VALUES; b++)
            for (int ticks = 1; ticks < 8; ticks++)
                for (int log = 0; log < 2; log++) {
                    struct axis axis = axis_values(values[a], values[b], ticks, log);
                    assert_true(axis.low < axis.high);
                    if (!log) {
                        double slack = 1e-6 * (axis.high - axis.low);
                        assert_true(axis.low <= values[a] + slack && axis.high >= values[b] - slack);
                    } else {
                        assert_true(axis.low > 0);
                    }
                    double at[16];
                    int count = axis_ticks(&axis, at, 16);
                    for (int i = 0; i < count; i++) {
                        double place = axis_place(&axis, at[i]);
                        assert_true(place >= -1e-6 && place <= 1 + 1e-6);
                        assert_true(i == 0 || at[i] > at[i - 1]);
                    }
                }
    struct axis odd = axis_values(NAN, INFINITY, 4, true);
    assert_true(odd.low < odd.high);
}

/* The axis of steps stands still while the run goes on: it jumps a few times in a run, and always holds the
 * step. */
static void step_axes_jump(void **state) {
    (void)state;
    int jumps = 0;
    struct axis last = axis_steps(1, 1, 0, WIRE_UNKNOWN_INT, false);
    for (int64_t step = 1; step <= 20000; step++) {
        struct axis axis = axis_steps(1, step, 0, WIRE_UNKNOWN_INT, false);
        assert_true(axis.low <= (double)step && axis.high >= (double)step);
        jumps += axis.high > last.high;
        last = axis;
        axis = axis_steps(1, step, 1000, WIRE_UNKNOWN_INT, false);
        assert_true(axis.low <= (double)step && axis.high >= (double)step && axis.high - axis.low <= 1250);
    }
    assert_in_range(jumps, 10, 40);
    struct axis planned = axis_steps(1, 990, 0, 1000, false);
    assert_true(!(fabs(planned.high - 1000) > 1e-9));
    struct axis ended = axis_steps(1, 990, 0, 1000, true);
    assert_true(!(fabs(ended.high - 990) > 1e-9));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_kept),
        cmocka_unit_test(as_they_come),
        cmocka_unit_test(going_back),
        cmocka_unit_test(ranges),
        cmocka_unit_test(wrong_rules),
        cmocka_unit_test(range_of_many),
        cmocka_unit_test(value_axes_hold_their_values),
        cmocka_unit_test(step_axes_jump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
