#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "engine/base/clock.h"

extern char **environ;

/* What the handler needs while an engine starts; 0: none does. */
static volatile sig_atomic_t starting;

static void on_interrupt(int number) {
    if (starting > 0)
        kill((pid_t)starting, number);
}

/* This program, whatever has become of its file since it was started. said: where its words go; -1: to ours.
 */
static enum status spawn(char **arguments, int ready, int said, long *out) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    pid_t pid = 0;
    sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return status_fail(STATUS_IO, "the engine can't be started: %s", strerror(error));
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (said >= 0) {
            posix_spawn_file_actions_adddup2(&actions, said, STDOUT_FILENO);
            posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
        }
        posix_spawn_file_actions_adddup2(&actions, ready, LAUNCH_FD);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
        error = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    *out = pid;
    return error ? status_fail(STATUS_IO, "the engine can't be started: %s", strerror(error)) : STATUS_OK;
}

/* What the engine says of its folder, as far as it has; a path is as long as it likes. STATUS_OK: that was
 * all. */
static enum status listen_to(struct launched *launched) {
    for (;;) {
        size_t room = sizeof launched->folder - 1 - launched->length;
        ssize_t bytes = room ? read(launched->ready, launched->folder + launched->length, room) : 0;
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes < 0 && errno == EAGAIN)
            return STATUS_BUSY;
        if (bytes <= 0)
            break;
        launched->length += (size_t)bytes;
    }
    launched->folder[launched->length] = 0;
    return STATUS_OK;
}

static int exit_code(long pid) {
    int status;
    while (waitpid((pid_t)pid, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_FAILED;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "towerscope: the engine was ended by signal %d before it was live\n", WTERMSIG(status));
    return EXIT_FAILED;
}

static enum status wait_for(struct launched *launched, int milliseconds) {
    double until = clock_seconds() + milliseconds / 1e3;
    for (;;) {
        if (listen_to(launched) == STATUS_OK)
            return STATUS_OK;
        double left = until - clock_seconds();
        if (milliseconds >= 0 && left <= 0)
            return STATUS_BUSY;
        struct pollfd polled = {.fd = launched->ready, .events = POLLIN};
        poll(&polled, 1, milliseconds < 0 ? -1 : (int)(left * 1e3) + 1);
    }
}

enum status launch_wait(struct launched *launched, int milliseconds, struct live_run *run, int *code) {
    struct sigaction interrupt = {.sa_handler = on_interrupt}, was_interrupt, was_end;
    memset(run, 0, sizeof *run);
    *code = EXIT_FAILED;
    bool hand_on = milliseconds != 0;
    if (hand_on) {
        starting = (sig_atomic_t)launched->pid;
        sigaction(SIGINT, &interrupt, &was_interrupt);
        sigaction(SIGTERM, &interrupt, &was_end);
    }
    enum status status = wait_for(launched, milliseconds);
    if (status == STATUS_OK)
        *code = launched->length ? 0 : exit_code(launched->pid);
    if (hand_on) {
        starting = 0;
        sigaction(SIGINT, &was_interrupt, NULL);
        sigaction(SIGTERM, &was_end, NULL);
    }
    if (status != STATUS_OK || launched->length == 0)
        return status;
    signal(SIGCHLD, SIG_IGN); /* when it ends while a console is open, nobody waits for it */
    return live_describe(launched->folder, run);
}

enum status launch_begin(int argc, char **argv, bool aside, struct launched *out) {
    *out = (struct launched){.ready = -1, .said = -1};
    char **arguments = calloc((size_t)argc + 2, sizeof *arguments);
    static char program[] = "towerscope", word[] = LAUNCH_WORD;
    int ready[2];
    if (!arguments || pipe2(ready, O_CLOEXEC) != 0) {
        free(arguments);
        return status_fail(STATUS_IO, "the engine can't be started: %s", strerror(errno));
    }
    fcntl(ready[0], F_SETFL, O_NONBLOCK);
    if (aside) /* not had: its words go to our own stderr */
        out->said = memfd_create("towerscope-engine", MFD_CLOEXEC);
    arguments[0] = program;
    arguments[1] = word;
    for (int i = 1; i < argc; i++)
        arguments[i + 1] = argv[i];
    /* dup2 to its own number would leave the descriptor close-on-exec */
    int write_end = ready[1] == LAUNCH_FD ? fcntl(ready[1], F_DUPFD_CLOEXEC, LAUNCH_FD + 1) : ready[1];
    enum status status = spawn(arguments, write_end, out->said, &out->pid);
    if (write_end != ready[1])
        close(write_end);
    close(ready[1]);
    free(arguments);
    out->ready = ready[0];
    if (status != STATUS_OK)
        launch_end(out);
    return status;
}

void launch_repeat(const struct launched *launched, int to) {
    char bytes[4096];
    if (launched->said < 0 || lseek(launched->said, 0, SEEK_SET) < 0)
        return;
    for (ssize_t n; (n = read(launched->said, bytes, sizeof bytes)) > 0;)
        if (write(to, bytes, (size_t)n) != n)
            return;
}

void launch_end(struct launched *launched) {
    if (launched->ready >= 0)
        close(launched->ready);
    if (launched->said >= 0)
        close(launched->said);
    launched->ready = launched->said = -1;
}

void launch_tell(const char *folder) {
    size_t length = strlen(folder);
    if (write(LAUNCH_FD, folder, length) != (ssize_t)length && errno != EBADF)
        fprintf(stderr, "nobody waits for this engine to start: %s\n", strerror(errno));
    close(LAUNCH_FD);
}
