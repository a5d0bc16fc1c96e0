#include "tui/view_log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/format.h"

bool log_view_act(struct log_view *view, enum action action) {
    switch (action) {
    case ACTION_UP:
        view->up++;
        return true;
    case ACTION_DOWN:
        view->up--;
        return true;
    case ACTION_PAGE_UP:
        view->up += view->page;
        return true;
    case ACTION_PAGE_DOWN:
        view->up -= view->page;
        return true;
    case ACTION_HOME:
        view->up = INT64_MAX / 2;
        return true;
    case ACTION_END:
        view->up = 0;
        return true;
    case ACTION_DISMISS:
        if (!*view->filter)
            return false;
        *view->filter = 0;
        return true;
    default:
        return false;
    }
}

/* What a screen asked for only to draw what it shows is there for those who look for it. */
static bool passes(const struct log_view *view, const struct state_log_line *line) {
    return *view->filter ? strcasestr(line->text, view->filter) != NULL : !line->quiet;
}

/* Columns of a line: time, step, mark, words. A run over several days shows the date too. */
struct log_columns {
    int time, time_cols, step_end, text, text_cols;
    bool dates;
};

static struct log_columns columns_of(const struct run_state *state, int cols) {
    struct log_columns at = {.time = cols >= 24 ? 1 : 0};
    at.dates = state->log_count > 0 && state->last_time - state->log[0].time > 86400;
    int col = at.time;
    if (cols >= 40) {
        at.time_cols = at.dates ? 11 : 8;
        col += at.time_cols + 2;
    }
    if (cols >= 60) {
        col += 9;
        at.step_end = col;
        col += 2;
    }
    at.text = col + 2;
    at.text_cols = cols - at.text - 1 > 1 ? cols - at.text - 1 : 1;
    return at;
}

static int rows_of(const char *text, int cols) {
    int rows = 0;
    do {
        text += text_fit(text, cols);
        rows++;
    } while (*text);
    return rows;
}

/* One line of the log, its first row at `row`. */
static void draw_line(const struct scene *scene, const struct log_columns *at, int row,
                      const struct state_log_line *line) {
    static const enum style styles[LEVELS] = {
        [LEVEL_INFO] = STYLE_PLAIN, [LEVEL_WARNING] = STYLE_WARNING, [LEVEL_ERROR] = STYLE_ALARM};
    static const char *const marks[LEVELS] = {
        [LEVEL_INFO] = " ", [LEVEL_WARNING] = "!", [LEVEL_ERROR] = "\u00d7"};
    struct canvas *canvas = scene->canvas;
    char text[FORMAT_SIZE];
    if (at->time_cols > 0) {
        format_time(text, line->time, at->dates);
        canvas_text(canvas, row, at->time, at->time_cols, STYLE_FAINT, text);
    }
    if (at->step_end > 0 && line->step != WIRE_UNKNOWN_INT) {
        format_count(text, line->step);
        canvas_text_right(canvas, row, at->step_end, 9, STYLE_FAINT, text);
    }
    enum style style = line->quiet ? STYLE_FAINT : styles[line->level];
    canvas_text(canvas, row, at->text - 2, 1, style, marks[line->level]);
    for (const char *rest = line->text; *rest; row++) {
        char part[512];
        size_t bytes = text_fit(rest, at->text_cols);
        snprintf(part, sizeof part, "%.*s", (int)bytes, rest);
        canvas_text(canvas, row, at->text, at->text_cols + 1, style, part);
        rest += bytes;
    }
}

static void draw_head(const struct log_view *view, const struct scene *scene, const struct log_columns *at,
                      struct box box, int64_t found) {
    struct canvas *canvas = scene->canvas;
    if (at->step_end > 0) {
        canvas_text(canvas, box.row, at->time, at->time_cols, STYLE_FAINT, "time");
        canvas_text_right(canvas, box.row, at->step_end, 9, STYLE_FAINT, "step");
        canvas_text(canvas, box.row, at->text, 20, STYLE_FAINT, "what happened");
    }
    int64_t quiet = 0;
    for (int64_t i = 0; i < scene->state->log_count; i++)
        quiet += scene->state->log[i].quiet;
    char text[160], below[40] = "", others[64] = "", filter[80] = "";
    const char *dropped = scene->state->log_dropped > 0 ? "the last " : "";
    int end = box.cols - (box.cols >= 24), room = end - (at->step_end > 0 ? at->text + 13 + 2 : 1);
    if (view->up > 0)
        snprintf(below, sizeof below, ", %lld below", (long long)view->up);
    if (*view->filter)
        snprintf(filter, sizeof filter, " with \"%s\"", view->filter);
    else if (quiet > 0)
        snprintf(others, sizeof others, ", and %lld of screens%s", (long long)quiet,
                 box.cols >= 100 ? " (/ finds them)" : "");
    for (int least = 0; least < 3; least++) { /* what matters least goes first */
        snprintf(text, sizeof text, "%s%lld lines%s%s%s", least < 2 ? dropped : "", (long long)found, filter,
                 least < 1 ? others : "", below);
        if (text_width(text) <= room)
            break;
    }
    canvas_text_right(canvas, box.row, end, room, STYLE_FAINT, text);
}

/* How far one may scroll up: until the oldest line stands at the top. */
static int64_t most_up(const struct log_view *view, const struct run_state *state, int rows, int text_cols,
                       int64_t found) {
    int64_t fit = 0;
    for (int64_t i = 0; i < state->log_count; i++) {
        if (!passes(view, &state->log[i]))
            continue;
        rows -= rows_of(state->log[i].text, text_cols);
        if (rows < 0)
            break;
        fit++;
    }
    return fit < found ? found - (fit ? fit : 1) : 0;
}

void log_view_draw(struct log_view *view, const struct scene *scene, struct box body) {
    const struct run_state *state = scene->state;
    int head = body.rows >= 4, rows = body.rows - head;
    if (rows <= 0)
        return;
    struct log_columns at = columns_of(state, body.cols);
    int64_t found = 0;
    for (int64_t i = 0; i < state->log_count; i++)
        found += passes(view, &state->log[i]);
    int64_t most = most_up(view, state, rows, at.text_cols, found);
    view->page = rows > 1 ? rows - 1 : 1;
    view->up = view->up < 0 ? 0 : view->up > most ? most : view->up;
    canvas_clip(scene->canvas, body);
    int bottom = body.row + body.rows, top = body.row + head;
    if (head)
        draw_head(view, scene, &at, (struct box){body.row, body.col, 1, body.cols}, found);
    /* From the newest back, upwards; what does not reach the top then stands at the top. */
    int64_t first = state->log_count, skip = view->up, used = 0;
    for (int64_t i = state->log_count - 1; i >= 0 && used < rows; i--) {
        if (!passes(view, &state->log[i]) || skip-- > 0)
            continue;
        used += rows_of(state->log[i].text, at.text_cols);
        first = i;
    }
    int row = used > rows ? bottom - (int)used : top;
    canvas_clip(scene->canvas, (struct box){top, body.col, rows, body.cols});
    for (int64_t i = first; i < state->log_count && row < bottom; i++) {
        if (!passes(view, &state->log[i]))
            continue;
        draw_line(scene, &at, row, &state->log[i]);
        row += rows_of(state->log[i].text, at.text_cols);
    }
    if (found == 0)
        canvas_text(scene->canvas, top, 1, body.cols - 1, STYLE_FAINT,
                    *view->filter ? "nothing in the log holds that; esc shows all"
                                  : "nothing has happened yet");
    canvas_clip(scene->canvas, canvas_whole(scene->canvas));
}
