#include "engine/wire/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool lock_path(const char *folder, char *out, size_t size) {
    int length = snprintf(out, size, "%s/lock", folder);
    return length > 0 && (size_t)length < size;
}

long lock_holder(const char *folder) {
    char path[PATH_MAX], text[32] = "";
    if (!lock_path(folder, path, sizeof path))
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    long pid = length > 0 ? strtol(text, NULL, 10) : 0;
    return pid > 0 ? pid : 0;
}

/* The number is for people: that it can't be written (a full disk) is no reason not to own the run. */
static void write_holder(int fd) {
    char text[32];
    int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)length, 0) < 0 && ftruncate(fd, 0) != 0)
        return;
}

enum status lock_take(const char *folder, int *out) {
    char path[PATH_MAX];
    if (!lock_path(folder, path, sizeof path))
        return status_fail(STATUS_BAD_INPUT, "%s: the path is too long", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0)
        return status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &whole) == 0) {
        write_holder(fd);
        *out = fd;
        return STATUS_OK;
    }
    int error = errno;
    close(fd);
    if (error != EAGAIN && error != EACCES)
        return status_fail(STATUS_IO, "%s: this file system gives no lock: %s", path, strerror(error));
    long pid = lock_holder(folder);
    if (pid)
        return status_fail(STATUS_BUSY, "%s: the run is live, process %ld owns it", folder, pid);
    return status_fail(STATUS_BUSY, "%s: the run is live, another process owns it", folder);
}

bool lock_held(const char *folder) {
    char path[PATH_MAX];
    if (!lock_path(folder, path, sizeof path))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool held = fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    close(fd);
    return held;
}
