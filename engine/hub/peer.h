/* One client of the hub: what it said of itself, what it sent, what waits to be sent to it. Used by the hub
 * thread alone. */
#ifndef TOWERSCOPE_ENGINE_HUB_PEER_H
#define TOWERSCOPE_ENGINE_HUB_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/hub/line.h"
#include "engine/wire/command.h"

enum { PEER_LINES = 1024, PEER_BYTES = 1 << 20, PEER_LINES_A_SECOND = 50, PEER_BAD_LINES = 10 };

struct peer {
    int fd;
    int64_t number; /* of the connection; never used twice */
    char user[40], terminal[64], program[16];
    bool greeted;          /* it said who it is */
    bool watch;            /* it never sends commands */
    bool events;           /* it wants the stream, not only answers */
    bool foreign;          /* it speaks another protocol */
    bool behind;           /* lines were left out: a gap is due when its queue is empty */
    bool gone;             /* to be closed */
    const char *complaint; /* why we close it; NULL: it left */
    double connected, behind_since, window;
    int window_lines; /* taken from it since `window` */
    int bad_lines;
    int64_t hello_seq; /* last_seq of the hello it was sent */
    size_t in_length;
    char in[WIRE_COMMAND_MAX];
    struct line *queue[PEER_LINES]; /* a ring */
    int first, count;
    size_t sent, bytes; /* bytes of the first line that are sent; bytes of the queue */
};

/* A new one on a connected socket; NULL: no memory (the caller closes fd). */
struct peer *peer_new(int fd, int64_t number, uid_t user, double now);
void peer_free(struct peer *peer);

/* Queue a line (it keeps a reference). A full queue is dropped, but for a line that is sent in part, and the
 * peer is behind. */
void peer_queue(struct peer *peer, struct line *line, double now);

/* Send what the socket takes. Sets gone when the other end is. */
void peer_send(struct peer *peer);

/* Read once; give each whole line to `take`. Sets gone at the end of the stream, on a line that is too long.
 * At most PEER_LINES_A_SECOND lines are taken in a second: the rest stays in the socket. */
void peer_read(struct peer *peer, double now,
               void (*take)(void *context, struct peer *peer, const char *line, size_t length),
               void *context);

/* Whether lines of it may be taken now; *wait: seconds until they may. */
bool peer_may_speak(struct peer *peer, double now, double *wait);

#endif
