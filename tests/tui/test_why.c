/* The Why screen's parts: which towers unfold, where everything stands, what is known of a step in each
 * phase, and that its keys ask the run for what they should. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/stream.h"
#include "tui/app.h"
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

static struct run_state *at_phase(const char *phase, int towers) {
    struct stream_script script = {.towers = towers, .steps = 20, .frozen = phase};
    struct run_state *state = stream_state(&script);
    assert_non_null(state);
    return state;
}

static void knows(void **unused) {
    (void)unused;
    static const char *const phases[] = {"load", "forward", "losses", "backward", "average", "update"};
    for (int i = 0; i < WHY_PHASES; i++) {
        struct run_state *state = at_phase(phases[i], 4);
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
        struct run_state *state = at_phase(before[i], 4);
        struct event training = event_new(EVENT_STATE);
        training.state.state = "training";
        assert_int_equal(state_apply(state, &training), STATUS_OK);
        if (!before[i]) { /* nobody looks: the terms were told once, long ago */
            struct run_state *told = at_phase("update", 4);
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

static void row_text(const struct canvas *canvas, int row, char *out) {
    for (int col = 0; col < canvas->cols; col++) {
        uint32_t rune = canvas->cells[row * canvas->cols + col].rune;
        out[col] = rune < 127 ? (char)rune : '?';
    }
    out[canvas->cols] = 0;
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
        struct app_options options = {.run = "quiet-harbor"};
        preferences_default(&options.preferences);
        keymap_default(&options.keymap);
        struct run_state *state = stream_state(&script);
        struct app *app = app_new(&options);
        struct canvas *canvas = canvas_new(size[0], size[1]);
        assert_true(state && app && canvas);
        app_draw(app, canvas, state, 1, 10);
        (void)app_key(app, '2', state, 10);
        (void)app_key(app, how & 1 ? 'o' : '>', state, 10);
        if (how & 2)
            (void)app_key(app, 'v', state, 10);
        app_draw(app, canvas, state, 1, 10);
        int row = (how & 2) ? 4 : 3;
        for (char line[121]; row < 9; row++) {
            row_text(canvas, row, line);
            if (strstr(line, "'losses'"))
                break;
            for (int col = size[1] - 12; col < size[1]; col++)
                if (canvas->cells[row * size[1] + col].rune == 0x2026)
                    fail_msg("%d towers, %s, %s, %dx%d, way %d: row %d is cut", n, phases[phase],
                             script.applied ? script.applied : "right", size[1], size[0], how, row);
        }
        assert_in_range(row, 4, 8);
        canvas_free(canvas);
        app_free(app);
        state_free(state);
    }
}

/* While the next step is told in part, the picture of the whole one before it stands. */
static void no_picture_of_parts(void **unused) {
    (void)unused;
    struct app_options options = {.run = "quiet-harbor"};
    preferences_default(&options.preferences);
    keymap_default(&options.keymap);
    struct run_state *state = at_phase("update", 4);
    struct event training = event_new(EVENT_STATE);
    training.state.state = "training";
    assert_int_equal(state_apply(state, &training), STATUS_OK);
    struct app *app = app_new(&options);
    struct canvas *canvas = canvas_new(40, 120), *before = canvas_new(40, 120);
    app_draw(app, before, state, 1, 10);
    (void)app_key(app, '2', state, 10);
    app_draw(app, before, state, 1, 10);
    struct event next = state->why; /* its losses and the step itself are still to come */
    next.why.step++;
    next.seq = 0; /* live */
    struct arena arena = {0};
    struct event copy;
    assert_int_equal(event_copy(&next, &arena, &copy), STATUS_OK);
    assert_int_equal(state_apply(state, &copy), STATUS_OK);
    app_draw(app, canvas, state, 1, 10);
    enum { ROWS = 30 }; /* of the body */
    for (int i = 2 * 120; i < (2 + ROWS) * 120; i++)
        assert_true(canvas->cells[i].rune == before->cells[i].rune);
    next = state->step;
    next.step.step++;
    next.seq = 0;
    struct event whole;
    assert_int_equal(event_copy(&next, &arena, &whole), STATUS_OK);
    assert_int_equal(state_apply(state, &whole), STATUS_OK);
    struct event losses = state->losses;
    losses.losses.step++;
    losses.seq = 0;
    assert_int_equal(event_copy(&losses, &arena, &copy), STATUS_OK);
    assert_int_equal(state_apply(state, &copy), STATUS_OK);
    app_draw(app, canvas, state, 1, 20);
    bool other = false;
    for (int i = 2 * 120; i < (2 + ROWS) * 120; i++)
        other |= canvas->cells[i].rune != before->cells[i].rune;
    assert_true(other);
    arena_free(&arena);
    canvas_free(canvas);
    canvas_free(before);
    app_free(app);
    state_free(state);
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

/* What the console sends, key by key; each answered at once. */
static void check_keys(const char *keys, const char *wanted) {
    struct app_options options = {.run = "quiet-harbor"};
    preferences_default(&options.preferences);
    keymap_default(&options.keymap);
    struct run_state *state = at_phase("losses", 4);
    struct event control = event_new(EVENT_CONTROL);
    control.control.holder_user = "ada";
    control.control.yours = true;
    assert_int_equal(state_apply(state, &control), STATUS_OK);
    struct app *app = app_new(&options);
    struct canvas *canvas = canvas_new(24, 80);
    char sent[512] = "";
    app_draw(app, canvas, state, 1, 10);
    for (const char *key = keys; *key; key++) {
        enum app_wish wish = app_key(app, *key == '|' ? PRESS_ENTER : *key, state, 10);
        for (; wish == APP_COMMAND; wish = app_due(app, state, 10)) {
            snprintf(sent + strlen(sent), sizeof sent - strlen(sent), "%s;", app_text(app));
            app_sent(app, "", "", 10);
        }
        app_draw(app, canvas, state, 1, 10);
    }
    if (strcmp(sent, wanted) != 0)
        fail_msg("%s sends \"%s\", not \"%s\"", keys, sent, wanted);
    canvas_free(canvas);
    app_free(app);
    state_free(state);
}

static void asks(void **state) {
    (void)state;
    check_keys("21", "why on;why off;");
    check_keys("2n|", "why on;phase next;phase run;");
    check_keys("2:phase next|", "why on;phase next;");
    check_keys("2bbnn", "why on;"); /* back to load, and on to where the step stands */
    check_keys("2bnn", "why on;phase next;");
    check_keys("2an", "why on;");
    check_keys("2ay", "why on;why apply unscoped;");
    check_keys("2r", "why on;why restore;");
    check_keys("2R", "why on;"); /* what is lost is asked about */
    check_keys("2Rn", "why on;");
    check_keys("2Ry", "why on;why restore --rewind;");
    check_keys("n", "");
    check_keys("2od1n", "why on;why off;");
}

/* Commands until nothing is left; "why on" is answered by `status` the first time ("lost": it can't be sent).
 */
static void hear(struct app *app, enum app_wish wish, struct run_state *state, const char *status,
                 char *sent) {
    for (; wish == APP_COMMAND; wish = app_due(app, state, 10)) {
        strcat(strcat(sent, app_text(app)), ";");
        bool first = !strcmp(app_text(app), "why on") && *status;
        bool lost = first && !strcmp(status, "lost");
        app_sent(app, lost ? NULL : first ? "1" : "", "", 10);
        if (!first || lost)
            continue;
        struct event answer = event_new(EVENT_COMMAND);
        answer.command.id = "1";
        answer.command.text = "why on";
        answer.command.status = status;
        status = "";
        assert_int_equal(state_apply(state, &answer), STATUS_OK);
        struct canvas *canvas = canvas_new(24, 80);
        app_draw(app, canvas, state, 1, 10);
        canvas_free(canvas);
    }
}

/* The values are asked for before a phase, also where control comes late, or the first time was refused. */
static void asks_again(void **unused) {
    (void)unused;
    for (int late = 0; late < 4; late++) {
        struct app_options options = {.run = "quiet-harbor"};
        preferences_default(&options.preferences);
        keymap_default(&options.keymap);
        struct run_state *state = at_phase("losses", 4);
        struct event control = event_new(EVENT_CONTROL);
        control.control.holder_user = "ada";
        control.control.yours = true;
        if (!late)
            assert_int_equal(state_apply(state, &control), STATUS_OK);
        struct app *app = app_new(&options);
        char sent[512] = "";
        hear(app, app_key(app, '2', state, 10), state, late ? "" : "refused", sent);
        assert_string_equal(sent, late ? "" : "why on;");
        if (late == 1) { /* control comes: the first time it is told */
            assert_int_equal(state_apply(state, &control), STATUS_OK);
            hear(app, app_due(app, state, 10), state, "applied", sent);
            assert_string_equal(sent, "why on;");
        }
        if (late == 3) { /* before the engine is live */
            hear(app, app_key(app, 'n', state, 10), state, "lost", sent);
            assert_string_equal(sent, "why on;");
            *sent = 0;
        }
        hear(app, app_key(app, 'n', state, 10), state, "applied", sent);
        hear(app, app_key(app, 'n', state, 10), state, "", sent);
        assert_string_equal(sent,
                            late ? "why on;phase next;phase next;" : "why on;why on;phase next;phase next;");
        app_free(app);
        state_free(state);
    }
}

/* What was asked of a run is not asked of the next one by a console that was left on it, nor when control
 * comes by itself: that costs the run time, and nobody wanted it. */
static void a_console_that_was_left_asks_nothing(void **unused) {
    (void)unused;
    for (int ended = 0; ended < 2; ended++) {
        struct app_options options = {.run = "quiet-harbor"};
        preferences_default(&options.preferences);
        keymap_default(&options.keymap);
        struct run_state *state = at_phase("losses", 4);
        struct app *app = app_new(&options);
        struct canvas *canvas = canvas_new(24, 80);
        char sent[512] = "", line[81 * 4];
        struct event control = event_new(EVENT_CONTROL);
        control.control.yours = true;
        assert_int_equal(state_apply(state, &control), STATUS_OK);
        hear(app, app_key(app, '2', state, 10), state, "applied", sent);
        assert_string_equal(sent, "why on;");
        if (ended) {
            struct event end = event_new(EVENT_RUN_END), start = event_new(EVENT_RUN_START);
            end.seq = state->last_seq + 1;
            assert_int_equal(state_apply(state, &end), STATUS_OK);
            hear(app, app_due(app, state, 20), state, "", sent);
            start.seq = end.seq + 1;
            start.run_start.resumed_from = state->at_step;
            assert_int_equal(state_apply(state, &start), STATUS_OK);
        } else {
            struct event other = event_new(EVENT_CONTROL);
            other.control.yours = false;
            assert_int_equal(state_apply(state, &other), STATUS_OK);
            hear(app, app_due(app, state, 20), state, "", sent);
        }
        assert_int_equal(state_apply(state, &control), STATUS_OK);
        hear(app, app_due(app, state, 30), state, "", sent);
        assert_string_equal(sent, "why on;");
        assert_null(app_parting(app, state)); /* nor is it turned off for somebody else */
        app_draw(app, canvas, state, 1, 30);
        row_text(canvas, 22, line);
        assert_non_null(strstr(line, "not looked into yet: 2 begins"));
        hear(app, app_key(app, '2', state, 30), state, "", sent);
        hear(app, app_due(app, state, 30), state, "", sent);
        assert_string_equal(sent, "why on;why on;");
        assert_string_equal(app_parting(app, state), "why off");
        canvas_free(canvas);
        app_free(app);
        state_free(state);
    }
}

/* What the screen sends to draw what it shows is told apart from what a person wants, and answered on the
 * message line only where it was refused and a key had asked for it. */
static void says_who_asks(void **unused) {
    (void)unused;
    static const struct {
        const char *keys, *status, *wanted;
        bool said;
    } tries[] = {
        {"2n", "applied", "Why", false},
        {"2n", "refused", "Why", true},
        {"2:phase next|", "applied", "Why", false},
        {"2ay", "applied", "", true},
        {"2r", "applied", "", true},
        {":why on|", "applied", "", true},
        {"21", "applied", "Why", false},
        {"5", "refused", "Images", false},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        struct app_options options = {.run = "quiet-harbor"};
        preferences_default(&options.preferences);
        keymap_default(&options.keymap);
        struct run_state *state = at_phase("losses", 4);
        struct event control = event_new(EVENT_CONTROL);
        control.control.yours = true;
        assert_int_equal(state_apply(state, &control), STATUS_OK);
        struct app *app = app_new(&options);
        struct canvas *canvas = canvas_new(24, 80);
        const char *asking = NULL;
        app_draw(app, canvas, state, 1, 10);
        for (const char *key = tries[i].keys; *key; key++) {
            enum app_wish wish = app_key(app, *key == '|' ? PRESS_ENTER : *key, state, 10);
            app_draw(app, canvas, state, 1, 10); /* a screen finds out what it wants */
            wish = wish == APP_NOTHING ? app_due(app, state, 10) : wish;
            for (; wish == APP_COMMAND; wish = app_due(app, state, 10)) {
                struct event answer = event_new(EVENT_COMMAND);
                asking = app_asking(app);
                app_sent(app, "1", NULL, 10);
                answer.command.id = "1";
                answer.command.text = app_text(app);
                answer.command.status = strcmp(app_text(app), "why on") ? tries[i].status : "applied";
                answer.command.reason = strcmp(app_text(app), "why on") || !asking ? "a reason" : NULL;
                assert_int_equal(state_apply(state, &answer), STATUS_OK);
                app_draw(app, canvas, state, 1, 10);
            }
        }
        assert_string_equal(asking ? asking : "", tries[i].wanted);
        char line[161];
        row_text(canvas, 22, line);
        if ((strstr(line, "a reason") != NULL) != tries[i].said)
            fail_msg("%s says \"%s\"", tries[i].keys, line);
        canvas_free(canvas);
        app_free(app);
        state_free(state);
    }
}

/* A key, and all that is sent for it applied; line: the message line then. */
static void press(struct app *app, int key, struct run_state *state, struct canvas *canvas, char *line) {
    enum app_wish wish = app_key(app, key, state, 10);
    for (; wish == APP_COMMAND; wish = app_due(app, state, 10)) {
        struct event answer = event_new(EVENT_COMMAND);
        app_sent(app, "1", NULL, 10);
        answer.command.id = "1";
        answer.command.text = app_text(app);
        answer.command.status = "applied";
        answer.command.reason = !strcmp(app_text(app), "why on") ? "the proof takes 1 MB" : NULL;
        assert_int_equal(state_apply(state, &answer), STATUS_OK);
        app_draw(app, canvas, state, 1, 10);
    }
    app_draw(app, canvas, state, 1, 10);
    row_text(canvas, 22, line);
}

/* What the proof takes is said while nothing of a person's is, and goes with the screen. */
static void notices_give_way(void **unused) {
    (void)unused;
    struct app_options options = {.run = "quiet-harbor"};
    preferences_default(&options.preferences);
    keymap_default(&options.keymap);
    struct run_state *state = at_phase("losses", 4);
    struct event control = event_new(EVENT_CONTROL);
    control.control.yours = true;
    assert_int_equal(state_apply(state, &control), STATUS_OK);
    struct app *app = app_new(&options);
    struct canvas *canvas = canvas_new(24, 80);
    char line[161];
    app_draw(app, canvas, state, 1, 10);
    press(app, '2', state, canvas, line);
    assert_non_null(strstr(line, "the proof takes"));
    press(app, '1', state, canvas, line);
    assert_null(strstr(line, "the proof takes"));
    press(app, '2', state, canvas, line);
    press(app, ' ', state, canvas, line);
    assert_non_null(strstr(line, "applied"));
    press(app, '1', state, canvas, line);
    press(app, '2', state, canvas, line);
    assert_non_null(strstr(line, "applied"));
    canvas_free(canvas);
    app_free(app);
    state_free(state);
}

/* Where a lesson makes the steps the footer offers none. */
static void a_guide_makes_the_steps(void **unused) {
    (void)unused;
    static const char *const walks[] = {"space", "step", "next", "run", "towers", "apply"};
    for (int guided = 0; guided < 3; guided++) { /* 2: at its end, where Enter and n still are its keys */
        struct guide guide = {.text = "words", .part = 1, .parts = 2, .done = guided == 2};
        struct app_options options = {.run = "quiet-harbor", .guide = guided ? &guide : NULL};
        preferences_default(&options.preferences);
        keymap_default(&options.keymap);
        struct run_state *state = at_phase("losses", 4);
        struct app *app = app_new(&options);
        struct canvas *canvas = canvas_new(24, 200);
        char footer[201];
        (void)app_key(app, '2', state, 10);
        app_draw(app, canvas, state, 1, 10);
        row_text(canvas, 23, footer);
        for (int i = 0; i < 6; i++)
            assert_int_equal(strstr(footer, walks[i]) == NULL,
                             guided == 1 ||
                                 (guided == 2 && (!strcmp(walks[i], "next") || !strcmp(walks[i], "run"))));
        assert_non_null(strstr(footer, "scope"));
        canvas_free(canvas);
        app_free(app);
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
        cmocka_unit_test(asks),
        cmocka_unit_test(scales),
        cmocka_unit_test(asks_again),
        cmocka_unit_test(a_step_comes_again),
        cmocka_unit_test(no_picture_of_parts),
        cmocka_unit_test(sentences_are_whole),
        cmocka_unit_test(says_who_asks),
        cmocka_unit_test(notices_give_way),
        cmocka_unit_test(a_console_that_was_left_asks_nothing),
        cmocka_unit_test(a_guide_makes_the_steps),
        cmocka_unit_test(knows_while_it_trains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
