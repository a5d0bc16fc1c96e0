/* A lesson's pages, on and back: each shows the same words, the same run and the same screen both ways,
 * whatever the person did in between. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/lesson_feed.h"
#include "kernels/registry.h"
#include "tests/support/cmocka.h"

enum { PAGES = 16, ROWS = 24, COLS = 80 };

/* A session as the program opens it, on fewer images: they are drawn anew for each page that is turned back.
 */
enum status session_open(const struct trainer_options *options, struct resume *resume, struct session *out) {
    const struct dataset_options few = {
        .seed = (uint64_t)options->settings.seed, .generated_train = 2000, .generated_test = 20};
    struct trainer_options complete = *options;
    (void)resume;
    *out = (struct session){0};
    STATUS_TRY(device_open_default(&(struct device_options){.threads = 1}, &out->device));
    STATUS_TRY(dataset_open(options->settings.data, &few, &out->data));
    const struct shape shape = out->data->train.shape;
    struct model_ends ends = {shape.h, shape.w, shape.c, out->data->classes};
    STATUS_TRY(model_read(options->settings.model, ends, NAN, &out->model));
    complete.device = out->device;
    complete.data = out->data;
    complete.model = out->model;
    return trainer_open(&complete, &out->trainer);
}

void session_close(struct session *session) {
    trainer_close(session->trainer);
    model_free(session->model);
    dataset_close(session->data);
    device_close(&session->device);
    *session = (struct session){0};
}

struct page {
    char text[1600], screen[40];
    int64_t step, towers;
    double loss;
};

static struct page look(struct app *app, const struct app_options *options, const struct feed *feed,
                        struct canvas *canvas) {
    app_draw(app, canvas, feed->state, feed->generation, 10);
    struct page page = {.step = feed->state->step.step.step,
                        .towers = feed->state->towers,
                        .loss = feed->state->step.step.loss};
    snprintf(page.text, sizeof page.text, "%s", options->guide->text);
    snprintf(page.screen, sizeof page.screen, "%s", app_screen(app));
    return page;
}

static void assert_same(const struct page *a, const struct page *b) {
    assert_string_equal(a->text, b->text);
    assert_string_equal(a->screen, b->screen);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->towers, b->towers);
    assert_memory_equal(&a->loss, &b->loss, sizeof a->loss);
}

static void check_lesson(const char *name) {
    struct lesson lesson;
    struct app_options options = {.run = name};
    struct feed *feed;
    preferences_default(&options.preferences);
    keymap_default(&options.keymap);
    assert_int_equal(lesson_open(name, &lesson), STATUS_OK);
    assert_int_equal(lesson_feed(&lesson, &options, &feed), STATUS_OK);
    struct app *app = app_new(&options);
    struct canvas *canvas = canvas_new(ROWS, COLS);
    assert_true(app && canvas);
    struct page pages[PAGES];
    int last = options.guide->parts - 1;
    assert_in_range(last, 1, PAGES - 1);
    pages[0] = look(app, &options, feed, canvas);
    assert_int_equal(app_key(app, 'b', feed->state, 10), APP_NOTHING); /* the first page */
    for (int i = 1; i <= last; i++) {
        assert_int_equal(app_key(app, i % 2 ? 'n' : PRESS_ENTER, feed->state, 10), APP_GO_ON);
        assert_int_equal(feed->ops->turn(feed, true), STATUS_OK);
        pages[i] = look(app, &options, feed, canvas);
    }
    assert_true(options.guide->done);
    assert_int_equal(app_key(app, 'n', feed->state, 10), APP_NOTHING);
    char id[40];
    assert_int_equal(feed->ops->command(feed, "towers 3", NULL, id), STATUS_OK);
    (void)app_key(app, '7', feed->state, 10);
    for (int i = last - 1; i >= 0; i--) {
        assert_int_equal(app_key(app, i % 2 ? 'b' : PRESS_BACKSPACE, feed->state, 10), APP_GO_BACK);
        assert_int_equal(feed->ops->turn(feed, false), STATUS_OK);
        struct page page = look(app, &options, feed, canvas);
        assert_same(&page, &pages[i]);
        assert_int_equal(options.guide->part, i + 1);
        (void)app_key(app, '3', feed->state, 10);
    }
    assert_int_equal(feed->ops->turn(feed, true), STATUS_OK);
    (void)app_key(app, 'n', feed->state, 10);
    assert_int_equal(options.guide->part, 2);
    feed_close(feed);
    app_free(app);
    canvas_free(canvas);
    lesson_close(&lesson);
}

static void pages(void **state) {
    (void)state;
    check_lesson("uneven-shards"); /* walks phases and changes towers */
}

/* The keys of the pages are told in a lesson and nowhere else, and can be changed as others can. */
static void keys(void **state) {
    (void)state;
    struct keymap keymap;
    keymap_default(&keymap);
    assert_int_equal(keymap_action(&keymap, 'b', WHERE_LIVE | WHERE_GUIDED | WHERE_ON_WHY),
                     ACTION_GUIDE_BACK);
    assert_int_equal(keymap_action(&keymap, 'b', WHERE_LIVE | WHERE_ON_WHY), ACTION_WHY_BACK);
    assert_int_equal(keymap_action(&keymap, PRESS_BACKSPACE, WHERE_LIVE), ACTION_NONE);
    assert_int_equal(keymap_set(&keymap, "page-back", "p"), STATUS_OK);
    assert_int_equal(keymap_action(&keymap, 'p', WHERE_LIVE | WHERE_GUIDED), ACTION_GUIDE_BACK);
    assert_int_equal(keymap_action(&keymap, 'b', WHERE_LIVE | WHERE_GUIDED | WHERE_ON_WHY), ACTION_WHY_BACK);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages), cmocka_unit_test(keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
