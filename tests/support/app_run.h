/* A console on a run that is made up, without a terminal, for tests. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_APP_RUN_H
#define TOWERSCOPE_TESTS_SUPPORT_APP_RUN_H

#include "engine/wire/state.h"
#include "tui/app.h"
#include "tui/canvas.h"

struct app_run {
    struct run_state *state;
    struct app *app;
    struct canvas *canvas;
};

/* 20 steps, and the 21st stands after a phase; "update": it is whole (tests/support/stream.h). To
 * state_free(). */
struct run_state *app_run_state(const char *phase, int towers);

/* A console of default preferences on a state, which is the app_run's from here on; guide may be NULL. */
void app_run_open(struct app_run *run, struct run_state *state, int rows, int cols, struct guide *guide);
void app_run_close(struct app_run *run);

/* The console is told that control is its own, or another's. */
void app_run_control(struct app_run *run, bool yours);

void app_run_draw(struct app_run *run, double now);

/* A row of a canvas, other runes than ASCII's as '?'; out has room for its columns and a 0. */
void app_run_row(const struct canvas *canvas, int row, char *out);

#endif
