/* The other end of a live run's stream: connect, take the record, go on live, send commands.
 *
 * Nothing here blocks. A loop asks client_next() for events until it answers STATUS_BUSY, then polls
 * client_fd() for reading (and writing when client_wants_write()) for at most client_wait() milliseconds.
 *
 * The client reads the record file up to the offset of the engine's `hello` (or of a `gap`), then the socket,
 * and hands every recorded event on once and in order. When the connection ends it asks the run's lock: held,
 * it connects again; free, it reads the rest of the record and knows whether the run ended or crashed. A run
 * that is resumed later is picked up again, also where its folder was moved meanwhile. */
#ifndef TOWERSCOPE_ENGINE_WIRE_CLIENT_H
#define TOWERSCOPE_ENGINE_WIRE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/wire/event.h"
#include "engine/wire/live.h"
#include "kernels/status.h"

enum client_state {
    CLIENT_CONNECTING, /* no hello yet */
    CLIENT_READING,    /* taking the record */
    CLIENT_LIVE,       /* up to date */
    CLIENT_LOST,       /* the connection is gone, the engine is not: connecting again */
    CLIENT_ENDED,      /* the run said run_end and its engine is gone */
    CLIENT_CRASHED,    /* its engine is gone without run_end */
    CLIENT_MISMATCH,   /* the engine speaks another protocol: client_trouble() has the words */
};

struct client;

struct client_options {
    const char *program;  /* "console" or "ctl" */
    const char *terminal; /* "pts/3"; NULL: found out */
    bool watch;           /* never sends commands */
    bool commands_only;   /* no events but the answers to its own commands */
};

/* Start connecting. The run need not be live: then its record is read and the state is CLIENT_ENDED or
 * CLIENT_CRASHED. STATUS_NO_MEMORY. Close with client_close (NULL is fine). */
enum status client_open(const struct live_run *run, const struct client_options *options,
                        struct client **out);
void client_close(struct client *client);

/* The next event, in memory of the arena. STATUS_OK: *out is one; STATUS_BUSY: none now. `hello` and `gap`
 * are dealt with here and handed on too (for their version and run). Other failures: STATUS_NO_MEMORY. */
enum status client_next(struct client *client, struct arena *arena, struct event *out);

enum client_state client_state(const struct client *client);

/* The run, with the name and the place that its folder has: known anew when the engine says that it was
 * moved, when a connection is tried, and when it was not looked for in the last five seconds. */
const struct live_run *client_run(struct client *client);

/* Words on the last trouble ("the engine does not answer", both versions of a mismatch); "" when there is
 * none. */
const char *client_trouble(const struct client *client);

/* Whether the run is live and its engine listens where this user can't reach it: client_trouble() says whose
 * it is and what to do. Trying goes on. */
bool client_elsewhere(const struct client *client);

int client_fd(const struct client *client); /* -1: none to poll now */
bool client_wants_write(const struct client *client);
int client_wait(const struct client *client); /* milliseconds; 0: call client_next at once; -1: no limit */

/* How far the record is read: bytes taken of bytes there are (0 of 0: not known yet). */
void client_progress(const struct client *client, int64_t *taken, int64_t *all);

/* Send a command, as a person would type it. Its id (to find its answer among the `command` events) is put
 * into id[40] unless NULL. `at`: after which step, WIRE_UNKNOWN_INT: at once. STATUS_BAD_INPUT: no such
 * command; STATUS_REFUSED: a watcher's, or not connected; STATUS_BUSY: too many unsent. */
enum status client_send(struct client *client, const char *text, int64_t at, char *id);

/* The same at once, for a screen that needs it to draw what it shows: its name is told with the command
 * (NULL: a person's after all). */
enum status client_send_for(struct client *client, const char *text, const char *screen, char *id);

/* About control: "ask" for it, "give" it to the one who asks, "refuse", or "drop" it. */
enum status client_control(struct client *client, const char *what);

#endif
