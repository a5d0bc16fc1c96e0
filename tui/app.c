#include "tui/app_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/wire/command.h"
#include "tui/config.h"

static void open_views(struct app *app) {
    towers_view_init(&app->towers);
    screens_init(&app->screens);
}

static void close_views(struct app *app) {
    towers_view_free(&app->towers);
    screens_free(&app->screens);
}

struct app *app_new(const struct app_options *options) {
    struct app *app = calloc(1, sizeof *app);
    if (!app)
        return NULL;
    app->options = *options;
    snprintf(app->run, sizeof app->run, "%s", options->run ? options->run : "");
    snprintf(app->waiting, sizeof app->waiting, "%s", options->waiting ? options->waiting : "");
    open_views(app);
    return app;
}

void app_free(struct app *app) {
    if (!app)
        return;
    shown_free(&app->shown);
    close_views(app);
    free(app);
}

const char *app_text(const struct app *app) {
    return app->text;
}
const struct app_move *app_move(const struct app *app) {
    return &app->move;
}

static const char *screen_name(const struct app *app, enum screen screen) {
    const struct key_binding *binding = keymap_binding(&app->options.keymap, screens_opening(screen));
    return binding && binding->label ? binding->label : "";
}

const char *app_asking(const struct app *app) {
    return app->asking ? screen_name(app, app->asking_for) : NULL;
}
const char *app_screen(const struct app *app) {
    return screen_name(app, app->screen);
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

unsigned app_where(const struct app *app) {
    return (app->options.replay ? WHERE_REPLAY : WHERE_LIVE) | (app->options.guide ? WHERE_GUIDED : 0) |
           screens_where(app->screen);
}

/* ---- keys */

static enum app_wish move(struct app *app, enum feed_move to, double amount) {
    app->move = (struct app_move){to, amount};
    app->message.until = 0; /* of the move before, that there was no place to go to */
    return APP_MOVE;
}

/* A setting that nobody has: the run's are named, and the console's beside them. */
static void say_wrong(struct app *app, double now) {
    char words[512];
    int length = snprintf(words, sizeof words, "%s", status_text());
    const char *key;
    if (strstr(words, "no setting \"") == words)
        for (int i = 0; (key = preferences_key(i, NULL)) != NULL && length < (int)sizeof words; i++)
            length += snprintf(words + length, sizeof words - (size_t)length, "%s%s",
                               i ? ", " : "; the console has ", key);
    app_say(app, STYLE_WARNING, words, now);
}

static void ask_to_stop(struct view_orders *orders, bool discard) {
    snprintf(orders->question, sizeof orders->question,
             "stop the run? It %s.   y stops it, any other key does not",
             discard ? "ends, saved or not" : "saves and ends");
}

static enum app_wish entered(struct app *app, const struct run_state *state, double now) {
    const char *text = app->prompt.text + strspn(app->prompt.text, " :"); /* "::to" from a habit */
    double number;
    bool taken;
    char said[256], step[40], more;
    app->mode = MODE_KEYS;
    if (!*text)
        return APP_NOTHING;
    app->message.until = 0; /* what was said of an older command */
    if (!strcmp(text, "q") || !strcmp(text, "quit"))
        return APP_LEAVE;
    if (!strcmp(text, "help") || !strcmp(text, "budget")) {
        *(*text == 'h' ? &app->help : &app->show_budget) ^= true;
        return APP_NOTHING;
    }
    if (app->options.replay && sscanf(text, "goto %39s %c", step, &more) == 1 && text_real(step, &number))
        return move(app, MOVE_STEP, number);
    enum status status =
        config_line(text, &app->options.preferences, &app->options.keymap, &taken, said, sizeof said);
    struct command parsed;
    if (status == STATUS_OK && taken) {
        app_say(app, STYLE_GOOD, said, now);
        return APP_RESTYLE;
    }
    if (status == STATUS_OK && app->options.replay) {
        app_say(app, STYLE_WARNING,
                "this is a record: a command changes nothing in it. There are goto STEP, set KEY VALUE, "
                "key ACTION KEY, budget, help and quit",
                now);
        return APP_NOTHING;
    }
    if (status == STATUS_OK)
        status = command_parse(text, &parsed);
    if (status != STATUS_OK) {
        say_wrong(app, now);
        return APP_NOTHING;
    }
    bool applies = parsed.kind == COMMAND_WHY && parsed.why == WHY_APPLY;
    if (parsed.kind != COMMAND_PHASE && parsed.kind != COMMAND_STOP && !parsed.rewind && !applies)
        return app_command(app, state, now, parsed.text);
    struct view_orders orders = {.count = 0}; /* as by its key */
    orders_add(&orders, "%s", parsed.text);
    if (applies)
        why_ask_to_apply(parsed.name, app->screen == SCREEN_WHY, &orders);
    if (parsed.kind == COMMAND_STOP)
        ask_to_stop(&orders, parsed.discard);
    else if (parsed.rewind)
        why_ask_to_rewind(state, &orders);
    return app_order(app, &orders, state, now);
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
    case ACTION_WHY_NEXT:
        return move(app, MOVE_PHASE, 1);
    case ACTION_WHY_BACK:
        return move(app, MOVE_PHASE, -1);
    case ACTION_NEXT_MARKER:
        return move(app, MOVE_MARKER, 1);
    case ACTION_LAST_MARKER:
        return move(app, MOVE_MARKER, -1);
    default:
        return APP_NOTHING;
    }
}

/* Take away what stands on the message line; without anything there the key is the screen's. */
static enum app_wish dismiss(struct app *app, const struct run_state *state, double now) {
    struct view_orders orders = {.count = 0};
    struct standing standing = standing_find(state, &app->about);
    if (standing.request)
        return app_control(app, "refuse");
    if (app->message.until > now)
        app->message.until = 0;
    else if (!view_act(app, ACTION_DISMISS, state, &orders))
        app->dismissed = standing;
    return APP_NOTHING;
}

/* Who turns once too often still reads the page. A page that is longer than the screen is turned in itself
 * first. */
static enum app_wish turn_page(struct app *app, bool on, double now) {
    const struct guide *guide = app->options.guide;
    if (on ? app->guide_row + app->guide_rows < app->guide_all : app->guide_row > 0) {
        int row = app->guide_row + (on ? app->guide_rows : -app->guide_rows);
        app->guide_row = row < 0 ? 0 : row;
        return APP_NOTHING;
    }
    bool end = on ? guide->done : guide->part <= 1;
    if (end)
        app_say(app, STYLE_PLAIN, on ? "this was the last page: q leaves" : "this is the first page", now);
    return end ? APP_NOTHING : on ? APP_GO_ON : APP_GO_BACK;
}

static enum app_wish act(struct app *app, enum action action, const struct run_state *state, double now) {
    struct preferences *preferences = &app->options.preferences;
    struct view_orders orders = {.count = 0};
    if (screens_opened(action) != SCREENS) {
        app_open_screen(app, screens_opened(action), state);
        return app_due(app, state, now);
    }
    switch (action) {
    case ACTION_HELP:
        app->help = true;
        break;
    case ACTION_GUIDE_ON:
    case ACTION_GUIDE_BACK:
        return turn_page(app, action == ACTION_GUIDE_ON, now);
    case ACTION_PAUSE:
        return app_command(app, state, now, !strcmp(state->phase, "paused") ? "resume" : "pause");
    case ACTION_STEP:
        return app_command(app, state, now, "step");
    case ACTION_MORE_TOWERS:
        return app_change_towers(app, state, now, 1);
    case ACTION_FEWER_TOWERS:
        return app_change_towers(app, state, now, -1);
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
        return app_ask_control(app, state, now);
    case ACTION_REPAINT:
        return APP_REPAINT;
    case ACTION_LEAVE:
        return APP_LEAVE;
    case ACTION_STOP:
        orders_add(&orders, "stop");
        ask_to_stop(&orders, false);
        return app_order(app, &orders, state, now);
    case ACTION_DISMISS:
        return dismiss(app, state, now);
    default:
        if (!view_act(app, action, state, &orders))
            return app->options.replay ? act_on_record(app, action) : APP_NOTHING;
        return app_order(app, &orders, state, now);
    }
    return APP_NOTHING;
}

/* With the help open only its own keys act, whatever they mean elsewhere. */
static enum app_wish help_key(struct app *app, int key, const struct run_state *state, double now) {
    static const struct {
        int key;
        enum action action;
    } own[] = {
        {PRESS_UP, ACTION_UP},           {PRESS_DOWN, ACTION_DOWN},
        {PRESS_PAGE_UP, ACTION_PAGE_UP}, {PRESS_PAGE_DOWN, ACTION_PAGE_DOWN},
        {' ', ACTION_PAGE_DOWN},         {PRESS_HOME, ACTION_HOME},
        {PRESS_END, ACTION_END},         {PRESS_ENTER, ACTION_HELP},
        {PRESS_ESCAPE, ACTION_HELP},
    };
    enum action action = ACTION_NONE;
    for (size_t i = 0; i < sizeof own / sizeof *own && action == ACTION_NONE; i++)
        action = own[i].key == key ? own[i].action : ACTION_NONE;
    if (action == ACTION_NONE)
        action = keymap_action(&app->options.keymap, key, app_where(app));
    bool asked = standing_find(state, &app->about).request; /* the message line names their keys */
    if (asked && (action == ACTION_CONTROL || key == 'x'))
        return act(app, action, state, now);
    if (action == ACTION_HELP || action == ACTION_LEAVE || action == ACTION_DISMISS)
        app->help = false;
    else if (action == ACTION_REPAINT)
        return APP_REPAINT;
    else
        (void)help_view_act(&app->help_view, action);
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
        return app_confirm(app, key, state, now);
    if (app->help)
        return help_key(app, key, state, now);
    return act(app, keymap_action(&app->options.keymap, key, app_where(app)), state, now);
}

void app_follow_guide(struct app *app, const struct run_state *state, double now) {
    const struct guide *guide = app->options.guide;
    if (!guide)
        return;
    if (guide->returns != app->returns) {
        close_views(app);
        open_views(app);
        app->screen = SCREEN_TOWERS;
        app->message.until = 0; /* of what the run before was asked */
        app->wanted_towers = 0;
        app->guided = 0;
        app->returns = guide->returns;
    }
    while (guide->keys[app->guided]) {
        char key = guide->keys[app->guided++];
        int press = key == '<' ? PRESS_LEFT : key == '>' ? PRESS_RIGHT : key;
        (void)act(app, keymap_action(&app->options.keymap, press, app_where(app)), state, now);
    }
}
