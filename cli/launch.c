#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

extern char **environ;

/* What the handler needs while an engine starts; 0: none does. */
static volatile sig_atomic_t starting;

static void on_interrupt(int number) {
    if (starting > 0)
        kill((pid_t)starting, number);
}

/* This program, whatever has become of its file since it was started. */
static enum status spawn(char **arguments, int ready, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return status_fail(STATUS_IO, "the engine can't be started: %s", strerror(error));
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, ready, LAUNCH_FD);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
        error = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error ? status_fail(STATUS_IO, "the engine can't be started: %s", strerror(error)) : STATUS_OK;
}

/* All that the engine says, up to its end; a path is as long as it likes. */
static size_t listen_to(int fd, char *out, size_t size) {
    size_t length = 0;
    while (length + 1 < size) {
        ssize_t bytes = read(fd, out + length, size - 1 - length);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes <= 0)
            break;
        length += (size_t)bytes;
    }
    out[length] = 0;
    return length;
}

static int exit_code(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_FAILED;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(stderr, "towerscope: the engine was ended by signal %d before it was live\n", WTERMSIG(status));
    return EXIT_FAILED;
}

static enum status watch_start(pid_t pid, int ready, struct live_run *run, int *code) {
    struct sigaction interrupt = {.sa_handler = on_interrupt}, was_interrupt, was_end;
    char folder[PATH_MAX];
    starting = (sig_atomic_t)pid;
    sigaction(SIGINT, &interrupt, &was_interrupt);
    sigaction(SIGTERM, &interrupt, &was_end);
    size_t length = listen_to(ready, folder, sizeof folder);
    *code = length ? 0 : exit_code(pid);
    starting = 0;
    sigaction(SIGINT, &was_interrupt, NULL);
    sigaction(SIGTERM, &was_end, NULL);
    if (length == 0)
        return STATUS_OK;
    signal(SIGCHLD, SIG_IGN); /* when it ends while a console is open, nobody waits for it */
    return live_describe(folder, run);
}

enum status launch(int argc, char **argv, struct live_run *run, int *code) {
    memset(run, 0, sizeof *run);
    *code = EXIT_FAILED;
    char **arguments = calloc((size_t)argc + 2, sizeof *arguments);
    static char program[] = "towerscope", word[] = LAUNCH_WORD;
    int ready[2];
    if (!arguments || pipe2(ready, O_CLOEXEC) != 0) {
        free(arguments);
        return status_fail(STATUS_IO, "the engine can't be started: %s", strerror(errno));
    }
    arguments[0] = program;
    arguments[1] = word;
    for (int i = 1; i < argc; i++)
        arguments[i + 1] = argv[i];
    /* dup2 to its own number would leave the descriptor close-on-exec */
    int write_end = ready[1] == LAUNCH_FD ? fcntl(ready[1], F_DUPFD_CLOEXEC, LAUNCH_FD + 1) : ready[1];
    pid_t pid;
    enum status status = spawn(arguments, write_end, &pid);
    if (write_end != ready[1])
        close(write_end);
    close(ready[1]);
    if (status == STATUS_OK)
        status = watch_start(pid, ready[0], run, code);
    close(ready[0]);
    free(arguments);
    return status;
}

void launch_tell(const char *folder) {
    size_t length = strlen(folder);
    if (write(LAUNCH_FD, folder, length) != (ssize_t)length && errno != EBADF)
        fprintf(stderr, "nobody waits for this engine to start: %s\n", strerror(errno));
    close(LAUNCH_FD);
}
