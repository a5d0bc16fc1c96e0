#include "tui/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"

struct live {
    struct feed base;
    struct client *client;
    struct arena arena;
    bool told; /* that the engine is gone: once for each time */
};

static enum status pump(struct feed *feed, double now, double budget, bool *more) {
    struct live *live = (struct live *)feed;
    struct event event;
    enum status status;
    *more = false;
    for (int n = 1; (status = client_next(live->client, &live->arena, &event)) == STATUS_OK; n++) {
        status = state_apply(feed->state, &event);
        arena_reset(&live->arena);
        if (status != STATUS_OK)
            return status;
        if (n % 16 == 0 && clock_seconds() - now > budget) {
            *more = true;
            return STATUS_OK;
        }
    }
    if (status != STATUS_BUSY)
        return status;
    enum client_state at = client_state(live->client);
    if (at == CLIENT_MISMATCH)
        return status_fail(STATUS_REFUSED, "%s", client_trouble(live->client));
    if (at == CLIENT_CRASHED && !live->told)
        state_crashed(feed->state, NULL);
    live->told = at == CLIENT_CRASHED;
    return STATUS_OK;
}

static int fd(const struct feed *feed) {
    return client_fd(((const struct live *)feed)->client);
}

static bool wants_write(const struct feed *feed) {
    return client_wants_write(((const struct live *)feed)->client);
}

static double wait_seconds(const struct feed *feed, double now) {
    (void)now;
    int milliseconds = client_wait(((const struct live *)feed)->client);
    return milliseconds < 0 ? 1e9 : milliseconds / 1e3;
}

static void status_of(const struct feed *feed, struct feed_status *out) {
    const struct live *live = (const struct live *)feed;
    memset(out, 0, sizeof *out);
    enum client_state at = client_state(live->client);
    int64_t taken, all;
    client_progress(live->client, &taken, &all);
    out->reading = at == CLIENT_READING;
    out->read = all > 0 ? (double)taken / (double)all : wire_unknown();
    if (at == CLIENT_LOST)
        snprintf(out->trouble, sizeof out->trouble, "%s", client_trouble(live->client));
    snprintf(out->run, sizeof out->run, "%s", client_run(live->client)->name);
}

static enum status command(struct feed *feed, const char *text, const char *screen, char *id) {
    return client_send_for(((struct live *)feed)->client, text, screen, id);
}

static enum status control(struct feed *feed, const char *what) {
    return client_control(((struct live *)feed)->client, what);
}

static void close_live(struct feed *feed) {
    struct live *live = (struct live *)feed;
    client_close(live->client);
    arena_free(&live->arena);
    state_free(feed->state);
    free(live);
}

static const struct feed_ops ops = {pump,    fd,      wants_write, wait_seconds, status_of,
                                    command, control, NULL,        close_live,   NULL};

enum status feed_live(const struct live_run *run, bool watch, struct feed **out) {
    struct live *live = calloc(1, sizeof *live);
    if (!live || !(live->base.state = state_new())) {
        free(live);
        return status_fail(STATUS_NO_MEMORY, "no memory for the console");
    }
    struct client_options options = {.program = "console", .watch = watch};
    enum status status = client_open(run, &options, &live->client);
    if (status != STATUS_OK) {
        state_free(live->base.state);
        free(live);
        return status;
    }
    live->base.ops = &ops;
    live->base.generation = 1;
    *out = &live->base;
    return STATUS_OK;
}

void feed_close(struct feed *feed) {
    if (feed)
        feed->ops->close(feed);
}
