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

static enum status take_over(const char *path) {
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
    fflush(stdout);
    fflush(stderr);
    bool done = dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0;
    int error = errno;
    close(fd);
    return done ? STATUS_OK : status_fail(STATUS_IO, "%s: %s", path, strerror(error));
}

enum status log_open(struct log *log, const char *folder) {
    int length = snprintf(log->path, sizeof log->path, "%s/engine.log", folder);
    if (length < 0 || (size_t)length >= sizeof log->path)
        return status_fail(STATUS_BAD_INPUT, "%s: the path is too long", folder);
    STATUS_TRY(take_over(log->path));
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stderr, NULL, _IOLBF, 0);
    return STATUS_OK;
}

void log_turn(const struct log *log) {
    struct stat info;
    char old[sizeof log->path + 2];
    if (fstat(STDERR_FILENO, &info) != 0 || info.st_size < LOG_BYTES)
        return;
    snprintf(old, sizeof old, "%s.1", log->path);
    if (rename(log->path, old) == 0 && take_over(log->path) != STATUS_OK)
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
