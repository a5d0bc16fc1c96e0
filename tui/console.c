#include "tui/console.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "tui/beat.h"
#include "tui/cost.h"
#include "tui/format.h"
#include "tui/paint.h"
#include "tui/term.h"

/* Folding between two looks at the keyboard, in seconds: a key is answered within 50 ms. */
static const double FOLD_SECONDS = 0.02;
/* A frame that took longer than this to write, or had to be put off this often, makes the console quiet. */
static const double SLOW_FRAME = 0.5, QUIET_INTERVAL = 1;
/* How long a stop that is under way is waited for on leaving. */
static const double STOP_SECONDS = 1;
enum { LATE_FRAMES = 3, CALM_FRAMES = 8 };

struct console {
    struct feed *feed;
    struct app *app;
    struct canvas *canvas;
    struct painter painter;
    double drawn_at, again_at; /* the last frame, and when the same state will look different */
    double beat;               /* its own, see tui/beat.h */
    int processors;
    bool dirty, answer_key; /* something new; a key waits for its answer on the screen */
    bool more;              /* the feed has more to fold */
    bool leave, gone;
    int late, calm;
    bool quiet;
    struct cost cost;
};

static enum status fit_canvas(struct console *console) {
    int rows, cols;
    term_size(&rows, &cols);
    struct canvas *old = console->canvas;
    if (old && old->rows == rows && old->cols == cols && old->glyphs == term_glyphs())
        return STATUS_OK;
    console->canvas = canvas_new(rows, cols);
    if (!console->canvas) {
        console->canvas = old;
        return status_fail(STATUS_NO_MEMORY, "no memory for a screen of %d rows and %d columns", rows, cols);
    }
    console->canvas->glyphs = term_glyphs();
    canvas_free(old);
    paint_distrust(&console->painter);
    return STATUS_OK;
}

static void be_quiet(struct console *console, bool quiet) {
    console->quiet = console->cost.budget.quiet = quiet;
    app_quiet(console->app, quiet);
}

/* Bytes of the engine's that wait to be taken; -1: not known. */
static int64_t queued(const struct feed *feed) {
    int fd = feed->ops->fd(feed), bytes;
    return fd >= 0 && ioctl(fd, FIONREAD, &bytes) == 0 ? bytes : -1;
}

/* A terminal that takes nothing is not waited for; one that is slow again and again gets less to draw. */
static bool may_draw(struct console *console) {
    if (term_has_room()) {
        console->late = 0;
        return true;
    }
    if (++console->late == LATE_FRAMES)
        be_quiet(console, true);
    console->calm = 0;
    return false;
}

static enum status draw(struct console *console, double now) {
    STATUS_TRY(fit_canvas(console));
    struct feed *feed = console->feed;
    struct feed_status about;
    feed->ops->status(feed, &about);
    app_about(console->app, &about);
    double cpu = cost_cpu_seconds();
    if (cost_due(&console->cost, now))
        cost_reckon(&console->cost, now, term_bytes_written(), feed->state->events, queued(feed));
    app_budget(console->app, &console->cost.budget);
    double next = app_draw(console->app, console->canvas, feed->state, feed->generation, now);
    if (!paint(&console->painter, console->canvas))
        return status_fail(STATUS_NO_MEMORY, "no memory for the screen");
    double took = clock_seconds() - now;
    cost_frame(&console->cost, took, cost_cpu_seconds() - cpu);
    console->drawn_at = now;
    console->again_at = now + next;
    console->dirty = console->answer_key = false;
    if (took > SLOW_FRAME) {
        be_quiet(console, true);
        console->calm = 0;
    } else if (++console->calm == CALM_FRAMES) {
        be_quiet(console, false);
    }
    return STATUS_OK;
}

static void carry_out(struct console *console, enum app_wish wish, double now) {
    struct feed *feed = console->feed;
    const struct app_move *to;
    const char *parting;
    char id[40] = "";
    switch (wish) {
    case APP_NOTHING:
        break;
    case APP_GO_ON:
    case APP_GO_BACK:
        if (feed->ops->turn && feed->ops->turn(feed, wish == APP_GO_ON) != STATUS_OK)
            app_say(console->app, STYLE_ALARM, status_text(), now);
        console->dirty = true;
        break;
    case APP_LEAVE:
        parting = app_parting(console->app, feed->state);
        if (parting && feed->ops->command)
            (void)feed->ops->command(feed, parting, app_screen(console->app), id);
        console->leave = true;
        break;
    case APP_RESTYLE:
        term_restyle(app_preferences(console->app));
        paint_distrust(&console->painter);
        break;
    case APP_REPAINT:
        paint_distrust(&console->painter);
        break;
    case APP_COMMAND:
        if (feed->ops->command &&
            feed->ops->command(feed, app_text(console->app), app_asking(console->app), id) == STATUS_OK)
            app_sent(console->app, id, NULL, now);
        else
            app_sent(console->app, NULL, feed->ops->command ? status_text() : "a record takes no commands",
                     now);
        break;
    case APP_CONTROL:
        if (feed->ops->control && feed->ops->control(feed, app_text(console->app)) != STATUS_OK)
            app_say(console->app, STYLE_WARNING, status_text(), now);
        break;
    case APP_MOVE:
        to = app_move(console->app);
        if (feed->ops->move && feed->ops->move(feed, to->move, to->amount) != STATUS_OK)
            app_say(console->app, STYLE_WARNING, status_text(), now);
        break;
    }
}

static void take_keys(struct console *console, double now) {
    for (int key; !console->leave && (key = term_key()) != PRESS_NONE;) {
        console->answer_key = true;
        if (key == PRESS_RESIZE)
            paint_distrust(&console->painter);
        else
            carry_out(console, app_key(console->app, key, console->feed->state, now), now);
    }
}

/* Consoles on the run, this one among them; 1 where nobody says. */
static double consoles_of(const struct run_state *state) {
    const struct event_control *control = &state->control.control;
    bool known = state->control.kind == EVENT_CONTROL && !state->ended && !state->crashed;
    return known ? (double)control->watchers + (control->holder_user != NULL) : 1;
}

/* Seconds between two frames that nobody asked for by a key. */
static double frame_interval(const struct console *console) {
    double set = app_preferences(console->app)->plot_interval;
    double interval =
        console->beat * beat_interval(set, consoles_of(console->feed->state), console->processors);
    return console->quiet ? fmax(interval, QUIET_INTERVAL) : interval;
}

/* When the next frame is due. */
static double frame_at(const struct console *console) {
    double next = console->drawn_at + frame_interval(console);
    if (console->answer_key)
        return 0;
    return console->dirty ? fmax(next, 0) : fmax(console->again_at, next);
}

static enum status turn(struct console *console) {
    struct feed *feed = console->feed;
    double now = clock_seconds(), frame = frame_at(console);
    if (now >= frame) {
        if (may_draw(console))
            STATUS_TRY(draw(console, now));
        else
            frame = now + 0.1;
        now = clock_seconds();
        frame = fmax(frame_at(console), frame > now ? frame : now);
    }
    /* What comes between two frames is folded together, just before the next one, unless an answer is
     * awaited. */
    bool empty = feed->state->step.kind != EVENT_STEP; /* the first step is shown as soon as it is there */
    bool waiting = app_awaits(console->app) || console->more || empty;
    double pump_at = waiting ? now : fmax(now, console->drawn_at + frame_interval(console));
    bool listen = waiting || pump_at <= now;
    double until = fmin(frame, listen ? now + feed->ops->wait(feed, now) : pump_at);
    if (console->more)
        until = now;
    unsigned news =
        term_wait(listen ? feed->ops->fd(feed) : -1, listen && feed->ops->wants_write(feed), until - now);
    now = clock_seconds();
    if (news & TERM_GONE)
        console->gone = true;
    if (news & TERM_LEAVE)
        console->leave = true;
    if (console->gone || console->leave)
        return STATUS_OK;
    if (news & TERM_REPAINT) {
        paint_distrust(&console->painter);
        console->answer_key = true;
    }
    if (news & TERM_KEYS)
        take_keys(console, now);
    carry_out(console, app_due(console->app, feed->state, now), now);
    if (listen || now >= pump_at) {
        int64_t events = feed->state->events;
        uint64_t generation = feed->generation;
        bool more = console->more, crashed = feed->state->crashed;
        STATUS_TRY(feed->ops->pump(feed, now, FOLD_SECONDS, &console->more));
        if (feed->state->events != events || feed->generation != generation || more || console->more ||
            feed->state->crashed != crashed) /* an engine that was killed says nothing of it */
            console->dirty = true;
        if (empty && feed->state->step.kind == EVENT_STEP)
            console->answer_key = true;
    }
    return STATUS_OK;
}

/* Who has just stopped the run is told how it ended, if that is to be had soon. */
static void await_end(struct console *console) {
    struct feed *feed = console->feed;
    double now = clock_seconds(), until = now + STOP_SECONDS;
    bool more = false;
    for (;
         app_stops(console->app, feed->state) && !feed->state->ended && !feed->state->crashed && now < until;
         now = clock_seconds()) {
        struct pollfd polled = {.fd = feed->ops->fd(feed),
                                .events = (short)(POLLIN | (feed->ops->wants_write(feed) ? POLLOUT : 0))};
        double wait = fmin(until - now, feed->ops->wait(feed, now));
        poll(&polled, 1, more ? 0 : (int)(wait * 1e3) + 1);
        if (feed->ops->pump(feed, clock_seconds(), FOLD_SECONDS, &more) != STATUS_OK)
            return;
    }
}

/* "stopped at "; "" while it goes on. */
static const char *end_words(const struct run_state *state) {
    static const char *const reasons[][2] = {
        {"stopped", "stopped at "}, {"done", "done at "}, {"failed", "failed at "}};
    const struct event_run_end *end = &state->run_end.run_end;
    if (state->crashed)
        return "crashed after ";
    if (!state->ended)
        return "";
    for (size_t i = 0; state->run_end.kind == EVENT_RUN_END && end->reason && i < 3; i++)
        if (!strcmp(end->reason, reasons[i][0]))
            return reasons[i][1];
    return "ended at ";
}

void console_part(const struct feed *feed, struct console_farewell *farewell) {
    const struct run_state *state = feed->state;
    struct feed_status about;
    feed->ops->status(feed, &about);
    const struct event *begun = &state->run_start;
    if (*about.run)
        snprintf(farewell->run, sizeof farewell->run, "%s", about.run);
    else if (!about.replay && begun->kind == EVENT_RUN_START && begun->run_start.run)
        snprintf(farewell->run, sizeof farewell->run, "%s", begun->run_start.run);
    farewell->live = !about.replay && state->started && !state->ended && !state->crashed;
    if (about.replay || state->step.kind != EVENT_STEP)
        return;
    char step[FORMAT_SIZE], loss[FORMAT_SIZE];
    format_count(step, state->step.step.step);
    format_fixed(loss, state->step.step.loss, 6, 4);
    snprintf(farewell->text, sizeof farewell->text, "%sstep %s, averaged loss %s", end_words(state), step,
             loss + strspn(loss, " "));
}

enum status console_run(struct feed *feed, const struct app_options *options,
                        struct console_farewell *farewell) {
    struct console console = {
        .feed = feed, .answer_key = true, .beat = beat_own(getpid()), .processors = beat_processors()};
    memset(farewell, 0, sizeof *farewell);
    STATUS_TRY(term_check());
    console.app = app_new(options);
    if (!console.app)
        return status_fail(STATUS_NO_MEMORY, "no memory for the console");
    enum status status = term_open(app_preferences(console.app));
    if (options->greeting)
        app_say(console.app, STYLE_PLAIN, options->greeting, clock_seconds());
    while (status == STATUS_OK && !console.leave && !console.gone)
        status = turn(&console);
    if (status == STATUS_OK && !console.gone && !term_signal())
        await_end(&console);
    if (status != STATUS_UNSUPPORTED) {
        console_part(feed, farewell);
        farewell->signal = term_signal();
        farewell->stopping = farewell->live && app_stops(console.app, feed->state);
    }
    farewell->gone = console.gone;
    term_close();
    paint_free(&console.painter);
    canvas_free(console.canvas);
    app_free(console.app);
    return status;
}
