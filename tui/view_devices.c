#include "tui/view_devices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "tui/format.h"
#include "tui/legend.h"
#include "tui/rune.h"
#include "tui/times.h"

bool devices_view_act(struct devices_view *view, enum action action) {
    if (action != ACTION_UP && action != ACTION_DOWN && action != ACTION_HOME)
        return false;
    view->scroll += action == ACTION_UP ? -1 : action == ACTION_DOWN ? 1 : -view->scroll;
    return true;
}

/* ---- devices */

static void known(char *out, size_t size, double value, const char *unit) {
    if (wire_is_unknown(value))
        snprintf(out, size, "unknown");
    else
        snprintf(out, size, "%.0f %s", value, unit);
}

static void memory_text(char *out, size_t size, int64_t used, int64_t total) {
    char a[32], b[32];
    snprintf(out, size, "%s of %s", used < 0 ? "unknown" : memory_words((size_t)used, a),
             total < 0 ? "unknown" : memory_words((size_t)total, b));
}

/* The newest live event on a device; NULL: none came (a record has none). */
static const struct event_device *live_of(const struct run_state *state, const char *device) {
    for (int64_t i = 0; i < state->device_count && device; i++)
        if (state->devices[i].device.device && !strcmp(state->devices[i].device.device, device))
            return &state->devices[i].device;
    return NULL;
}

enum { DEVICE, MEMORY, USE, TEMPERATURE, POWER, CLOCK, NAME, CELLS };

static const struct {
    const char *head;
    int least; /* columns, so that nothing moves while figures change */
} cells[CELLS] = {{"device", 8}, {"memory", 21}, {"use", 7}, {"temperature", 11},
                  {"power", 7},  {"clock", 8},   {"name", 4}};

/* The text of one device's cell; whether it is known. */
static bool cell_text(const struct scene *scene, const struct event_run_device *d, int cell, char *out,
                      size_t size) {
    const struct event_device *live = live_of(scene->state, d->device);
    double unknown = wire_unknown();
    int64_t used = live ? live->memory_used : WIRE_UNKNOWN_INT;
    int64_t total = live && live->memory_total != WIRE_UNKNOWN_INT ? live->memory_total : d->memory;
    switch (cell) {
    case DEVICE:
    case NAME:
        snprintf(out, size, "%.100s", cell == NAME ? (d->name ? d->name : "") : d->device ? d->device : "");
        return true;
    case MEMORY:
        memory_text(out, size, used, total);
        return used != WIRE_UNKNOWN_INT || total != WIRE_UNKNOWN_INT;
    case USE:
        known(out, size, live && isfinite(live->utilization) ? 100 * live->utilization : unknown, "%");
        break;
    case TEMPERATURE:
        known(out, size, live ? live->temperature : unknown, "C");
        break;
    case POWER:
        known(out, size, live ? live->power : unknown, "W");
        break;
    default:
        known(out, size, live ? live->clock : unknown, "MHz");
    }
    return strcmp(out, "unknown") != 0;
}

static int columns_sum(const int cols[CELLS]) {
    int sum = 0;
    for (int c = 0; c < CELLS; c++)
        sum += cols[c] + (cols[c] && sum ? 2 : 0);
    return sum;
}

/* How wide the cells are; 0: not there, first what is known of no device, then what has no room. */
static void fit_cells(const struct scene *scene, const struct event_run_start *start, int room,
                      int cols[CELLS]) {
    bool any[CELLS] = {false};
    char text[128];
    for (int c = 0; c < CELLS; c++) {
        cols[c] = cells[c].least;
        for (int64_t i = 0; i < start->device_count; i++) {
            any[c] |= cell_text(scene, &start->devices[i], c, text, sizeof text);
            cols[c] = text_width(text) > cols[c] ? text_width(text) : cols[c];
        }
    }
    for (int c = CLOCK; c >= MEMORY && columns_sum(cols) > room; c--)
        cols[c] = any[c] ? cols[c] : 0;
    int over = columns_sum(cols) - room; /* the name gives way as far as it can */
    cols[NAME] -= over > 0 && cols[NAME] - over >= cells[NAME].least ? over : 0;
    for (int c = NAME; c >= MEMORY && columns_sum(cols) > room; c--)
        cols[c] = 0;
}

static int draw_devices(const struct scene *scene, struct box box) {
    struct canvas *canvas = scene->canvas;
    const struct event_run_start *start = &scene->state->run_start.run_start;
    int row = box.row, cols[CELLS];
    if (scene->state->run_start.kind != EVENT_RUN_START) {
        canvas_text(canvas, row++, box.col, box.cols, STYLE_FAINT, cells[DEVICE].head);
        return row - box.row;
    }
    fit_cells(scene, start, box.cols, cols);
    for (int64_t i = -1; i < start->device_count && row < box.row + box.rows; i++, row++)
        for (int c = 0, col = box.col; c < CELLS; c++) {
            char text[128];
            if (cols[c] == 0)
                continue;
            if (i >= 0)
                (void)cell_text(scene, &start->devices[i], c, text, sizeof text);
            canvas_text(canvas, row, col, cols[c], i < 0 ? STYLE_FAINT : STYLE_PLAIN,
                        i < 0 ? cells[c].head : text);
            col += cols[c] + 2;
        }
    return row - box.row;
}

/* ---- the timeline */

static const struct legend_part parts[TIMES_PARTS] = {{RUNE_LIGHT_SHADE, 'l', STYLE_PLAIN, "load", "load"},
                                                      {RUNE_MEDIUM_SHADE, 'f', STYLE_PLAIN, "forward", "fwd"},
                                                      {RUNE_BLOCK, 'b', STYLE_PLAIN, "backward", "back"},
                                                      {RUNE_DOT, '.', STYLE_FAINT, "wait", "wait"},
                                                      {RUNE_DARK_SHADE, 'a', STYLE_STRONG, "average", "avg"},
                                                      {RUNE_DOUBLE_LINE, 'u', STYLE_STRONG, "update", "upd"}};

static void part_at(struct canvas *canvas, int row, int col, int part, enum style hue) {
    legend_put(canvas, row, col, &parts[part], parts[part].style == STYLE_PLAIN ? hue : parts[part].style);
}

static void draw_bar(const struct scene *scene, int row, int col, int cols, const double ms[TIMES_PARTS],
                     double whole, enum style hue) {
    int edges[TIMES_PARTS + 1];
    times_place(ms, whole, cols, edges);
    for (int p = 0; p < TIMES_PARTS; p++)
        for (int at = edges[p]; at < edges[p + 1]; at++)
            part_at(scene->canvas, row, col + at, p, hue);
}

static double whole_of(const struct event_step *step) {
    double most = 0, ms[TIMES_PARTS];
    for (int64_t k = 0; k < step->tower_count; k++)
        most = fmax(most, times_of(step, &step->towers[k], ms));
    return most;
}

static void draw_timeline(struct devices_view *view, const struct scene *scene, struct box box) {
    struct canvas *canvas = scene->canvas;
    const struct event_step *step = &scene->state->step.step;
    char number[FORMAT_SIZE], text[128];
    double whole = whole_of(step);
    int numbers = box.cols >= 100 ? 38 : 0, bar = box.cols - 12 - numbers, rows = box.rows - 3;
    format_count(number, step->step);
    snprintf(text, sizeof text, "step %s: %.1f ms", number, whole);
    canvas_text(canvas, box.row, box.col, box.cols, STYLE_STRONG, text);
    int after = text_width(text) + 4;
    const struct box lines[] = {{box.row, box.col + after, 1, box.cols - after},
                                {box.row + 1, box.col, 1, box.cols - numbers}};
    legend_draw(canvas, lines, 2, parts, TIMES_PARTS);
    if (numbers)
        canvas_text_right(canvas, box.row + 1, box.col + box.cols, numbers, STYLE_FAINT,
                          "load  forward backward     wait  (ms)");
    int most = (int)step->tower_count - rows;
    view->scroll = view->scroll > most ? most : view->scroll;
    view->scroll = view->scroll < 0 ? 0 : view->scroll;
    for (int i = 0; i < rows && view->scroll + i < step->tower_count; i++) {
        const struct event_step_tower *t = &step->towers[view->scroll + i];
        const double told[] = {t->load_ms, t->forward_ms, t->backward_ms, t->wait_ms};
        double ms[TIMES_PARTS];
        (void)times_of(step, t, ms);
        enum style hue = (enum style)(STYLE_TOWER + t->tower % TOWER_HUES);
        int row = box.row + 2 + i;
        canvas_print(canvas, row, box.col, 11, STYLE_PLAIN, "tower %lld", (long long)t->tower);
        draw_bar(scene, row, box.col + 11, bar, ms, whole, hue);
        for (int p = 0; p < 4 && numbers; p++) {
            format_fixed(number, told[p], 8, 2);
            canvas_text_right(canvas, row, box.col + box.cols - 6 - 9 * (3 - p), 8, STYLE_PLAIN, number);
        }
    }
    char average[FORMAT_SIZE], update[FORMAT_SIZE];
    format_short(average, step->average_ms, 3);
    format_short(update, step->update_ms, 3);
    int shown = step->tower_count < rows ? (int)step->tower_count : rows;
    int row = box.row + 2 + shown + (shown + 1 < rows);
    if (most > 0)
        snprintf(text, sizeof text, "towers %d\u2013%d of %lld; ", view->scroll, view->scroll + shown - 1,
                 (long long)step->tower_count);
    else
        *text = 0;
    canvas_print(canvas, row, box.col, box.cols, STYLE_FAINT, "%s%saverage %s ms, update %s ms", text,
                 box.cols < 52 ? "then " : "then all together: ", average, update);
}

void devices_view_draw(struct devices_view *view, const struct scene *scene, struct box body) {
    int margin = body.cols >= 24 ? 1 : 0;
    struct box box = {body.row, body.col + margin, body.rows, body.cols - 2 * margin};
    canvas_clip(scene->canvas, body);
    int used = draw_devices(scene, box);
    if (box.rows >= used + 6) {
        scene_rule(scene->canvas, (struct box){box.row + used, body.col, 1, body.cols});
        used++;
    }
    box.row += used;
    box.rows -= used;
    if (scene->state->step.kind == EVENT_STEP && box.rows >= 4)
        draw_timeline(view, scene, box);
    else if (box.rows > 0)
        canvas_text(scene->canvas, box.row, box.col, box.cols, STYLE_FAINT, "no step yet");
    canvas_clip(scene->canvas, canvas_whole(scene->canvas));
}
