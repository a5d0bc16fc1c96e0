#include "cli/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"

enum { LOG_BYTES = 1 << 20 };

static const char LOG[] = "engine.log", OLD_LOG[] = "engine.log.1";

static enum status take_over(int folder, const char *path) {
    /* O_NONBLOCK: a pipe in its place must not hold us up */
    int fd = openat(folder, LOG, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
    if (fd < 0 && errno == ENXIO)
        return status_fail(STATUS_IO, "%s/%s is a pipe or a socket; a file is expected: move it away", path,
                           LOG);
    if (fd < 0)
        return status_fail(STATUS_IO, "%s/%s: %s", path, LOG, strerror(errno));
    fflush(stdout);
    fflush(stderr);
    bool done = dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0;
    int error = errno;
    close(fd);
    return done ? STATUS_OK : status_fail(STATUS_IO, "%s/%s: %s", path, LOG, strerror(error));
}

enum status log_open(struct log *log, int folder, const char *path) {
    log->folder = folder;
    STATUS_TRY(take_over(folder, path));
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stderr, NULL, _IOLBF, 0);
    return STATUS_OK;
}

void log_turn(const struct log *log) {
    struct stat info;
    if (fstat(STDERR_FILENO, &info) != 0 || info.st_size < LOG_BYTES)
        return;
    if (renameat(log->folder, LOG, log->folder, OLD_LOG) == 0 && take_over(log->folder, "") != STATUS_OK)
        return; /* the old one is written on */
}

void log_line(const struct log *log, const char *text) {
    char when[32] = "";
    time_t seconds = (time_t)clock_wall();
    struct tm local;
    if (localtime_r(&seconds, &local))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    fprintf(stderr, "%s: %s\n", when, text);
    log_turn(log);
}
