#include "tui/scene.h"

#include <string.h>

#include "tui/rune.h"

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
        {"training", RUNE_DISC, STYLE_GOOD},  {"paused", RUNE_PAUSE, STYLE_WARNING},
        {"starting", RUNE_RING, STYLE_PLAIN}, {"evaluating", RUNE_DISC, STYLE_PLAIN},
        {"saving", RUNE_DISC, STYLE_PLAIN},   {"ended", RUNE_SQUARE, STYLE_PLAIN},
        {"crashed", RUNE_CROSS, STYLE_ALARM}, {"waiting", RUNE_RING, STYLE_PLAIN},
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
    *glyph = RUNE_RING;
    *style = STYLE_PLAIN;
    return phase;
}

void scene_rule(struct canvas *canvas, struct box box) {
    if (box.rows > 0)
        canvas_fill(canvas, box.row, box.col, box.cols, RUNE_LINE, STYLE_FAINT);
}
