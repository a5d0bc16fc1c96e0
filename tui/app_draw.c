/* A frame: header, the screen, footer, and the one line between them that says what is pressing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/app_parts.h"
#include "engine/base/text.h"
#include "tui/header.h"
#include "tui/layout.h"
#include "tui/scene.h"
#include "tui/waiting.h"

/* With more towers than this their figures change half as often: nobody reads as fast, and a slow line
 * carries it. */
enum { MANY_TOWERS = 8 };

static void draw_words(struct canvas *canvas, struct box box, enum style style, const char *text) {
    int margin = box.cols >= 24 ? 1 : 0;
    canvas_fill(canvas, box.row, box.col, box.cols, ' ', style == STYLE_BANNER ? STYLE_BANNER : STYLE_PLAIN);
    canvas_text(canvas, box.row, box.col + margin, box.cols - 2 * margin, style, text);
}

/* A message that is longer than its line takes some of the rows above it too. */
static void draw_said(struct canvas *canvas, const struct frame_layout *frame, enum style style,
                      const char *text) {
    enum { ROWS = 4 };
    struct box box = frame->message;
    int cols = box.cols - (box.cols >= 24 ? 2 : 0), rows = 0, most = frame->body.rows >= 12 ? ROWS : 1;
    for (const char *at = text; *at && cols > 0 && rows < most; rows++)
        at += text_fit(at, cols);
    box.row -= rows > 1 ? rows - 1 : 0;
    for (; rows > 1; rows--, box.row++) {
        char part[512];
        size_t bytes = text_fit(text, cols);
        snprintf(part, sizeof part, "%.*s", (int)bytes, text);
        draw_words(canvas, box, style, part);
        text += bytes;
    }
    draw_words(canvas, box, style, text);
}

/* What the run is asked to do and has not done yet, by whomever: the newest that tells how far it is, else
 * the newest; "": nothing. */
static void pending_words(const struct run_state *state, char *out, size_t size) {
    const struct event *told = NULL;
    *out = 0;
    for (int64_t i = 0; i < state->pending_count; i++)
        if (!told || state->pending[i].command.reason || !told->command.reason)
            told = &state->pending[i];
    if (!told || state->ended || state->crashed)
        return;
    event_words(told, out, size);
    size_t length = strlen(out);
    if (state->pending_count > 1)
        snprintf(out + length, size - length, "   and %lld more", (long long)state->pending_count - 1);
}

/* What may stand on the message line without being pressing: not where the footer would have to give way. */
static void draw_calm(const struct app *app, struct canvas *canvas, struct box box,
                      const struct run_state *state) {
    char text[512], pending[512];
    pending_words(state, pending, sizeof pending);
    if (app->show_budget)
        footer_budget(&app->budget, canvas, box);
    else if (*pending)
        draw_words(canvas, box, STYLE_PLAIN, pending);
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

/* The hint gives way to the text. */
static void draw_standing(struct canvas *canvas, struct box box, const struct standing *standing) {
    char text[720];
    int room = box.cols - (box.cols >= 24 ? 2 : 0);
    int words =
        snprintf(text, sizeof text, "%s%s%s", standing->when, *standing->when ? "  " : "", standing->text);
    snprintf(text + words, sizeof text - (size_t)words, "   (%s)", standing->hint ? standing->hint : "");
    if (!standing->hint || text_width(text) > room)
        text[words] = 0;
    draw_words(canvas, box, standing->style, text);
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
        draw_said(canvas, frame, STYLE_STRONG, app->question.question);
    else if (app->message.until > now && !standing.request)
        draw_said(canvas, frame, app->message.style, app->message.text);
    else if (*standing.text && (standing.request || !standing_same(&standing, &app->dismissed)))
        draw_standing(canvas, box, &standing);
    else if (!frame->message_shares_footer || app->show_budget)
        draw_calm(app, canvas, box, state);
}

/* "enter or n" */
static void name_keys(const struct app *app, enum action action, char out[40]) {
    const struct key_binding *binding = keymap_binding(&app->options.keymap, action);
    *out = 0;
    for (int k = 0; k < 2; k++) {
        char name[16];
        press_name(binding->keys[k], name);
        snprintf(out + strlen(out), 40 - strlen(out), "%s%s", *name && *out ? " or " : "", name);
    }
}

/* The guide's words from the row that was turned to. */
static const char *guide_words(struct app *app, int cols, int rows) {
    const struct guide *guide = app->options.guide;
    if (app->guide_part != guide->part)
        app->guide_row = 0;
    app->guide_part = guide->part;
    app->guide_rows = rows;
    app->guide_all = text_rows(guide->text, cols);
    if (app->guide_row >= app->guide_all) /* the terminal became wider */
        app->guide_row = app->guide_all > 0 ? app->guide_all - 1 : 0;
    return text_from(guide->text, cols, app->guide_row);
}

/* The guide's words take the lower part of the screen. */
static void draw_guide(struct app *app, struct canvas *canvas, struct frame_layout *frame) {
    const struct guide *guide = app->options.guide;
    int margin = canvas->cols >= 24 ? 1 : 0, cols = canvas->cols - 2 * margin;
    int rows = text_rows(guide->text, cols), body = frame->body.rows;
    int most = body > 12 ? body - 6 : body - 1; /* on a small screen they are what matters */
    rows = rows > most ? most : rows;
    app->guide_all = 0;
    if (rows < 1)
        return;
    const char *text = guide_words(app, cols, rows);
    bool earlier = app->guide_row > 0;
    bool more = app->guide_row + rows < app->guide_all;
    frame->body.rows -= rows + 1;
    struct box box = {frame->body.row + frame->body.rows, 0, 1, canvas->cols};
    scene_rule(canvas, box);
    bool brief = cols < 60;
    char on[40], back[40], leave[40], words[160];
    name_keys(app, ACTION_GUIDE_ON, on);
    name_keys(app, ACTION_GUIDE_BACK, back);
    name_keys(app, ACTION_LEAVE, leave);
    back[strcspn(back, " ")] = 0; /* one is enough */
    int length =
        guide->done && !more
            ? snprintf(words, sizeof words, "%d of %d, the end: %s leaves", guide->part, guide->parts, leave)
            : snprintf(words, sizeof words, "%d of %d: %s %s", guide->part, guide->parts, on,
                       more    ? "reads on"
                       : brief ? "on"
                               : "goes on");
    if (guide->part > 1 || earlier)
        length += snprintf(words + length, sizeof words - (size_t)length,
                           brief ? ", %s back" : ", %s goes back", back);
    if (guide->done && !more && !brief)
        snprintf(words + length, sizeof words - (size_t)length, ", or look around");
    canvas_print(canvas, box.row, margin + 2, cols - 2, STYLE_KEY, " %s ", words);
    for (int i = 0; i < rows; i++, text = text_from(text, cols, 1)) { /* no ellipsis: one reads on */
        char line[sizeof guide->text];
        size_t bytes = text_fit(text, cols);
        snprintf(line, sizeof line, "%.*s", (int)bytes, text);
        canvas_text(canvas, box.row + 1 + i, margin, cols + 1, STYLE_STRONG, line);
    }
}

static void draw_footer(const struct app *app, struct canvas *canvas, struct box box,
                        const struct run_state *state) {
    bool ours = state->control.kind != EVENT_CONTROL || state->control.control.yours;
    if (app->help) {
        footer_help(&app->options.keymap, canvas, box);
        return;
    }
    struct footer footer = {
        .keymap = &app->options.keymap,
        .where = app_where(app),
        .current = screens_opening(app->screen),
        .guided = app->options.guide != NULL,
        .guide_done = app->options.guide && app->options.guide->done,
        .commands = !app->options.watch && !state->ended && !state->crashed && ours,
        .paused = !strcmp(state->phase, "paused"),
        .playing = app->about.playing,
    };
    if (!app->options.replay)
        footer_control(state, app->options.watch, footer.control, sizeof footer.control);
    footer_draw(&footer, canvas, box);
}

/* An alarm that has just come stands at once, not when the good news before it has had its time. */
static void hear_alarm(struct app *app, const struct run_state *state) {
    const struct event *alarm = &state->alarm;
    bool error = alarm->kind == EVENT_ALARM && text_is(alarm->alarm.level, "error");
    if (error && alarm->seq != app->alarm_seen && app->message.style == STYLE_GOOD)
        app->message.until = 0;
    app->alarm_seen = alarm->kind == EVENT_ALARM ? alarm->seq : 0;
}

double app_draw(struct app *app, struct canvas *canvas, const struct run_state *state, uint64_t generation,
                double now) {
    double silence = app_hear_nothing(app, state, now);
    hear_alarm(app, state);
    app_hear(app, state, now);
    app_hear_control(app, state, now);
    app_follow_guide(app, state, now);
    struct view_orders orders = {.count = 0};
    bool moving = !strcmp(state->phase, "training");
    double interval = moving ? app->options.preferences.number_interval : 0;
    if (app->shown.tower_count > MANY_TOWERS)
        interval *= 2;
    double next = shown_update(&app->shown, state, generation, now, interval);
    if (state->towers == app->wanted_towers)
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
                          app->quiet,
                          app->options.replay};
    if (app->options.guide)
        draw_guide(app, canvas, &frame);
    if (app_may_command(app, state) && !app->help)
        screens_due(&app->screens, app->screen, &scene, &orders);
    app_queue(app, &orders);
    scene_rule(canvas, frame.rule);
    header_draw(&scene, frame.header, app->run, canvas->rows == 1);
    if (app->help)
        help_view_draw(&app->help_view, canvas, &app->options.keymap, app_where(app), frame.body);
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
    return fmin(next, silence);
}
