#include "tui/view_devices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/format.h"
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
    char a[FORMAT_SIZE], b[FORMAT_SIZE];
    format_bytes(a, (double)used);
    format_bytes(b, (double)total);
    snprintf(out, size, "%s of %s", used == WIRE_UNKNOWN_INT ? "unknown" : a,
             total == WIRE_UNKNOWN_INT ? "unknown" : b);
}

/* The newest live event on a device; NULL: none came (a record has none). */
static const struct event_device *live_of(const struct run_state *state, const char *device) {
    for (int64_t i = 0; i < state->device_count && device; i++)
        if (state->devices[i].device.device && !strcmp(state->devices[i].device.device, device))
            return &state->devices[i].device;
    return NULL;
}

static int draw_devices(const struct scene *scene, struct box box) {
    struct canvas *canvas = scene->canvas;
    const struct event_run_start *start = &scene->state->run_start.run_start;
    int row = box.row;
    canvas_text(canvas, row++, box.col, box.cols, STYLE_FAINT,
                "device   memory               use      temperature  power    clock     name");
    if (scene->state->run_start.kind != EVENT_RUN_START)
        return row - box.row;
    for (int64_t i = 0; i < start->device_count && row < box.row + box.rows; i++) {
        const struct event_run_device *d = &start->devices[i];
        const struct event_device *live = live_of(scene->state, d->device);
        double unknown = wire_unknown();
        char memory[128], use[32], temperature[32], power[32], clock[32];
        memory_text(memory, sizeof memory, live ? live->memory_used : WIRE_UNKNOWN_INT,
                    live && live->memory_total != WIRE_UNKNOWN_INT ? live->memory_total : d->memory);
        known(use, sizeof use, live && isfinite(live->utilization) ? 100 * live->utilization : unknown, "%");
        known(temperature, sizeof temperature, live ? live->temperature : unknown, "C");
        known(power, sizeof power, live ? live->power : unknown, "W");
        known(clock, sizeof clock, live ? live->clock : unknown, "MHz");
        canvas_print(canvas, row++, box.col, box.cols, STYLE_PLAIN, "%-8s %-20s %-8s %-12s %-8s %-9s %s",
                     d->device ? d->device : "", memory, use, temperature, power, clock,
                     d->name ? d->name : "");
    }
    return row - box.row;
}

/* ---- the timeline */

static const struct {
    const char *name;
    uint32_t glyph;
    char ascii;
    bool faint;
} parts[TIMES_PARTS] = {{"load", 0x2591, 'l', false},     {"forward", 0x2592, 'f', false},
                        {"backward", 0x2588, 'b', false}, {"wait", 0x00b7, '.', true},
                        {"average", 0x2593, 'a', false},  {"update", 0x2550, 'u', false}};

static void part_at(struct canvas *canvas, int row, int col, int part, enum style hue) {
    canvas_put(canvas, row, col,
               canvas->glyphs == GLYPHS_ASCII ? (uint32_t)parts[part].ascii : parts[part].glyph,
               parts[part].faint       ? STYLE_FAINT
               : part >= TIMES_AVERAGE ? STYLE_STRONG
                                       : hue);
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

static void draw_legend(const struct scene *scene, int row, int col, int cols) {
    int end = col + cols;
    for (int p = 0; p < TIMES_PARTS; p++) {
        int width = 2 + (int)strlen(parts[p].name);
        if (col + width > end)
            return;
        part_at(scene->canvas, row, col, p, STYLE_PLAIN);
        canvas_text(scene->canvas, row, col + 2, width - 2, STYLE_FAINT, parts[p].name);
        col += width + 2;
    }
}

static void draw_timeline(struct devices_view *view, const struct scene *scene, struct box box) {
    struct canvas *canvas = scene->canvas;
    const struct event_step *step = &scene->state->step.step;
    char number[FORMAT_SIZE], text[128];
    double whole = whole_of(step);
    int numbers = box.cols >= 100 ? 36 : 0, bar = box.cols - 12 - numbers, rows = box.rows - 3;
    format_count(number, step->step);
    snprintf(text, sizeof text, "step %s: %.1f ms", number, whole);
    canvas_text(canvas, box.row, box.col, box.cols, STYLE_STRONG, text);
    draw_legend(scene, box.row, box.col + text_width(text) + 4, box.cols - text_width(text) - 4);
    if (numbers)
        canvas_text_right(canvas, box.row + 1, box.col + box.cols, numbers, STYLE_FAINT,
                          "load forward backward    wait  (ms)");
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
            canvas_text_right(canvas, row, box.col + box.cols - 7 - 8 * (3 - p), 8, STYLE_PLAIN, number);
        }
    }
    char average[FORMAT_SIZE], update[FORMAT_SIZE];
    format_short(average, step->average_ms, 3);
    format_short(update, step->update_ms, 3);
    canvas_print(canvas, box.row + box.rows - 1, box.col, box.cols, STYLE_FAINT,
                 "then all together: average %s ms, update %s ms", average, update);
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
