#include "tui/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FIRST_FREE = 3 /* descriptors: above the standard ones */, PIECE = 16384 };

enum status outlet_open(struct outlet *outlet, int terminal) {
    *outlet = (struct outlet){.terminal = terminal, .gathered = -1};
    int fd = fcntl(terminal, F_DUPFD_CLOEXEC, FIRST_FREE);
    outlet->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!outlet->file) {
        enum status status =
            status_fail(STATUS_IO, "no descriptor to write to the terminal: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    outlet->gathered = memfd_create("towerscope-frame", MFD_CLOEXEC);
    return STATUS_OK;
}

void outlet_close(struct outlet *outlet) {
    if (outlet->file)
        fclose(outlet->file);
    if (outlet->gathered >= 0)
        close(outlet->gathered);
    *outlet = (struct outlet){.gathered = -1};
}

/* The descriptor of the file: from now on another name for `fd`. */
static bool lead_to(const struct outlet *outlet, int fd) {
    return dup3(fd, fileno(outlet->file), O_CLOEXEC) >= 0;
}

void outlet_begin(struct outlet *outlet) {
    if (outlet->gathered >= 0 && lseek(outlet->gathered, 0, SEEK_SET) == 0)
        outlet->gathering = lead_to(outlet, outlet->gathered);
}

/* A terminal that does not take it is waited for; one that is gone is noticed where keys are waited for. */
static void deliver(struct outlet *outlet, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t wrote = write(outlet->terminal, bytes, count);
        if (wrote < 0 && errno == EAGAIN) {
            struct pollfd polled = {.fd = outlet->terminal, .events = POLLOUT};
            poll(&polled, 1, -1);
        } else if (wrote < 0 && errno != EINTR) {
            return;
        } else if (wrote > 0) {
            outlet->written += wrote;
            bytes += wrote;
            count -= (size_t)wrote;
        }
    }
}

void outlet_end(struct outlet *outlet) {
    if (!outlet->gathering)
        return;
    outlet->gathering = false;
    lead_to(outlet, outlet->terminal);
    off_t end = lseek(outlet->gathered, 0, SEEK_CUR);
    char piece[PIECE];
    for (off_t at = 0; at < end;) {
        size_t count = end - at < PIECE ? (size_t)(end - at) : PIECE;
        ssize_t took = pread(outlet->gathered, piece, count, at);
        if (took <= 0)
            return;
        deliver(outlet, piece, (size_t)took);
        at += took;
    }
}

void outlet_write(struct outlet *outlet, const char *bytes) {
    if (write(fileno(outlet->file), bytes, strlen(bytes)) < 0) {
        /* the next wait for keys sees what is wrong with the terminal */
    }
}
