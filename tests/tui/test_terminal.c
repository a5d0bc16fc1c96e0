/* The console in a terminal of its own: what it draws there, and that the terminal is given back on every way
 * out. test-timeout: 180 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "tests/support/cmocka.h"
#include "tests/support/screen.h"
#include "tests/support/stream.h"
#include "tests/support/vt.h"

static char record[1024];

static char *program(void) {
    return getenv("TOWERSCOPE");
}

/* The console on the record at its step 300, stopped. */
static struct vt *start(int rows, int cols, const char *const env[]) {
    const char *argv[] = {program(), "replay", record, "--at", "300", NULL};
    struct vt *vt = vt_start(rows, cols, argv, env);
    assert_non_null(vt);
    return vt;
}

static struct vt *start_and_wait(int rows, int cols, const char *const env[]) {
    struct vt *vt = start(rows, cols, env);
    assert_true(vt_wait_text(vt, rows > 2 ? "300" : "training", 10));
    return vt;
}

static void expect_exit(struct vt *vt, double seconds, int code) {
    int status = -1;
    if (!vt_wait_exit(vt, seconds, &status))
        fail_msg("still running after %.1f s", seconds);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
        fail_msg("ended with wait status 0x%x, expected exit %d", (unsigned)status, code);
}

static void leave(struct vt *vt) {
    vt_keys(vt, "q");
    expect_exit(vt, 5, 0);
    assert_true(vt_is_restored(vt));
    vt_end(vt);
}

/* ---- what is drawn */

static void golden(const char *name, int rows, int cols, const char *const env[], const char *keys,
                   const char *wait_for) {
    struct vt *vt = start(rows, cols, env);
    assert_true(vt_wait_text(vt, "300", 10));
    assert_true(vt_wait_text(vt, "stopped", 10));
    assert_true(vt_wait_text(vt, " of ", 10)); /* the record is read to its end */
    vt_keys(vt, keys);
    if (wait_for)
        assert_true(vt_wait_text(vt, wait_for, 5));
    vt_settle(vt, 0.3, 3);
    char *text = vt_screen(vt, true);
    /* On a machine with much else to do it may not be drawn yet, or with less, as for a slow terminal: frames
     * that go quickly end that. */
    for (int i = 0; i < 20 && !screen_is(name, text); i++) {
        free(text);
        vt_keys(vt, "\014");
        vt_settle(vt, 0.3, 3);
        text = vt_screen(vt, true);
    }
    bool same = screen_is_golden(name, text);
    free(text);
    vt_keys(vt, "\007"); /* out of the prompt */
    leave(vt);
    assert_true(same);
}

static void draws(void **state) {
    (void)state;
    static const char *const light[] = {"COLORFGBG=0;15", NULL};
    static const char *const mono[] = {"NO_COLOR=1", NULL};
    /* without "repeat the last character", after which libvterm wraps a full row one character early */
    static const char *const ascii[] = {"LC_ALL=C", "TERM=screen-256color", NULL};
    static const char *const eight[] = {"TERM=xterm", NULL};
    golden("terminal-dark", 24, 80, NULL, "", NULL);
    golden("terminal-light", 24, 80, light, "", NULL);
    golden("terminal-no-color", 24, 80, mono, "", NULL);
    golden("terminal-ascii", 24, 80, ascii, "", NULL);
    golden("terminal-8-colours", 24, 80, eight, "", NULL);
    golden("terminal-log", 24, 80, NULL, "7", "what happened");
    golden("terminal-prompt", 24, 80, NULL, ":goto", ":goto");
}

/* ---- ways out */

static void signals(void **state) {
    (void)state;
    static const int numbers[] = {SIGTERM, SIGQUIT, SIGHUP, SIGINT};
    for (int i = 0; i < 4; i++) {
        struct vt *vt = start_and_wait(24, 80, NULL);
        assert_true(vt_alternate(vt));
        vt_signal(vt, numbers[i]);
        int status;
        assert_true(vt_wait_exit(vt, 5, &status));
        assert_true(vt_is_restored(vt));
        assert_true(WIFEXITED(status));
        vt_end(vt);
    }
}

/* A crash dies of its own signal, with the terminal given back before. */
static void crashes(void **state) {
    (void)state;
    static const int numbers[] = {SIGSEGV, SIGABRT, SIGBUS};
    for (int i = 0; i < 3; i++) {
        struct vt *vt = start_and_wait(24, 80, NULL);
        vt_signal(vt, numbers[i]);
        int status;
        assert_true(vt_wait_exit(vt, 5, &status));
        assert_true(vt_is_restored(vt));
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
        vt_end(vt);
    }
}

static void interrupt_key(void **state) {
    (void)state;
    struct vt *vt = start_and_wait(24, 80, NULL);
    vt_keys(vt, "\003");
    expect_exit(vt, 5, 0);
    assert_true(vt_is_restored(vt));
    vt_end(vt);
    vt = start_and_wait(24, 80, NULL);
    vt_keys(vt, "\034"); /* ^\ */
    int status;
    assert_true(vt_wait_exit(vt, 5, &status));
    assert_true(vt_is_restored(vt));
    vt_end(vt);
}

/* The terminal is gone: so is the console, soon, without burning the processor, even where SIGHUP
 * is ignored. */
static void hang_up(void **state) {
    (void)state;
    const char *ignoring[] = {"/bin/sh", "-c",   "trap '' HUP; exec \"$0\" replay \"$1\" --at 300",
                              program(), record, NULL};
    for (int i = 0; i < 2; i++) {
        struct vt *vt = i ? vt_start(24, 80, ignoring, NULL) : start(24, 80, NULL);
        assert_true(vt_wait_text(vt, "300", 10));
        vt_settle(vt, 0.2, 2);
        double before = vt_cpu(vt);
        vt_hang_up(vt);
        if (!vt_wait_exit(vt, 20, NULL))
            fail_msg("still running 20 s after the terminal went, %.2f s of processor time",
                     vt_cpu(vt) - before);
        vt_end(vt);
    }
}

static void suspend_and_continue(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message(
        "not under the thread sanitizer: it holds signals back until the library's handler is too late\n");
    skip();
#endif
    struct vt *vt = start_and_wait(24, 80, NULL);
    /* ^Z where no shell is there that could let it go on: the kernel stops nobody, and it stays
     * (tests/trials/test_e_suspend.sh has a shell) */
    vt_keys(vt, "\032");
    for (int i = 0; i < 200 && !vt_shows(vt, "what happened");
         i++) { /* what is typed before that is dropped */
        vt_keys(vt, "7");
        vt_settle(vt, 0.2, 0.2);
    }
    assert_true(vt_shows(vt, "what happened"));
    assert_true(vt_alternate(vt));
    vt_keys(vt, "1");
    assert_true(vt_wait_text(vt, "average", 5));
    /* Stopped from outside, with rubbish written over the screen meanwhile: all of it is drawn again. */
    vt_signal(vt, SIGSTOP);
    assert_true(vt_wait_stopped(vt, 5));
    vt_signal(vt, SIGCONT);
    vt_settle(vt, 0.3, 3);
    assert_true(vt_wait_text(vt, "average", 5));
    leave(vt);
}

/* In the background it is stopped when it wants the terminal; told to end, it ends. */
static void background(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("not under the thread sanitizer: it holds the signal back, and the process stops again\n");
    skip();
#endif
    const char *argv[] = {"/usr/bin/env", "timeout", "1", program(), "replay", record, NULL};
    struct vt *vt = vt_start(24, 80, argv, NULL);
    assert_non_null(vt);
    expect_exit(vt, 60, 124);
    assert_true(vt_is_restored(vt));
    vt_end(vt);
}

/* ---- sizes */

static void sizes(void **state) {
    (void)state;
    static const int all[][2] = {{1, 1},   {1, 80},  {2, 10},   {3, 200}, {5, 20},
                                 {10, 40}, {24, 80}, {40, 120}, {60, 250}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct vt *vt = start(all[i][0], all[i][1], NULL);
        vt_settle(vt, 0.2, 5);
        while (!vt_alternate(vt))
            vt_settle(vt, 0.2, 1);
        leave(vt);
    }
}

static void storm_of_sizes(void **state) {
    (void)state;
    static const char *const screens[] = {"", "7", "?", ":towers"};
    struct vt *vt = start_and_wait(24, 80, NULL);
    for (int s = 0; s < 4; s++) {
        vt_keys(vt, screens[s]);
        for (int i = 0; i < 40; i++) {
            vt_resize(vt, 1 + (i * 7) % 50, 1 + (i * 37) % 200);
            vt_settle(vt, 0.005, 0.02);
        }
    }
    vt_keys(vt, "\033"); /* out of the prompt */
    vt_resize(vt, 24, 80);
    vt_settle(vt, 0.3, 3);
    assert_true(vt_wait_no_text(vt, ":towers", 5)); /* together the two keys would be another */
    vt_keys(vt, "1");
    assert_true(vt_wait_text(vt, "cross-entropy", 5));
    assert_true(vt_wait_text(vt, "300", 5));
    leave(vt);
}

/* Exported LINES and COLUMNS are not the size of the terminal. */
static void exported_size(void **state) {
    (void)state;
    static const char *const env[] = {"LINES=7", "COLUMNS=33", NULL};
    struct vt *vt = start_and_wait(24, 80, env);
    assert_true(vt_wait_text(vt, "cross-entropy", 5));
    vt_resize(vt, 40, 120);
    assert_true(vt_wait_text(vt, "gradient norm", 5));
    leave(vt);
}

/* ---- surroundings */

static void terminals(void **state) {
    (void)state;
    static const char *const names[] = {
        "TERM=nosuchterm", "TERM=vt100",  "TERM=vt102",         "TERM=xterm", "TERM=xterm-mono",
        "TERM=linux",      "TERM=screen", "TERM=tmux-256color", "TERM=putty", "LC_ALL=nosuch.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const env[] = {names[i], NULL};
        struct vt *vt = start_and_wait(24, 80, env);
        leave(vt);
    }
}

/* No cursor to place: lines, to the end of the run. */
static void dumb_terminal(void **state) {
    (void)state;
    static const char *const dumb[] = {"TERM=dumb", NULL}, *const unset[] = {"TERM", NULL};
    for (int i = 0; i < 2; i++) {
        const char *argv[] = {program(), "replay", record, "--speed", "100", NULL};
        struct vt *vt = vt_start(24, 120, argv, i ? unset : dumb);
        assert_non_null(vt);
        assert_true(vt_wait_text(vt, "a line each", 10));
        assert_true(vt_wait_text(vt, "step 600", 20));
        assert_true(vt_wait_text(vt, "   towers ", 10)); /* the rest of the line may come later */
        expect_exit(vt, 5, 0);
        assert_true(vt_is_restored(vt));
        vt_end(vt);
    }
}

static void no_terminal(void **state) {
    (void)state;
    char command[4096];
    snprintf(command, sizeof command, "\"%s\" replay \"%s\" >\"%s.out\" 2>&1 </dev/null", program(), record,
             record);
    int status = system(command);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    snprintf(command, sizeof command, "grep -q 'no terminal' \"%s.out\" && ! grep -q $'\\033' \"%s.out\"",
             record, record);
    assert_int_equal(system(command), 0);
}

/* ---- keys are answered */

static void key_latency(void **state) {
    (void)state;
    struct vt *vt = start_and_wait(40, 120, NULL);
    for (int i = 0; i < 5; i++) {
        vt_keys(vt, "?");
        assert_true(vt_wait_text(vt, "screens", 5));
        vt_keys(vt, "?");
        assert_true(vt_wait_text(vt, "cross-entropy", 5));
    }
    leave(vt);
}

/* Bytes that are no characters, pasted with all that follows: one stands for each, and Enter is heard. */
static void broken_characters(void **state) {
    (void)state;
    struct vt *vt = start_and_wait(24, 80, NULL);
    vt_keys(vt, ":note a\303(b\377c\303\251");
    assert_true(vt_wait_text(vt, ":note a\357\277\275(b\357\277\275c\303\251", 5));
    vt_keys(vt, "\303\r");
    assert_true(vt_wait_text(vt, "changes nothing", 5)); /* a record takes no commands */
    vt_keys(vt, ":note \303(\r");
    assert_true(vt_wait_no_text(vt, ":note", 5));
    leave(vt);
}

/* What a terminal says beside keys moves nothing, and pasted text is text. */
static void reports_are_no_keys(void **state) {
    (void)state;
    struct vt *vt = start_and_wait(24, 80, NULL);
    vt_keys(vt, "\033[<0;5;5M\033[M #5\033[Mq7?\033]11;rgb:7/7/7\033\\\033[?62;4c\033[200~7?q:\r\033[201~");
    vt_keys(vt, ":");
    assert_true(vt_wait_text(vt, "cross-entropy", 5)); /* the same screen, without help */
    vt_keys(vt, "\033[200~goto 123\r\033[201~");
    assert_true(vt_wait_text(vt, ":goto 123", 5));
    vt_keys(vt, "\r");
    assert_true(vt_wait_text(vt, "step 123", 5));
    leave(vt);
}

static void plays_and_seeks(void **state) {
    (void)state;
    struct vt *vt = start_and_wait(24, 80, NULL);
    vt_keys(vt, "\033OF"); /* End */
    assert_true(vt_wait_text(vt, "600", 5));
    assert_true(vt_wait_text(vt, "ended", 5));
    vt_keys(vt, ":goto 123\r");
    assert_true(vt_wait_text(vt, "step 123", 5));
    vt_keys(vt, ":seek 200\r:goto inf\r");
    assert_true(vt_wait_text(vt, "There are goto STEP", 5));
    assert_true(vt_wait_text(vt, "step 123", 5));
    vt_keys(vt, "n");
    assert_true(vt_wait_text(vt, "step 200", 5)); /* an evaluation */
    vt_keys(vt, "+++++ ");
    assert_true(vt_wait_text(vt, "100×", 5));
    assert_true(vt_wait_text(vt, "ended", 10));
    leave(vt);
}

static int make_records(void **state) {
    (void)state;
    struct stream_script script = {.towers = 4, .steps = 600, .eval_every = 200, .ended = true};
    snprintf(record, sizeof record, "%s/record.jsonl", getenv("TEST_TMP"));
    return stream_write(&script, record) == STATUS_OK ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws),
        cmocka_unit_test(signals),
        cmocka_unit_test(crashes),
        cmocka_unit_test(interrupt_key),
        cmocka_unit_test(hang_up),
        cmocka_unit_test(background),
        cmocka_unit_test(suspend_and_continue),
        cmocka_unit_test(sizes),
        cmocka_unit_test(storm_of_sizes),
        cmocka_unit_test(exported_size),
        cmocka_unit_test(terminals),
        cmocka_unit_test(no_terminal),
        cmocka_unit_test(dumb_terminal),
        cmocka_unit_test(key_latency),
        cmocka_unit_test(reports_are_no_keys),
        cmocka_unit_test(plays_and_seeks),
        cmocka_unit_test(broken_characters),
    };
    return cmocka_run_group_tests(tests, make_records, NULL);
}
