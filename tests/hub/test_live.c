/* Locks, names and the folder of live runs. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/wire/live.h"
#include "engine/wire/lock.h"
#include "tests/support/cmocka.h"

static char folder[400], home[500];

static int make_folder(void **context) {
    (void)context;
    const char *tmp = getenv("TEST_TMP");
    snprintf(folder, sizeof folder, "%s/live.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(home, sizeof home, "%s/state", folder);
    setenv("XDG_STATE_HOME", home, 1);
    return 0;
}

static int remove_folder(void **context) {
    (void)context;
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static struct live_run new_run(const char *name) {
    char path[600];
    struct live_run run;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(live_describe(path, &run), STATUS_OK);
    return run;
}

static void names_are_safe(void **context) {
    (void)context;
    static const char *const good[] = {"a", "quiet-harbor", "Run_2.1", "0"};
    static const char *const bad[] = {"",    ".",   "..",       ".hidden", "-x", "a/b", "../a",
                                      "a b", "a\n", "a\x1b[2J", "é",       "a*", "a\"", "~"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(run_name_check(good[i]), STATUS_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(run_name_check(bad[i]), STATUS_BAD_INPUT);
        for (const char *s = status_text(); *s; s++)
            assert_true((unsigned char)*s >= 0x20);
    }
    char longest[66];
    memset(longest, 'a', 65);
    longest[65] = 0;
    assert_int_equal(run_name_check(longest), STATUS_BAD_INPUT);
    longest[64] = 0;
    assert_int_equal(run_name_check(longest), STATUS_OK);
}

static void one_owner_at_a_time(void **context) {
    (void)context;
    struct lock lock, second;
    assert_false(lock_held(folder));
    assert_int_equal(lock_take(folder, &lock), STATUS_OK);
    assert_true(lock_held(folder));
    assert_int_equal(lock_holder(folder), getpid());
    assert_int_equal(lock_take(folder, &second), STATUS_BUSY);
    char pid[20];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_non_null(strstr(status_text(), pid));
    lock_give(&lock);
    assert_false(lock_held(folder));
    assert_int_equal(lock_take(folder, &lock), STATUS_OK);
    lock_give(&lock);
    assert_int_equal(lock_take("/nonexistent", &lock), STATUS_IO);
    assert_false(lock_held("/nonexistent"));
}

/* The folder is held as well as the file in it, and its holder sees what befell both. */
static void the_lock_outlives_its_file(void **context) {
    (void)context;
    struct lock lock, second;
    char path[900], moved[900], where[PATH_MAX];
    snprintf(path, sizeof path, "%s/run", folder);
    snprintf(moved, sizeof moved, "%s/moved", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(lock_take(path, &lock), STATUS_OK);
    assert_int_equal(lock_look(&lock, path), LOCK_STANDS);
    char file[1000];
    snprintf(file, sizeof file, "%s/lock", path);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(lock_look(&lock, path), LOCK_FILE_LOST);
    assert_true(lock_held(path));
    assert_int_equal(lock_take(path, &second), STATUS_BUSY);
    assert_int_equal(lock_mend(&lock, path), STATUS_OK); /* in place of the one that the second made */
    assert_int_equal(lock_look(&lock, path), LOCK_STANDS);
    assert_int_equal(lock_holder(path), getpid());
    assert_int_equal(lock_take(path, &second), STATUS_BUSY);

    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(lock_look(&lock, path), LOCK_FOLDER_MOVED);
    assert_true(lock_where(&lock, where, sizeof where));
    assert_string_equal(where, moved);
    assert_int_equal(lock_look(&lock, moved), LOCK_STANDS);
    assert_true(lock_held(moved) && !lock_held(path));
    assert_int_equal(lock_take(moved, &second), STATUS_BUSY);
    assert_int_equal(mkdir(path, 0755), 0); /* another folder in its place is not it */
    assert_int_equal(lock_look(&lock, path), LOCK_FOLDER_MOVED);
    assert_int_equal(lock_take(path, &second), STATUS_OK);
    lock_give(&second);

    snprintf(file, sizeof file, "rm -r '%s'", moved);
    assert_int_equal(system(file), 0);
    assert_int_equal(lock_look(&lock, moved), LOCK_FOLDER_LOST);
    assert_false(lock_where(&lock, where, sizeof where));
    lock_give(&lock);
    assert_false(lock_held(moved));
}

static void the_owner_is_told(void **context) {
    (void)context;
    struct lock lock;
    struct lock_about about;
    lock_about(folder, &about);
    assert_true(about.pid == 0 && about.user == -1 && about.ended == -1 && !about.says_where);
    assert_int_equal(lock_take(folder, &lock), STATUS_OK);
    lock_about(folder, &about);
    assert_true(about.pid == getpid() && about.user == (long)geteuid() && about.ended == -1 &&
                !about.says_where);
    lock_tell(&lock, "live /some where/live");
    lock_about(folder, &about);
    assert_true(about.says_where && !strcmp(about.live, "/some where/live"));
    lock_tell(&lock, "live");
    lock_about(folder, &about);
    assert_true(about.says_where && !*about.live);
    lock_tell(&lock, "ended 42");
    lock_give(&lock);
    lock_about(folder, &about);
    assert_true(about.ended == 42 && !about.says_where);
    assert_int_equal(lock_take(folder, &lock), STATUS_OK); /* it has not begun again yet */
    lock_about(folder, &about);
    assert_int_equal(about.ended, 42);
    lock_tell(&lock, "live /x");
    lock_about(folder, &about);
    assert_int_equal(about.ended, -1);
    lock_give(&lock);
}

/* Two starts in the same instant: exactly one wins, each time. */
static void of_two_starts_one_wins(void **context) {
    (void)context;
    for (int i = 0; i < 50; i++) {
        int go[2], done[2];
        assert_int_equal(pipe(go), 0);
        assert_int_equal(pipe(done), 0);
        pid_t pids[2];
        for (int p = 0; p < 2; p++)
            if ((pids[p] = fork()) == 0) {
                char c;
                struct lock lock;
                close(go[1]);
                close(done[1]);
                if (read(go[0], &c, 1) != 0)
                    _exit(9);
                bool won = lock_take(folder, &lock) == STATUS_OK;
                /* the winner keeps it until both have tried */
                if (won && read(done[0], &c, 1) != 0)
                    _exit(9);
                _exit(won ? 1 : 0);
            }
        close(go[0]);
        close(go[1]);
        close(done[0]);
        int status, winners = 0;
        pid_t first = wait(&status); /* the loser: the winner waits */
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0 && (first == pids[0] || first == pids[1]));
        close(done[1]);
        assert_true(wait(&status) > 0);
        winners += WEXITSTATUS(status);
        assert_int_equal(winners, 1);
        assert_false(lock_held(folder));
    }
}

static void a_killed_owner_leaves_no_lock(void **context) {
    (void)context;
    int ready[2];
    char c;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct lock lock;
        _exit(lock_take(folder, &lock) == STATUS_OK && write(ready[1], "x", 1) == 1 && pause() ? 1 : 0);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_true(lock_held(folder));
    kill(pid, SIGSTOP); /* stopped is not dead */
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
    assert_true(lock_held(folder));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(lock_held(folder));
    close(ready[0]);
    close(ready[1]);
}

static mode_t mode_of(const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0)
        return 0;
    return info.st_mode & 07777;
}

static void the_folder_is_ours_alone(void **context) {
    (void)context;
    static const mode_t masks[] = {0000, 0022, 0077, 0777};
    char live[600];
    snprintf(live, sizeof live, "%s/towerscope/live", home);
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        if (i == 3) /* a mask that takes everything: only the folders under home are tried */
            assert_int_equal(mkdir(home, 0755), 0);
        mode_t before = umask(masks[i]);
        int fd, listener;
        enum status status = live_folder_open(true, &fd);
        assert_int_equal(status, STATUS_OK);
        assert_int_equal(mode_of(live), 0700);
        struct live_run run = {.id = "0123456789abcdef", .folder = "/x"};
        assert_int_equal(live_listen(fd, &run, &listener), STATUS_OK);
        umask(before);
        char socket_path[700];
        snprintf(socket_path, sizeof socket_path, "%s/0123456789abcdef.sock", live);
        assert_int_equal(mode_of(socket_path), 0600);
        close(listener);
        close(fd);
        remove_folder(NULL);
        assert_int_equal(mkdir(folder, 0755), 0);
    }
}

static void a_foreign_folder_is_refused(void **context) {
    (void)context;
    char path[600];
    int fd;
    assert_int_equal(live_folder_open(false, &fd), STATUS_NOT_FOUND);
    assert_int_equal(mkdir(home, 0700), 0);
    snprintf(path, sizeof path, "%s/towerscope", home);
    assert_int_equal(symlink("/tmp", path), 0);
    assert_int_equal(live_folder_open(true, &fd), STATUS_REFUSED);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/towerscope/live", home);
    assert_int_equal(symlink(folder, path), 0);
    assert_int_equal(live_folder_open(true, &fd), STATUS_REFUSED);
    assert_int_equal(unlink(path), 0);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(live_folder_open(true, &fd), STATUS_REFUSED);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0); /* too open: closed */
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(live_folder_open(true, &fd), STATUS_OK);
    assert_int_equal(mode_of(path), 0700);
    close(fd);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(live_folder_open(true, &fd), STATUS_REFUSED);
        assert_non_null(strstr(status_text(), "65534"));
    }
}

static void what_is_no_socket_is_left_alone(void **context) {
    (void)context;
    struct live_run run = new_run("a");
    int fd, listener, client;
    char path[700];
    struct stat info;
    assert_int_equal(live_folder_open(true, &fd), STATUS_OK);
    snprintf(path, sizeof path, "%s/towerscope/live/%s.sock", home, run.id);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs("precious", file) >= 0 && fclose(file) == 0);
    assert_int_equal(live_listen(fd, &run, &listener), STATUS_REFUSED);
    assert_true(stat(path, &info) == 0 && info.st_size == 8);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(live_listen(fd, &run, &listener), STATUS_REFUSED);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(live_listen(fd, &run, &listener), STATUS_REFUSED);
    assert_true(lstat(path, &info) == 0 && S_ISLNK(info.st_mode));
    assert_int_equal(unlink(path), 0);
    /* a dead socket is replaced */
    assert_int_equal(live_listen(fd, &run, &listener), STATUS_OK);
    close(listener);
    assert_int_equal(live_connect(&run, &client), STATUS_NOT_FOUND);
    assert_int_equal(live_listen(fd, &run, &listener), STATUS_OK);
    assert_int_equal(live_connect(&run, &client), STATUS_OK);
    close(client);
    close(listener);
    close(fd);
}

static void runs_are_found_from_anywhere(void **context) {
    (void)context;
    struct live_run a = new_run("a"), b = new_run("b"), found, *list;
    int fd, count;
    struct lock lock_a, lock_b;
    assert_int_equal(live_list(&list, &count), STATUS_OK);
    assert_true(count == 0);
    free(list);
    assert_int_equal(live_find(NULL, NULL, &found), STATUS_NOT_FOUND);
    assert_int_equal(live_folder_open(true, &fd), STATUS_OK);
    assert_int_equal(live_enter(fd, &a), STATUS_OK);
    assert_int_equal(live_enter(fd, &b), STATUS_OK);
    assert_int_equal(live_find("a", NULL, &found), STATUS_NOT_FOUND); /* an entry is no life */
    assert_int_equal(lock_take(a.folder, &lock_a), STATUS_OK);
    assert_int_equal(live_find("a", NULL, &found), STATUS_OK);
    assert_string_equal(found.folder, a.folder);
    assert_int_equal(live_find(NULL, NULL, &found), STATUS_OK);
    assert_string_equal(found.name, "a");
    assert_int_equal(live_find(a.folder, NULL, &found), STATUS_OK);
    assert_int_equal(live_find("b", folder, &found), STATUS_NOT_FOUND);
    assert_int_equal(lock_take(b.folder, &lock_b), STATUS_OK);
    live_leave(fd, &b);
    assert_int_equal(live_find("b", NULL, &found), STATUS_NOT_FOUND);
    assert_int_equal(live_find("b", folder, &found), STATUS_OK); /* its folder is known */
    assert_int_equal(live_find("../a", folder, &found), STATUS_NOT_FOUND);
    assert_int_equal(live_find(".a", folder, &found), STATUS_BAD_INPUT);
    assert_int_equal(live_list(&list, &count), STATUS_OK);
    assert_true(count == 1 && list[0].live && !strcmp(list[0].id, a.id));
    free(list);
    lock_give(&lock_a);
    assert_int_equal(live_list(&list, &count), STATUS_OK);
    assert_true(count == 1 && !list[0].live); /* left by a crash */
    free(list);
    live_prune(fd);
    assert_int_equal(live_list(&list, &count), STATUS_OK);
    assert_int_equal(count, 1); /* its record can still be shown */
    free(list);
    assert_true(system("rm -rf \"$XDG_STATE_HOME\"/../a") == 0);
    live_prune(fd);
    assert_int_equal(live_list(&list, &count), STATUS_OK);
    assert_int_equal(count, 0);
    free(list);
    lock_give(&lock_b);
    close(fd);
}

static void two_of_one_name_need_their_path(void **context) {
    (void)context;
    char path[600];
    struct live_run a = new_run("same"), b, found;
    snprintf(path, sizeof path, "%s/other", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof path, "%s/other/same", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(live_describe(path, &b), STATUS_OK);
    int fd;
    struct lock locks[2];
    assert_int_equal(live_folder_open(true, &fd), STATUS_OK);
    assert_int_equal(live_enter(fd, &a), STATUS_OK);
    assert_int_equal(live_enter(fd, &b), STATUS_OK);
    assert_int_equal(lock_take(a.folder, &locks[0]), STATUS_OK);
    assert_int_equal(lock_take(b.folder, &locks[1]), STATUS_OK);
    assert_int_equal(live_find("same", NULL, &found), STATUS_BAD_INPUT);
    assert_true(strstr(status_text(), a.folder) && strstr(status_text(), b.folder));
    assert_int_equal(live_find("same", folder, &found), STATUS_OK);
    assert_string_equal(found.folder, a.folder);
    assert_int_equal(live_find(path, NULL, &found), STATUS_OK);
    assert_string_equal(found.folder, b.folder);
    lock_give(&locks[0]);
    lock_give(&locks[1]);
    close(fd);
}

static void paths_may_be_long(void **context) {
    (void)context;
    char path[3000];
    int length = snprintf(path, sizeof path, "%s", folder);
    for (int i = 0; i < 12; i++) {
        length += snprintf(path + length, sizeof path - (size_t)length, "/%0100d", i);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    setenv("XDG_STATE_HOME", path, 1);
    snprintf(path + length, sizeof path - (size_t)length, "/run");
    assert_int_equal(mkdir(path, 0755), 0);
    struct live_run run;
    int fd, listener, client;
    assert_int_equal(live_describe(path, &run), STATUS_OK);
    assert_int_equal(live_folder_open(true, &fd), STATUS_OK);
    assert_int_equal(live_listen(fd, &run, &listener), STATUS_OK);
    assert_int_equal(live_connect(&run, &client), STATUS_OK);
    close(client);
    close(listener);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(names_are_safe),
        TEST(one_owner_at_a_time),
        TEST(the_lock_outlives_its_file),
        TEST(the_owner_is_told),
        TEST(of_two_starts_one_wins),
        TEST(a_killed_owner_leaves_no_lock),
        TEST(the_folder_is_ours_alone),
        TEST(a_foreign_folder_is_refused),
        TEST(what_is_no_socket_is_left_alone),
        TEST(runs_are_found_from_anywhere),
        TEST(two_of_one_name_need_their_path),
        TEST(paths_may_be_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
