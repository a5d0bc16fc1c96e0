/* Whatever a record says, every screen can be drawn of it: numbers of any size, lists that do not fit their
 * counts, texts of all kinds. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/base64.h"
#include "engine/base/printable.h"
#include "engine/wire/codec.h"
#include "engine/wire/fields.h"
#include "tests/support/cmocka.h"
#include "tests/support/events.h"
#include "tests/support/screen.h"
#include "tests/support/stream.h"
#include "tui/app.h"

/* Numbers at which sums and products go wrong; counts of lists are no fields and stay as they are. */
static void exaggerate(const struct field *fields, void *body, struct random *random) {
    static const int64_t odd[] = {0,       -1,        1,         3,         INT64_MAX,       INT64_MIN + 1,
                                  1 << 31, 1LL << 31, 1LL << 32, 3LL << 32, (1LL << 31) - 1, -(1LL << 40)};
    for (const struct field *f = fields; f->name; f++) {
        void *place = (char *)body + f->offset;
        int64_t count = 0;
        if (f->type == FIELD_LIST || f->type == FIELD_INTEGERS)
            count = *(int64_t *)(void *)((char *)body + f->count_offset);
        if (f->type == FIELD_GROUP)
            exaggerate(f->inner, body, random);
        else if (f->type == FIELD_INTEGER && random_below(random, 3) == 0)
            *(int64_t *)place = odd[random_below(random, sizeof odd / sizeof *odd)];
        else if (f->type == FIELD_INTEGER && random_below(random, 2) == 0)
            *(int64_t *)place = random_below(random, 12);
        else if (f->type == FIELD_LIST)
            for (int64_t i = 0; i < count; i++)
                exaggerate(f->inner, *(char **)place + (size_t)i * f->size, random);
    }
}

/* Pixels that fit the size that is told, mostly: else no picture would be drawn. */
static void add_pixels(struct event_image *image, struct random *random, struct arena *arena) {
    static const uint8_t black[30 * 30 * 3];
    image->width = 1 + random_below(random, 30);
    image->height = 1 + random_below(random, 30);
    image->channels = random_below(random, 4);
    size_t bytes = (size_t)(image->width * image->height * image->channels);
    char *pixels = arena_alloc(arena, base64_size(bytes));
    assert_non_null(pixels);
    base64_encode(black, bytes, pixels);
    image->pixels = pixels;
    if (random_below(random, 4) == 0)
        image->width = 1LL << 32;
}

/* What makes an event belong to those before it, so that the screens have something to put together. */
static void make_it_belong(struct event *event, const struct run_state *state, struct random *random,
                           struct arena *arena) {
    static const char *const states[] = {"training", "paused", "ended"};
    static const char *const phases[] = {"load", "losses", "average", "update"};
    int64_t step = state->step.kind ? state->step.step.step : 3;
    if (event->kind == EVENT_STATE) {
        event->state.state = states[random_below(random, 3)];
    } else if (event->kind == EVENT_PHASE) {
        event->phase.phase = phases[random_below(random, 4)];
        event->phase.step = step;
    } else if (event->kind == EVENT_WHY) {
        event->why.step = step;
    } else if (event->kind == EVENT_LOSSES) {
        event->losses.step = step;
    } else if (event->kind == EVENT_EVAL && event->eval.confusion_count >= 4) {
        event->eval.classes = 2;
    } else if (event->kind == EVENT_IMAGES) {
        for (int64_t i = 0; i < event->images.image_count; i++)
            add_pixels(&event->images.images[i], random, arena);
    }
}

static struct app *new_app(bool replay) {
    struct app_options options = {.run = "foreign", .replay = replay};
    preferences_default(&options.preferences);
    keymap_default(&options.keymap);
    struct app *app = app_new(&options);
    assert_non_null(app);
    return app;
}

static void draw_all(struct run_state *state, struct random *random) {
    static const int sizes[][2] = {{24, 80}, {50, 160}, {10, 30}, {1, 1}};
    static const char keys[] = "1234567mnbodvl,./x?hkj+-:";
    struct app *app = new_app(random_below(random, 2));
    for (int i = 0; i < 24; i++) {
        const int *size = sizes[random_below(random, 4)];
        struct canvas *canvas = canvas_new(size[0], size[1]);
        assert_non_null(canvas);
        (void)app_draw(app, canvas, state, 1, 10 + i);
        (void)app_key(app, i < 14 ? (i % 2 ? 'm' : '1' + i / 2) : keys[random_below(random, sizeof keys - 1)],
                      state, 10 + i);
        (void)app_draw(app, canvas, state, 1, 10.5 + i);
        canvas_free(canvas);
    }
    app_free(app);
}

static void any_events_are_drawn(void **unused) {
    (void)unused;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct random random = random_begin(seed, RANDOM_TEST, 77);
        struct run_state *state = state_new();
        struct arena arena = {0};
        assert_non_null(state);
        for (int i = 0; i < 30; i++) {
            enum event_kind kind = (enum event_kind)(1 + random_below(&random, EVENT_KINDS - 1));
            struct event event = events_fill(kind, &random, 0.1, &arena);
            exaggerate(event_describe(kind)->fields, event_body(&event), &random);
            if (random_below(&random, 2))
                make_it_belong(&event, state, &random, &arena);
            event.seq = state->last_seq + 1;
            assert_int_equal(state_apply(state, &event), STATUS_OK);
            if (i % 10 == 9)
                draw_all(state, &random);
        }
        state_free(state);
        arena_free(&arena);
    }
}

/* On a screen of one row the header has the loss too: with a wrong rule and a planned end that is all there
 * is. */
static void the_fullest_header_is_drawn(void **unused) {
    (void)unused;
    struct stream_script script = {
        .run = "quiet-harbor", .towers = 4, .steps = 20, .planned = 1000, .applied = "sum"};
    struct run_state *state = stream_state(&script);
    assert_non_null(state);
    struct app *app = new_app(true);
    struct canvas *canvas = canvas_new(1, 300);
    assert_non_null(canvas);
    (void)app_draw(app, canvas, state, 1, 10);
    (void)app_draw(app, canvas, state, 1, 20);
    char *text = screen_text(canvas);
    assert_non_null(text);
    static const char *const parts[] = {"towerscope", "quiet-harbor", "training", "wrong rule: sum",
                                        "20 / 1 000", "loss",         "epoch",    "lr",
                                        "batch",      "img/s",        "left"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text, parts[i]))
            fail_msg("no \"%s\" in %s", parts[i], text);
    free(text);
    canvas_free(canvas);
    app_free(app);
    state_free(state);
}

/* Figures larger than usual do not touch what stands beside them: a thousand epochs, a million images/s. */
static void large_figures_keep_their_distance(void **unused) {
    (void)unused;
    struct stream_script script = {.run = "quiet-harbor", .towers = 4, .steps = 20, .planned = 1000};
    struct run_state *state = stream_state(&script);
    assert_non_null(state);
    state->step.step.epoch = 12345.67;
    state->image_seconds = 1 / 1234567.0;
    struct app *app = new_app(true);
    struct canvas *canvas = canvas_new(24, 120);
    assert_non_null(canvas);
    (void)app_draw(app, canvas, state, 1, 10);
    char *text = screen_text(canvas);
    assert_non_null(text);
    if (!strstr(text, "epoch 12345.67  lr") || !strstr(text, "  1 234 567 img/s"))
        fail_msg("figures touch in %.200s", text);
    free(text);
    canvas_free(canvas);
    app_free(app);
    state_free(state);
}

/* The screen of images with the matrix of confusions that these events tell, as text; to be freed. */
static char *matrix_screen(const char *const *lines, int count, int cols) {
    struct run_state *state = state_new();
    struct arena arena = {0};
    struct event event;
    assert_non_null(state);
    for (int i = 0; i < count; i++) {
        assert_int_equal(event_decode(lines[i], strlen(lines[i]), &arena, &event), STATUS_OK);
        assert_int_equal(state_apply(state, &event), STATUS_OK);
    }
    struct app *app = new_app(true);
    struct canvas *canvas = canvas_new(24, cols);
    assert_non_null(canvas);
    (void)app_key(app, '5', state, 10);
    (void)app_key(app, 'm', state, 10);
    (void)app_draw(app, canvas, state, 1, 10);
    char *text = screen_text(canvas);
    assert_non_null(text);
    canvas_free(canvas);
    app_free(app);
    state_free(state);
    arena_free(&arena);
    return text;
}

/* 2^32 classes: their square is 0 in 64 bits, as is their number in 32. */
static void a_matrix_without_end_is_none(void **unused) {
    (void)unused;
    static const char *const lines[] = {
        "{\"event\":\"eval\",\"seq\":1,\"step\":1,\"precision\":0.5,\"classes\":4294967296,"
        "\"confusion\":[1,2,3,4]}\n"};
    char *text = matrix_screen(lines, 1, 80);
    assert_non_null(strstr(text, "no confusion matrix"));
    free(text);
}

/* Names of three bytes a character: the longest that are kept end between two of them. */
#define DOGS "\u72ac\u72ac\u72ac\u72ac\u72ac"
static void a_long_name_is_cut_between_characters(void **unused) {
    (void)unused;
    static const char *const lines[] = {
        "{\"event\":\"run_start\",\"seq\":1,\"run\":\"r\",\"model\":\"m\",\"data\":{\"name\":\"d\",\"train\":"
        "9,\"test\":9,"
        "\"classes\":2,\"class_names\":[{\"name\":\"" DOGS DOGS DOGS DOGS "\"},{\"name\":\"cat\"}]},"
        "\"batch\":4,\"towers\":1}\n",
        "{\"event\":\"eval\",\"seq\":2,\"step\":1,\"precision\":0.5,\"classes\":2,\"confusion\":[1,2,3,4]}\n",
    };
    char *text = matrix_screen(lines, 2, 120);
    assert_non_null(strstr(text, "\u72ac\u72ac"));
    const char *at = text;
    int32_t character;
    while ((character = text_next(&at)) != 0)
        assert_true(character > 0 && character != 0xfffd);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_events_are_drawn),
        cmocka_unit_test(the_fullest_header_is_drawn),
        cmocka_unit_test(large_figures_keep_their_distance),
        cmocka_unit_test(a_matrix_without_end_is_none),
        cmocka_unit_test(a_long_name_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
