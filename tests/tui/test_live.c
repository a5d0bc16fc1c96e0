/* Consoles on a live run: what they show, who has control, and that neither side harms the other by dying.
 * test-timeout: 180 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "engine/base/clock.h"
#include "tests/support/cmocka.h"
#include "tests/support/small_run.h"

static void commands(void **state) {
    (void)state;
    small_run_start("orders", 2, "");
    struct vt *vt = small_run_attach("orders", 24, 100, NULL);
    vt_keys(vt, "+");
    assert_true(vt_wait_text(vt, "towers 3 applied at step", 15));
    assert_true(vt_wait_text(vt, "2→3", 15));
    vt_keys(vt, " ");
    assert_true(vt_wait_text(vt, "paused", 15));
    vt_keys(vt, ":set lr 0.005\r");
    assert_true(vt_wait_text(vt, "set lr 0.005 applied", 15));
    vt_keys(vt, "s");
    assert_true(vt_wait_text(vt, "step applied", 15));
    vt_keys(vt, ":towers 99999\r");
    assert_true(vt_wait_text(vt, "99999", 15));
    assert_false(vt_shows(vt, "99999 applied"));
    vt_keys(vt, "7");
    assert_true(vt_wait_text(vt, "what happened", 15));
    vt_keys(vt, "1 ");
    assert_true(vt_wait_text(vt, "resume applied", 15));
    small_run_leave(vt, "orders");
    small_run_stop("orders");
}

/* Three consoles: control is asked for and refused, given, and goes on when its holder dies. */
static void control(void **state) {
    (void)state;
    setenv("TOWERSCOPE_CONTROL_SECONDS", "1000000", 1); /* a slow machine's answer is no late one */
    small_run_start("shared", 2, "");
    struct vt *one = small_run_attach("shared", 24, 100, NULL);
    struct vt *two = small_run_attach("shared", 24, 100, NULL);
    struct vt *three = small_run_attach("shared", 24, 100, "--watch");
    assert_true(vt_wait_text(one, "2 watching", 10));
    assert_true(vt_wait_text(two, "has control, c asks", 10));
    assert_true(vt_wait_text(three, "has control", 10));
    vt_keys(two, " ");
    assert_true(vt_wait_text(two, "c asks for it", 10));
    vt_keys(three, "c");
    assert_true(vt_wait_text(three, "only watches", 10));
    vt_keys(two, "c");
    assert_true(vt_wait_text(one, "asks for control", 10));
    vt_keys(one, "x"); /* refused */
    assert_true(vt_wait_no_text(one, "asks for control", 10));
    assert_true(vt_wait_text(two, "not given", 10));
    vt_keys(two, "c");
    assert_true(vt_wait_text(one, "asks for control", 10));
    vt_keys(one, "c"); /* given */
    assert_true(vt_wait_text(two, "control is yours", 10));
    assert_true(vt_wait_text(one, "has control, c asks", 10));
    assert_true(vt_wait_text(two, "2 watching", 10));
    vt_signal(two, SIGKILL); /* the holder dies */
    assert_true(vt_wait_exit(two, 10, NULL));
    assert_true(vt_wait_text(one, "1 watching", 10));
    vt_keys(one, " ");
    assert_true(vt_wait_text(one, "paused", 15));
    vt_end(two);
    small_run_leave(three, "shared");
    small_run_leave(one, "shared");
    small_run_stop("shared");
}

/* A console that is killed is nothing to the run; an engine that is killed is told, and the console stays. */
static void deaths(void **state) {
    (void)state;
    small_run_start("frail", 2, "");
    struct vt *vt = small_run_attach("frail", 24, 100, NULL);
    assert_true(vt_wait_text(vt, "training", 15));
    vt_signal(vt, SIGKILL);
    assert_true(vt_wait_exit(vt, 10, NULL));
    vt_end(vt);
    vt = small_run_attach("frail", 24, 100, NULL);
    assert_true(vt_wait_text(vt, "step", 15));
    pid_t engine = small_run_engine("frail");
    assert_int_equal(kill(engine, SIGKILL), 0);
    assert_true(vt_wait_text(vt, "crashed", 20));
    vt_keys(vt, "7");
    assert_true(vt_wait_text(vt, "what happened", 10));
    vt_keys(vt, "1");
    assert_true(vt_wait_text(vt, "cross-entropy", 10));
    vt_keys(vt, " ");
    assert_true(vt_wait_text(vt, "nobody to command", 10));
    vt_keys(vt, "q");
    assert_true(vt_wait_exit(vt, 10, NULL));
    assert_true(vt_is_restored(vt));
    vt_end(vt);
}

/* `run` opens the console at once and trains in it; what stops a start is told on the terminal as it was. */
static void run_opens_it(void **state) {
    (void)state;
    char runs[1024];
    snprintf(runs, sizeof runs, "%s/runs", getenv("TEST_TMP"));
    const char *program = getenv("TOWERSCOPE");
    const char *good[] = {program,   "run",     "opened", "--runs", runs,       "--data", "generated",
                          "--model", "softmax", "--lr",   "0.01",   "--towers", "2",      NULL};
    struct vt *vt = vt_start(24, 100, good, NULL);
    assert_true(vt_wait_text(vt, "cross-entropy", 20));
    assert_true(vt_wait_text(vt, "training", 20));
    small_run_leave(vt, "opened");
    small_run_stop("opened");
    const char *bad[] = {program, "run", "refused", "--runs", runs, "--data", "/no/such/folder", NULL};
    vt = vt_start(24, 100, bad, NULL);
    int status;
    assert_true(vt_wait_exit(vt, 20, &status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    assert_true(vt_shows(vt, "/no/such/folder"));
    assert_true(vt_is_restored(vt));
    vt_end(vt);
}

/* Without a name the newest is shown and the others are named. Who stops it and leaves at once is not told
 * that it goes on, whether its last step takes long or not. */
static void stops_and_leaves(void **state) {
    (void)state;
    small_run_start("elder", 2, "");
    small_run_start("younger", 2, "");
    const char *argv[] = {getenv("TOWERSCOPE"), "attach", NULL};
    struct vt *vt = vt_start(24, 100, argv, NULL);
    assert_non_null(vt);
    assert_true(vt_wait_text(vt, "attached to younger; also live: elder", 15));
    small_run_stop("elder");
    vt_keys(vt, "+");
    assert_true(vt_wait_text(vt, "2→3", 15)); /* control is ours */
    vt_keys(vt, "Qyq");
    int status;
    assert_true(vt_wait_exit(vt, 20, &status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(vt_is_restored(vt));
    assert_true(vt_shows(vt, "younger: stopped at step") || vt_shows(vt, "younger is being stopped"));
    assert_false(vt_shows(vt, "goes on"));
    vt_end(vt);
    small_run_stop("younger"); /* should the console have failed to */
}

/* Killed by a hang-up while it trains: the run goes on. */
static void hang_up(void **state) {
    (void)state;
    small_run_start("alone", 2, "");
    struct vt *vt = small_run_attach("alone", 24, 100, NULL);
    vt_hang_up(vt);
    assert_true(vt_wait_exit(vt, 20, NULL));
    vt_end(vt);
    assert_true(small_run_goes_on("alone", 10));
    /* lines, where no cursor can be placed */
    const char *const argv[] = {getenv("TOWERSCOPE"), "attach", "alone", NULL}, *const dumb[] = {"TERM=dumb",
                                                                                                 NULL};
    int status;
    vt = vt_start(24, 120, argv, dumb);
    assert_true(vt_wait_text(vt, "   towers ", 20));
    vt_keys(vt, "\x03");
    assert_true(vt_wait_exit(vt, 20, &status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(vt_shows(vt, "alone goes on: step") && vt_shows(vt, "Come back with: "));
    vt_end(vt);
    small_run_stop("alone");
}

static void settle_for(struct vt *vt, double seconds) {
    double until = clock_seconds() + seconds;
    while (clock_seconds() < until)
        vt_settle(vt, 0.05, 0.1);
}

/* Whether a slow line makes the console say that it is quiet: five seconds of one fill the terminal's buffer,
 * unless the console writes slowly itself, since the machine has much else to do. */
static bool gets_quiet(struct vt *vt) {
    for (int i = 0; i < 10; i++) {
        vt_line_rate(vt, 400);
        settle_for(vt, 5);
        vt_line_rate(vt, -1);
        for (int k = 0; k < 20 && !vt_shows(vt, "quiet   "); k++)
            vt_settle(vt, 0.2, 0.2);
        if (vt_shows(vt, "quiet   "))
            return true;
    }
    return false;
}

/* A line that carries less than is written: the console draws seldom and says so; once it carries more, as
 * before.
 */
static void slow_line(void **state) {
    (void)state;
    small_run_start("slow", 4, "");
    struct vt *vt = small_run_attach("slow", 40, 120, NULL);
    vt_keys(vt, ":budget\r");
    assert_true(vt_wait_text(vt, "drawn in", 10));
    assert_true(vt_wait_text(vt, "events/s", 10));
    assert_true(vt_wait_no_text(vt, "quiet   ", 10)); /* the control */
    assert_true(gets_quiet(vt));
    assert_true(vt_wait_text(vt, "average", 10));
    vt_settle(vt, 0.2, 1);
    long long bytes = vt_bytes(vt);
    double begun = clock_seconds();
    settle_for(vt, 4);
    bytes = vt_bytes(vt) - bytes;
    double took = clock_seconds() - begun;
    if ((double)bytes > took * 3072)
        fail_msg("%lld bytes in %.1f s, in quiet mode", bytes, took);
    assert_true(vt_wait_no_text(vt, "quiet   ", 60));
    small_run_leave(vt, "slow");
    small_run_stop("slow");
}

/* A line that carries nothing any more: told to end, the console does not wait for it. */
static void dead_line(void **state) {
    (void)state;
    small_run_start("dead", 4, "");
    struct vt *vt = small_run_attach("dead", 40, 120, NULL);
    vt_line_rate(vt, 0);
    settle_for(vt, 4); /* until the terminal's buffer is full */
    vt_signal(vt, SIGTERM);
    int status;
    assert_true(vt_wait_exit(vt, 20, &status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
    vt_end(vt);
    assert_true(small_run_goes_on("dead", 10));
    small_run_stop("dead");
}

/* No engine outlives a test that failed. */
static int finish(void **state) {
    (void)state;
    static const char *const names[] = {"orders", "shared", "frail", "alone", "opened", "slow", "dead"};
    for (int i = 0; i < 7; i++)
        small_run_stop(names[i]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands),         cmocka_unit_test(control),   cmocka_unit_test(deaths),
        cmocka_unit_test(stops_and_leaves), cmocka_unit_test(hang_up),   cmocka_unit_test(run_opens_it),
        cmocka_unit_test(slow_line),        cmocka_unit_test(dead_line),
    };
    return cmocka_run_group_tests(tests, NULL, finish);
}
