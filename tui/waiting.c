#include "tui/waiting.h"

#include <stdio.h>

#include "tui/format.h"

enum { LINES = 4 };

static int describe(const struct scene *scene, char lines[LINES][160]) {
    const struct run_state *state = scene->state;
    const struct event_run_start *start = &state->run_start.run_start;
    int n = 0;
    if (state->crashed || state->ended)
        snprintf(lines[n++], sizeof lines[0], "the run ended before its first step");
    else if (state->run_start.kind == EVENT_RUN_START)
        snprintf(lines[n++], sizeof lines[0], "waiting for the first step");
    else
        snprintf(lines[n++], sizeof lines[0], "waiting for %s",
                 scene->waiting ? scene->waiting : "the first event");
    if (state->run_start.kind != EVENT_RUN_START)
        return n;
    char count[FORMAT_SIZE];
    format_count(count, start->parameters);
    snprintf(lines[n++], sizeof lines[0], "%s, %s parameters", start->model ? start->model : "a model",
             count);
    format_count(count, start->data_train);
    snprintf(lines[n++], sizeof lines[0], "%s, %s images", start->data_name ? start->data_name : "data",
             count);
    if (start->batch != WIRE_UNKNOWN_INT && start->towers != WIRE_UNKNOWN_INT)
        snprintf(lines[n++], sizeof lines[0], "batch %lld over %lld tower%s", (long long)start->batch,
                 (long long)start->towers, start->towers == 1 ? "" : "s");
    return n;
}

void waiting_draw(const struct scene *scene, struct box box) {
    char lines[LINES][160];
    int count = describe(scene, lines);
    count = count > box.rows ? box.rows : count;
    int row = box.row + (box.rows - count) / 2;
    for (int i = 0; i < count; i++) {
        int width = text_width(lines[i]);
        width = width > box.cols ? box.cols : width;
        canvas_text(scene->canvas, row + i, box.col + (box.cols - width) / 2, width,
                    i ? STYLE_FAINT : STYLE_PLAIN, lines[i]);
    }
}
