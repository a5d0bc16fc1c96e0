/* What the files of the hub share. */
#ifndef TOWERSCOPE_ENGINE_HUB_INTERNAL_H
#define TOWERSCOPE_ENGINE_HUB_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/arena.h"
#include "engine/hub/hub.h"
#include "engine/hub/line.h"
#include "engine/hub/peer.h"
#include "engine/wire/repeats.h"
#include "engine/wire/record.h"

enum { HUB_PEERS = 256, HUB_COMMANDS = 64, HUB_QUEUE_BYTES = 64 << 20, HUB_LIVE_BYTES = 4 << 20 };

/* Where the run stands, to answer `status` at once, however long a step takes. */
struct hub_summary {
    char state[16], applied[32];
    int64_t step, planned, towers;
    double loss, images_per_second, lr;
    int64_t good_step; /* the newest that a rewind may go back to, and its loss */
    double good_loss;
};

struct hub {
    struct hub_options options;
    pthread_t thread;
    int wake, command_fd; /* eventfd */
    int live_fd, listener;
    int most_fds; /* clients' descriptors are below */

    /* emitting: any thread, under `lock` */
    pthread_mutex_t lock;
    pthread_cond_t written; /* the thread has taken the queue */
    struct line_list queue;
    struct arena arena;
    int64_t last_seq;
    double last_step_sent;
    struct repeats repeats;
    struct hub_summary summary;
    bool closing, busy; /* busy: taken lines are not in the file yet */
    bool urgent;        /* the queue holds something that a person waits for */
    bool coming;        /* the thread looks at the queue at next_take, unless something urgent wakes it before */

    /* commands that wait for the training thread, under `command_lock` */
    pthread_mutex_t command_lock;
    struct command commands[HUB_COMMANDS];
    int command_count;
    bool commands_ended;

    /* what became of the folder, under `lock` */
    atomic_int news; /* enum hub_news */
    int news_fd;
    char news_path[PATH_MAX];
    int64_t looks, looks_wanted;
    bool ended; /* the thread has left its loop */

    /* the hub thread alone */
    struct record_writer *record;
    struct line_list ready; /* written, not yet handed to the peers */
    struct peer *peers[HUB_PEERS];
    int peer_count;
    int64_t connections;
    int64_t holder, asking; /* numbers of peers; 0: nobody */
    double asked_at;
    double next_send, next_take, next_tick, accept_again;
    bool record_said, lock_said, folder_said, socket_said, accept_said;
    char folder[PATH_MAX]; /* of the run, as it is now; options.run.folder while it has a name that can be
                              attached to */
    int64_t lost_said;
    atomic_bool record_failing; /* lines wait that the disk did not take */
};

/* A sentence for the engine's log. */
void hub_say(struct hub *hub, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An alarm of the hub's own, part of the record. */
void hub_alarm(struct hub *hub, const char *level, const char *text);

/* ---- requests.c: what clients say */

/* A line of a client. */
void hub_take_line(void *hub, struct peer *peer, const char *line, size_t length);

/* The first line for a client that connected. */
void hub_greet(struct hub *hub, struct peer *peer);

/* A client whose queue is empty again after it fell behind. */
void hub_catch_up(struct hub *hub, struct peer *peer, double now);

/* ---- control.c: who may send */

/* Whether the peer's commands are taken now; else *reason says why not. */
bool hub_may_command(struct hub *hub, const struct peer *peer, const char **reason);

/* A console came or went, or said a word about control. */
void hub_control_came(struct hub *hub, struct peer *peer);
void hub_control_left(struct hub *hub, const struct peer *peer);
void hub_control_word(struct hub *hub, struct peer *peer, const char *word, double now);

/* Somebody asked and the holder did not answer in time: it is theirs. */
void hub_control_tick(struct hub *hub, double now);

/* ---- folder.c: does what the run has on the disk still stand? */

void hub_look_at_folder(struct hub *hub);

/* ---- server.c */

/* Enter the run among the live ones and listen; what of it stands is made anew. */
enum status hub_listen(struct hub *hub);

/* Send an event to one client, or (peer NULL) to all that want the stream. Live only. */
void hub_tell(struct hub *hub, struct peer *peer, const struct event *event);

#endif
