#include "tui/view_towers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/format.h"
#include "tui/plot.h"
#include "tui/scroll.h"
#include "tui/towers_table.h"
#include "tui/waiting.h"

void towers_view_init(struct towers_view *view) {
    memset(view, 0, sizeof *view);
    view->cursor = WIRE_UNKNOWN_INT;
}

void towers_view_free(struct towers_view *view) {
    for (int i = 0; i < CURVE_QUANTITIES; i++)
        curves_free(&view->curves[i]);
}

/* ---- filter: "0,2,8-11" */

static bool next_range(const char **text, long *from, long *to) {
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *from = *to = strtol(*text, &end, 10);
    if (*end == '-') {
        *text = end + 1;
        if (**text < '0' || **text > '9')
            return false;
        *to = strtol(*text, &end, 10);
    }
    *text = end;
    while (**text == ',' || **text == ' ')
        ++*text;
    return *from <= *to;
}

enum status towers_filter_check(const char *filter) {
    const char *text = filter;
    long from, to;
    while (*text)
        if (!next_range(&text, &from, &to))
            return status_fail(STATUS_BAD_INPUT,
                               "towers are given as numbers and ranges: 0,2,8-11 (found \"%s\")", filter);
    return STATUS_OK;
}

bool towers_filter_passes(const char *filter, int tower) {
    long from, to;
    if (!*filter)
        return true;
    while (*filter && next_range(&filter, &from, &to))
        if (tower >= from && tower <= to)
            return true;
    return false;
}

/* ---- keys */

/* The cursor moves by a fiftieth of the axis. */
static void move_cursor(struct towers_view *view, int direction) {
    int64_t from = view->shown_from, to = view->shown_to, by = (to - from) / 50;
    by = by > 1 ? by : 1;
    if (view->cursor == WIRE_UNKNOWN_INT)
        view->cursor = direction < 0 ? to : from;
    else if (direction > 0 && view->cursor >= to)
        view->cursor = WIRE_UNKNOWN_INT;
    else
        view->cursor += direction * by;
    if (view->cursor != WIRE_UNKNOWN_INT)
        view->cursor = view->cursor < from ? from : view->cursor > to ? to : view->cursor;
}

bool towers_view_act(struct towers_view *view, enum action action, const struct run_state *state) {
    if (scroll_act(&view->scroll, view->page, action))
        return true;
    switch (action) {
    case ACTION_PLOT:
        view->focus = !view->focus;
        return true;
    case ACTION_LEFT:
    case ACTION_RIGHT:
        if (state->point_count > 0)
            move_cursor(view, action == ACTION_LEFT ? -1 : 1);
        return true;
    case ACTION_DISMISS:
        if (view->cursor == WIRE_UNKNOWN_INT && !*view->filter)
            return false;
        view->cursor = WIRE_UNKNOWN_INT;
        *view->filter = 0;
        return true;
    default:
        return false;
    }
}

/* ---- the line of remarks */

/* What the run was told, or befell it, around the cursor: no step lies between two of its places. */
static int describe_markers(const struct towers_view *view, const struct run_state *state, char *out,
                            size_t size) {
    int64_t by = (view->shown_to - view->shown_from) / 50, around = by > 1 ? by / 2 : 0;
    int n = 0;
    for (int64_t i = 0; i < state->marker_count && (size_t)n + 1 < size; i++) {
        const struct state_marker *marker = &state->markers[i];
        bool near = marker->step >= view->cursor - around && marker->step <= view->cursor + around;
        if (near && marker->text && *marker->text)
            n += snprintf(out + n, size - (size_t)n, "%s%s", n ? ", " : "   ", marker->text);
    }
    return n < (int)size ? n : (int)size - 1;
}

static void describe_cursor(const struct towers_view *view, const struct scene *scene, char *out,
                            size_t size) {
    const struct run_state *state = scene->state;
    int64_t low = 0, high = state->point_count - 1;
    while (low < high) { /* the last point not beyond the cursor */
        int64_t middle = (low + high + 1) / 2;
        if (state->points[middle].step <= view->cursor)
            low = middle;
        else
            high = middle - 1;
    }
    const struct state_curve_point *point = &state->points[low];
    char step[FORMAT_SIZE], loss[FORMAT_SIZE], norm[FORMAT_SIZE], value[FORMAT_SIZE];
    format_count(step, point->step);
    format_fixed(loss, point->loss, 6, 4);
    format_short(norm, point->grad_norm, 4);
    int n = snprintf(out, size, "at step %s   loss %s   |g| %s", step, loss, norm);
    n += describe_markers(view, state, out + n, size - (size_t)n);
    n += snprintf(out + n, size - (size_t)n, "   towers");
    for (int i = 0; i < point->tower_count && i < 16 && n > 0 && (size_t)n < size; i++) {
        format_fixed(value, state_tower_value(state->tower_points[point->first_tower + i].loss), 6, 4);
        n += snprintf(out + n, size - (size_t)n, "  %s", value);
    }
}

/* What has no room is left out as a whole: a figure that is cut reads as another one. */
static void leave_out(char *text, int room) {
    static const char rest[] = "  \u2026";
    size_t length = strlen(text), full = length;
    if (text_width(text) <= room)
        return;
    while (length > 0 && (text_width(text) + 3 > room || length + sizeof rest > full)) {
        while (length > 0 && !(text[length - 1] == ' ' && text[length] != ' '))
            length--;
        while (length > 0 && text[length - 1] == ' ')
            length--;
        text[length] = 0;
    }
    memcpy(text + length, rest, sizeof rest);
}

/* The noise scale against the batch: McCandlish et al., "An empirical model of large-batch training", 2018.
 */
static void describe_noise(const struct shown *shown, char *out, size_t size) {
    double noise = shown->step.noise_scale, batch = (double)shown->step.images;
    *out = 0;
    if (!shown->have || !isfinite(noise) || noise <= 0 || shown->step.images == WIRE_UNKNOWN_INT)
        return;
    char text[FORMAT_SIZE], images[FORMAT_SIZE];
    format_short(text, noise, 2);
    format_count(images, shown->step.images);
    const char *is = batch > 2 * noise ? "is past it" : batch < noise / 2 ? "is below it" : "is near it";
    snprintf(out, size, "noise scale \u2248 %.20s: batch %.20s %s", text, images, is);
}

static void draw_note(const struct towers_view *view, const struct scene *scene,
                      const struct towers_layout *at, int *selected) {
    char left[512], right[128];
    enum shown_finding finding = shown_judge(scene->shown, scene->state, left, sizeof left, selected);
    if (at->note.rows <= 0)
        return;
    int col =
        at->columns[COLUMN_WORKER].cols > 0 ? at->columns[COLUMN_WORKER].col : at->columns[COLUMN_TOWER].col;
    int room = at->note.cols - col - 1;
    describe_noise(scene->shown, right, sizeof right);
    if (view->cursor != WIRE_UNKNOWN_INT && scene->state->point_count > 0) {
        describe_cursor(view, scene, left, sizeof left);
        leave_out(left, room);
        canvas_text(scene->canvas, at->note.row, col, room, STYLE_PLAIN, left);
        return;
    }
    static const char with[] = "weight decay is the same in every tower: they share the parameters",
                      without[] = "this model has no weight decay: the loss is the cross-entropy";
    const char *shared = scene->shown->step.weight_decay > 0 ? with : without;
    bool several = scene->shown->have && scene->shown->tower_count > 1;
    if (finding == FINDING_NONE && several && !*view->filter && (int)strlen(shared) <= room)
        snprintf(left, sizeof left, "%s", shared);
    if (finding == FINDING_NONE && *view->filter)
        snprintf(left, sizeof left, "only towers %s are shown", view->filter);
    bool warning = finding == FINDING_WARNING;
    int used =
        canvas_text(scene->canvas, at->note.row, col, room, warning ? STYLE_WARNING : STYLE_FAINT, left);
    if (*right && used + (used ? 4 : 0) + text_width(right) <= room)
        canvas_text(scene->canvas, at->note.row, col + used + (used ? 4 : 0), room - used, STYLE_FAINT,
                    right);
}

/* ---- plots */

static void choose_towers(const struct towers_view *view, const struct scene *scene,
                          struct curves_request *request) {
    int count = 0, towers = scene_towers(scene);
    for (int i = 0; i < towers; i++)
        if (towers_filter_passes(view->filter, i)) {
            if (count < CURVES_TOWERS)
                request->towers[count] = i;
            count++;
        }
    request->tower_count = count <= CURVES_TOWERS ? count : -1;
    if (towers == 1)
        request->tower_count = 0; /* one tower is the average */
}

/* All steps, the last ones, or with a cursor those around it. */
static struct axis step_axis(const struct towers_view *view, const struct scene *scene) {
    const struct run_state *state = scene->state;
    int64_t planned = WIRE_UNKNOWN_INT, first = 1, last = 1;
    if (state->run_start.kind == EVENT_RUN_START)
        planned = state->run_start.run_start.steps;
    if (state->point_count > 0) {
        first = state->points[0].step;
        last = state->points[state->point_count - 1].step;
    }
    int64_t window = scene->preferences->window, end = last;
    if (view->cursor != WIRE_UNKNOWN_INT && window > 0) {
        end = view->cursor + window / 2;
        end = end < first + window ? first + window : end;
        end = end > last ? last : end;
    }
    return axis_steps(first, end, window, planned, end == last && (state->ended || state->crashed));
}

/* What of the plots is not as it begins. */
static void describe_setting(const struct preferences *preferences, bool cursor, char *out, size_t size) {
    const char *word;
    char window[FORMAT_SIZE], steps[64] = "";
    preferences_smoothing(preferences->smoothing, &word);
    format_count(window, preferences->window);
    if (preferences->window > 0)
        snprintf(steps, sizeof steps, cursor ? "%.20s around the cursor" : "last %.20s", window);
    const char *parts[] = {preferences->log_scale ? "log" : "", preferences->smoothing ? word : "", steps};
    *out = 0;
    for (int i = 0; i < 3; i++)
        if (*parts[i])
            snprintf(out + strlen(out), size - strlen(out), "%s%s", *out ? " \u00b7 " : "", parts[i]);
}

static int64_t whole_step(double step) {
    return step < 0x1p63 ? (int64_t)fmax(step, -0x1p63) : INT64_MAX;
}

static void draw_plot(struct towers_view *view, const struct scene *scene, enum curve_quantity quantity,
                      struct box box) {
    struct curves_request request = {.quantity = quantity, .generation = scene->generation};
    request.steps = step_axis(view, scene);
    request.columns = plot_columns(box, scene->canvas->glyphs);
    request.smoothing = preferences_smoothing(scene->preferences->smoothing, NULL);
    choose_towers(view, scene, &request);
    view->shown_from = whole_step(request.steps.low);
    view->shown_to = whole_step(request.steps.high);
    if (scene->state->point_count > 0 &&
        view->shown_to > scene->state->points[scene->state->point_count - 1].step)
        view->shown_to = scene->state->points[scene->state->point_count - 1].step;
    struct curves *curves = &view->curves[quantity];
    if (request.columns <= 0 || !curves_update(curves, scene->state, &request))
        return;
    char setting[96];
    describe_setting(scene->preferences, view->cursor != WIRE_UNKNOWN_INT, setting, sizeof setting);
    bool range = request.tower_count < 0, alone = request.tower_count == 0;
    struct plot plot = {
        .title = quantity == CURVE_LOSS ? "loss" : "gradient norm",
        .legend = quantity == CURVE_LOSS ? (alone   ? ""
                                            : range ? "average, range of the towers"
                                                    : "average, each tower faint")
                                         : (alone   ? ""
                                            : range ? "of the average, mean, range"
                                                    : "of the average, mean, each tower"),
        .setting = setting,
        .curves = curves,
        .log = scene->preferences->log_scale,
        .values = &view->values[quantity],
        .smoothed = request.smoothing > 0,
        .quiet = scene->quiet,
        .cursor = view->cursor,
        .rules = scene->state->rules,
        .markers = scene->state->markers,
        .marker_count = scene->state->marker_count,
    };
    plot_draw(scene->canvas, box, &plot);
}

/* ---- the screen */

static int device_cols(const struct scene *scene) {
    int widest = 0;
    for (int i = 0; i < scene->shown->tower_count && scene->shown->have; i++) {
        int width = text_width(scene->shown->towers[i].device);
        widest = width > widest ? width : widest;
    }
    return widest < 12 ? widest : 12;
}

void towers_view_draw(struct towers_view *view, const struct scene *scene, struct box body) {
    enum { MOST = 4096 };
    int order[MOST], count = 0, towers = scene_towers(scene);
    for (int i = 0; i < towers && i < MOST; i++)
        if (towers_filter_passes(view->filter, i))
            order[count++] = i;
    struct towers_layout at;
    layout_towers(body, count, device_cols(scene), &at);
    view->page = at.scrolling > 1 ? at.scrolling - 1 : 1;
    view->scroll = scroll_within(view->scroll, count - at.scrolling);
    int selected;
    canvas_clip(scene->canvas, body);
    draw_note(view, scene, &at, &selected);
    int digits = towers > 100 ? 3 : towers > 10 ? 2 : 1;
    struct towers_table table = {&at, order, count, view->scroll, selected, digits};
    towers_table_draw(scene, &table);
    scene_rule(scene->canvas, at.plot_rule);
    bool both = at.plot[1].rows > 0;
    if (scene->state->point_count == 0) {
        int top = at.plot_rule.row + 1;
        if (at.plot_rule.rows > 0)
            waiting_draw(scene, (struct box){top, body.col, body.row + body.rows - top, body.cols});
        at.plot[0].rows = at.plot[1].rows = 0;
    }
    for (int i = 0; i < 2; i++)
        if (at.plot[i].rows > 0)
            draw_plot(view, scene, both ? (enum curve_quantity)i : (enum curve_quantity)(view->focus),
                      at.plot[i]);
    canvas_clip(scene->canvas, canvas_whole(scene->canvas));
}
