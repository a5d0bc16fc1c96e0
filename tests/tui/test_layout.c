/* The layout over every size and number of towers: nothing overlaps, nothing lies outside. And the whole
 * scene drawn at sizes from one cell up, in every state a run can be in.
 * test-skip-under: thread (one thread alone) */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/stream.h"
#include "tui/app.h"
#include "tui/layout.h"

static bool within(struct box inner, struct box outer) {
    if (inner.rows <= 0 || inner.cols <= 0)
        return true;
    return inner.row >= outer.row && inner.col >= outer.col &&
           inner.row + inner.rows <= outer.row + outer.rows &&
           inner.col + inner.cols <= outer.col + outer.cols;
}

static bool apart(struct box a, struct box b) {
    if (a.rows <= 0 || a.cols <= 0 || b.rows <= 0 || b.cols <= 0)
        return true;
    return a.row + a.rows <= b.row || b.row + b.rows <= a.row || a.col + a.cols <= b.col ||
           b.col + b.cols <= a.col;
}

static void check_boxes(const struct box *boxes, int count, struct box outer, int rows, int cols,
                        int towers) {
    for (int i = 0; i < count; i++) {
        if (!within(boxes[i], outer))
            fail_msg("%dx%d, %d towers: box %d is outside", rows, cols, towers, i);
        for (int j = 0; j < i; j++)
            if (!apart(boxes[i], boxes[j]))
                fail_msg("%dx%d, %d towers: boxes %d and %d overlap", rows, cols, towers, j, i);
    }
}

static void check_columns(const struct towers_layout *at, int cols) {
    int end = 0;
    for (int c = 0; c < TOWER_COLUMNS; c++) {
        struct column_span span = at->columns[c];
        if (span.cols == 0)
            continue;
        assert_true(span.cols > 0);
        assert_true(span.col >= end + (end > 0));
        assert_true(span.col + span.cols <= cols);
        end = span.col + span.cols;
    }
}

static void check_plot(struct box box, int rows, int cols, int towers) {
    struct plot_layout at;
    layout_plot(box, &at);
    struct box parts[] = {at.caption, at.markers, at.labels, at.area, at.steps};
    check_boxes(parts, 5, box, rows, cols, towers);
}

static void check_size(int rows, int cols, int towers) {
    struct frame_layout frame;
    layout_frame(rows, cols, &frame);
    struct box whole = {0, 0, rows, cols};
    struct box frames[] = {frame.header, frame.rule, frame.body, frame.footer,
                           frame.message_shares_footer ? (struct box){0} : frame.message};
    check_boxes(frames, 5, whole, rows, cols, towers);
    assert_true(within(frame.message, whole));
    struct towers_layout at;
    layout_towers(frame.body, towers, 5, &at);
    struct box boxes[] = {at.heads, at.towers,    at.sum_rule, at.average,
                          at.note,  at.plot_rule, at.plot[0],  at.plot[1]};
    check_boxes(boxes, 8, frame.body, rows, cols, towers);
    check_columns(&at, cols);
    for (int i = 0; i < 2; i++)
        check_plot(at.plot[i], rows, cols, towers);
    assert_true(at.scrolling + at.pinned <= at.towers.rows || at.range_row);
    assert_true(at.scrolling + at.pinned <= towers);
}

static void every_size(void **state) {
    (void)state;
    for (int rows = 1; rows <= 80; rows++)
        for (int cols = 1; cols <= 250; cols++)
            for (int towers = 0; towers <= 64; towers++)
                check_size(rows, cols, towers);
}

/* At 80x24 the averaged row, every number column and one plot are there. */
static void promises_at_80x24(void **state) {
    (void)state;
    for (int towers = 1; towers <= 64; towers++) {
        struct frame_layout frame;
        struct towers_layout at;
        layout_frame(24, 80, &frame);
        layout_towers(frame.body, towers, 5, &at);
        for (int c = COLUMN_TOWER; c <= COLUMN_COSINE; c++)
            assert_true(at.columns[c].cols > 0);
        assert_int_equal(at.average.rows, 1);
        assert_true(at.plot[0].rows >= 6);
        assert_true(at.scrolling >= (towers < 3 ? towers : 3));
        layout_frame(40, 120, &frame);
        layout_towers(frame.body, towers, 5, &at);
        assert_true(at.columns[COLUMN_TIME].cols >= 20 && at.cosine_bar);
        assert_true(at.plot[0].rows >= 10 && at.plot[1].rows >= 10);
    }
}

/* The scene: every state at many sizes, with keys pressed; a canvas in memory of its exact size lets the
 * sanitizer see what is written outside. */
static void draw_at_sizes(const struct stream_script *script, const char *keys, enum glyphs glyphs) {
    struct run_state *state = stream_state(script);
    assert_non_null(state);
    struct app_options options = {.run = "quiet-harbor"};
    preferences_default(&options.preferences);
    keymap_default(&options.keymap);
    static const int sizes[] = {1, 2, 3, 4, 5, 10, 16, 20, 24, 40, 60, 80, 119, 120, 250};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int r = 0; r < SIZES; r++)
        for (int c = 0; c < SIZES; c++) {
            if (sizes[r] > 80)
                continue;
            struct app *app = app_new(&options);
            struct canvas *canvas = canvas_new(sizes[r], sizes[c]);
            assert_true(app && canvas);
            canvas->glyphs = glyphs;
            app_draw(app, canvas, state, 1, 10);
            for (const char *key = keys; *key; key++) {
                app_key(app, *key == '<' ? PRESS_LEFT : *key == 'v' ? PRESS_END : *key, state, 10);
                app_draw(app, canvas, state, 1, 10);
            }
            canvas_free(canvas);
            app_free(app);
        }
    state_free(state);
}

static void scenes(void **state) {
    (void)state;
    static const struct stream_script scripts[] = {
        {.towers = 0},
        {.towers = 1, .steps = 3},
        {.towers = 4, .steps = 200, .towers_at = 100, .towers_to = 2, .planned = 1000, .eval_every = 50},
        {.towers = 64, .steps = 30, .nan_at = 29, .unknown = true},
        {.towers = 7, .steps = 60, .batch = 5, .alarm_at = 50, .ended = true, .applied = "unscoped"},
        {.towers = 4, .steps = 20, .frozen = "losses"},
        {.towers = 64, .steps = 20, .frozen = "update", .applied = "sum"},
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        if (scripts[i].frozen) {
            draw_at_sizes(&scripts[i], "2o<bdo", GLYPHS_BRAILLE);
            draw_at_sizes(&scripts[i], "3456", GLYPHS_BRAILLE);
            continue;
        }
        draw_at_sizes(&scripts[i], "<ye", GLYPHS_BRAILLE);
        draw_at_sizes(&scripts[i], "gwv7v?v", GLYPHS_ASCII);
        draw_at_sizes(&scripts[i], ":towers 9", GLYPHS_BLOCK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size),
        cmocka_unit_test(promises_at_80x24),
        cmocka_unit_test(scenes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
