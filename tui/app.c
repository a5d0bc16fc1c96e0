#include "tui/app.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/wire/command.h"
#include "tui/format.h"
#include "tui/header.h"
#include "tui/layout.h"
#include "tui/prompt.h"
#include "tui/scene.h"
#include "tui/view_help.h"
#include "tui/view_log.h"
#include "tui/view_towers.h"
#include "tui/waiting.h"

enum screen { SCREEN_TOWERS, SCREEN_LOG };
enum mode { MODE_KEYS, MODE_PROMPT, MODE_FILTER, MODE_CONFIRM_STOP };

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
    double alarm_dismissed; /* time of the alarm that was taken away */
    struct shown shown;
    struct towers_view towers;
    struct log_view log;
    struct help_view help_view;
};

struct app *app_new(const struct app_options *options) {
    struct app *app = calloc(1, sizeof *app);
    if (!app)
        return NULL;
    app->options = *options;
    snprintf(app->run, sizeof app->run, "%s", options->run ? options->run : "");
    snprintf(app->waiting, sizeof app->waiting, "%s", options->waiting ? options->waiting : "");
    app->alarm_dismissed = wire_unknown();
    towers_view_init(&app->towers);
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
void app_quiet(struct app *app, bool quiet) {
    app->quiet = quiet;
}
struct preferences *app_preferences(struct app *app) {
    return &app->options.preferences;
}

static unsigned where(const struct app *app) {
    return app->options.replay ? WHERE_REPLAY : WHERE_LIVE;
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
    char words[512];
    event_words(&state->command, words, sizeof words);
    app_say(app, refused ? STYLE_WARNING : STYLE_GOOD, words, now);
    *app->sent = 0;
    if (refused)
        app->wanted_towers = 0;
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
    snprintf(app->text, sizeof app->text, "%s", text);
    return APP_COMMAND;
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
    app->mode = MODE_KEYS;
    if (!*text)
        return APP_NOTHING;
    if (!strcmp(text, "q") || !strcmp(text, "quit"))
        return APP_LEAVE;
    if (!strcmp(text, "help")) {
        app->help = true;
        return APP_NOTHING;
    }
    double number;
    if (app->options.replay && sscanf(text, "goto %lf", &number) == 1)
        return move(app, MOVE_STEP, number);
    struct command parsed;
    if (command_parse(text, &parsed) != STATUS_OK) {
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

static bool view_act(struct app *app, enum action action, const struct run_state *state) {
    if (app->help)
        return help_view_act(&app->help_view, action);
    return app->screen == SCREEN_LOG ? log_view_act(&app->log, action)
                                     : towers_view_act(&app->towers, action, state);
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
    case ACTION_NEXT_MARKER:
        return move(app, MOVE_MARKER, 1);
    case ACTION_LAST_MARKER:
        return move(app, MOVE_MARKER, -1);
    default:
        return APP_NOTHING;
    }
}

static enum app_wish act(struct app *app, enum action action, const struct run_state *state, double now) {
    struct preferences *preferences = &app->options.preferences;
    switch (action) {
    case ACTION_TOWERS:
        app->screen = SCREEN_TOWERS;
        app->help = false;
        break;
    case ACTION_LOG:
        app->screen = SCREEN_LOG;
        app->help = false;
        break;
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
    case ACTION_REPAINT:
        return APP_REPAINT;
    case ACTION_LEAVE:
        if (!app->help)
            return APP_LEAVE;
        app->help = false;
        break;
    case ACTION_STOP:
        if (command(app, state, now, "stop") == APP_COMMAND)
            app->mode = MODE_CONFIRM_STOP;
        break;
    case ACTION_DISMISS:
        if (app->help) {
            app->help = false;
        } else if (app->message.until > now) {
            app->message.until = 0;
        } else if (!view_act(app, action, state) && state->alarm.kind == EVENT_ALARM) {
            app->alarm_dismissed = state->alarm.time;
        }
        break;
    default:
        if (!view_act(app, action, state))
            return act_on_record(app, action);
    }
    return APP_NOTHING;
}

enum app_wish app_key(struct app *app, int key, const struct run_state *state, double now) {
    if (app->mode == MODE_PROMPT || app->mode == MODE_FILTER) {
        bool filter = app->mode == MODE_FILTER;
        switch (prompt_key(filter ? &app->filter : &app->prompt, key, filter ? NULL : command_complete)) {
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
    if (app->mode == MODE_CONFIRM_STOP) {
        app->mode = MODE_KEYS;
        if (key == 'y' || key == 'Y')
            return command(app, state, now, "stop");
        app_say(app, STYLE_PLAIN, "not stopped", now);
        return APP_NOTHING;
    }
    return act(app, keymap_action(&app->options.keymap, key, where(app)), state, now);
}

/* ---- drawing */

/* What stands on the message line when nothing was said: an alarm, an end, what is waited for. */
static enum style standing_text(const struct app *app, const struct run_state *state, char *out,
                                size_t size) {
    const struct event_alarm *alarm = &state->alarm.alarm;
    *out = 0;
    if (state->crashed) {
        const char *text =
            state->log_count > 0 ? state->log[state->log_count - 1].text : "the engine is gone";
        snprintf(out, size, "%s", text);
        return STYLE_BANNER;
    }
    bool dismissed = state->alarm.time <= app->alarm_dismissed;
    if (state->alarm.kind == EVENT_ALARM && !dismissed && alarm->text) {
        bool error = alarm->level && !strcmp(alarm->level, "error");
        char words[512];
        event_words(&state->alarm, words, sizeof words);
        snprintf(out, size, "%s%s   (x takes this away)", error ? "alarm: " : "warning: ", words);
        return error ? STYLE_BANNER : STYLE_WARNING;
    }
    if (state->run_end.kind == EVENT_RUN_END) {
        event_words(&state->run_end, out, size);
        return STYLE_PLAIN;
    }
    if (*app->about.trouble) {
        snprintf(out, size, "%s", app->about.trouble);
        return STYLE_WARNING;
    }
    if (app->options.replay)
        return STYLE_FAINT;
    if (state->missing > 0) {
        snprintf(out, size, "%lld events are missing from the record", (long long)state->missing);
        return STYLE_WARNING;
    }
    return STYLE_FAINT;
}

/* Where one is in a record: playing or not, how fast, a bar, the time. */
static void draw_record(const struct app *app, struct canvas *canvas, struct box box) {
    const struct feed_status *about = &app->about;
    char left[64], right[160], seconds[FORMAT_SIZE], all[FORMAT_SIZE];
    snprintf(left, sizeof left, "%s %g\u00d7", about->playing ? "\u25b8 playing" : "\u2016 stopped",
             about->speed);
    format_duration(seconds, about->seconds);
    format_duration(all, about->all);
    if (about->reading && isfinite(about->read))
        snprintf(right, sizeof right, "reading the record: %2.0f %%", 100 * about->read);
    else
        snprintf(right, sizeof right, "%s of %s", seconds, all);
    int margin = box.cols >= 24 ? 1 : 0, col = box.col + margin, end = box.col + box.cols - margin;
    canvas_text(canvas, box.row, col, end - col, about->playing ? STYLE_GOOD : STYLE_PLAIN, left);
    int width = text_width(right), from = col + 18, to = end - (width > 22 ? width : 22) - 2;
    if (col + text_width(left) + 2 + width <= end)
        canvas_text_right(canvas, box.row, end, width, STYLE_FAINT, right);
    int done = (int)lround(about->at * (to - from));
    for (int i = 0; i < to - from; i++)
        canvas_put(canvas, box.row, from + i, i < done ? 0x2501 : 0x2500,
                   i < done ? STYLE_PLAIN : STYLE_FAINT);
}

static void draw_message(struct app *app, struct canvas *canvas, const struct frame_layout *frame,
                         const struct run_state *state, double now) {
    struct box box = frame->message;
    char text[600];
    if (app->mode == MODE_PROMPT || app->mode == MODE_FILTER) {
        bool filter = app->mode == MODE_FILTER;
        prompt_draw(filter ? &app->filter : &app->prompt, canvas, box, filter ? "/" : ":");
        return;
    }
    enum style style;
    if (app->mode == MODE_CONFIRM_STOP) {
        snprintf(text, sizeof text,
                 "stop the run? It saves a checkpoint and ends.   y stops, any other key does not");
        style = STYLE_STRONG;
    } else if (app->message.until > now) {
        snprintf(text, sizeof text, "%s", app->message.text);
        style = app->message.style;
    } else {
        style = standing_text(app, state, text, sizeof text);
        if (!*text && app->about.replay)
            draw_record(app, canvas, box);
        if (!*text)
            return;
    }
    canvas_fill(canvas, box.row, box.col, box.cols, ' ', style == STYLE_BANNER ? STYLE_BANNER : STYLE_PLAIN);
    int margin = box.cols >= 24 ? 1 : 0;
    canvas_text(canvas, box.row, box.col + margin, box.cols - 2 * margin, style, text);
}

struct hint {
    char keys[32];
    const char *label;
    bool current;
    int rank; /* the highest goes first when there is no room */
};

/* The footer's hints, and the action whose key stands beside the first one's. */
static const struct {
    enum action action, other;
    int rank;
    bool orders; /* tells the run what to do */
} hinted[] = {
    {ACTION_TOWERS, ACTION_NONE, 7, false},
    {ACTION_LOG, ACTION_NONE, 6, false},
    {ACTION_PAUSE, ACTION_NONE, 2, true},
    {ACTION_MORE_TOWERS, ACTION_FEWER_TOWERS, 4, true},
    {ACTION_STEP, ACTION_NONE, 5, true},
    {ACTION_PLAY, ACTION_NONE, 2, false},
    {ACTION_BACK, ACTION_ON, 4, false},
    {ACTION_FASTER, ACTION_SLOWER, 5, false},
    {ACTION_NEXT_MARKER, ACTION_LAST_MARKER, 6, false},
    {ACTION_PROMPT, ACTION_NONE, 3, false},
    {ACTION_HELP, ACTION_NONE, 0, false},
    {ACTION_LEAVE, ACTION_NONE, 1, false},
};
enum { HINTS = sizeof hinted / sizeof *hinted };

static const char *hint_label(const struct app *app, const struct key_binding *binding,
                              const struct run_state *state) {
    if (binding->action == ACTION_PAUSE && !strcmp(state->phase, "paused"))
        return "resume";
    if (binding->action == ACTION_PLAY && app->about.playing)
        return "stop";
    return binding->label;
}

static bool hint_is_current(const struct app *app, enum action action) {
    if (action == ACTION_HELP || app->help)
        return action == ACTION_HELP && app->help;
    return action == (app->screen == SCREEN_LOG ? ACTION_LOG : ACTION_TOWERS);
}

static int collect_hints(const struct app *app, const struct run_state *state, struct hint hints[HINTS]) {
    const struct keymap *keymap = &app->options.keymap;
    bool commands = !app->options.watch && !state->ended && !state->crashed;
    int count = 0;
    for (int i = 0; i < HINTS; i++) {
        const struct key_binding *binding = keymap_binding(keymap, hinted[i].action);
        if (!binding || !(binding->where & where(app)) || (hinted[i].orders && !commands))
            continue;
        char name[16], other[16] = "";
        press_name(binding->keys[0], name);
        if (hinted[i].other != ACTION_NONE)
            press_name(keymap_binding(keymap, hinted[i].other)->keys[0], other);
        struct hint *hint = &hints[count++];
        snprintf(hint->keys, sizeof hint->keys, "%s%s%s", name, *other ? " " : "", other);
        hint->label = hint_label(app, binding, state);
        hint->current = hint_is_current(app, binding->action);
        hint->rank = hinted[i].rank;
    }
    return count;
}

static int hint_cols(const struct hint *hint) {
    return text_width(hint->keys) + 1 + text_width(hint->label);
}

static void draw_footer(const struct app *app, struct canvas *canvas, struct box box,
                        const struct run_state *state) {
    struct hint hints[HINTS];
    int count = collect_hints(app, state, hints), gap = box.cols >= 100 ? 3 : 2;
    int margin = box.cols >= 24 ? 1 : 0, room = box.cols - 2 * margin;
    for (;;) { /* the least important go until the rest fits */
        int sum = 0, worst = 0;
        for (int i = 0; i < count; i++) {
            sum += hint_cols(&hints[i]) + (i ? gap : 0);
            worst = hints[i].rank > hints[worst].rank ? i : worst;
        }
        if (sum <= room || count == 0)
            break;
        memmove(hints + worst, hints + worst + 1, (size_t)(--count - worst) * sizeof *hints);
    }
    int col = box.col + margin;
    for (int i = 0; i < count; i++) {
        int begin = col;
        col += canvas_text(canvas, box.row, col, room, STYLE_KEY, hints[i].keys) + 1;
        col += canvas_text(canvas, box.row, col, room, STYLE_FAINT, hints[i].label);
        if (hints[i].current)
            canvas_restyle(canvas, (struct box){box.row, begin, 1, col - begin}, STYLE_SELECTED);
        col += gap;
    }
}

double app_draw(struct app *app, struct canvas *canvas, const struct run_state *state, uint64_t generation,
                double now) {
    hear_command(app, state, now);
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
    scene_rule(canvas, frame.rule);
    header_draw(&scene, frame.header, app->run, canvas->rows == 1);
    if (app->help)
        help_view_draw(&app->help_view, canvas, &app->options.keymap, where(app), frame.body);
    else if (app->screen == SCREEN_LOG)
        log_view_draw(&app->log, &scene, frame.body);
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
