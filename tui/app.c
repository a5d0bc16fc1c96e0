#include "tui/app.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/wire/command.h"
#include "tui/config.h"
#include "tui/footer.h"
#include "tui/header.h"
#include "tui/layout.h"
#include "tui/prompt.h"
#include "tui/scene.h"
#include "tui/screens.h"
#include "tui/standing.h"
#include "tui/view_help.h"
#include "tui/view_log.h"
#include "tui/view_towers.h"
#include "tui/waiting.h"

enum mode { MODE_KEYS, MODE_PROMPT, MODE_FILTER, MODE_CONFIRM };
enum { QUEUE = 16 };

/* Whether the run was asked for the values of the Why screen; failed: not sent, or refused. */
enum why_asked { WHY_UNASKED, WHY_ASKED, WHY_FAILED };
static const char why_on[] = "why on";

/* How long a message stands, and how long a count of towers that was asked for is built upon, in seconds. */
static const double MESSAGE_SECONDS = 6, WANTED_SECONDS = 3;

struct message {
    char text[512];
    enum style style;
    double until; /* infinite: until something else is said */
};

struct app {
    struct app_options options;
    char run[64], waiting[128];
    enum screen screen;
    bool help, quiet;
    enum mode mode;
    struct prompt prompt, filter;
    char text[PROMPT_TEXT]; /* of the command to send */
    struct app_move move;
    struct feed_status about;
    char sent[40]; /* id of the command that is under way; "": none */
    struct message message;
    int wanted_towers; /* last asked for with + and -; 0: none */
    double wanted_until;
    struct standing dismissed; /* the standing text that was taken away */
    bool show_budget;
    struct budget budget;
    struct shown shown;
    struct towers_view towers;
    struct log_view log;
    struct help_view help_view;
    struct screens screens;
    struct view_orders question;   /* MODE_CONFIRM: what is asked, and the commands that "y" sends */
    char queue[QUEUE][ORDER_TEXT]; /* commands that wait for the one under way */
    int queued;
    enum why_asked why;
    size_t guided; /* the guide's keys that were pressed */
};

struct app *app_new(const struct app_options *options) {
    struct app *app = calloc(1, sizeof *app);
    if (!app)
        return NULL;
    app->options = *options;
    snprintf(app->run, sizeof app->run, "%s", options->run ? options->run : "");
    snprintf(app->waiting, sizeof app->waiting, "%s", options->waiting ? options->waiting : "");
    towers_view_init(&app->towers);
    screens_init(&app->screens);
    return app;
}

void app_free(struct app *app) {
    if (!app)
        return;
    shown_free(&app->shown);
    towers_view_free(&app->towers);
    free(app);
}

const char *app_text(const struct app *app) {
    return app->text;
}
const struct app_move *app_move(const struct app *app) {
    return &app->move;
}
bool app_awaits(const struct app *app) {
    return *app->sent != 0;
}
void app_about(struct app *app, const struct feed_status *about) {
    app->about = *about;
}
void app_budget(struct app *app, const struct budget *budget) {
    app->budget = *budget;
}
void app_quiet(struct app *app, bool quiet) {
    app->quiet = quiet;
}
struct preferences *app_preferences(struct app *app) {
    return &app->options.preferences;
}

static unsigned where(const struct app *app) {
    return (app->options.replay ? WHERE_REPLAY : WHERE_LIVE) | screens_where(app->screen);
}

/* ---- messages and commands */

void app_say(struct app *app, enum style style, const char *text, double now) {
    snprintf(app->message.text, sizeof app->message.text, "%s", text);
    app->message.style = style;
    app->message.until = now + MESSAGE_SECONDS;
}

void app_sent(struct app *app, const char *id, const char *text, double now) {
    if (!id) {
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
    snprintf(words, sizeof words, "%s: pending", app->text);
    app_say(app, STYLE_PLAIN, words, now);
    app->message.until = INFINITY;
}

/* What became of the command that is under way. */
static void hear_command(struct app *app, const struct run_state *state, double now) {
    const struct event_command *command = &state->command.command;
    if (!*app->sent || state->command.kind != EVENT_COMMAND || !command->id ||
        strcmp(command->id, app->sent) || !command->status || !strcmp(command->status, "pending"))
        return;
    bool refused = !strcmp(command->status, "refused");
    struct event mine = state->command;
    char words[512];
    mine.command.from = NULL; /* who asked is known */
    event_words(&mine, words, sizeof words);
    app_say(app, refused ? STYLE_WARNING : STYLE_GOOD, words, now);
    *app->sent = 0;
    if (refused)
        app->wanted_towers = 0;
    if (refused && !strcmp(app->text, why_on))
        app->why = WHY_FAILED;
}

static enum app_wish command(struct app *app, const struct run_state *state, double now, const char *text) {
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
    return APP_COMMAND;
}

/* Whether commands may be sent at all, without a word about it. */
static bool may_command(const struct app *app, const struct run_state *state) {
    bool ours = state->control.kind == EVENT_CONTROL && state->control.control.yours;
    return !app->options.replay && !app->options.watch && !state->ended && !state->crashed && ours;
}

static void queue_orders(struct app *app, const struct view_orders *orders) {
    for (int i = 0; i < orders->count && app->queued < QUEUE; i++)
        memcpy(app->queue[app->queued++], orders->commands[i], ORDER_TEXT);
}

static void ask_why(struct app *app) {
    struct view_orders orders = {.count = 0};
    orders_add(&orders, "%s", why_on);
    app->why = app->queued < QUEUE ? WHY_ASKED : WHY_FAILED;
    queue_orders(app, &orders);
}

/* The Why screen asks for its values as soon as commands may be sent, and again when control comes back. */
static void keep_why(struct app *app, const struct run_state *state) {
    bool may = may_command(app, state);
    bool lost = state->ended || state->crashed || (state->control.kind == EVENT_CONTROL && !may);
    if (app->screen != SCREEN_WHY || lost || (!may && app->why == WHY_FAILED))
        app->why = WHY_UNASKED;
    if (app->screen == SCREEN_WHY && may && app->why == WHY_UNASKED)
        ask_why(app);
}

enum app_wish app_due(struct app *app, const struct run_state *state, double now) {
    char text[ORDER_TEXT];
    keep_why(app, state);
    if (*app->sent || app->queued == 0)
        return APP_NOTHING;
    memcpy(text, app->queue[0], sizeof text);
    memmove(app->queue[0], app->queue[1], (size_t)(--app->queued) * ORDER_TEXT);
    enum app_wish wish = command(app, state, now, text);
    if (wish != APP_COMMAND && !strcmp(text, why_on))
        app->why = WHY_FAILED;
    return wish;
}

const char *app_parting(const struct app *app, const struct run_state *state) {
    return app->screen == SCREEN_WHY && may_command(app, state) ? "why off" : NULL;
}

static void open_screen(struct app *app, enum screen screen, const struct run_state *state) {
    struct view_orders orders = {.count = 0};
    screens_change(app->screen, screen, &orders);
    if (may_command(app, state))
        queue_orders(app, &orders);
    if (app->screen != screen)
        app->why = WHY_UNASKED; /* app_due asks */
    app->screen = screen;
    app->help = false;
}

/* What a view wants of the run: sent in order, or asked for first. */
static enum app_wish order(struct app *app, const struct view_orders *orders, const struct run_state *state,
                           double now) {
    if (*orders->said)
        app_say(app, STYLE_PLAIN, orders->said, now);
    if (orders->count == 0)
        return APP_NOTHING;
    if (*orders->question) {
        if (command(app, state, now, orders->commands[0]) == APP_COMMAND) {
            app->question = *orders;
            app->mode = MODE_CONFIRM;
        }
        return APP_NOTHING;
    }
    bool walks = !strncmp(orders->commands[0], "phase ", 6);
    if (walks && app->screen == SCREEN_WHY && app->why != WHY_ASKED) /* without it a phase has no values */
        ask_why(app);
    queue_orders(app, orders);
    return app_due(app, state, now);
}

static enum app_wish confirm(struct app *app, int key, const struct run_state *state, double now) {
    struct view_orders orders = app->question;
    app->mode = MODE_KEYS;
    if (key == 'y' || key == 'Y') {
        *orders.question = 0;
        return order(app, &orders, state, now);
    }
    app_say(app, STYLE_PLAIN, "not done", now);
    return APP_NOTHING;
}

static enum app_wish control(struct app *app, const char *what) {
    snprintf(app->text, sizeof app->text, "%s", what);
    return APP_CONTROL;
}

/* Give control to the one who asks, or ask for it. */
static enum app_wish act_on_control(struct app *app, const struct run_state *state, double now) {
    const struct event_control *at = &state->control.control;
    char text[256];
    if (app->options.watch || state->control.kind != EVENT_CONTROL) {
        app_say(app, STYLE_WARNING,
                app->options.watch ? "this console only watches (--watch)" : "the run is not live", now);
        return APP_NOTHING;
    }
    if (at->yours && at->asking_user)
        return control(app, "give");
    if (at->yours) {
        app_say(app, STYLE_PLAIN, "control is yours", now);
        return APP_NOTHING;
    }
    snprintf(text, sizeof text, "asked %s for control; without an answer it comes in 10 s",
             at->holder_user ? at->holder_user : "the engine");
    app_say(app, STYLE_PLAIN, text, now);
    return control(app, "ask");
}

static enum app_wish change_towers(struct app *app, const struct run_state *state, double now, int by) {
    struct scene scene = {.state = state, .shown = &app->shown};
    int towers = app->wanted_towers && now < app->wanted_until ? app->wanted_towers : scene_towers(&scene);
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
    return command(app, state, now, text);
}

/* ---- keys */

static enum app_wish move(struct app *app, enum feed_move to, double amount) {
    app->move = (struct app_move){to, amount};
    return APP_MOVE;
}

static enum app_wish entered(struct app *app, const struct run_state *state, double now) {
    const char *text = app->prompt.text + strspn(app->prompt.text, " ");
    double number;
    bool taken;
    app->mode = MODE_KEYS;
    if (!*text)
        return APP_NOTHING;
    if (!strcmp(text, "q") || !strcmp(text, "quit"))
        return APP_LEAVE;
    if (!strcmp(text, "help") || !strcmp(text, "budget")) {
        *(*text == 'h' ? &app->help : &app->show_budget) ^= true;
        return APP_NOTHING;
    }
    if (app->options.replay && sscanf(text, "goto %lf", &number) == 1)
        return move(app, MOVE_STEP, number);
    enum status status = config_line(text, &app->options.preferences, &app->options.keymap, &taken);
    struct command parsed;
    if (status == STATUS_OK && taken)
        return APP_RESTYLE;
    if (status == STATUS_OK)
        status = command_parse(text, &parsed);
    if (status != STATUS_OK) {
        app_say(app, STYLE_WARNING, status_text(), now);
        return APP_NOTHING;
    }
    return command(app, state, now, parsed.text);
}

static void filtered(struct app *app, double now) {
    app->mode = MODE_KEYS;
    if (app->screen == SCREEN_LOG) {
        snprintf(app->log.filter, sizeof app->log.filter, "%.63s", app->filter.text);
        app->log.up = 0;
    } else if (towers_filter_check(app->filter.text) != STATUS_OK) {
        app_say(app, STYLE_WARNING, status_text(), now);
    } else {
        snprintf(app->towers.filter, sizeof app->towers.filter, "%.63s", app->filter.text);
    }
}

static void next_window(struct preferences *preferences) {
    static const int64_t windows[] = {0, 10000, 1000, 100};
    int at = 0;
    for (int i = 0; i < 4; i++)
        if (preferences->window == windows[i])
            at = i;
    preferences->window = windows[(at + 1) % 4];
}

static void begin_prompt(struct app *app, enum mode mode) {
    app->mode = mode;
    prompt_begin(mode == MODE_FILTER ? &app->filter : &app->prompt, "");
}

static bool view_act(struct app *app, enum action action, const struct run_state *state,
                     struct view_orders *orders) {
    struct scene scene = {.state = state, .shown = &app->shown, .preferences = &app->options.preferences};
    if (app->help)
        return help_view_act(&app->help_view, action);
    if (app->screen == SCREEN_LOG)
        return log_view_act(&app->log, action);
    if (app->screen == SCREEN_TOWERS)
        return towers_view_act(&app->towers, action, state);
    return screens_act(&app->screens, app->screen, action, &scene, app->options.replay, orders);
}

static enum app_wish act_on_record(struct app *app, enum action action) {
    switch (action) {
    case ACTION_PLAY:
        return move(app, MOVE_PLAY, 0);
    case ACTION_BACK:
        return move(app, MOVE_SHARE, -0.01);
    case ACTION_ON:
        return move(app, MOVE_SHARE, 0.01);
    case ACTION_FAR_BACK:
        return move(app, MOVE_SHARE, -0.1);
    case ACTION_FAR_ON:
        return move(app, MOVE_SHARE, 0.1);
    case ACTION_BEGIN:
        return move(app, MOVE_BEGIN, 0);
    case ACTION_FINISH:
        return move(app, MOVE_END, 0);
    case ACTION_FASTER:
        return move(app, MOVE_SPEED, 1);
    case ACTION_SLOWER:
        return move(app, MOVE_SPEED, -1);
    case ACTION_WHY_NEXT: /* no further phase in the record here */
    case ACTION_NEXT_MARKER:
        return move(app, MOVE_MARKER, 1);
    case ACTION_WHY_BACK:
    case ACTION_LAST_MARKER:
        return move(app, MOVE_MARKER, -1);
    default:
        return APP_NOTHING;
    }
}

static enum app_wish act(struct app *app, enum action action, const struct run_state *state, double now) {
    struct preferences *preferences = &app->options.preferences;
    struct view_orders orders = {.count = 0};
    if (screens_opened(action) != SCREENS) {
        open_screen(app, screens_opened(action), state);
        return app_due(app, state, now);
    }
    switch (action) {
    case ACTION_HELP:
        app->help = !app->help;
        break;
    case ACTION_PAUSE:
        return command(app, state, now, !strcmp(state->phase, "paused") ? "resume" : "pause");
    case ACTION_STEP:
        return command(app, state, now, "step");
    case ACTION_MORE_TOWERS:
        return change_towers(app, state, now, 1);
    case ACTION_FEWER_TOWERS:
        return change_towers(app, state, now, -1);
    case ACTION_PROMPT:
        begin_prompt(app, MODE_PROMPT);
        break;
    case ACTION_FILTER:
        begin_prompt(app, MODE_FILTER);
        break;
    case ACTION_LOG_SCALE:
        preferences->log_scale = !preferences->log_scale;
        break;
    case ACTION_SMOOTH:
        preferences->smoothing = (preferences->smoothing + 1) % SMOOTHINGS;
        break;
    case ACTION_WINDOW:
        next_window(preferences);
        break;
    case ACTION_CONTROL:
        return act_on_control(app, state, now);
    case ACTION_REPAINT:
        return APP_REPAINT;
    case ACTION_LEAVE:
        if (!app->help)
            return APP_LEAVE;
        app->help = false;
        break;
    case ACTION_STOP:
        orders_add(&orders, "stop");
        snprintf(orders.question, sizeof orders.question,
                 "stop the run? It saves a checkpoint and ends.   y stops, any other key does not");
        return order(app, &orders, state, now);
    case ACTION_DISMISS:
        if (app->help) {
            app->help = false;
        } else if (standing_find(state, &app->about).request) {
            return control(app, "refuse");
        } else if (app->message.until > now) {
            app->message.until = 0;
        } else if (!view_act(app, action, state, &orders)) {
            app->dismissed = standing_find(state, &app->about);
        }
        break;
    default:
        if (!view_act(app, action, state, &orders))
            return app->options.replay ? act_on_record(app, action) : APP_NOTHING;
        return order(app, &orders, state, now);
    }
    return APP_NOTHING;
}

enum app_wish app_key(struct app *app, int key, const struct run_state *state, double now) {
    if (app->mode == MODE_PROMPT || app->mode == MODE_FILTER) {
        bool filter = app->mode == MODE_FILTER;
        switch (prompt_key(filter ? &app->filter : &app->prompt, key, filter ? NULL : config_complete)) {
        case PROMPT_ENTERED:
            if (!filter)
                return entered(app, state, now);
            filtered(app, now);
            return APP_NOTHING;
        case PROMPT_CANCELLED:
            app->mode = MODE_KEYS;
            return APP_NOTHING;
        case PROMPT_TYPING:
            return APP_NOTHING;
        }
    }
    if (app->mode == MODE_CONFIRM)
        return confirm(app, key, state, now);
    if (app->options.guide && (key == PRESS_ENTER || key == 'n'))
        return app->options.guide->done ? APP_LEAVE : APP_GO_ON;
    return act(app, keymap_action(&app->options.keymap, key, where(app)), state, now);
}

/* ---- drawing */

static void draw_words(struct canvas *canvas, struct box box, enum style style, const char *text) {
    int margin = box.cols >= 24 ? 1 : 0;
    canvas_fill(canvas, box.row, box.col, box.cols, ' ', style == STYLE_BANNER ? STYLE_BANNER : STYLE_PLAIN);
    canvas_text(canvas, box.row, box.col + margin, box.cols - 2 * margin, style, text);
}

/* What may stand on the message line without being pressing: not where the footer would have to give way. */
static void draw_calm(const struct app *app, struct canvas *canvas, struct box box,
                      const struct run_state *state) {
    char text[512];
    if (app->show_budget)
        footer_budget(&app->budget, canvas, box);
    else if (app->about.replay)
        footer_record(&app->about, canvas, box);
    else if (app->about.reading && isfinite(app->about.read))
        canvas_print(canvas, box.row, box.col + 1, box.cols - 2, STYLE_FAINT, "reading the record: %2.0f %%",
                     100 * app->about.read);
    else if (state->run_end.kind == EVENT_RUN_END) {
        event_words(&state->run_end, text, sizeof text);
        draw_words(canvas, box, STYLE_PLAIN, text);
    }
}

static void draw_message(struct app *app, struct canvas *canvas, const struct frame_layout *frame,
                         const struct run_state *state, double now) {
    struct box box = frame->message;
    struct standing standing = standing_find(state, &app->about);
    if (app->mode == MODE_PROMPT)
        prompt_draw(&app->prompt, canvas, box, ":");
    else if (app->mode == MODE_FILTER)
        prompt_draw(&app->filter, canvas, box, "/");
    else if (app->mode == MODE_CONFIRM)
        draw_words(canvas, box, STYLE_STRONG, app->question.question);
    else if (app->message.until > now && !standing.request)
        draw_words(canvas, box, app->message.style, app->message.text);
    else if (*standing.text && (standing.request || !standing_same(&standing, &app->dismissed)))
        draw_words(canvas, box, standing.style, standing.text);
    else if (!frame->message_shares_footer || app->show_budget)
        draw_calm(app, canvas, box, state);
}

/* The guide's words take the lower part of the screen. */
static void draw_guide(const struct app *app, struct canvas *canvas, struct frame_layout *frame) {
    const struct guide *guide = app->options.guide;
    int margin = canvas->cols >= 24 ? 1 : 0, cols = canvas->cols - 2 * margin, rows = 0;
    for (const char *at = guide->text; *at && cols > 0; rows++) {
        size_t bytes = text_fit(at, cols);
        at += bytes + strspn(at + bytes, " ");
    }
    rows = rows > frame->body.rows / 2 ? frame->body.rows / 2 : rows;
    if (rows < 1)
        return;
    frame->body.rows -= rows + 1;
    struct box box = {frame->body.row + frame->body.rows, 0, 1, canvas->cols};
    scene_rule(canvas, box);
    canvas_print(canvas, box.row, margin + 2, cols - 2, STYLE_KEY,
                 guide->done ? " the end: enter leaves, or look around " : " %d of %d: enter or n goes on ",
                 guide->part, guide->parts);
    const char *at = guide->text;
    for (int row = 1; row <= rows && *at; row++) {
        char part[512];
        size_t bytes = text_fit(at, cols);
        snprintf(part, sizeof part, "%.*s", row == rows ? (int)sizeof part - 1 : (int)bytes, at);
        canvas_text(canvas, box.row + row, margin, cols, STYLE_STRONG, part);
        at += bytes + strspn(at + bytes, " ");
    }
}

/* The keys of the guide, each once. */
static void follow_guide(struct app *app, const struct run_state *state, double now) {
    const char *keys = app->options.guide ? app->options.guide->keys : "";
    while (keys[app->guided]) {
        char key = keys[app->guided++];
        int press = key == '<' ? PRESS_LEFT : key == '>' ? PRESS_RIGHT : key;
        (void)act(app, keymap_action(&app->options.keymap, press, where(app)), state, now);
    }
}

static void draw_footer(const struct app *app, struct canvas *canvas, struct box box,
                        const struct run_state *state) {
    bool ours = state->control.kind != EVENT_CONTROL || state->control.control.yours;
    struct footer footer = {
        .keymap = &app->options.keymap,
        .where = where(app),
        .current = app->help ? ACTION_HELP : screens_opening(app->screen),
        .commands = !app->options.watch && !state->ended && !state->crashed && ours,
        .paused = !strcmp(state->phase, "paused"),
        .playing = app->about.playing,
    };
    if (!app->options.replay)
        footer_control(state, app->options.watch, footer.control, sizeof footer.control);
    footer_draw(&footer, canvas, box);
}

double app_draw(struct app *app, struct canvas *canvas, const struct run_state *state, uint64_t generation,
                double now) {
    hear_command(app, state, now);
    follow_guide(app, state, now);
    struct view_orders orders = {.count = 0};
    bool moving = !strcmp(state->phase, "training");
    double next = shown_update(&app->shown, state, generation, now,
                               moving ? app->options.preferences.number_interval : 0);
    if (app->shown.tower_count == app->wanted_towers)
        app->wanted_towers = 0;
    canvas_clear(canvas);
    struct frame_layout frame;
    layout_frame(canvas->rows, canvas->cols, &frame);
    struct scene scene = {canvas,
                          state,
                          generation,
                          &app->shown,
                          &app->options.preferences,
                          *app->waiting ? app->waiting : NULL,
                          app->quiet};
    if (app->options.guide)
        draw_guide(app, canvas, &frame);
    if (may_command(app, state) && !app->help)
        screens_due(&app->screens, app->screen, &scene, &orders);
    queue_orders(app, &orders);
    scene_rule(canvas, frame.rule);
    header_draw(&scene, frame.header, app->run, canvas->rows == 1);
    if (app->help)
        help_view_draw(&app->help_view, canvas, &app->options.keymap, where(app), frame.body);
    else if (app->screen == SCREEN_LOG)
        log_view_draw(&app->log, &scene, frame.body);
    else if (app->screen != SCREEN_TOWERS)
        screens_draw(&app->screens, app->screen, &scene, frame.body);
    else if (app->shown.have || (state->run_start.kind == EVENT_RUN_START && frame.body.rows >= 12))
        towers_view_draw(&app->towers, &scene, frame.body);
    else
        waiting_draw(&scene, frame.body);
    if (frame.footer.rows > 0)
        draw_footer(app, canvas, frame.footer, state);
    draw_message(app, canvas, &frame, state, now);
    if (app->message.until > now && isfinite(app->message.until))
        next = fmin(next, app->message.until - now);
    return next;
}
