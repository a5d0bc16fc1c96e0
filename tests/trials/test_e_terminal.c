/* What befell other full-screen programs, tried on the console: sizes, poor surroundings, lines that drop,
 * signals. test-timeout: 240, test-skip-under: thread (it holds signals back) */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "engine/base/clock.h"
#include "tests/support/cmocka.h"
#include "tests/support/small_run.h"
#include "tests/support/stream.h"

static char record[1024], many[1024];

static struct vt *replay(const char *file, int rows, int cols, const char *const env[]) {
    const char *argv[] = {getenv("TOWERSCOPE"), "replay", file, "--at", "300", NULL};
    struct vt *vt = vt_start(rows, cols, argv, env);
    assert_non_null(vt);
    return vt;
}

static void wait_alternate(struct vt *vt) {
    double until = clock_seconds() + 100;
    while (!vt_alternate(vt) && clock_seconds() < until)
        vt_settle(vt, 0.02, 0.1);
    assert_true(vt_alternate(vt));
}

static void leave(struct vt *vt) {
    int status = -1;
    vt_keys(vt, "q");
    assert_true(vt_wait_exit(vt, 10, &status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(vt_is_restored(vt));
    vt_end(vt);
}

/* E1: one console goes through the sizes, each of 1 to 30 rows at another width of 1 to 200. */
static void e1_sizes(void **state) {
    (void)state;
    static const int towers[] = {1, 2, 8, 64};
    for (int t = 0; t < 4; t++) {
        char file[1100];
        snprintf(file, sizeof file, "%s-%d", record, towers[t]);
        struct stream_script script = {.towers = towers[t], .steps = 310, .eval_every = 100};
        assert_int_equal(stream_write(&script, file), STATUS_OK);
        struct vt *vt = replay(file, 24, 80, NULL);
        assert_true(vt_wait_text(vt, "300", 10));
        for (int rows = 1; rows <= 30; rows++)
            for (int cols = 1 + (rows + t) % 4 * 7; cols <= 200; cols += 28) {
                vt_resize(vt, rows, cols);
                vt_settle(vt, 0.001, 0.02);
            }
        vt_resize(vt, 24, 80);
        assert_true(vt_wait_text(vt, "average", 10));
        assert_true(vt_wait_text(vt, "loss", 10));
        leave(vt);
    }
}

/* E1: started small, and enlarged. */
static void e1_started_small(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {1, 200}, {30, 1}, {2, 7}, {6, 15}};
    for (int i = 0; i < 5; i++) {
        struct vt *vt = replay(many, sizes[i][0], sizes[i][1], NULL);
        wait_alternate(vt);
        vt_resize(vt, 24, 80);
        assert_true(vt_wait_text(vt, "average", 10));
        leave(vt);
    }
}

/* E1: a size that is none takes no memory, and is told. */
static void e1_no_size(void **state) {
    (void)state;
    const char *argv[] = {"/bin/sh", "-c", "stty rows 20000 cols 20000; exec \"$TOWERSCOPE\" replay \"$0\"",
                          many, NULL};
    struct vt *vt = vt_start(24, 80, argv, NULL);
    assert_non_null(vt);
    assert_true(vt_wait_text(vt, "no screen has 20000 rows", 10));
    vt_keys(vt, "\003");
    assert_true(vt_wait_exit(vt, 10, NULL));
    assert_true(vt_is_restored(vt));
    vt_end(vt);
}

/* E1: forty changes of the size, fifty times a second, on every screen and with the help open. */
static void e1_storm(void **state) {
    (void)state;
    static const char *const screens[] = {"1", "2", "3", "4", "5", "6", "7", "?"};
    struct vt *vt = replay(many, 24, 80, NULL);
    assert_true(vt_wait_text(vt, "300", 10));
    for (int s = 0; s < 8; s++) {
        vt_keys(vt, screens[s]);
        for (int i = 0; i < 40; i++) {
            vt_resize(vt, 1 + (i * 7 + s) % 50, 1 + (i * 37 + s) % 200);
            vt_settle(vt, 0.005, 0.02);
        }
    }
    vt_resize(vt, 24, 80);
    vt_keys(vt, "?1");
    assert_true(vt_wait_text(vt, "cross-entropy", 10));
    leave(vt);
}

/* E3: whatever TERM and locale say, there is a screen, and it is left as it was. */
static void e3_terminals(void **state) {
    (void)state;
    static const char *const all[][2] = {{"TERM=nosuchterm"}, {"TERM=vt100"},
                                         {"TERM=vt102"},      {"TERM=vt220"},
                                         {"TERM=xterm"},      {"TERM=xterm-mono"},
                                         {"TERM=linux"},      {"TERM=screen"},
                                         {"TERM=putty"},      {"TERM=tmux-256color"},
                                         {"LC_ALL=C"},        {"LC_ALL=nosuch.UTF-8"},
                                         {"NO_COLOR=1"},      {"TERM=vt100", "LC_ALL=C"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *const env[] = {all[i][0], all[i][1], NULL};
        struct vt *vt = replay(record, 24, 80, env);
        assert_true(vt_wait_text(vt, "average", 10));
        leave(vt);
    }
}

/* E3: frames of a plain locale are ASCII; no byte above it is written. */
static void e3_plain_locale(void **state) {
    (void)state;
    static const char *const env[] = {"LC_ALL=C", NULL};
    struct vt *vt = replay(record, 40, 120, env);
    assert_true(vt_wait_text(vt, "300", 10));
    char *screen = vt_screen(vt, false);
    bool plain = true;
    for (const char *at = screen; *at; at++)
        plain = plain && (unsigned char)*at < 0x80;
    free(screen);
    assert_true(plain);
    leave(vt);
}

/* E3: without a terminal training goes its way, without one escape sequence. */
static void e3_no_terminal(void **state) {
    (void)state;
    static const char *const ways[] = {"", "setsid -w", "env -i PATH=\"$PATH\" HOME=\"$HOME\"",
                                       "env TERM=xterm-256color LC_ALL=C"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            shell("cd \"$TEST_TMP\" && %s \"$TOWERSCOPE\" train plain-%d --runs \"$TEST_TMP/runs\" --data "
                  "generated --model softmax --towers 2 --batch 64 --steps 40 </dev/null >out-%d 2>&1",
                  ways[i], i, i),
            0);
        assert_int_equal(shell("cd \"$TEST_TMP\" && [ -s out-%d ] && ! grep -q $'\\033' out-%d", i, i), 0);
    }
    /* The control: the console itself, told that there is none. */
    assert_int_not_equal(shell("\"$TOWERSCOPE\" replay '%s' </dev/null >\"$TEST_TMP/out\" 2>&1", record), 0);
    assert_int_equal(shell("cd \"$TEST_TMP\" && [ $(wc -l <out) = 1 ] && ! grep -q $'\\033' out"), 0);
}

/* The line drops: the console goes, and does not burn the processor until it does: what it has used counts,
 * not the clock, which runs on while others have the processor. */
static void hang_up(struct vt *vt) {
    vt_settle(vt, 0.1, 1);
    double before = vt_cpu(vt);
    vt_hang_up(vt);
    assert_true(vt_wait_exit(vt, 20, NULL));
    double used = vt_cpu(vt) - before;
    vt_end(vt);
    if (!(used < 2))
        fail_msg("%.2f s of the processor after the line dropped", used);
}

/* E4: the line drops. The console is gone, also where SIGHUP is ignored, and the run goes on. */
static void e4_line_drops(void **state) {
    (void)state;
    static const char *const ways[] = {"exec \"$TOWERSCOPE\" attach line",
                                       "trap '' HUP; exec \"$TOWERSCOPE\" attach line"};
    small_run_start("line", 2, "");
    for (int way = 0; way < 2; way++) {
        const char *argv[] = {"/bin/sh", "-c", ways[way], NULL};
        struct vt *vt = vt_start(24, 80, argv, NULL);
        assert_true(vt_wait_text(vt, "average", 15));
        hang_up(vt);
        assert_true(small_run_goes_on("line", 10));
    }
    small_run_stop("line");
}

/* E4: a run that was started with its console goes on without it. */
static void e4_run_with_console(void **state) {
    (void)state;
    char runs[1024];
    snprintf(runs, sizeof runs, "%s/runs", getenv("TEST_TMP"));
    const char *argv[] = {getenv("TOWERSCOPE"),
                          "run",
                          "foreground",
                          "--runs",
                          runs,
                          "--data",
                          "generated",
                          "--model",
                          "softmax",
                          "--lr",
                          "0.01",
                          "--towers",
                          "2",
                          NULL};
    struct vt *vt = vt_start(24, 80, argv, NULL);
    assert_true(vt_wait_text(vt, "average", 20));
    hang_up(vt);
    assert_true(small_run_goes_on("foreground", 10));
    small_run_stop("foreground");
}

/* Whatever ends the console, the terminal is as it was: its modes, the screen and the cursor. */
static void signals_restore(void **state) {
    (void)state;
    static const struct {
        int number;
        bool dies; /* of the signal, as a crash does */
    } all[] = {{SIGINT, false},  {SIGTERM, false}, {SIGHUP, false}, {SIGQUIT, false}, {SIGUSR1, false},
               {SIGUSR2, false}, {SIGSEGV, true},  {SIGBUS, true},  {SIGILL, true},   {SIGFPE, true},
               {SIGABRT, true},  {SIGSYS, true},   {SIGXCPU, true}, {SIGTRAP, true},  {SIGVTALRM, true},
               {SIGPROF, true},  {SIGIO, true},    {SIGPWR, true},  {SIGALRM, false}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct vt *vt = replay(record, 24, 80, NULL);
        assert_true(vt_wait_text(vt, "300", 10));
        assert_true(vt_alternate(vt)); /* the control: there is something to give back */
        int status;
        vt_signal(vt, all[i].number);
        assert_true(vt_wait_exit(vt, 10, &status));
        if (!vt_is_restored(vt) || (all[i].dies ? !WIFSIGNALED(status) : !WIFEXITED(status)))
            fail_msg("signal %d: wait status 0x%x", all[i].number, (unsigned)status);
        vt_end(vt);
    }
}

static int make_records(void **state) {
    (void)state;
    struct stream_script few = {.towers = 4, .steps = 310}, more = {.towers = 64, .steps = 310};
    snprintf(record, sizeof record, "%s/record", getenv("TEST_TMP"));
    snprintf(many, sizeof many, "%s/many", getenv("TEST_TMP"));
    return stream_write(&few, record) == STATUS_OK && stream_write(&more, many) == STATUS_OK ? 0 : -1;
}

static int finish(void **state) {
    (void)state;
    small_run_stop("line");
    small_run_stop("foreground");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(e1_sizes),
        cmocka_unit_test(e1_started_small),
        cmocka_unit_test(e1_no_size),
        cmocka_unit_test(e1_storm),
        cmocka_unit_test(e3_terminals),
        cmocka_unit_test(e3_plain_locale),
        cmocka_unit_test(e3_no_terminal),
        cmocka_unit_test(e4_line_drops),
        cmocka_unit_test(e4_run_with_console),
        cmocka_unit_test(signals_restore),
    };
    return cmocka_run_group_tests(tests, make_records, finish);
}
