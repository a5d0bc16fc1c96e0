/* A run that is being started: nothing to fold until its engine is live, then it is the live feed itself. */
#include <stdlib.h>
#include <string.h>

#include "tui/feed.h"

struct pending {
    struct feed base;
    struct feed *real; /* NULL: not yet */
    feed_begin *begin;
    void *context;
    int fd;
};

static struct feed *real_of(const struct feed *feed) {
    return ((const struct pending *)feed)->real;
}

static void follow(struct feed *feed, const struct feed *real) {
    feed->state = real->state;
    feed->generation = real->generation;
}

static enum status pump(struct feed *feed, double now, double budget, bool *more) {
    struct pending *pending = (struct pending *)feed;
    *more = false;
    if (!pending->real) {
        struct feed *real = NULL;
        enum status status = pending->begin(pending->context, &real);
        if (status == STATUS_BUSY)
            return STATUS_OK;
        if (status != STATUS_OK)
            return status;
        state_free(feed->state);
        pending->real = real;
    }
    enum status status = pending->real->ops->pump(pending->real, now, budget, more);
    follow(feed, pending->real);
    return status;
}

static int fd(const struct feed *feed) {
    const struct feed *real = real_of(feed);
    return real ? real->ops->fd(real) : ((const struct pending *)feed)->fd;
}

static bool wants_write(const struct feed *feed) {
    const struct feed *real = real_of(feed);
    return real && real->ops->wants_write(real);
}

static double wait_seconds(const struct feed *feed, double now) {
    const struct feed *real = real_of(feed);
    return real ? real->ops->wait(real, now) : 1;
}

static void status_of(const struct feed *feed, struct feed_status *out) {
    const struct feed *real = real_of(feed);
    if (real)
        real->ops->status(real, out);
    else
        memset(out, 0, sizeof *out);
}

static enum status not_yet(void) {
    return status_fail(STATUS_REFUSED, "the engine is not live yet");
}

static enum status command(struct feed *feed, const char *text, const char *screen, char *id) {
    struct feed *real = real_of(feed);
    return real ? real->ops->command(real, text, screen, id) : not_yet();
}

static enum status control(struct feed *feed, const char *what) {
    struct feed *real = real_of(feed);
    return real ? real->ops->control(real, what) : not_yet();
}

static void close_pending(struct feed *feed) {
    struct pending *pending = (struct pending *)feed;
    if (pending->real)
        feed_close(pending->real);
    else
        state_free(feed->state);
    free(pending);
}

static const struct feed_ops ops = {.pump = pump,
                                    .fd = fd,
                                    .wants_write = wants_write,
                                    .wait = wait_seconds,
                                    .status = status_of,
                                    .command = command,
                                    .control = control,
                                    .close = close_pending};

enum status feed_pending(int ready, feed_begin *begin, void *context, struct feed **out) {
    struct pending *pending = calloc(1, sizeof *pending);
    if (!pending || !(pending->base.state = state_new())) {
        free(pending);
        return status_fail(STATUS_NO_MEMORY, "no memory for the console");
    }
    pending->base.ops = &ops;
    pending->base.generation = 1;
    pending->begin = begin;
    pending->context = context;
    pending->fd = ready;
    *out = &pending->base;
    return STATUS_OK;
}
