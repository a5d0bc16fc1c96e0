/* What the Why screen's keys ask of a run, who is said to ask, and what is told of the answers. */
#include <stdio.h>
#include <string.h>

#include "tests/support/app_run.h"
#include "tests/support/cmocka.h"

static void open_with_control(struct app_run *run) {
    app_run_open(run, app_run_state("losses", 4), 24, 80, NULL);
    app_run_control(run, true);
}

/* What the console sends, key by key; each answered at once. */
static void check_keys(const char *keys, const char *wanted) {
    struct app_run run;
    open_with_control(&run);
    char sent[512] = "";
    app_run_draw(&run, 10);
    for (const char *key = keys; *key; key++) {
        enum app_wish wish = app_key(run.app, *key == '|' ? PRESS_ENTER : *key, run.state, 10);
        for (; wish == APP_COMMAND; wish = app_due(run.app, run.state, 10)) {
            snprintf(sent + strlen(sent), sizeof sent - strlen(sent), "%s;", app_text(run.app));
            app_sent(run.app, "", "", 10);
        }
        app_run_draw(&run, 10);
    }
    if (strcmp(sent, wanted) != 0)
        fail_msg("%s sends \"%s\", not \"%s\"", keys, sent, wanted);
    app_run_close(&run);
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
    check_keys("2:why apply last|", "why on;"); /* the same question */
    check_keys("2:why apply last|n", "why on;");
    check_keys("2:why apply last|y", "why on;why apply last;");
    check_keys("2r", "why on;why restore;");
    check_keys("2R", "why on;"); /* what is lost is asked about */
    check_keys("2Rn", "why on;");
    check_keys("2Ry", "why on;why restore --rewind;");
    check_keys("n", "");
    check_keys("2od1n", "why on;why off;");
}

/* Commands until nothing is left; "why on" is answered by `status` the first time ("lost": it can't be sent).
 */
static void hear(struct app_run *run, enum app_wish wish, const char *status, char *sent) {
    for (; wish == APP_COMMAND; wish = app_due(run->app, run->state, 10)) {
        strcat(strcat(sent, app_text(run->app)), ";");
        bool first = !strcmp(app_text(run->app), "why on") && *status;
        bool lost = first && !strcmp(status, "lost");
        app_sent(run->app, lost ? NULL : first ? "1" : "", "", 10);
        if (!first || lost)
            continue;
        struct event answer = event_new(EVENT_COMMAND);
        answer.command.id = "1";
        answer.command.text = "why on";
        answer.command.status = status;
        status = "";
        assert_int_equal(state_apply(run->state, &answer), STATUS_OK);
        app_run_draw(run, 10);
    }
}

/* The values are asked for before a phase, also where control comes late, or the first time was refused. */
static void asks_again(void **unused) {
    (void)unused;
    for (int late = 0; late < 4; late++) {
        struct app_run run;
        app_run_open(&run, app_run_state("losses", 4), 24, 80, NULL);
        if (!late)
            app_run_control(&run, true);
        char sent[512] = "";
        hear(&run, app_key(run.app, '2', run.state, 10), late ? "" : "refused", sent);
        assert_string_equal(sent, late ? "" : "why on;");
        if (late == 1) { /* control comes: the first time it is told */
            app_run_control(&run, true);
            hear(&run, app_due(run.app, run.state, 10), "applied", sent);
            assert_string_equal(sent, "why on;");
        }
        if (late == 3) { /* before the engine is live */
            hear(&run, app_key(run.app, 'n', run.state, 10), "lost", sent);
            assert_string_equal(sent, "why on;");
            *sent = 0;
        }
        hear(&run, app_key(run.app, 'n', run.state, 10), "applied", sent);
        hear(&run, app_key(run.app, 'n', run.state, 10), "", sent);
        assert_string_equal(sent,
                            late ? "why on;phase next;phase next;" : "why on;why on;phase next;phase next;");
        app_run_close(&run);
    }
}

/* What was asked of a run is not asked of the next one by a console that was left on it, nor when control
 * comes by itself: that costs the run time, and nobody wanted it. */
static void a_console_that_was_left_asks_nothing(void **unused) {
    (void)unused;
    for (int ended = 0; ended < 2; ended++) {
        struct app_run run;
        open_with_control(&run);
        char sent[512] = "", line[81 * 4];
        hear(&run, app_key(run.app, '2', run.state, 10), "applied", sent);
        assert_string_equal(sent, "why on;");
        if (ended) {
            struct event end = event_new(EVENT_RUN_END), start = event_new(EVENT_RUN_START);
            end.seq = run.state->last_seq + 1;
            assert_int_equal(state_apply(run.state, &end), STATUS_OK);
            hear(&run, app_due(run.app, run.state, 20), "", sent);
            start.seq = end.seq + 1;
            start.run_start.resumed_from = run.state->at_step;
            assert_int_equal(state_apply(run.state, &start), STATUS_OK);
        } else {
            app_run_control(&run, false);
            hear(&run, app_due(run.app, run.state, 20), "", sent);
        }
        app_run_control(&run, true);
        hear(&run, app_due(run.app, run.state, 30), "", sent);
        assert_string_equal(sent, "why on;");
        assert_null(app_parting(run.app, run.state)); /* nor is it turned off for somebody else */
        app_run_draw(&run, 30);
        app_run_row(run.canvas, 22, line);
        assert_non_null(strstr(line, "not looked into yet: 2 begins"));
        hear(&run, app_key(run.app, '2', run.state, 30), "", sent);
        hear(&run, app_due(run.app, run.state, 30), "", sent);
        assert_string_equal(sent, "why on;why on;");
        assert_string_equal(app_parting(run.app, run.state), "why off");
        app_run_close(&run);
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
        struct app_run run;
        open_with_control(&run);
        const char *asking = NULL;
        app_run_draw(&run, 10);
        for (const char *key = tries[i].keys; *key; key++) {
            enum app_wish wish = app_key(run.app, *key == '|' ? PRESS_ENTER : *key, run.state, 10);
            app_run_draw(&run, 10); /* a screen finds out what it wants */
            wish = wish == APP_NOTHING ? app_due(run.app, run.state, 10) : wish;
            for (; wish == APP_COMMAND; wish = app_due(run.app, run.state, 10)) {
                struct event answer = event_new(EVENT_COMMAND);
                asking = app_asking(run.app);
                app_sent(run.app, "1", NULL, 10);
                answer.command.id = "1";
                answer.command.text = app_text(run.app);
                answer.command.status = strcmp(app_text(run.app), "why on") ? tries[i].status : "applied";
                answer.command.reason = strcmp(app_text(run.app), "why on") || !asking ? "a reason" : NULL;
                assert_int_equal(state_apply(run.state, &answer), STATUS_OK);
                app_run_draw(&run, 10);
            }
        }
        assert_string_equal(asking ? asking : "", tries[i].wanted);
        char line[161];
        app_run_row(run.canvas, 22, line);
        if ((strstr(line, "a reason") != NULL) != tries[i].said)
            fail_msg("%s says \"%s\"", tries[i].keys, line);
        app_run_close(&run);
    }
}

/* A key, and all that is sent for it applied; line: the message line then. */
static void press(struct app_run *run, int key, char *line) {
    enum app_wish wish = app_key(run->app, key, run->state, 10);
    for (; wish == APP_COMMAND; wish = app_due(run->app, run->state, 10)) {
        struct event answer = event_new(EVENT_COMMAND);
        app_sent(run->app, "1", NULL, 10);
        answer.command.id = "1";
        answer.command.text = app_text(run->app);
        answer.command.status = "applied";
        answer.command.reason = !strcmp(app_text(run->app), "why on") ? "the proof takes 1 MB" : NULL;
        assert_int_equal(state_apply(run->state, &answer), STATUS_OK);
        app_run_draw(run, 10);
    }
    app_run_draw(run, 10);
    app_run_row(run->canvas, 22, line);
}

/* What the proof takes is said while nothing of a person's is, and goes with the screen. */
static void notices_give_way(void **unused) {
    (void)unused;
    struct app_run run;
    open_with_control(&run);
    char line[161];
    app_run_draw(&run, 10);
    press(&run, '2', line);
    assert_non_null(strstr(line, "the proof takes"));
    press(&run, '1', line);
    assert_null(strstr(line, "the proof takes"));
    press(&run, '2', line);
    press(&run, ' ', line);
    assert_non_null(strstr(line, "applied"));
    press(&run, '1', line);
    press(&run, '2', line);
    assert_non_null(strstr(line, "applied"));
    app_run_close(&run);
}

/* Where a lesson makes the steps the footer offers none. */
static void a_guide_makes_the_steps(void **unused) {
    (void)unused;
    static const char *const walks[] = {"space", "step", "next", "run", "towers", "apply"};
    for (int guided = 0; guided < 3; guided++) { /* 2: at its end, where Enter and n still are its keys */
        struct guide guide = {.text = "words", .part = 1, .parts = 2, .done = guided == 2};
        struct app_run run;
        app_run_open(&run, app_run_state("losses", 4), 24, 200, guided ? &guide : NULL);
        char footer[201];
        (void)app_key(run.app, '2', run.state, 10);
        app_run_draw(&run, 10);
        app_run_row(run.canvas, 23, footer);
        for (int i = 0; i < 6; i++)
            assert_int_equal(strstr(footer, walks[i]) == NULL,
                             guided == 1 ||
                                 (guided == 2 && (!strcmp(walks[i], "next") || !strcmp(walks[i], "run"))));
        assert_non_null(strstr(footer, "scope"));
        app_run_close(&run);
    }
}

static bool shows(const struct app_run *run, const char *text) {
    char row[256];
    for (int i = 0; i < run->canvas->rows; i++) {
        app_run_row(run->canvas, i, row);
        if (strstr(row, text))
            return true;
    }
    return false;
}

/* A page of a guide that is longer than the screen is turned in itself before the next one comes, also back;
 * each of its words is shown. */
static void a_long_page_is_turned_in_itself(void **unused) {
    (void)unused;
    struct guide guide = {.part = 2, .parts = 3};
    for (int i = 0; i < 100; i++)
        snprintf(guide.text + strlen(guide.text), sizeof guide.text - strlen(guide.text), "word%02d ", i);
    struct app_run run;
    app_run_open(&run, app_run_state("losses", 4), 24, 40, &guide);
    bool seen[100] = {false};
    int turns = 0;
    enum app_wish wish = APP_NOTHING;
    for (; wish == APP_NOTHING && turns < 20; turns++) {
        app_run_draw(&run, 10);
        for (int i = 0; i < 100; i++) {
            char word[16];
            snprintf(word, sizeof word, "word%02d", i);
            seen[i] = seen[i] || shows(&run, word);
        }
        assert_int_equal(shows(&run, "reads on"), !shows(&run, "word99"));
        wish = app_key(run.app, 'n', run.state, 10);
    }
    assert_int_equal(wish, APP_GO_ON);
    assert_true(turns > 1 && turns < 20);
    for (int i = 0; i < 100; i++)
        assert_true(seen[i]);
    for (int back = 0; back < turns - 1; back++) {
        assert_int_equal(app_key(run.app, 'b', run.state, 10), APP_NOTHING);
        app_run_draw(&run, 10);
    }
    assert_true(shows(&run, "word00"));
    assert_int_equal(app_key(run.app, 'b', run.state, 10), APP_GO_BACK);
    app_key(run.app, 'n', run.state, 10);
    guide.part = 3; /* another page begins at its begin */
    app_run_draw(&run, 10);
    assert_true(shows(&run, "word00"));
    app_run_close(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks),
        cmocka_unit_test(asks_again),
        cmocka_unit_test(a_console_that_was_left_asks_nothing),
        cmocka_unit_test(says_who_asks),
        cmocka_unit_test(notices_give_way),
        cmocka_unit_test(a_guide_makes_the_steps),
        cmocka_unit_test(a_long_page_is_turned_in_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
