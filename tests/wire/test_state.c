/* The fold: what a run looks like from its events, whatever order of trouble they come in. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/wire/curve.h"
#include "engine/wire/state.h"
#include "tests/support/cmocka.h"
#include "tests/support/events.h"
#include "tests/support/fold.h"

static void check_curve(const struct run_state *state) {
    int64_t towers = 0;
    for (int64_t i = 0; i < state->point_count; i++) {
        const struct state_curve_point *point = &state->points[i];
        assert_true(i == 0 || point->step > point[-1].step);
        assert_int_equal(point->first_tower, towers);
        towers += point->tower_count;
        for (int32_t t = 0; t < point->tower_count; t++) {
            float loss = (float)(point->loss + 0.01 * (t % 7 - 3));
            assert_true(fabsf(state->tower_points[point->first_tower + t].loss - loss) < 1e-5f);
        }
    }
    assert_int_equal(state->tower_point_count, towers);
}

static void steps_make_curves(void **context) {
    (void)context;
    struct run_state *state = state_new();
    fold_apply(state, fold_start(1, WIRE_UNKNOWN_INT));
    fold_steps(state, 2, 1, 10, 3);
    fold_steps(state, 12, 11, 15, 5);
    assert_true(state->started && !state->ended && state->missing == 0 && state->last_seq == 16);
    assert_int_equal(state->point_count, 15);
    assert_int_equal(state->tower_point_count, 10 * 3 + 5 * 5);
    assert_int_equal(state->step.step.step, 15);
    assert_int_equal(state->step.step.tower_count, 5);
    assert_string_equal(state->step.step.towers[4].device, "cpu");
    assert_string_equal(state->run_start.run_start.run, "quiet-harbor");
    check_curve(state);
    state_free(state);
}

static void seen_events_and_late_live_steps_change_nothing(void **context) {
    (void)context;
    struct run_state *state = state_new();
    fold_apply(state, fold_start(1, WIRE_UNKNOWN_INT));
    fold_steps(state, 2, 1, 10, 2);
    fold_steps(state, 2, 1, 10, 2); /* file and socket overlap */
    assert_int_equal(state->events, 11);
    fold_steps(state, 0, 12, 12, 2); /* live only */
    fold_steps(state, 0, 9, 9, 2);
    assert_int_equal(state->point_count, 11);
    assert_int_equal(state->step.step.step, 12);
    fold_steps(state, 20, 13, 13, 2); /* a hole */
    assert_int_equal(state->missing, 8);
    check_curve(state);
    state_free(state);
}

static struct event evaluation(int64_t seq, int64_t step, double precision) {
    struct event event = event_new(EVENT_EVAL);
    event.seq = seq;
    event.time = 1700000001;
    event.eval.step = step;
    event.eval.precision = precision;
    event.eval.loss = 0.5;
    return event;
}

static void a_resume_or_rewind_drops_what_lies_beyond(void **context) {
    (void)context;
    struct run_state *state = state_new();
    fold_apply(state, fold_start(1, WIRE_UNKNOWN_INT));
    fold_steps(state, 2, 1, 20, 2);
    fold_apply(state, evaluation(22, 8, 0.5));
    fold_apply(state, evaluation(23, 20, 0.9));
    assert_true(state->best_precision == 0.9 && state->best_step == 20);
    int64_t log = state->log_count;
    fold_apply(state, fold_start(24, 10));
    assert_int_equal(state->point_count, 10);
    assert_int_equal(state->points[9].step, 10);
    assert_true(state->best_precision == 0.5 && state->best_step == 8);
    assert_true(state->at_step == 10 && !state->step.kind && !state->eval.kind);
    assert_int_equal(state->log_count, log + 2); /* that it crashed, that it was resumed */
    assert_int_equal(state->marker_count, 2);
    assert_int_equal(state->markers[1].kind, MARKER_RESUME);
    fold_steps(state, 25, 11, 30, 2);
    struct event rewind = event_new(EVENT_REWIND);
    rewind.seq = 45;
    rewind.rewind.step = 30;
    rewind.rewind.to = 12;
    rewind.rewind.reason = "the loss is not finite";
    fold_apply(state, rewind);
    assert_int_equal(state->point_count, 12);
    assert_int_equal(state->at_step, 12);
    fold_steps(state, 46, 13, 14, 4);
    assert_int_equal(state->point_count, 14);
    check_curve(state);
    struct event end = event_new(EVENT_RUN_END);
    end.seq = 48;
    end.run_end.reason = "done";
    fold_apply(state, end);
    assert_true(state->ended);
    assert_int_equal(state_crashed(state, NULL), STATUS_OK);
    assert_false(state->crashed);
    fold_apply(state, fold_start(49, 14));
    assert_false(state->ended);
    assert_int_equal(state_crashed(state, NULL), STATUS_OK);
    assert_true(state->crashed);
    state_free(state);
}

/* Log and markers write counts as the header does. */
static void counts_in_words(void **context) {
    (void)context;
    struct run_state *state = state_new();
    fold_apply(state, fold_start(1, WIRE_UNKNOWN_INT));
    struct event rewind = event_new(EVENT_REWIND);
    rewind.seq = 2;
    rewind.rewind.step = 1300;
    rewind.rewind.to = 1200;
    rewind.rewind.reason = "step 1301: the loss of tower 0 is not finite";
    fold_apply(state, rewind);
    assert_string_equal(state->log[state->log_count - 1].text,
                        "back to step 1 200: step 1 301: the loss of tower 0 is not finite");
    assert_string_equal(state->markers[state->marker_count - 1].text, "back to 1 200");
    state_free(state);
}

/* The first step plans and allocates: it is forgotten with the second, and after a resume anew. */
static void time_of_a_step(void **context) {
    (void)context;
    struct run_state *state = state_new();
    struct arena arena = {0};
    static const double seconds[] = {5, 0.2, 0.4, 0, 0.3};
    static const double wanted[] = {0.05, 0.002, 0.003, 0.003, 0.003};
    assert_true(wire_is_unknown(state->image_seconds));
    for (int start = 0; start < 2; start++) {
        fold_apply(state, fold_start(1 + 10 * start, start ? 5 : WIRE_UNKNOWN_INT));
        for (int i = 0; i < 5; i++) {
            struct event step = events_step(2 + 10 * start + i, 1 + 5 * start + i, 2, &arena);
            step.step.images = 100;
            step.step.seconds = seconds[i];
            fold_apply(state, step);
            assert_true(!(fabs(state->image_seconds - wanted[i]) > 1e-12));
        }
    }
    state_free(state);
    arena_free(&arena);
}

/* A console may be connected, and hold control, before its run says that it starts. */
static void control_is_of_a_connection(void **context) {
    (void)context;
    struct run_state *state = state_new();
    struct event hello = event_new(EVENT_HELLO), control = event_new(EVENT_CONTROL);
    control.control.holder_user = "ada";
    control.control.yours = true;
    fold_apply(state, hello);
    fold_apply(state, control);
    fold_apply(state, fold_start(1, WIRE_UNKNOWN_INT));
    assert_true(state->control.kind == EVENT_CONTROL && state->control.control.yours);
    fold_apply(state, hello);
    assert_int_equal(state->control.kind, EVENT_NONE);
    state_free(state);
}

static void a_score_that_is_not_finite_is_never_the_best(void **context) {
    (void)context;
    struct run_state *state = state_new();
    fold_apply(state, evaluation(1, 1, (double)NAN));
    assert_true(wire_is_unknown(state->best_precision));
    fold_apply(state, evaluation(2, 2, 0.1));
    struct event bad = evaluation(3, 3, 0.9);
    bad.eval.loss = (double)NAN;
    fold_apply(state, bad);
    assert_true(state->best_precision == 0.1);
    state_free(state);
}

static void long_runs_stay_bounded_and_keep_their_spikes(void **context) {
    (void)context;
    struct run_state *state = state_new();
    struct arena arena = {0};
    struct event event = events_step(1, 1, 2, &arena);
    double first_loss = event.step.loss;
    for (int64_t i = 1; i <= 3 * CURVE_POINTS; i++) {
        event.seq = event.step.step = i;
        event.step.loss = i == 777 ? 1000 : i == 1001 ? (double)NAN : first_loss;
        assert_int_equal(state_apply(state, &event), STATUS_OK);
    }
    assert_true(state->point_count <= CURVE_POINTS && state->point_count > CURVE_POINTS / 2);
    bool spike = false, not_finite = false;
    for (int64_t i = 0; i < state->point_count; i++) {
        assert_true(i == 0 || state->points[i].step > state->points[i - 1].step);
        assert_int_equal(state->points[i].first_tower, 2 * i);
        spike |= state->points[i].loss_max == 1000;
        not_finite |= isnan(state->points[i].loss);
    }
    assert_true(spike && not_finite);
    /* the newest are all there */
    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(state->points[state->point_count - 1 - i].step, 3 * CURVE_POINTS - i);
    for (int i = 0; i < 20000; i++) {
        struct event note = event_new(EVENT_NOTE);
        note.note.text = "again";
        note.note.step = 3 * CURVE_POINTS;
        assert_int_equal(state_apply(state, &note), STATUS_OK);
    }
    assert_true(state->log_count <= 4000 && state->log_count + state->log_dropped == 20000);
    arena_free(&arena);
    state_free(state);
}

static void losses_too_long_for_a_line_come_together(void **context) {
    (void)context;
    struct run_state *state = state_new();
    struct event_term term = {"tower_0/cross_entropy", 1.5};
    for (int part = 0; part < 2; part++)
        for (int64_t seq = 1; seq <= 3; seq++) {
            struct event_losses_tower towers[2] = {{2 * seq - 2, 1, &term}, {2 * seq - 1, 1, &term}};
            struct event event = event_new(EVENT_LOSSES);
            event.seq = 3 * part + seq;
            event.losses = (struct event_losses){5 + part, 2, towers};
            fold_apply(state, event);
            assert_int_equal(state->losses.losses.tower_count, 2 * seq);
            assert_int_equal(state->losses.losses.towers[2 * seq - 1].tower, 2 * seq - 1);
        }
    assert_string_equal(state->losses.losses.towers[5].terms[0].name, "tower_0/cross_entropy");
    state_free(state);
}

static void words_are_safe_to_show(void **context) {
    (void)context;
    struct random random = random_begin(5, RANDOM_TEST, 0);
    for (int i = 0; i < 4000; i++) {
        struct arena arena = {0};
        struct event event = events_fill((enum event_kind)(1 + i % (EVENT_KINDS - 1)), &random, 0.3, &arena);
        char words[200];
        size_t size = 1 + random_below(&random, sizeof words);
        memset(words, 'x', sizeof words);
        int level = event_words(&event, words, size);
        assert_true(level >= 0 && level <= 2 && memchr(words, 0, size));
        for (const char *s = words; *s; s++)
            assert_true((unsigned char)*s >= 0x20 && *s != 0x7f);
        arena_free(&arena);
    }
}

static void check_same(const struct run_state *a, const struct run_state *b) {
    assert_int_equal(a->point_count, b->point_count);
    assert_memory_equal(a->points, b->points, (size_t)a->point_count * sizeof *a->points);
    assert_memory_equal(a->tower_points, b->tower_points,
                        (size_t)a->tower_point_count * sizeof *a->tower_points);
    assert_int_equal(a->log_count, b->log_count);
    for (int64_t i = 0; i < a->log_count; i++)
        assert_string_equal(a->log[i].text, b->log[i].text);
    assert_int_equal(a->marker_count, b->marker_count);
    assert_int_equal(a->last_seq, b->last_seq);
    assert_int_equal(a->images_count, b->images_count);
    assert_int_equal(a->device_count, b->device_count);
    assert_true(events_equal(&a->step, &b->step, NULL) && events_equal(&a->losses, &b->losses, NULL));
    assert_true(events_equal(&a->run_start, &b->run_start, NULL) && events_equal(&a->alarm, &b->alarm, NULL));
}

/* Events of every kind with steps near `step`. */
static struct event any_event(int64_t seq, struct random *random, struct arena *arena) {
    int64_t step = seq + random_below(random, 5);
    struct event event;
    switch (random_below(random, 8)) {
    case 0:
        event = events_fill((enum event_kind)(1 + random_below(random, EVENT_KINDS - 1)), random, 0.1, arena);
        break;
    case 1:
        event = fold_start(seq, seq / 2);
        break;
    default:
        event = events_step(seq, step, 1 + (int)random_below(random, 4), arena);
        break;
    }
    event.seq = seq;
    return event;
}

static void a_copy_is_a_state_of_its_own(void **context) {
    (void)context;
    enum { EVENTS = 3000, FROM = 1000 };
    struct random random = random_begin(6, RANDOM_TEST, 0);
    struct run_state *whole = state_new(), *early = NULL, *later = NULL, *strayed = NULL;
    struct arena arena = {0};
    static struct event events[EVENTS];
    for (int i = 0; i < EVENTS; i++) {
        events[i] = any_event(i + 1, &random, &arena);
        fold_apply(whole, events[i]);
        if (i == FROM - 1) {
            early = state_copy(whole);
            later = state_copy(early);
            strayed = state_copy(early);
            check_same(early, whole);
        }
    }
    for (int i = FROM; i < EVENTS; i++) /* the first of the same points, then others in their places */
        fold_apply(strayed, i < FROM + 50 ? events[i] : any_event(i + 1, &random, &arena));
    for (int i = FROM; i < EVENTS; i++)
        fold_apply(early, events[i]); /* seek: from a snapshot forward */
    check_same(early, whole);
    state_free(strayed);
    state_free(whole);
    for (int i = FROM; i < EVENTS; i++)
        fold_apply(later, events[i]);
    check_same(early, later);
    state_free(early);
    state_free(later);
    arena_free(&arena);
}

/* A copy that is folded on over what the original knows already needs no memory for its curves. */
static void a_copy_shares_its_curves(void **context) {
    (void)context;
    struct run_state *whole = state_new(), *copy;
    fold_steps(whole, 1, 1, 100, 3);
    copy = state_copy(whole);
    fold_steps(whole, 101, 101, 300, 3);
    fold_steps(copy, 101, 101, 250, 3);
    assert_ptr_equal(copy->points, whole->points);
    assert_ptr_equal(copy->tower_points, whole->tower_points);
    assert_int_equal(copy->point_count, 250);
    assert_int_equal(copy->tower_point_count, 750);
    fold_steps(copy, 251, 251, 251, 4); /* another one than the original's */
    assert_ptr_not_equal(copy->points, whole->points);
    assert_int_equal(copy->points[250].tower_count, 4);
    assert_int_equal(whole->points[250].tower_count, 3);
    check_curve(copy);
    check_curve(whole);
    state_free(whole);
    state_free(copy);
}

static long resident_kilobytes(void) {
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &pages, &resident), 2);
    fclose(file);
    return resident * 4;
}

static void a_large_run_with_snapshots_is_small(void **context) {
    (void)context;
    enum { SNAPSHOTS = 50, EVENTS = 20000 };
    struct run_state *state = state_new(), *snapshots[SNAPSHOTS];
    struct arena arena = {0};
    struct event event = events_step(1, 1, 64, &arena);
    long before = resident_kilobytes();
    double start = clock_seconds();
    for (int64_t i = 1; i <= EVENTS; i++) {
        event.seq = event.step.step = i;
        assert_int_equal(state_apply(state, &event), STATUS_OK);
        if (i % (EVENTS / SNAPSHOTS) == 0)
            assert_non_null(snapshots[i / (EVENTS / SNAPSHOTS) - 1] = state_copy(state));
    }
    printf("%d steps of 64 towers and %d snapshots: %.3f s, %.1f MB\n", EVENTS, SNAPSHOTS,
           clock_seconds() - start, (double)(resident_kilobytes() - before) / 1024);
#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
    assert_true(resident_kilobytes() - before < 60 * 1024);
#endif
#endif
    for (int i = 0; i < SNAPSHOTS; i++)
        state_free(snapshots[i]);
    state_free(state);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_make_curves),
        cmocka_unit_test(seen_events_and_late_live_steps_change_nothing),
        cmocka_unit_test(a_resume_or_rewind_drops_what_lies_beyond),
        cmocka_unit_test(counts_in_words),
        cmocka_unit_test(time_of_a_step),
        cmocka_unit_test(control_is_of_a_connection),
        cmocka_unit_test(a_score_that_is_not_finite_is_never_the_best),
        cmocka_unit_test(long_runs_stay_bounded_and_keep_their_spikes),
        cmocka_unit_test(losses_too_long_for_a_line_come_together),
        cmocka_unit_test(words_are_safe_to_show),
        cmocka_unit_test(a_copy_is_a_state_of_its_own),
        cmocka_unit_test(a_copy_shares_its_curves),
        cmocka_unit_test(a_large_run_with_snapshots_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
