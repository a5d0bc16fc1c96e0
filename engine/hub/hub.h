/* The hub of an engine process: one thread that writes the record and hands the stream to whoever is
 * attached.
 *
 * Training never waits for a client: events go into a queue, the hub thread appends those of the record to
 * the file, then sends them on; what is told of each step is gathered for 50 ms, so that training is not
 * disturbed at every step. A client that reads too slowly gets a `gap` in place of what it missed.
 * Commands of clients wait in the hub until the training thread takes them at a step boundary. */
#ifndef TOWERSCOPE_ENGINE_HUB_HUB_H
#define TOWERSCOPE_ENGINE_HUB_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/wire/command.h"
#include "engine/wire/event.h"
#include "engine/wire/live.h"
#include "engine/wire/lock.h"
#include "kernels/status.h"

struct hub;

enum { HUB_CONTROL_SECONDS = 10 };

struct hub_options {
    struct live_run run; /* the caller holds its lock */
    /* That lock: twice a second the hub looks whether it, the run's folder and its record still stand. It is
     * the hub's from hub_open to hub_close. NULL: it does not look. */
    struct lock *lock;
    bool must_listen;       /* that nobody could attach is a failure of hub_open */
    double control_seconds; /* for who holds control to answer who asks for it; 0: HUB_CONTROL_SECONDS */
    /* A sentence for the engine's log: refused clients, trouble with files. Called by any thread; may be
     * NULL. */
    void (*say)(void *context, const char *text);
    void *context;
};

/* Open the record (a torn last line is cut), enter the run among the live ones, listen, start the thread.
 * That nobody can attach (no home folder, a file in the socket's place) is said, and tried again twice a
 * second; with must_listen it is refused. A record that can't be opened is a failure: STATUS_IO,
 * STATUS_BAD_INPUT. */
enum status hub_open(const struct hub_options *options, struct hub **out);

/* Write and send what is left (clients have half a second to take it), leave the live runs, free. NULL is
 * fine. */
void hub_close(struct hub *hub);

/* Give an event its number and time and queue it. `recorded`: it is part of the record; else it is sent live,
 * and of live steps at most 10 a second. The same alarm again is counted, and told at the 10th, 100th, ...
 * time. May be called by any thread; waits only when the disk is so slow that 64 MiB are queued. */
void hub_emit(struct hub *hub, const struct event *event, bool recorded);

/* Wait until everything emitted so far is in the file. false: the file can't be written, and what it lacks
 * waits in memory. */
bool hub_flush(struct hub *hub);

/* The next command that is due after `step` updates; false: none. One whose step has passed is given, too:
 * its `at` is less than step. */
bool hub_take(struct hub *hub, int64_t step, struct command *out);

/* Whether a `stop` waits that is due after `step` updates: for the training thread, in the middle of
 * something long. */
bool hub_stop_waits(struct hub *hub, int64_t step);

/* Take no more commands: from now on they are refused at once. Those that wait can still be taken. */
void hub_end_commands(struct hub *hub);

/* What became of the run's folder. */
enum hub_news {
    HUB_NO_NEWS,
    HUB_MOVED,   /* it lies elsewhere now, and all goes on in it */
    HUB_RESTORED /* somebody removed it; it is made again, with the lock and the whole record and nothing else
                  */
};

/* The news since the last call; cheap while there is none. *fd: a new descriptor of the folder, for the
 * caller to close; its path into path[size]. The hub has told it as an alarm. hub_command_fd() becomes
 * readable. */
enum hub_news hub_news(struct hub *hub, int *fd, char *path, size_t size);

/* Look at the folder now, and wait until that is done: before something is given up because the folder is
 * gone. */
void hub_look(struct hub *hub);

/* A descriptor that is readable while commands wait to be looked at; hub_take() empties it. */
int hub_command_fd(const struct hub *hub);

/* Seconds of processor time that the hub's thread has used; NaN where the system does not say. */
double hub_processor_seconds(const struct hub *hub);

#endif
