/* Golden screens, drawn without a terminal: every screen at the sizes and in the states that matter. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/cmocka.h"
#include "tests/support/screen.h"
#include "tests/support/stream.h"
#include "tui/app.h"

enum how {
    PLAINLY = 0,
    AS_ASCII = 1,
    AS_BLOCK = 2,
    CRASHED = 4,
    WATCHING = 8,
    OF_A_RECORD = 16,
    HELD = 32,      /* somebody else has control */
    ASKED = 64,     /* somebody else asks for it */
    QUIET = 128,    /* the terminal is slow */
    GUIDED = 256,   /* in a lesson */
    GUIDED_ON = 512 /* on its last page */
};

struct shot {
    const char *name;
    int rows, cols;
    unsigned how;
    const char *keys; /* '<' left, '>' right, 'v' down, '^' up, '|' enter, 'V' v, tab */
    struct stream_script script;
};

#define RUN .towers = 4, .steps = 1240, .planned = 100000
#define SHOT(name, rows, cols, how, keys, ...)                                                               \
    {                                                                                                        \
        name, rows, cols, how, keys, {                                                                       \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

/* clang-format off */
static const struct shot shots[] = {
    SHOT("towers-200x50", 50, 200, PLAINLY, "", RUN),
    SHOT("towers-120x40", 40, 120, PLAINLY, "", RUN, .towers_at = 700, .towers_to = 2, .eval_every = 400),
    SHOT("towers-80x24", 24, 80, PLAINLY, "", RUN, .towers_at = 700, .towers_to = 2, .eval_every = 400),
    SHOT("towers-60x20", 20, 60, PLAINLY, "", RUN),
    SHOT("towers-40x10", 10, 40, PLAINLY, "", RUN),
    SHOT("towers-20x5", 5, 20, PLAINLY, "", RUN),
    SHOT("towers-80x5", 5, 80, PLAINLY, "", RUN),
    SHOT("towers-80x50-stacked", 50, 80, PLAINLY, "", RUN),
    SHOT("towers-80x2", 2, 80, PLAINLY, "", RUN),
    SHOT("towers-80x1", 1, 80, PLAINLY, "", RUN),
    SHOT("towers-1x1", 1, 1, PLAINLY, "", RUN),
    SHOT("towers-ascii-120x40", 40, 120, AS_ASCII, "", RUN, .towers_at = 700, .towers_to = 2),
    SHOT("towers-ascii-80x24", 24, 80, AS_ASCII, "", RUN),
    SHOT("towers-block-80x24", 24, 80, AS_BLOCK, "", RUN),
    SHOT("one-tower", 24, 80, PLAINLY, "", .towers = 1, .steps = 300),
    SHOT("16-towers", 40, 120, PLAINLY, "", .towers = 16, .steps = 300),
    SHOT("16-towers-80x24", 24, 80, PLAINLY, "", .towers = 16, .steps = 300),
    SHOT("64-towers", 40, 120, PLAINLY, "", .towers = 64, .steps = 300),
    SHOT("64-towers-scrolled", 24, 80, PLAINLY, "vvvvvvvvvv", .towers = 64, .steps = 300),
    SHOT("64-towers-80x5", 5, 80, PLAINLY, "", .towers = 64, .steps = 300),
    SHOT("64-towers-filtered", 40, 120, PLAINLY, "/3,17,40-41|", .towers = 64, .steps = 300),
    SHOT("waiting-for-the-engine", 24, 80, PLAINLY, "", .towers = 0),
    SHOT("waiting-for-the-first-step", 24, 80, PLAINLY, "", .towers = 4),
    SHOT("waiting-40x10", 10, 40, PLAINLY, "", .towers = 4),
    SHOT("paused", 24, 80, PLAINLY, "", RUN, .pause_at = 1240),
    SHOT("paused-with-other-towers", 24, 80, PLAINLY, "", RUN, .pause_at = 1240, .towers_paused = 7),
    SHOT("crashed", 24, 80, CRASHED, "", RUN),
    SHOT("ended", 24, 80, PLAINLY, "", RUN, .ended = true),
    SHOT("alarm-120x40", 40, 120, PLAINLY, "", RUN, .alarm_at = 1240, .nan_at = 1240),
    SHOT("alarm-80x24", 24, 80, PLAINLY, "", RUN, .alarm_at = 1240, .nan_at = 1240),
    SHOT("alarm-dismissed", 24, 80, PLAINLY, "x", RUN, .alarm_at = 1000),
    SHOT("unknown-values", 40, 120, PLAINLY, "", RUN, .unknown = true),
    SHOT("strays", 24, 80, PLAINLY, "", RUN, .stray_from = 1100),
    SHOT("uneven-shards", 24, 80, PLAINLY, "", .towers = 3, .steps = 300),
    SHOT("empty-shards", 24, 80, PLAINLY, "", .towers = 7, .batch = 5, .steps = 100),
    SHOT("wrong-rule", 24, 80, PLAINLY, "", RUN, .applied = "unscoped"),
    SHOT("wrong-rule-120x40", 40, 120, PLAINLY, "", RUN, .applied = "sum", .applied_after = 400, .applied_until = 800),
    SHOT("wrong-rule-short", 24, 80, PLAINLY, "", RUN, .applied = "decay-per-tower", .applied_after = 700, .applied_until = 760),
    SHOT("wrong-rule-ascii", 24, 80, AS_ASCII, "", RUN, .applied = "unscoped", .applied_after = 600, .applied_until = 1100),
    SHOT("wrong-rule-taken-back", 24, 80, PLAINLY, "", RUN, .applied = "last", .applied_after = 800, .applied_until = 1240),
    SHOT("wrong-rule-of-a-record", 24, 80, OF_A_RECORD, "", RUN, .applied = "no-average", .applied_after = 900),
    SHOT("log-scale", 40, 120, PLAINLY, "y", RUN, .nan_at = 600),
    SHOT("smoothed", 40, 120, PLAINLY, "ee", RUN),
    SHOT("last-1000", 40, 120, PLAINLY, "ww", RUN),
    SHOT("gradient-plot", 24, 80, PLAINLY, "g", RUN),
    SHOT("cursor", 40, 120, PLAINLY, "<<<<<<<<<<", RUN),
    SHOT("cursor-80x24", 24, 80, PLAINLY, "<<<<<<<<<<", RUN),
    SHOT("commands-120x40", 40, 120, PLAINLY, "<<<<<<<<<<<", RUN, .commands_at = 1000),
    SHOT("commands-close-100x30", 30, 100, PLAINLY, "", RUN, .towers_at = 1060, .towers_to = 2, .commands_at = 1100, .eval_every = 300, .pause_at = 1240),
    SHOT("commands-log", 24, 80, PLAINLY, "7", RUN, .commands_at = 1000, .frozen = "update"),
    SHOT("commands-log-filtered", 24, 120, PLAINLY, "7/phase|", RUN, .commands_at = 1000, .frozen = "update"),
    SHOT("around-the-cursor", 40, 120, PLAINLY, "<<<<<<<<<<<<<<<<<<<<www", RUN),
    SHOT("prompt", 24, 80, PLAINLY, ":set lr 0.05", RUN),
    SHOT("prompt-completion", 24, 80, PLAINLY, ":set \t\t", RUN),
    SHOT("prompt-all-of-s", 24, 80, PLAINLY, ":s\t", RUN),
    SHOT("prompt-wrong", 24, 80, PLAINLY, ":tower 4|", RUN),
    SHOT("budget-80x24", 24, 80, PLAINLY, ":budget|", RUN),
    SHOT("budget-120x40", 40, 120, PLAINLY, ":budget|", RUN),
    SHOT("watching", 24, 80, WATCHING, " ", RUN),
    SHOT("stop-asks", 24, 80, PLAINLY, "Q", RUN),
    SHOT("log-120x40", 40, 120, PLAINLY, "7", RUN, .towers_at = 700, .towers_to = 2, .eval_every = 400, .refused_at = 900, .alarm_at = 1100),
    SHOT("log-80x24", 24, 80, PLAINLY, "7^^", RUN, .towers_at = 700, .towers_to = 2, .eval_every = 100, .refused_at = 900, .checkpoint_every = 100),
    SHOT("log-filtered", 24, 80, PLAINLY, "7/precision|", RUN, .eval_every = 100, .checkpoint_every = 100),
    SHOT("log-40x10", 10, 40, PLAINLY, "7", RUN, .eval_every = 100),
    SHOT("help-120x40", 40, 120, PLAINLY, "?", RUN),
    SHOT("help-80x24", 24, 80, PLAINLY, "?", RUN),
    SHOT("help-scrolled", 24, 80, PLAINLY, "?vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv", RUN),
    SHOT("why-120x40", 40, 120, PLAINLY, "2", RUN, .frozen = "average"),
    SHOT("why-80x24", 24, 80, PLAINLY, "2", RUN, .frozen = "average"),
    SHOT("why-load", 40, 120, PLAINLY, "2", RUN, .frozen = "load"),
    SHOT("why-losses", 24, 80, PLAINLY, "2>", RUN, .frozen = "losses"),
    SHOT("why-no-scope-120x40", 40, 120, PLAINLY, "2o", RUN, .frozen = "update"),
    SHOT("why-no-scope-80x24", 24, 80, PLAINLY, "2o<", RUN, .frozen = "losses"),
    SHOT("why-looking-back", 24, 80, PLAINLY, "2bbb", RUN, .frozen = "update"),
    SHOT("why-details", 24, 80, PLAINLY, "2vd", RUN, .frozen = "update"),
    SHOT("why-details-120x40", 40, 120, PLAINLY, "2vd", .towers = 16, .steps = 30, .frozen = "average"),
    SHOT("why-presenter-two-towers", 24, 80, PLAINLY, "2V", .towers = 2, .steps = 30, .frozen = "update"),
    SHOT("why-presenter-120x40", 40, 120, PLAINLY, "2V", RUN, .frozen = "average"),
    SHOT("why-presenter-80x24", 24, 80, PLAINLY, "2V", RUN, .frozen = "losses"),
    SHOT("why-presenter-200x50", 50, 200, PLAINLY, "2V", .towers = 2, .steps = 30, .frozen = "losses"),
    SHOT("why-presenter-no-scope", 40, 120, AS_ASCII, "2Vo", RUN, .frozen = "losses"),
    SHOT("why-presenter-load", 40, 120, PLAINLY, "2V", .towers = 3, .steps = 30, .frozen = "load"),
    SHOT("why-one-tower", 24, 80, PLAINLY, "2", .towers = 1, .steps = 30, .frozen = "average"),
    SHOT("why-two-towers", 40, 120, PLAINLY, "2", .towers = 2, .steps = 30, .frozen = "average"),
    SHOT("why-16-towers", 40, 120, PLAINLY, "2>>>>>", .towers = 16, .steps = 30, .frozen = "average"),
    SHOT("why-16-towers-80x24", 24, 80, PLAINLY, "2>>>>>", .towers = 16, .steps = 30, .frozen = "average"),
    SHOT("why-uneven", 24, 80, PLAINLY, "2", .towers = 3, .steps = 30, .frozen = "average"),
    SHOT("why-does-not-hold", 40, 120, PLAINLY, "2", RUN, .frozen = "average", .proof_differs = 0.02),
    SHOT("why-training", 24, 80, PLAINLY, "2", RUN),
    SHOT("why-wrong-rule", 40, 120, PLAINLY, "2v", RUN, .frozen = "update", .applied = "sum"),
    SHOT("why-momentum", 24, 80, PLAINLY, "2v", RUN, .frozen = "update", .momentum = 0.9, .clip_norm = 0.5),
    SHOT("why-clipped-120x40", 40, 120, PLAINLY, "2v", RUN, .frozen = "update", .clip_norm = 0.5),
    SHOT("why-80x18", 18, 80, PLAINLY, "2", RUN, .frozen = "average"),
    SHOT("why-apply-asks", 24, 80, PLAINLY, "2va", RUN, .frozen = "average"),
    SHOT("why-rewind-asks", 24, 80, PLAINLY, "2R", RUN, .applied = "sum", .applied_after = 1200, .frozen = "update"),
    SHOT("why-rewind-asks-of-a-right-one", 24, 80, PLAINLY, "2R", RUN, .frozen = "average"),
    SHOT("why-ascii", 24, 80, AS_ASCII, "2", RUN, .frozen = "average"),
    SHOT("why-40x12", 12, 40, PLAINLY, "2", RUN, .frozen = "average"),
    SHOT("why-60x24", 24, 60, PLAINLY, "2", RUN, .frozen = "update"),
    SHOT("why-40x24", 24, 40, PLAINLY, "2", RUN, .frozen = "update"),
    SHOT("why-of-a-record", 24, 80, OF_A_RECORD, "2b", RUN, .frozen = "update"),
    SHOT("why-training-of-a-record", 24, 80, OF_A_RECORD, "2", RUN),
    SHOT("layers-120x40", 40, 120, PLAINLY, "3", RUN, .layers = true),
    SHOT("layers-80x24", 24, 80, PLAINLY, "3", RUN, .layers = true),
    SHOT("layers-wrong-rule", 24, 80, AS_ASCII, "3", RUN, .layers = true, .applied = "sum"),
    SHOT("layers-small", 12, 80, PLAINLY, "3", RUN, .layers = true),
    SHOT("layers-60x24", 24, 60, PLAINLY, "3", RUN, .layers = true),
    SHOT("layers-not-yet", 24, 80, PLAINLY, "3", RUN),
    SHOT("devices-120x40", 40, 120, PLAINLY, "4", RUN),
    SHOT("devices-80x24", 24, 80, PLAINLY, "4", RUN),
    SHOT("images-120x40", 40, 120, PLAINLY, "5", RUN, .frozen = "update"),
    SHOT("images-80x24", 24, 80, AS_ASCII, "5", RUN, .frozen = "update"),
    SHOT("images-confusion", 24, 80, PLAINLY, "5m", RUN, .eval_every = 100, .confusion = true),
    SHOT("images-of-named-classes", 24, 80, PLAINLY, "5", RUN, .frozen = "update", .class_names = true),
    SHOT("images-not-yet-seen", 40, 120, PLAINLY, "5", RUN, .frozen = "load", .class_names = true),
    SHOT("images-confusion-named", 24, 80, PLAINLY, "5m", RUN, .eval_every = 100, .confusion = true, .class_names = true),
    SHOT("scaling-120x40", 40, 120, PLAINLY, "6", RUN),
    SHOT("scaling-80x24", 24, 80, PLAINLY, "6", RUN),
    SHOT("scaling-unknown", 24, 80, PLAINLY, "6", RUN, .unknown = true),
    SHOT("replay", 24, 80, OF_A_RECORD, "", RUN),
    SHOT("replay-120x40", 40, 120, OF_A_RECORD, "", RUN, .eval_every = 400),
    SHOT("control-elsewhere-80x24", 24, 80, HELD, "", RUN),
    SHOT("control-elsewhere-120x40", 40, 120, HELD, " ", RUN),
    SHOT("control-asked", 24, 80, ASKED, "", RUN),
    SHOT("quiet-120x40", 40, 120, QUIET, "e:budget|", RUN),
    SHOT("guided-120x40", 40, 120, GUIDED, "", RUN),
    SHOT("guided-80x24", 24, 80, GUIDED, "", RUN),
    SHOT("guided-40x12", 12, 40, GUIDED, "", RUN),
    SHOT("guided-to-the-end", 24, 80, GUIDED | GUIDED_ON, "n", RUN, .pause_at = 1240),
    SHOT("one-tower-120x40", 40, 120, PLAINLY, "", .towers = 1, .steps = 300),
    SHOT("10-towers-80x24", 24, 80, PLAINLY, "", .towers = 10, .steps = 300),
    SHOT("64-towers-200x50", 50, 200, PLAINLY, "", .towers = 64, .steps = 300),
    SHOT("paused-120x40", 40, 120, PLAINLY, "", RUN, .pause_at = 1240),
    SHOT("crashed-120x40", 40, 120, CRASHED, "", RUN),
    SHOT("unknown-values-80x24", 24, 80, PLAINLY, "", RUN, .unknown = true),
    SHOT("devices-64-towers", 40, 120, PLAINLY, "4", .towers = 64, .steps = 300),
    SHOT("towers-100x30", 30, 100, PLAINLY, "", RUN),
    SHOT("towers-ascii-100x30", 30, 100, AS_ASCII, "", RUN),
    SHOT("devices-60x20", 20, 60, PLAINLY, "4", RUN),
    SHOT("log-60x20", 20, 60, PLAINLY, "7^", RUN, .commands_at = 1000, .frozen = "update"),
    SHOT("devices-ascii", 24, 80, AS_ASCII, "4", RUN),
    SHOT("images-tones-80x24", 24, 80, PLAINLY, "5", RUN, .frozen = "update"),
    SHOT("images-40x10", 10, 40, PLAINLY, "5", RUN, .frozen = "update"),
    SHOT("scaling-one-tower", 24, 80, PLAINLY, "6", .towers = 1, .steps = 300),
    SHOT("scaling-40x10", 10, 40, PLAINLY, "6", RUN),
    SHOT("layers-ascii", 24, 80, AS_ASCII, "3", RUN, .layers = true),
    SHOT("layers-40x10", 10, 40, PLAINLY, "3", RUN, .layers = true),
    SHOT("help-40x10", 10, 40, PLAINLY, "?", RUN),
    SHOT("help-of-a-record", 40, 120, OF_A_RECORD, "?", RUN),
};
/* clang-format on */

static int press_of(char key) {
    switch (key) {
    case '<':
        return PRESS_LEFT;
    case '>':
        return PRESS_RIGHT;
    case 'v':
        return PRESS_DOWN;
    case '^':
        return PRESS_UP;
    case 'V':
        return 'v';
    case '|':
        return PRESS_ENTER;
    default:
        return key;
    }
}

/* Who has control, as a live run tells it. */
static void tell_control(struct run_state *state, unsigned how) {
    struct event event = event_new(EVENT_CONTROL);
    bool ours = !(how & HELD);
    event.control.holder_user = ours ? "ada" : "grace";
    event.control.holder_terminal = ours ? "pts/3" : "pts/7";
    event.control.yours = ours;
    event.control.watchers = 2;
    if (how & ASKED) {
        event.control.asking_user = "grace";
        event.control.asking_terminal = "pts/7";
    }
    assert_int_equal(state_apply(state, &event), STATUS_OK);
}

static bool take_shot(const struct shot *shot) {
    struct app_options options = {.run = "quiet-harbor", .waiting = "the engine to start"};
    options.watch = (shot->how & WATCHING) != 0;
    options.replay = (shot->how & OF_A_RECORD) != 0;
    const struct guide guide = {
        .text = "Two towers share the parameters, but each has images of its own: look at the column of "
                "cross-entropies. Their average, below the rule, is the loss of the whole batch.",
        .part = shot->how & GUIDED_ON ? 5 : 2,
        .parts = 5,
        .done = (shot->how & GUIDED_ON) != 0};
    options.guide = shot->how & GUIDED ? &guide : NULL;
    preferences_default(&options.preferences);
    keymap_default(&options.keymap);
    bool nothing = shot->script.towers == 0;
    struct run_state *state = nothing ? state_new() : stream_state(&shot->script);
    struct app *app = app_new(&options);
    struct canvas *canvas = canvas_new(shot->rows, shot->cols);
    assert_true(state && app && canvas);
    if (shot->how & (AS_ASCII | AS_BLOCK))
        canvas->glyphs = shot->how & AS_ASCII ? GLYPHS_ASCII : GLYPHS_BLOCK;
    if (shot->how & CRASHED)
        state_crashed(state, NULL);
    if (shot->how & (HELD | ASKED))
        tell_control(state, shot->how);
    app_quiet(app, (shot->how & QUIET) != 0);
    struct feed_status about = {
        .replay = options.replay, .playing = true, .speed = 4, .seconds = 16, .all = 41};
    app_about(app, &about);
    static const struct budget budget = {.bytes_per_second = 1234,
                                         .wall = {0.42, 1.71},
                                         .cpu = {0.37, 0.9},
                                         .events_per_second = 74.8,
                                         .queue = 2048,
                                         .quiet = true};
    app_budget(app, &budget);
    app_draw(app, canvas, state, 1, 10);
    for (const char *key = shot->keys; *key; key++)
        app_key(app, press_of(*key), state, 10);
    app_draw(app, canvas, state, 1, 10);
    char *text = screen_text(canvas);
    bool same = screen_is_golden(shot->name, text);
    free(text);
    canvas_free(canvas);
    app_free(app);
    state_free(state);
    return same;
}

static void screens(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof shots / sizeof *shots; i++)
        wrong += !take_shot(&shots[i]);
    assert_int_equal(wrong, 0);
}

int main(void) {
    setenv("TZ", "UTC", 1);
    tzset();
    const struct CMUnitTest tests[] = {cmocka_unit_test(screens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
