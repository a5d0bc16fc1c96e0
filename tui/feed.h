/* Where the state of a run comes from: a live run, or a record that is played. One table of functions for
 * both; the console folds nothing itself. */
#ifndef TOWERSCOPE_TUI_FEED_H
#define TOWERSCOPE_TUI_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/wire/client.h"
#include "engine/wire/state.h"

/* What the console says about the feed itself. */
struct feed_status {
    bool replay;
    bool reading;               /* the record is still being taken in */
    double read;                /* how much of it: 0..1; unknown: no idea */
    char trouble[512];          /* "": none */
    char run[RUN_NAME_MAX + 1]; /* the name that a live run's folder has by now; "": not known */
    /* of a replay */
    bool playing;
    double speed; /* of the run's own pace */
    double seconds,
        all; /* played so far and in all, at that pace, long gaps as the short ones they are played as */
};

enum feed_move {
    MOVE_PLAY,  /* begin or stop playing */
    MOVE_SPEED, /* amount > 0: faster, < 0: slower, by one notch */
    MOVE_SHARE, /* on by `amount` of the whole time (0.01: 1 %), or back */
    MOVE_BEGIN,
    MOVE_END,
    MOVE_STEP,   /* to the step `amount` */
    MOVE_MARKER, /* amount > 0: to the next change of towers, command, alarm, evaluation; < 0: the one before
                  */
    MOVE_PHASE   /* the same, and each phase of a step that was walked is a place too */
};

struct feed;

struct feed_ops {
    /* Fold what has come, for at most `budget` seconds. *more: there is more that can be folded at once. */
    enum status (*pump)(struct feed *feed, double now, double budget, bool *more);
    int (*fd)(const struct feed *feed); /* -1: none to wait for */
    bool (*wants_write)(const struct feed *feed);
    double (*wait)(const struct feed *feed,
                   double now); /* seconds until pump should be called again anyway */
    void (*status)(const struct feed *feed, struct feed_status *out);
    /* Send a command, its id into id[40]; screen: the one that wants it to draw what it shows, NULL: a person
     * does. NULL: a record takes none. */
    enum status (*command)(struct feed *feed, const char *text, const char *screen, char *id);
    /* client_control; NULL: a record. */
    enum status (*control)(struct feed *feed, const char *what);
    /* Move in a record; NULL: the run is live. STATUS_NOT_FOUND: there is no such place. */
    enum status (*move)(struct feed *feed, enum feed_move move, double amount);
    void (*close)(struct feed *feed);
    /* The next part of a guided tour, or the one before; NULL: it is none. */
    enum status (*turn)(struct feed *feed, bool on);
};

struct feed {
    const struct feed_ops *ops;
    struct run_state *state; /* of now; another object after a move */
    uint64_t generation;     /* another number after a move */
};

/* A live run, through the client. STATUS_NO_MEMORY, and what client_open says. */
enum status feed_live(const struct live_run *run, bool watch, struct feed **out);

/* Opens the live feed of a run that was being started. STATUS_BUSY: it is still starting. Any other failure
 * ends the console. */
typedef enum status feed_begin(void *context, struct feed **out);

/* A run that is being started: an empty state until `begin`, asked again when `ready` can be read and once a
 * second, gives the live feed, which is then closed with this one. STATUS_NO_MEMORY. */
enum status feed_pending(int ready, feed_begin *begin, void *context, struct feed **out);

struct replay_options {
    double speed; /* 0: 1 */
    int64_t at;   /* the step to begin at; WIRE_UNKNOWN_INT: the beginning, playing */
    bool live;    /* the run is still going on: an end without run_end is no crash */
};

/* A record: a run's folder or an events file. STATUS_NOT_FOUND, STATUS_IO, STATUS_BAD_INPUT (no event in it),
 * STATUS_NO_MEMORY. */
enum status feed_replay(const char *path, const struct replay_options *options, struct feed **out);

/* Close either; NULL is fine. */
void feed_close(struct feed *feed);

#endif
