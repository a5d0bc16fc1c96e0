#include "tests/support/bad_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/clock.h"

int bad_connect(const struct live_run *run) {
    int fd = -1;
    enum status status;
    while ((status = live_connect(run, &fd)) == STATUS_BUSY) /* too many at once: they are being taken */
        poll(NULL, 0, 1);
    if (status != STATUS_OK)
        return -1;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

bool bad_send(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

bool bad_say(int fd, const char *text) {
    return bad_send(fd, text, strlen(text));
}

bool bad_greet(int fd, int protocol, const char *program, bool events) {
    char line[200];
    int length = snprintf(line, sizeof line,
                          "{\"client\":\"%s\",\"protocol\":%d,\"version\":\"9.9\",\"terminal\":\"test\","
                          "\"watch\":false,\"events\":%s}\n",
                          program, protocol, events ? "true" : "false");
    return bad_send(fd, line, (size_t)length);
}

static bool readable(int fd, double seconds) {
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    return seconds > 0 && poll(&polled, 1, (int)(seconds * 1000) + 1) > 0;
}

bool bad_line(int fd, char *out, size_t size, double seconds) {
    double end = clock_seconds() + seconds;
    for (size_t length = 0; length + 1 < size; length++) {
        if (!readable(fd, end - clock_seconds()) || recv(fd, out + length, 1, 0) != 1)
            return false;
        if (out[length] == '\n') {
            out[length] = 0;
            return true;
        }
    }
    return false;
}

bool bad_closed(int fd, double seconds) {
    char bytes[4096];
    double end = clock_seconds() + seconds;
    while (readable(fd, end - clock_seconds())) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got == 0 || (got < 0 && errno == ECONNRESET))
            return true;
    }
    return false;
}
