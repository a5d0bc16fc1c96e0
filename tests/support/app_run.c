#include "tests/support/app_run.h"

#include "tests/support/cmocka.h"
#include "tests/support/stream.h"

struct run_state *app_run_state(const char *phase, int towers) {
    struct stream_script script = {.towers = towers, .steps = 20, .frozen = phase};
    struct run_state *state = stream_state(&script);
    assert_non_null(state);
    return state;
}

void app_run_open(struct app_run *run, struct run_state *state, int rows, int cols, struct guide *guide) {
    struct app_options options = {.run = "quiet-harbor", .guide = guide};
    preferences_default(&options.preferences);
    keymap_default(&options.keymap);
    *run = (struct app_run){state, app_new(&options), canvas_new(rows, cols)};
    assert_true(run->state && run->app && run->canvas);
}

void app_run_close(struct app_run *run) {
    canvas_free(run->canvas);
    app_free(run->app);
    state_free(run->state);
}

void app_run_control(struct app_run *run, bool yours) {
    struct event control = event_new(EVENT_CONTROL);
    control.control.holder_user = "ada";
    control.control.yours = yours;
    assert_int_equal(state_apply(run->state, &control), STATUS_OK);
}

void app_run_draw(struct app_run *run, double now) {
    app_draw(run->app, run->canvas, run->state, 1, now);
}

void app_run_row(const struct canvas *canvas, int row, char *out) {
    for (int col = 0; col < canvas->cols; col++) {
        uint32_t rune = canvas->cells[row * canvas->cols + col].rune;
        out[col] = rune < 127 ? (char)rune : '?';
    }
    out[canvas->cols] = 0;
}
