/* What a view draws from: the state of the run, the figures held for the eye, how the person wants it. A view
 * keeps its own memory (what is scrolled, the gathered curves) and nothing else. */
#ifndef TOWERSCOPE_TUI_SCENE_H
#define TOWERSCOPE_TUI_SCENE_H

#include "engine/wire/state.h"
#include "tui/canvas.h"
#include "tui/preferences.h"
#include "tui/shown.h"

struct scene {
    struct canvas *canvas;
    const struct run_state *state;
    uint64_t generation; /* another number: another past (a seek) */
    const struct shown *shown;
    const struct preferences *preferences;
    const char *waiting; /* what is waited for before the first event; NULL: not said */
    bool quiet;          /* a slow terminal: draw less */
    bool replay;         /* a record is played */
};

/* Towers there are, from the newest step or, before the first, from the run's start; 0: not known. */
int scene_towers(const struct scene *scene);

/* "training", "paused", ... "crashed"; with the character and the style that stand before it. */
const char *scene_phase(const struct run_state *state, uint32_t *glyph, enum style *style);

/* A rule across the box. */
void scene_rule(struct canvas *canvas, struct box box);

#endif
