/* What befell other daemons, tried on a real engine: stale sockets, two owners, bad clients, loose modes. */
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/wire/live.h"
#include "engine/wire/lock.h"
#include "engine/wire/summary.h"
#include "tests/support/bad_client.h"
#include "tests/support/cmocka.h"
#include "tests/support/process.h"

static const double LIMIT = 100; /* seconds for what comes at once on a machine that has time */

static char folder[300];

#define RUN "\"$TOWERSCOPE\" run --detach --data generated --model softmax --lr 0.01 --eval-every 0 "

/* A command of the shell, in a folder of the test's own; its exit code. What it prints goes to out. */
static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int code = process_shell(folder, format, arguments);
    va_end(arguments);
    return code;
}

static int set_up(void **context) {
    (void)context;
    const char *tmp = getenv("TEST_TMP");
    char state[400];
    snprintf(folder, sizeof folder, "%s/daemon.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(state, sizeof state, "%s/state", folder);
    setenv("XDG_STATE_HOME", state, 1);
    return 0;
}

static int tear_down(void **context) {
    (void)context;
    int spoke = shell(
        "grep -hE -A5 'Sanitizer|runtime error' runs/*/engine.log 2>/dev/null"); /* 0: a sanitizer did */
    shell("for r in runs/*; do [ -s $r/lock ] && kill -9 $(cat $r/lock) 2>/dev/null; done; cd /; rm -rf '%s'",
          folder);
    return spoke == 0 ? -1 : 0;
}

static struct live_run run_of(const char *name) {
    char path[400];
    struct live_run run;
    snprintf(path, sizeof path, "%s/runs/%s", folder, name);
    if (live_describe(path, &run) != STATUS_OK)
        fail_msg("%s", status_text());
    return run;
}

static struct live_run start(const char *name) {
    if (shell(RUN "%s >out 2>&1", name) != 0) {
        shell("cat out");
        fail_msg("%s does not start", name);
    }
    struct live_run run = run_of(name);
    assert_true(run.live);
    return run;
}

static int64_t step_of(const struct live_run *run) {
    struct run_summary summary;
    assert_int_equal(run_summary_read(run, &summary), STATUS_OK);
    return summary.step == WIRE_UNKNOWN_INT ? 0 : summary.step;
}

static void wait_for_step(const struct live_run *run, int64_t step) {
    double end = clock_seconds() + LIMIT;
    while (step_of(run) < step) {
        if (clock_seconds() > end)
            fail_msg("step %lld does not come", (long long)step);
        poll(NULL, 0, 20);
    }
}

static void wait_for_death(const struct live_run *run) {
    double end = clock_seconds() + LIMIT;
    while (lock_held(run->folder)) {
        if (clock_seconds() > end)
            fail_msg("the lock is not given back");
        poll(NULL, 0, 10);
    }
}

static void socket_path(const struct live_run *run, char out[500]) {
    snprintf(out, 500, "%s/state/towerscope/live/%s.sock", folder, run->id);
}

/* F1 */
static void a_socket_left_by_a_crash_is_replaced(void **context) {
    (void)context;
    struct live_run run = start("one");
    wait_for_step(&run, 3);
    char path[500];
    struct stat info;
    socket_path(&run, path);
    kill((pid_t)lock_holder(run.folder), SIGKILL);
    wait_for_death(&run);
    assert_int_equal(stat(path, &info), 0); /* it is still there */
    assert_int_equal(bad_connect(&run), -1);
    assert_int_equal(shell(RUN "one --resume >out 2>&1"), 0);
    assert_int_equal(shell("\"$TOWERSCOPE\" ctl one status >out"), 0);
}

static void a_slow_engine_is_not_taken_for_dead(void **context) {
    (void)context;
    struct live_run run = start("one");
    pid_t pid = (pid_t)lock_holder(run.folder);
    kill(pid, SIGSTOP);
    assert_int_equal(shell(RUN "one --resume >out 2>&1"), 3);
    assert_int_equal(shell("grep -q 'process %d ' out", (int)pid), 0);
    kill(pid, SIGCONT);
    assert_int_equal(shell("\"$TOWERSCOPE\" ctl one status >out"), 0);
}

static void what_is_no_socket_is_left_alone(void **context) {
    (void)context;
    assert_int_equal(shell("mkdir -p runs/one state/towerscope/live"), 0);
    struct live_run run = run_of("one"); /* its name depends on the path alone */
    assert_int_equal(shell("rmdir runs/one"), 0);
    static const char *const made[] = {"echo precious >", "mkdir ", "ln -s /etc/passwd "};
    static const char *const still[] = {"grep -q precious", "test -d", "test -L"};
    for (int i = 0; i < 3; i++) {
        char path[500];
        socket_path(&run, path);
        assert_int_equal(shell("%s '%s'", made[i], path), 0);
        assert_int_not_equal(shell(RUN "one >out 2>&1"), 0);
        assert_int_equal(shell("grep -q 'no socket' out"), 0);
        assert_int_equal(shell("%s '%s'", still[i], path), 0);
        assert_int_equal(shell("test ! -e runs/one"), 0);
        assert_int_equal(shell("rm -r '%s'", path), 0);
    }
    start("one");
}

/* F3 (that of two takers of the lock one wins, fifty times: tests/hub/test_live.c) */
static void of_two_starts_one_wins(void **context) {
    (void)context;
    for (int i = 0; i < 5; i++) {
        char *twice[2][4];
        static char name[40], sh[] = "sh", c[] = "-c";
        char command[600];
        snprintf(name, sizeof name, "twice%d", i);
        snprintf(command, sizeof command, "cd '%s'; exec " RUN "%s >/dev/null 2>&1", folder, name);
        pid_t pids[2];
        for (int p = 0; p < 2; p++) {
            twice[p][0] = sh, twice[p][1] = c, twice[p][2] = command, twice[p][3] = NULL;
            assert_int_equal(posix_spawnp(&pids[p], "sh", NULL, NULL, twice[p], environ), 0);
        }
        int won = 0;
        for (int p = 0; p < 2; p++) {
            int status;
            assert_int_equal(waitpid(pids[p], &status, 0), pids[p]);
            won += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        }
        assert_int_equal(won, 1);
        struct live_run run = run_of(name);
        assert_true(run.live);
        kill((pid_t)lock_holder(run.folder), SIGKILL);
        wait_for_death(&run);
    }
}

static void ten_without_a_name_are_ten(void **context) {
    (void)context;
    assert_int_equal(shell("for i in 1 2 3 4 5 6 7 8 9 10; do " RUN "--steps 2 >/dev/null 2>&1 & done; wait; "
                           "[ $(ls runs | wc -l) = 10 ]"),
                     0);
    assert_int_equal(
        shell("for i in $(seq 1000); do [ $(cat runs/*/events.jsonl | grep -c run_end) = 10 ] && exit 0; "
              "sleep 0.1; done; exit 1"),
        0);
}

/* F4 */
static int descriptors(pid_t pid) {
    char command[200];
    int count = 0;
    snprintf(command, sizeof command, "ls /proc/%d/fd | wc -l", (int)pid);
    FILE *pipe = popen(command, "r");
    assert_true(pipe && fscanf(pipe, "%d", &count) == 1);
    pclose(pipe);
    return count;
}

static void bad_clients_do_no_harm(void **context) {
    (void)context;
    struct live_run run = start("one");
    pid_t pid = (pid_t)lock_holder(run.folder);
    wait_for_step(&run, 5);
    int before = descriptors(pid), fds[130], count = 0;
    static char garbage[70000], endless[100000];
    for (size_t i = 0; i < sizeof garbage; i++)
        garbage[i] = (char)(i * 2654435761u >> 24);
    memset(endless, 'A', sizeof endless);
    for (int i = 0; i < 50; i++) {
        assert_true((fds[count++] = bad_connect(&run)) >= 0); /* silent */
        assert_true((fds[count++] = bad_connect(&run)) >= 0); /* never reads */
        bad_greet(fds[count - 1], WIRE_PROTOCOL, "console", true);
    }
    for (int i = 0; i < 20; i++) {
        int fd = bad_connect(&run);
        assert_true(fd >= 0);
        if (i % 2)
            bad_send(fd, endless, sizeof endless);
        else
            bad_send(fd, garbage, sizeof garbage);
        close(fd);
        assert_true((fd = bad_connect(&run)) >= 0);
        bad_say(fd, "{\"client\":\"con"); /* half a line */
        fds[count++] = fd;
    }
    for (int i = 0; i < 500; i++) { /* slam */
        int fd = bad_connect(&run);
        assert_true(fd >= 0);
        bad_greet(fd, WIRE_PROTOCOL, "console", true);
        close(fd);
    }
    int64_t step = step_of(&run);
    for (int i = 0; i < 5; i++)
        assert_int_equal(shell("\"$TOWERSCOPE\" ctl one status --timeout 100 >out"), 0);
    wait_for_step(&run, step + 50);
    assert_int_equal(lock_holder(run.folder), pid);
    for (int i = 0; i < count; i++)
        close(fds[i]);
    double end = clock_seconds() + LIMIT;
    int left;
    while ((left = descriptors(pid)) > before && clock_seconds() < end)
        poll(NULL, 0, 50);
    assert_true(left <= before);
    assert_int_equal(shell("[ $(wc -c <runs/one/engine.log) -lt 1100000 ]"), 0); /* F8 */
}

/* F5 */
static void only_the_user_may_enter(void **context) {
    (void)context;
    assert_int_equal(shell("umask 000; " RUN "one >out 2>&1"), 0);
    struct live_run run = run_of("one");
    char path[500];
    socket_path(&run, path);
    assert_int_equal(shell("[ \"$(stat -c %%a '%s')\" = 600 ]", path), 0);
    assert_int_equal(shell("[ \"$(stat -c %%a state/towerscope/live)\" = 700 ]"), 0);
    if (geteuid() == 0) { /* another user */
        assert_int_not_equal(
            shell("chmod 755 . \"$(dirname \"$PWD\")\"; setpriv --reuid=65534 --regid=65534 --clear-groups "
                  "\"$TOWERSCOPE\" ctl '%s' status >out 2>&1",
                  run.folder),
            0);
        assert_int_equal(
            shell("chmod 711 state state/towerscope; chmod 777 state/towerscope/live '%s'; setpriv "
                  "--reuid=65534 --regid=65534 --clear-groups \"$TOWERSCOPE\" ctl '%s' status >out 2>&1; [ "
                  "$? != 0 ]",
                  path, run.folder),
            0);
    }
    assert_int_equal(shell("\"$TOWERSCOPE\" ctl one status >out"), 0);
}

static void a_strange_folder_of_live_runs_is_refused(void **context) {
    (void)context;
    assert_int_equal(
        shell("mkdir -p state/towerscope elsewhere && ln -s \"$PWD/elsewhere\" state/towerscope/live"), 0);
    assert_int_not_equal(shell(RUN "one >out 2>&1"), 0);
    assert_int_equal(shell("grep -q 'is a link' out && [ -z \"$(ls elsewhere)\" ] && [ ! -e runs/one ]"), 0);
    if (geteuid() != 0)
        return;
    assert_int_equal(
        shell("rm state/towerscope/live && mkdir state/towerscope/live && chown 65534 state/towerscope/live"),
        0);
    assert_int_not_equal(shell(RUN "one >out 2>&1"), 0);
    assert_int_equal(shell("grep -q 'belongs to user 65534' out"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_socket_left_by_a_crash_is_replaced),
        TEST(a_slow_engine_is_not_taken_for_dead),
        TEST(what_is_no_socket_is_left_alone),
        TEST(of_two_starts_one_wins),
        TEST(ten_without_a_name_are_ten),
        TEST(bad_clients_do_no_harm),
        TEST(only_the_user_may_enter),
        TEST(a_strange_folder_of_live_runs_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
