#include "engine/hub/peer.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/base/printable.h"

static void name_user(uid_t user, char *out, size_t size) {
    struct passwd record, *found = NULL;
    char buffer[4096];
    if (getpwuid_r(user, &record, buffer, sizeof buffer, &found) == 0 && found)
        text_printable(out, size, found->pw_name);
    else
        snprintf(out, size, "user %u", (unsigned)user);
}

struct peer *peer_new(int fd, int64_t number, uid_t user, double now) {
    struct peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    peer->fd = fd;
    peer->number = number;
    peer->connected = peer->window = now;
    name_user(user, peer->user, sizeof peer->user);
    return peer;
}

static struct line *first_line(const struct peer *peer) {
    return peer->queue[peer->first];
}

static void drop_first(struct peer *peer) {
    struct line *line = first_line(peer);
    peer->bytes -= line->length;
    peer->first = (peer->first + 1) % PEER_LINES;
    peer->count--;
    peer->sent = 0;
    line_drop(line);
}

void peer_free(struct peer *peer) {
    if (!peer)
        return;
    while (peer->count > 0)
        drop_first(peer);
    close(peer->fd);
    free(peer);
}

/* Forget the queue; a line that is sent in part must be finished. */
static void fall_behind(struct peer *peer, double now) {
    struct line *begun = peer->sent > 0 ? line_keep(first_line(peer)) : NULL;
    size_t sent = peer->sent;
    while (peer->count > 0)
        drop_first(peer);
    if (begun) {
        peer->queue[peer->first] = begun;
        peer->count = 1;
        peer->bytes = begun->length;
        peer->sent = sent;
    }
    if (!peer->behind)
        peer->behind_since = now;
    peer->behind = true;
}

void peer_queue(struct peer *peer, struct line *line, double now) {
    if (peer->count == PEER_LINES || (peer->count > 0 && peer->bytes + line->length > PEER_BYTES)) {
        fall_behind(peer, now);
        return;
    }
    peer->queue[(peer->first + peer->count++) % PEER_LINES] = line_keep(line);
    peer->bytes += line->length;
}

void peer_send(struct peer *peer) {
    enum { AT_ONCE = 64 };
    while (peer->count > 0 && !peer->gone) {
        struct iovec parts[AT_ONCE];
        int n = 0;
        for (; n < peer->count && n < AT_ONCE; n++) {
            struct line *line = peer->queue[(peer->first + n) % PEER_LINES];
            size_t skip = n == 0 ? peer->sent : 0;
            parts[n] = (struct iovec){line->text + skip, line->length - skip};
        }
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)n};
        ssize_t bytes = sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes < 0) {
            peer->gone = errno != EAGAIN && errno != EWOULDBLOCK;
            return;
        }
        for (size_t left = (size_t)bytes; left > 0;) {
            size_t rest = first_line(peer)->length - peer->sent;
            if (left < rest) {
                peer->sent += left;
                break;
            }
            left -= rest;
            drop_first(peer);
        }
    }
}

bool peer_may_speak(struct peer *peer, double now, double *wait) {
    if (now - peer->window >= 1) {
        peer->window = now;
        peer->window_lines = 0;
    }
    *wait = peer->window + 1 - now;
    return peer->window_lines < PEER_LINES_A_SECOND;
}

void peer_read(struct peer *peer, double now,
               void (*take)(void *context, struct peer *peer, const char *line, size_t length),
               void *context) {
    double wait;
    ssize_t bytes = 0;
    if (peer->in_length < sizeof peer->in) {
        bytes = recv(peer->fd, peer->in + peer->in_length, sizeof peer->in - peer->in_length, MSG_DONTWAIT);
        if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
            peer->gone = true;
            return;
        }
    }
    peer->in_length += bytes > 0 ? (size_t)bytes : 0;
    size_t start = 0;
    while (!peer->gone && peer_may_speak(peer, now, &wait)) {
        const char *newline = memchr(peer->in + start, '\n', peer->in_length - start);
        if (!newline)
            break;
        size_t length = (size_t)(newline - (peer->in + start)) + 1;
        peer->window_lines++;
        take(context, peer, peer->in + start, length);
        start += length;
    }
    memmove(peer->in, peer->in + start, peer->in_length - start);
    peer->in_length -= start;
    if (peer->in_length == sizeof peer->in && !memchr(peer->in, '\n', peer->in_length)) {
        peer->complaint = "a line of a client has at most 4096 bytes";
        peer->gone = true;
    }
}
