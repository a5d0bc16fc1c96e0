/* A hub on a run of its own, without an engine, and clients of it that keep count. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_HUB_RUN_H
#define TOWERSCOPE_TESTS_SUPPORT_HUB_RUN_H

#include <poll.h>

#include "engine/base/clock.h"
#include "engine/hub/hub.h"
#include "engine/wire/client.h"
#include "engine/wire/lock.h"

/* For whatever is awaited: it comes at once on a machine that has time. */
#define WATCH_SECONDS 100.0

struct hub_run {
    char folder[400]; /* all is in it, the folder of live runs too */
    struct live_run run;
    struct hub *hub;
    struct lock lock;
    double control_seconds; /* of the hub; at first so many that control is never had without an answer */
};

/* Make folder and run, and start a hub on it; stop it and remove the folder. */
void hub_run_open(struct hub_run *h);
void hub_run_close(struct hub_run *h);
/* The same for cmocka, with a test's first state: a struct hub_run. */
int hub_run_set_up(void **h);
int hub_run_tear_down(void **h);

void hub_run_start(struct hub_run *h);
void hub_run_stop(struct hub_run *h);

void hub_run_steps(const struct hub_run *h, int64_t first, int64_t last, bool recorded);
void hub_run_note(const struct hub_run *h, const char *text, bool recorded);

/* What the hub answers to `status`; valid until the next call. */
const char *hub_run_status(const struct hub_run *h);

struct watcher {
    struct client *client;
    int64_t last_seq, events, steps, gaps, live_steps;
    bool yours, ended;
    char status[16], reason[200], asking[40], pending[40];
};

struct watcher watch_as(const struct hub_run *h, const char *program, bool watch, bool commands_only);

/* Take what there is now; false: nothing came. A number that is left out fails the test. */
bool watcher_take(struct watcher *w);

/* Take until `done`, or until WATCH_SECONDS are over. */
#define TAKE_UNTIL(w, done)                                                                                  \
    do {                                                                                                     \
        double end_ = clock_seconds() + WATCH_SECONDS;                                                       \
        for (watcher_take(w); !(done); watcher_take(w)) {                                                    \
            if (clock_seconds() > end_)                                                                      \
                fail_msg("waited in vain for %s", #done);                                                    \
            struct pollfd polled_ = {.fd = client_fd((w)->client), .events = POLLIN};                        \
            int wait_ = client_wait((w)->client);                                                            \
            poll(&polled_, 1, wait_<0 || wait_> 100 ? 100 : wait_);                                          \
        }                                                                                                    \
    } while (0)

#endif
