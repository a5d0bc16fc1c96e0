/* The Why screen's parts: which towers unfold, where everything stands, what is known of a step in each
 * phase. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/app_run.h"
#include "tests/support/cmocka.h"
#include "tests/support/stream.h"
#include "tui/shown.h"
#include "tui/view_scaling.h"
#include "tui/why_layout.h"
#include "tui/why_step.h"
#include "tui/why_words.h"

/* Every tower once, in order; the chosen one unfolded as far as there is room. */
static void check_fold(int towers, int terms, int chosen, int rows) {
    struct why_row row[WHY_ROWS];
    int count = why_fold(towers, terms, chosen, rows, row), next = 0, own = 0;
    if (count > rows || (rows > 0 && count == 0))
        fail_msg("%d towers of %d terms in %d rows: %d rows", towers, terms, rows, count);
    for (int i = 0; i < count; i++) {
        bool again = i > 0 && !row[i].first;
        if (row[i].tower != next - again || row[i].last < row[i].tower)
            fail_msg("%d towers of %d terms, tower %d, %d rows: row %d is of tower %d, not %d", towers, terms,
                     chosen, rows, i, row[i].tower, next);
        next = row[i].last + 1;
        own += row[i].tower == chosen && row[i].last == chosen && row[i].term >= 0;
    }
    if (rows >= 3 && next != towers)
        fail_msg("%d towers of %d terms in %d rows: the last is %d", towers, terms, rows, next - 1);
    if (terms > 0 && rows >= terms + 2 && own != terms)
        fail_msg("%d towers of %d terms in %d rows: %d terms of tower %d", towers, terms, rows, own, chosen);
}

static void folds(void **state) {
    (void)state;
    static const int towers[] = {1, 2, 3, 4, 7, 16, 64, 1024};
    for (int t = 0; t < 8; t++)
        for (int terms = 0; terms <= 6; terms++)
            for (int rows = 0; rows <= 40; rows++)
                for (int chosen = 0; chosen<towers[t]; chosen += towers[t]> 16 ? 5 : 1)
                    check_fold(towers[t], terms, chosen, rows);
}

static bool apart(struct box a, struct box b) {
    return a.rows <= 0 || b.rows <= 0 || a.row + a.rows <= b.row || b.row + b.rows <= a.row;
}

static void layouts(void **state) {
    (void)state;
    for (int rows = 0; rows <= 60; rows++)
        for (int cols = 1; cols <= 220; cols += 3)
            for (int how = 0; how < 4; how++) {
                struct why_layout at;
                struct box body = {2, 0, rows, cols};
                layout_why(body, 12, 6, 1 + cols % 5, 7, how & 1, how & 2, &at);
                const struct box boxes[] = {at.phases, at.words,   at.rule,        at.heads,
                                            at.flow,   at.proof,   at.proof_rule,  at.table_head,
                                            at.table,  at.details, at.details_rule};
                for (int i = 0; i < 11; i++) {
                    assert_true(boxes[i].rows >= 0 && (boxes[i].rows == 0 || boxes[i].row >= 2));
                    assert_true(boxes[i].rows == 0 || boxes[i].row + boxes[i].rows <= 2 + rows);
                    for (int j = 0; j < i; j++)
                        assert_true(apart(boxes[i], boxes[j]));
                }
                const struct column_span spans[] = {at.batch, at.shard, at.terms,  at.total,
                                                    at.norm,  at.angle, at.average};
                int end = 0;
                for (int i = 0; i < 7; i++)
                    if (spans[i].cols > 0) {
                        assert_true(spans[i].col >= end);
                        end = spans[i].col + spans[i].cols;
                    }
                assert_true(end <= cols || cols < 16);
            }
}

static void knows(void **unused) {
    (void)unused;
    static const char *const phases[] = {"load", "forward", "losses", "backward", "average", "update"};
    for (int i = 0; i < WHY_PHASES; i++) {
        struct run_state *state = app_run_state(phases[i], 4);
        struct why_step step;
        why_step_gather(&step, state, 4);
        assert_true(step.have && (int)step.reached == i && step.step == 21 && step.images == 128);
        assert_int_equal(step.frozen, i < WHY_UPDATE);
        assert_int_equal(step.values, i >= WHY_LOSSES);
        assert_int_equal(step.why != NULL, i >= WHY_AVERAGE);
        struct why_tower tower = why_step_tower(&step, 2);
        assert_int_equal(tower.images, 32);
        assert_int_equal(isfinite(tower.loss), i >= WHY_LOSSES);
        assert_int_equal(isfinite(tower.grad_norm), i >= WHY_BACKWARD);
        assert_int_equal(isfinite(tower.cosine), i >= WHY_AVERAGE);
        if (i >= WHY_LOSSES) { /* the scope's sums, and what they become without it */
            double all = 0;
            for (int k = 0; k < 4; k++)
                all += why_step_total(&step, k, true);
            assert_true(fabs(why_step_total(&step, 3, false) - all) <= 1e-9);
            assert_true(fabs(why_step_total(&step, 0, false) - why_step_total(&step, 0, true)) <= 1e-12);
        }
        state_free(state);
    }
}

/* A run that trains on shows whole steps: all that is told of one, or the newest step and what that says. */
static void knows_while_it_trains(void **unused) {
    (void)unused;
    static const char *const before[] = {"update", "average", NULL};
    for (int i = 0; i < 3; i++) {
        struct run_state *state = app_run_state(before[i], 4);
        struct event training = event_new(EVENT_STATE);
        training.state.state = "training";
        assert_int_equal(state_apply(state, &training), STATUS_OK);
        if (!before[i]) { /* nobody looks: the terms were told once, long ago */
            struct run_state *told = app_run_state("update", 4);
            told->losses.losses.step = 1;
            assert_int_equal(state_apply(state, &told->losses), STATUS_OK);
            state_free(told);
        }
        struct why_step step;
        why_step_gather(&step, state, 4);
        assert_true(step.have && step.moving && !step.frozen);
        assert_int_equal(step.step, before[i] ? 21 : 20);
        assert_int_equal(step.values, before[i] != NULL);
        assert_int_equal(step.why != NULL, before[i] != NULL);
        for (int k = 0; k < 4; k++) {
            double sum = 0, value = 0;
            struct why_tower tower = why_step_tower(&step, k);
            for (int t = 0; t < 3; t++) {
                assert_non_null(why_step_term(&step, k, t, &value));
                sum += value;
                assert_int_equal(isfinite(value), before[i] || t == 2);
            }
            if (before[i])
                assert_true(fabs(sum - tower.loss) <= 1e-9);
            else
                assert_true(value == state->step.step.towers[k].cross_entropy);
            assert_true(fabs(why_step_total(&step, k, true) - tower.loss) <= 1e-9);
        }
        state_free(state);
    }
}

/* The sentence on each phase stands whole, on terminals of both usual sizes. */
static void sentences_are_whole(void **unused) {
    (void)unused;
    static const char *const phases[] = {"load", "forward", "losses", "backward", "average", "update"};
    static const int towers[] = {1, 2, 3, 4, 16};
    static const int sizes[][2] = {{24, 80}, {40, 120}};
    static const char *const rules[] = {NULL,         "unscoped",        "sum",        "last",
                                        "print-last", "decay-per-tower", "plain-mean", "clip-before"};
    for (int i = 0; i < WHY_PHASES * 5 * 2 * 8 * 4; i++) {
        int phase = i % WHY_PHASES, n = towers[i / WHY_PHASES % 5], how = i / (WHY_PHASES * 5 * 2 * 8);
        const int *size = sizes[i / (WHY_PHASES * 5) % 2];
        const char *rule = rules[i / (WHY_PHASES * 5 * 2) % 8];
        if (rule && n != 4)
            continue;
        struct stream_script script = {
            .towers = n, .steps = 20, .frozen = phases[phase], .applied = rule, .applied_after = 10};
        struct app_run run;
        app_run_open(&run, stream_state(&script), size[0], size[1], NULL);
        app_run_draw(&run, 10);
        (void)app_key(run.app, '2', run.state, 10);
        (void)app_key(run.app, how & 1 ? 'o' : '>', run.state, 10);
        if (how & 2)
            (void)app_key(run.app, 'v', run.state, 10);
        app_run_draw(&run, 10);
        int row = (how & 2) ? 4 : 3;
        for (char line[121]; row < 9; row++) {
            app_run_row(run.canvas, row, line);
            if (strstr(line, "'losses'"))
                break;
            for (int col = size[1] - 12; col < size[1]; col++)
                if (run.canvas->cells[row * size[1] + col].rune == 0x2026)
                    fail_msg("%d towers, %s, %s, %dx%d, way %d: row %d is cut", n, phases[phase],
                             script.applied ? script.applied : "right", size[1], size[0], how, row);
        }
        assert_in_range(row, 4, 8);
        app_run_close(&run);
    }
}

/* While the next step is told in part, the picture of the whole one before it stands. */
static void no_picture_of_parts(void **unused) {
    (void)unused;
    struct app_run run;
    app_run_open(&run, app_run_state("update", 4), 40, 120, NULL);
    struct event training = event_new(EVENT_STATE);
    training.state.state = "training";
    assert_int_equal(state_apply(run.state, &training), STATUS_OK);
    struct canvas *before = canvas_new(40, 120);
    app_draw(run.app, before, run.state, 1, 10);
    (void)app_key(run.app, '2', run.state, 10);
    app_draw(run.app, before, run.state, 1, 10);
    struct event next = run.state->why; /* its losses and the step itself are still to come */
    next.why.step++;
    next.seq = 0; /* live */
    struct arena arena = {0};
    struct event copy;
    assert_int_equal(event_copy(&next, &arena, &copy), STATUS_OK);
    assert_int_equal(state_apply(run.state, &copy), STATUS_OK);
    app_run_draw(&run, 10);
    enum { ROWS = 30 }; /* of the body */
    for (int i = 2 * 120; i < (2 + ROWS) * 120; i++)
        assert_true(run.canvas->cells[i].rune == before->cells[i].rune);
    next = run.state->step;
    next.step.step++;
    next.seq = 0;
    struct event whole;
    assert_int_equal(event_copy(&next, &arena, &whole), STATUS_OK);
    assert_int_equal(state_apply(run.state, &whole), STATUS_OK);
    struct event losses = run.state->losses;
    losses.losses.step++;
    losses.seq = 0;
    assert_int_equal(event_copy(&losses, &arena, &copy), STATUS_OK);
    assert_int_equal(state_apply(run.state, &copy), STATUS_OK);
    app_run_draw(&run, 20);
    bool other = false;
    for (int i = 2 * 120; i < (2 + ROWS) * 120; i++)
        other |= run.canvas->cells[i].rune != before->cells[i].rune;
    assert_true(other);
    arena_free(&arena);
    canvas_free(before);
    app_run_close(&run);
}

static void proves(void **unused) {
    (void)unused;
    char found[256], meaning[256];
    struct stream_script script = {.towers = 4, .steps = 3, .frozen = "average"};
    for (int i = 0; i < 2; i++) {
        script.proof_differs = i ? 0.01 : 0;
        struct run_state *state = stream_state(&script);
        struct why_step step;
        why_step_gather(&step, state, 4);
        assert_int_equal(why_proof_words(&step, found, meaning, sizeof found), i ? WHY_FAILS : WHY_HOLDS);
        assert_non_null(strstr(meaning, i ? "normalises over the batch" : "the same step"));
        step.why = NULL;
        assert_int_equal(why_proof_words(&step, found, meaning, sizeof found), WHY_UNPROVEN);
        state_free(state);
    }
}

/* After a rewind the number of a step comes again, and what is shown is the new one; a wrong rule's print
 * stands beside the right loss. */
static void a_step_comes_again(void **unused) {
    (void)unused;
    struct stream_script script = {.towers = 4, .steps = 20, .applied = "sum", .applied_after = 10};
    struct run_state *state = stream_state(&script);
    assert_non_null(state);
    struct event_step *step = &state->step.step;
    struct shown shown = {0};
    char words[128];
    int tower;
    double right = step->cross_entropy + step->weight_decay;
    step->loss = 4 * right;
    (void)shown_update(&shown, state, 1, 10, 0);
    assert_non_null(shown.step.applied);
    assert_int_equal(shown_judge(&shown, state, words, sizeof words, &tower), FINDING_WARNING);
    char wanted[128];
    snprintf(wanted, sizeof wanted, "it prints %.4f; the right loss is %.4f", 4 * right, right);
    assert_non_null(strstr(words, wanted));
    step->applied = NULL;
    step->loss = right;
    state->events++;
    (void)shown_update(&shown, state, 1, 11, 0);
    assert_null(shown.step.applied);
    assert_true(shown.step.loss == right);
    shown_free(&shown);
    state_free(state);
}

/* The ring by hand: 4 towers, 8 images, 2 ms an image; 3/4 of the bytes twice at 6 bytes/ms; 6 messages. */
static void scales(void **unused) {
    (void)unused;
    const struct scaling s = {.image_ms = 2, .update_ms = 1, .bytes = 12, .bandwidth = 6, .latency_ms = 0.5};
    assert_true(fabs(scaling_step(&s, 1, 8) - 17) <= 1e-12);
    assert_true(fabs(scaling_step(&s, 4, 8) - (4 + 3 + 3 + 1)) <= 1e-12);
    assert_true(fabs(scaling_step(&s, 3, 8) - (6 + 2 * 2.0 / 3 * 2 + 2 + 1)) <= 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds),
        cmocka_unit_test(layouts),
        cmocka_unit_test(knows),
        cmocka_unit_test(proves),
        cmocka_unit_test(scales),
        cmocka_unit_test(a_step_comes_again),
        cmocka_unit_test(no_picture_of_parts),
        cmocka_unit_test(sentences_are_whole),
        cmocka_unit_test(knows_while_it_trains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
