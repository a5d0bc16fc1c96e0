/* Messages and commands: what is asked of the run, and what became of it. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/app_parts.h"

static const char why_on[] = "why on", why_off[] = "why off";

/* What a screen asks for by itself, without a key. */
static bool by_itself(const char *text) {
    return !strncmp(text, "images ", 7) || !strcmp(text, why_on) || !strcmp(text, why_off);
}

/* How long a message stands, and how long a count of towers that was asked for is built upon, in seconds. */
static const double MESSAGE_SECONDS = 6, WANTED_SECONDS = 3;

/* After how long an engine that does not even say that it has a command is worth a word. */
static const double SILENCE_SECONDS = 5;

void app_say(struct app *app, enum style style, const char *text, double now) {
    snprintf(app->message.text, sizeof app->message.text, "%s", text);
    app->message.style = style;
    app->message.until = now + MESSAGE_SECONDS;
    app->message.aside = false;
}

/* What came of a screen's own request takes no line that answers a person; of pictures the screen tells. */
static void say_aside(struct app *app, enum style style, const char *text, double now) {
    if (!strncmp(app->text, "images ", 7) || app->message.until > now || app->screen != app->asking_for)
        return;
    app_say(app, style, text, now);
    app->message.aside = true;
}

void app_sent(struct app *app, const char *id, const char *text, double now) {
    if (!id) {
        if (app->asking && by_itself(app->text))
            say_aside(app, STYLE_WARNING, text, now);
        else
            app_say(app, STYLE_WARNING, text, now);
        *app->sent = 0;
        if (!strcmp(app->text, why_on)) {
            app->why = WHY_FAILED;
            app->queued = 0; /* no phase without its values */
        }
        return;
    }
    char words[PROMPT_TEXT + 16];
    snprintf(app->sent, sizeof app->sent, "%s", id);
    app->sent_at = now;
    if (app->asking)
        return;
    snprintf(words, sizeof words, "%s: pending", app->text);
    app_say(app, STYLE_PLAIN, words, now);
    app->message.until = INFINITY;
}

/* How far the command is that is under way. */
static void hear_pending(struct app *app, const char *reason, double now) {
    char words[PROMPT_TEXT + 128];
    if (!reason || app->asking || !isinf(app->message.until)) /* or something else was said since */
        return;
    snprintf(words, sizeof words, "%s: %.100s", app->text, reason);
    app_say(app, STYLE_PLAIN, words, now);
    app->message.until = INFINITY;
    app->silent = false; /* it answers */
}

/* What became of the command that is under way. */
void app_hear(struct app *app, const struct run_state *state, double now) {
    const struct event_command *command = &state->command.command;
    if (!*app->sent || state->command.kind != EVENT_COMMAND || !command->id ||
        strcmp(command->id, app->sent) || !command->status)
        return;
    if (!strcmp(command->status, "pending")) {
        hear_pending(app, command->reason, now);
        return;
    }
    bool refused = !strcmp(command->status, "refused");
    struct event mine = state->command;
    char words[512];
    mine.command.from = NULL; /* who asked is known */
    event_words(&mine, words, sizeof words);
    *app->sent = 0;
    if (app->asking && by_itself(app->text)) {
        if (refused)
            say_aside(app, STYLE_WARNING, words, now);
        else if (!strcmp(app->text, why_on) &&
                 command->reason) /* what the proof takes, or why there is none */
            say_aside(app, STYLE_PLAIN, command->reason, now);
    } else if (refused || !app->asking) {
        app_say(app, refused ? STYLE_WARNING : STYLE_GOOD, words, now);
    }
    if (refused)
        app->wanted_towers = 0;
    if (refused && !strcmp(app->text, why_on))
        app->why = WHY_FAILED;
}

double app_hear_nothing(struct app *app, const struct run_state *state, double now) {
    bool waits = *app->sent && state->events == app->events_then && !state->ended && !state->crashed;
    if (!waits) {
        if (app->silent && isinf(app->message.until)) /* it is over, and nothing else was said since */
            app->message.until = 0;
        app->silent = false;
        return INFINITY;
    }
    double left = app->sent_at + SILENCE_SECONDS - now;
    if (left <= 0 && !app->silent) {
        char words[PROMPT_TEXT + 64];
        snprintf(words, sizeof words, "%s: the engine does not answer: is its process stopped?", app->text);
        app_say(app, STYLE_WARNING, words, now);
        app->message.until = INFINITY;
        app->silent = true;
    }
    return left > 0 ? left : INFINITY;
}

enum app_wish app_command(struct app *app, const struct run_state *state, double now, const char *text) {
    if (app->options.replay) {
        app_say(app, STYLE_WARNING, "this is a record: a command changes nothing in it", now);
        return APP_NOTHING;
    }
    if (app->options.watch) {
        app_say(app, STYLE_WARNING, "this console only watches (--watch): it sends no commands", now);
        return APP_NOTHING;
    }
    if (state->ended || state->crashed) {
        app_say(app, STYLE_WARNING, "the engine is not running: there is nobody to command", now);
        return APP_NOTHING;
    }
    if (state->control.kind == EVENT_CONTROL && !state->control.control.yours) {
        const char *holder = state->control.control.holder_user;
        char words[256];
        snprintf(words, sizeof words, "%s has control of the run: c asks for it", holder ? holder : "nobody");
        app_say(app, STYLE_WARNING, words, now);
        return APP_NOTHING;
    }
    snprintf(app->text, sizeof app->text, "%s", text);
    app->asking = false;
    app->events_then = state->events;
    return APP_COMMAND;
}

/* Whether commands may be sent at all, without a word about it. */
bool app_may_command(const struct app *app, const struct run_state *state) {
    bool ours = state->control.kind == EVENT_CONTROL && state->control.control.yours;
    return !app->options.replay && !app->options.watch && !state->ended && !state->crashed && ours;
}

void app_queue(struct app *app, const struct view_orders *orders) {
    for (int i = 0; i < orders->count && app->queued < QUEUE; i++) {
        app->queue_of[app->queued] = app->screen;
        memcpy(app->queue[app->queued++], orders->commands[i], ORDER_TEXT);
    }
}

/* Commands of a screen that only let it draw what it shows; the others are a person's doing. */
static bool only_shows(const char *text) {
    return by_itself(text) || !strncmp(text, "phase ", 6);
}

static void ask_why(struct app *app) {
    struct view_orders orders = {.count = 0};
    if (app->message.aside) /* what asks for a key to begin */
        app->message.until = 0;
    app->why_wanted = true;
    orders_add(&orders, "%s", why_on);
    app->why = app->queued < QUEUE ? WHY_ASKED : WHY_FAILED;
    app_queue(app, &orders);
}

/* The Why screen asks for its values as soon as commands may be sent. Its values cost the run time, and each
 * of its steps is recorded: after a run has ended, or control was another's, it takes a key to ask again. */
static void keep_why(struct app *app, const struct run_state *state, double now) {
    bool may = app_may_command(app, state), here = app->screen == SCREEN_WHY;
    bool lost = state->ended || state->crashed || (state->control.kind == EVENT_CONTROL && !may);
    if (!here || lost || (!may && app->why == WHY_FAILED))
        app->why = WHY_UNASKED;
    app->why_wanted = app->why_wanted && here && !lost;
    if (!here || !may || app->why != WHY_UNASKED)
        return;
    if (app->why_wanted) {
        ask_why(app);
    } else if (!(app->message.until > now)) {
        char key[16], words[96];
        press_name(keymap_binding(&app->options.keymap, ACTION_WHY)->keys[0], key);
        snprintf(words, sizeof words, "the steps of this run are not looked into yet: %s begins", key);
        app_say(app, STYLE_PLAIN, words, now);
        app->message.until = INFINITY;
        app->message.aside = true;
    }
}

enum app_wish app_due(struct app *app, const struct run_state *state, double now) {
    char text[ORDER_TEXT];
    keep_why(app, state, now);
    if (*app->sent || app->queued == 0)
        return APP_NOTHING;
    memcpy(text, app->queue[0], sizeof text);
    app->asking_for = app->queue_of[0];
    memmove(app->queue[0], app->queue[1], (size_t)(--app->queued) * ORDER_TEXT);
    memmove(app->queue_of, app->queue_of + 1, (size_t)app->queued * sizeof *app->queue_of);
    enum app_wish wish = app_command(app, state, now, text);
    app->asking = wish == APP_COMMAND && only_shows(text);
    if (wish != APP_COMMAND && !strcmp(text, why_on))
        app->why = WHY_FAILED;
    return wish;
}

const char *app_parting(const struct app *app, const struct run_state *state) {
    return app->screen == SCREEN_WHY && app->why == WHY_ASKED && app_may_command(app, state) ? why_off : NULL;
}

bool app_stops(const struct app *app, const struct run_state *state) {
    static const char stop[] = "stop"; /* and stop --discard */
    const struct event_command *told = &state->command.command;
    bool mine = *app->sent && !strncmp(app->text, stop, sizeof stop - 1);
    if (state->command.kind != EVENT_COMMAND || !told->text || !told->status)
        return mine;
    if (!strcmp(told->status, "refused") && told->id && !strcmp(told->id, app->sent))
        return false;
    bool of_this_start = state->command.seq > state->run_start.seq; /* not before it was resumed */
    return mine ||
           (of_this_start && !strcmp(told->status, "applied") && !strncmp(told->text, stop, sizeof stop - 1));
}

void app_open_screen(struct app *app, enum screen screen, const struct run_state *state) {
    struct view_orders orders = {.count = 0};
    screens_change(app->screen, screen, &orders);
    if (app_may_command(app, state) && (app->screen != SCREEN_WHY || app->why == WHY_ASKED))
        app_queue(app, &orders);
    if (app->screen != screen)
        app->why = WHY_UNASKED; /* app_due asks */
    if (app->message.aside)
        app->message.until = 0;
    app->why_wanted = screen == SCREEN_WHY;
    app->screen = screen;
    app->help = false;
}

/* What a view wants of the run: sent in order, or asked for first. */
enum app_wish app_order(struct app *app, const struct view_orders *orders, const struct run_state *state,
                        double now) {
    if (*orders->said)
        app_say(app, STYLE_PLAIN, orders->said, now);
    if (orders->count == 0)
        return APP_NOTHING;
    if (*orders->question) {
        if (app_command(app, state, now, orders->commands[0]) == APP_COMMAND) {
            app->question = *orders;
            app->mode = MODE_CONFIRM;
        }
        return APP_NOTHING;
    }
    bool walks = !strncmp(orders->commands[0], "phase ", 6);
    if (walks && app->screen == SCREEN_WHY && app->why != WHY_ASKED) /* without it a phase has no values */
        ask_why(app);
    app_queue(app, orders);
    return app_due(app, state, now);
}

enum app_wish app_confirm(struct app *app, int key, const struct run_state *state, double now) {
    struct view_orders orders = app->question;
    app->mode = MODE_KEYS;
    if (key == 'y' || key == 'Y') {
        *orders.question = 0;
        return app_order(app, &orders, state, now);
    }
    app_say(app, STYLE_PLAIN, "not done", now);
    return APP_NOTHING;
}

enum app_wish app_control(struct app *app, const char *what) {
    snprintf(app->text, sizeof app->text, "%s", what);
    return APP_CONTROL;
}

/* Give control to the one who asks, or ask for it. */
enum app_wish app_ask_control(struct app *app, const struct run_state *state, double now) {
    const struct event_control *at = &state->control.control;
    char text[256];
    if (app->options.watch || state->control.kind != EVENT_CONTROL) {
        app_say(app, STYLE_WARNING,
                app->options.watch ? "this console only watches (--watch)" : "the run is not live", now);
        return APP_NOTHING;
    }
    if (at->yours && at->asking_user)
        return app_control(app, "give");
    if (at->yours) {
        app_say(app, STYLE_PLAIN, "control is yours", now);
        return APP_NOTHING;
    }
    app->why_wanted = app->screen == SCREEN_WHY;
    snprintf(text, sizeof text, "asked %s for control; without an answer it comes in 10 s",
             at->holder_user ? at->holder_user : "the engine");
    app_say(app, STYLE_PLAIN, text, now);
    app->asked_control = true;
    app->requests_then = state->requests;
    return app_control(app, "ask");
}

void app_hear_control(struct app *app, const struct run_state *state, double now) {
    const struct event_control *at = &state->control.control;
    char text[256];
    bool waits = at->asking_user || state->requests == app->requests_then;
    if (!app->asked_control || (waits && !at->yours))
        return;
    app->asked_control = false;
    snprintf(text, sizeof text, "not given: %s has control of the run; c asks again",
             at->holder_user ? at->holder_user : "nobody");
    app_say(app, at->yours ? STYLE_GOOD : STYLE_WARNING, at->yours ? "control is yours" : text, now);
}

enum app_wish app_change_towers(struct app *app, const struct run_state *state, double now, int by) {
    int known = state->towers > 0 && state->towers < INT_MAX ? (int)state->towers : 0;
    int towers = app->wanted_towers && now < app->wanted_until ? app->wanted_towers : known;
    char text[32];
    if (towers == 0) {
        app_say(app, STYLE_WARNING, "the number of towers is not known yet", now);
        return APP_NOTHING;
    }
    if (towers + by < 1) {
        app_say(app, STYLE_WARNING, "a run has one tower at least", now);
        return APP_NOTHING;
    }
    app->wanted_towers = towers + by;
    app->wanted_until = now + WANTED_SECONDS;
    snprintf(text, sizeof text, "towers %d", app->wanted_towers);
    return app_command(app, state, now, text);
}
