#include "tui/scene.h"

#include <string.h>

int scene_towers(const struct scene *scene) {
    if (scene->shown->have)
        return scene->shown->tower_count;
    const struct event *start = &scene->state->run_start;
    if (start->kind != EVENT_RUN_START || start->run_start.towers == WIRE_UNKNOWN_INT ||
        start->run_start.towers < 0)
        return 0;
    return start->run_start.towers < 4096 ? (int)start->run_start.towers : 4096;
}

const char *scene_phase(const struct run_state *state, uint32_t *glyph, enum style *style) {
    static const struct {
        const char *phase;
        uint32_t glyph;
        enum style style;
    } phases[] = {
        {"training", 0x25cf, STYLE_GOOD},  {"paused", 0x2016, STYLE_WARNING},
        {"starting", 0x25cb, STYLE_PLAIN}, {"evaluating", 0x25cf, STYLE_PLAIN},
        {"saving", 0x25cf, STYLE_PLAIN},   {"ended", 0x25a0, STYLE_PLAIN},
        {"crashed", 0x00d7, STYLE_ALARM},  {"waiting", 0x25cb, STYLE_PLAIN},
    };
    const char *phase = state->crashed  ? "crashed"
                        : state->ended  ? "ended"
                        : *state->phase ? state->phase
                                        : "waiting";
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        if (!strcmp(phases[i].phase, phase)) {
            *glyph = phases[i].glyph;
            *style = phases[i].style;
            return phase;
        }
    *glyph = 0x25cb;
    *style = STYLE_PLAIN;
    return phase;
}

void scene_rule(struct canvas *canvas, struct box box) {
    if (box.rows > 0)
        canvas_fill(canvas, box.row, box.col, box.cols, 0x2500, STYLE_FAINT);
}
