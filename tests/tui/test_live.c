/* Consoles on a live run: what they show, who has control, and that neither side harms the other by dying.
 * test-timeout: 180 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "tests/support/cmocka.h"
#include "tests/support/vt.h"

static const char *program, *folder;

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    char command[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A small run that goes on until it is stopped. */
static void start_run(const char *name) {
    assert_int_equal(
        shell("\"%s\" run %s --detach --runs \"%s/runs\" --data generated --model softmax --towers 2 "
              "--batch 32 --lr 0.01 --eval-every 0 --checkpoint-every 0 >/dev/null",
              program, name, folder),
        0);
}

static void stop_run(const char *name) {
    shell("\"%s\" ctl %s stop >/dev/null 2>&1", program, name);
}

static struct vt *attach(const char *name, const char *option) {
    const char *argv[] = {program, "attach", name, option, NULL};
    struct vt *vt = vt_start(24, 100, argv, NULL);
    assert_non_null(vt);
    assert_true(vt_wait_text(vt, "cross-entropy", 15));
    return vt;
}

static void leave(struct vt *vt, const char *name) {
    vt_keys(vt, "q");
    int status;
    assert_true(vt_wait_exit(vt, 10, &status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(vt_is_restored(vt));
    assert_true(vt_shows(vt, "goes on"));
    assert_true(vt_shows(vt, name)); /* how to come back */
    vt_end(vt);
}

/* The process number of a run's engine, as its lock file tells it. */
static pid_t engine_of(const char *name) {
    char path[1024];
    long pid = 0;
    snprintf(path, sizeof path, "%s/runs/%s/lock", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pid), 1);
    fclose(file);
    return (pid_t)pid;
}

static void commands(void **state) {
    (void)state;
    start_run("orders");
    struct vt *vt = attach("orders", NULL);
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
    leave(vt, "orders");
    stop_run("orders");
}

/* Three consoles: control is asked for and refused, given, and goes on when its holder dies. */
static void control(void **state) {
    (void)state;
    start_run("shared");
    struct vt *one = attach("shared", NULL);
    struct vt *two = attach("shared", NULL);
    struct vt *three = attach("shared", "--watch");
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
    assert_true(vt_shows(two, "has control"));
    vt_keys(two, "c");
    assert_true(vt_wait_text(one, "asks for control", 10));
    vt_keys(one, "c"); /* given */
    assert_true(vt_wait_text(one, "has control, c asks", 10));
    assert_true(vt_wait_text(two, "2 watching", 10));
    vt_signal(two, SIGKILL); /* the holder dies */
    assert_true(vt_wait_exit(two, 10, NULL));
    assert_true(vt_wait_text(one, "1 watching", 10));
    vt_keys(one, " ");
    assert_true(vt_wait_text(one, "paused", 15));
    vt_end(two);
    leave(three, "shared");
    leave(one, "shared");
    stop_run("shared");
}

/* A console that is killed is nothing to the run; an engine that is killed is told, and the console stays. */
static void deaths(void **state) {
    (void)state;
    start_run("frail");
    struct vt *vt = attach("frail", NULL);
    assert_true(vt_wait_text(vt, "training", 15));
    vt_signal(vt, SIGKILL);
    assert_true(vt_wait_exit(vt, 10, NULL));
    vt_end(vt);
    vt = attach("frail", NULL);
    assert_true(vt_wait_text(vt, "step", 15));
    pid_t engine = engine_of("frail");
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
    snprintf(runs, sizeof runs, "%s/runs", folder);
    const char *good[] = {program,   "run",     "opened", "--runs", runs,       "--data", "generated",
                          "--model", "softmax", "--lr",   "0.01",   "--towers", "2",      NULL};
    struct vt *vt = vt_start(24, 100, good, NULL);
    assert_true(vt_wait_text(vt, "cross-entropy", 20));
    assert_true(vt_wait_text(vt, "training", 20));
    leave(vt, "opened");
    stop_run("opened");
    const char *bad[] = {program, "run", "refused", "--runs", runs, "--data", "/no/such/folder", NULL};
    vt = vt_start(24, 100, bad, NULL);
    int status;
    assert_true(vt_wait_exit(vt, 20, &status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    assert_true(vt_shows(vt, "/no/such/folder"));
    assert_true(vt_is_restored(vt));
    vt_end(vt);
}

/* Killed by a hang-up while it trains: the run goes on. */
static void hang_up(void **state) {
    (void)state;
    start_run("alone");
    struct vt *vt = attach("alone", NULL);
    vt_hang_up(vt);
    assert_true(vt_wait_exit(vt, 20, NULL));
    vt_end(vt);
    assert_int_equal(shell("\"%s\" ctl alone status >/dev/null", program), 0);
    stop_run("alone");
}

static int begin(void **state) {
    (void)state;
    program = getenv("TOWERSCOPE");
    folder = getenv("TEST_TMP");
    return program && folder ? 0 : -1;
}

/* No engine outlives a test that failed. */
static int finish(void **state) {
    (void)state;
    static const char *const names[] = {"orders", "shared", "frail", "alone", "opened"};
    for (int i = 0; i < 5; i++)
        stop_run(names[i]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands), cmocka_unit_test(control),      cmocka_unit_test(deaths),
        cmocka_unit_test(hang_up),  cmocka_unit_test(run_opens_it),
    };
    return cmocka_run_group_tests(tests, begin, finish);
}
