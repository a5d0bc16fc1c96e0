#include "tui/line_mode.h"

#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "tui/format.h"

enum { TOWERS = 16 }; /* more are shown by their range */

static void add(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(char *out, size_t size, const char *format, ...) {
    size_t length = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + length, size - length, format, arguments);
    va_end(arguments);
}

/* A figure without its leading blanks. */
static const char *figure(char text[FORMAT_SIZE], double value, int decimals) {
    format_fixed(text, value, 12, decimals);
    return text + strspn(text, " ");
}

void line_mode_step(const struct run_state *state, char *out, size_t size) {
    const struct event_step *step = &state->step.step;
    char text[FORMAT_SIZE];
    *out = 0;
    format_count(text, step->step);
    add(out, size, "step %s", text);
    if (state->run_start.kind == EVENT_RUN_START && state->run_start.run_start.steps != WIRE_UNKNOWN_INT) {
        format_count(text, state->run_start.run_start.steps);
        add(out, size, " of %s", text);
    }
    add(out, size, "   loss %s", figure(text, step->loss, 4));
    if (step->tower_count > 0 && step->tower_count <= TOWERS) {
        add(out, size, "   towers");
        for (int64_t i = 0; i < step->tower_count; i++)
            add(out, size, " %s", figure(text, step->towers[i].loss, 4));
    } else if (step->tower_count > 0) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = 0; i < step->tower_count; i++) {
            low = fmin(low, step->towers[i].loss);
            high = fmax(high, step->towers[i].loss);
        }
        add(out, size, "   %lld towers from %s", (long long)step->tower_count, figure(text, low, 4));
        add(out, size, " to %s", figure(text, high, 4));
    }
    add(out, size, "   |g| %s", figure(text, step->grad_norm, 3));
}

struct line_mode {
    struct feed *feed;
    line_mode_print *print;
    void *context;
    int64_t told_step, told_log; /* log lines told, of all there ever were */
    uint64_t generation;
};

/* What the log has that was not told; of a long past only the last lines. */
static bool tell_log(struct line_mode *mode) {
    const struct run_state *state = mode->feed->state;
    int64_t all = state->log_dropped + state->log_count;
    if (mode->generation != mode->feed->generation || mode->told_log > all)
        mode->told_log = all;
    if (all - mode->told_log > 10)
        mode->told_log = all - 10;
    for (; mode->told_log < all; mode->told_log++) {
        int64_t i = mode->told_log - state->log_dropped;
        if (i >= 0 && !mode->print(mode->context, state->log[i].text))
            return false;
    }
    mode->generation = mode->feed->generation;
    return true;
}

static bool tell_step(struct line_mode *mode) {
    const struct run_state *state = mode->feed->state;
    char line[1024];
    if (state->step.kind != EVENT_STEP || state->step.step.step == mode->told_step)
        return true;
    mode->told_step = state->step.step.step;
    line_mode_step(state, line, sizeof line);
    return mode->print(mode->context, line);
}

static bool is_over(const struct feed *feed) {
    struct feed_status about;
    feed->ops->status(feed, &about);
    return !about.reading && (feed->state->ended || feed->state->crashed) &&
           (!about.replay || !about.playing);
}

enum status line_mode_run(struct feed *feed, double seconds, int leave, line_mode_print *print,
                          void *context) {
    struct line_mode mode = {feed, print, context, WIRE_UNKNOWN_INT, 0, feed->generation};
    double next = 0;
    for (;;) {
        double now = clock_seconds();
        bool more;
        STATUS_TRY(feed->ops->pump(feed, now, 0.1, &more));
        struct feed_status about;
        feed->ops->status(feed, &about);
        bool over = is_over(feed), due = now >= next && !about.reading;
        if ((due || over) && !(tell_log(&mode) && tell_step(&mode)))
            return STATUS_OK;
        if (over)
            return STATUS_OK;
        if (due)
            next = now + seconds;
        if (more)
            continue;
        double wait = fmin(feed->ops->wait(feed, now), about.reading ? 0 : next - now);
        struct pollfd polled[] = {{.fd = feed->ops->fd(feed), .events = POLLIN},
                                  {.fd = leave, .events = POLLIN}};
        if (feed->ops->wants_write(feed))
            polled[0].events |= POLLOUT;
        if (poll(polled, 2, wait > 0 ? (int)(1000 * fmin(wait, 60)) + 1 : 0) > 0 && polled[1].revents)
            return STATUS_OK;
    }
}
