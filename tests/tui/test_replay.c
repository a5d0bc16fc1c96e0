/* A record, played: wherever one goes in it, the state is the fold of the events up to there. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "tests/support/cmocka.h"
#include "tests/support/stream.h"
#include "tui/feed.h"

static char path[1024];

static const struct stream_script script = {
    .towers = 3, .steps = 6000, .towers_at = 2500, .towers_to = 5, .eval_every = 1000, .ended = true};

static struct feed *open_record(const char *file, int64_t at) {
    struct feed *feed;
    struct replay_options options = {.at = at};
    if (feed_replay(file, &options, &feed) == STATUS_OK)
        return feed;
    return NULL;
}

static void read_all(struct feed *feed) {
    bool more = true;
    struct feed_status about;
    do {
        assert_int_equal(feed->ops->pump(feed, clock_seconds(), 0.05, &more), STATUS_OK);
        feed->ops->status(feed, &about);
    } while (about.reading);
}

/* The state after all events up to and with the step. */
static struct run_state *reference(int64_t step) {
    struct stream_script cut = script;
    cut.steps = step;
    cut.ended = false;
    return stream_state(&cut);
}

static void expect_same(const struct run_state *a, const struct run_state *b) {
    assert_int_equal(a->step.step.step, b->step.step.step);
    assert_int_equal(a->point_count, b->point_count);
    assert_true(!(fabs(a->step.step.loss - b->step.step.loss) > 1e-6));
    for (int64_t i = 0; i < a->point_count; i += 97) {
        assert_int_equal(a->points[i].step, b->points[i].step);
        assert_int_equal(a->points[i].tower_count, b->points[i].tower_count);
        assert_true(!(fabs(a->points[i].loss - b->points[i].loss) > 1e-6));
    }
}

static void seeking(void **state) {
    (void)state;
    struct feed *feed = open_record(path, 1);
    assert_non_null(feed);
    read_all(feed);
    struct random random = random_begin(3, RANDOM_TEST, 0);
    for (int i = 0; i < 12; i++) {
        int64_t step = 1 + random_below(&random, 6000);
        uint64_t generation = feed->generation;
        int64_t before = feed->state->step.kind ? feed->state->step.step.step : step;
        assert_int_equal(feed->ops->move(feed, MOVE_STEP, (double)step), STATUS_OK);
        if (step != before) /* on or back: what is shown changes at once */
            assert_true(feed->generation != generation);
        struct run_state *wanted = reference(step);
        expect_same(feed->state, wanted);
        state_free(wanted);
    }
    assert_int_equal(feed->ops->move(feed, MOVE_END, 0), STATUS_OK);
    assert_true(feed->state->ended && !feed->state->crashed);
    assert_int_equal(feed->ops->move(feed, MOVE_BEGIN, 0), STATUS_OK);
    assert_int_equal(feed->state->point_count, 0);
    assert_int_equal(feed->ops->move(feed, MOVE_STEP, 6001), STATUS_NOT_FOUND);
    assert_non_null(strstr(status_text(), "steps 0 to 6 000"));
    feed_close(feed);
}

/* A step behind the end is told to be none, and the end is shown. */
static void behind_the_end(void **state) {
    (void)state;
    struct feed *feed = open_record(path, 99999);
    struct feed_status about;
    bool more;
    assert_non_null(feed);
    read_all(feed);
    assert_int_equal(feed->ops->pump(feed, clock_seconds(), 0.05, &more), STATUS_OK);
    feed->ops->status(feed, &about);
    assert_non_null(strstr(about.trouble, "no step 99 999: the record has steps 0 to 6 000"));
    assert_true(feed->state->ended);
    assert_int_equal(feed->ops->move(feed, MOVE_BEGIN, 0), STATUS_OK);
    feed->ops->status(feed, &about);
    assert_string_equal(about.trouble, "");
    feed_close(feed);
}

/* A step that was walked is walked again, phase by phase; elsewhere its phases are no places to stop at. */
static void phases(void **state) {
    (void)state;
    static const char *const names[] = {"load", "forward", "losses", "backward", "average", "update"};
    struct stream_script walked = {.towers = 3, .steps = 50, .commands_at = 20, .frozen = "update"};
    char file[1100];
    snprintf(file, sizeof file, "%s-walked", path);
    assert_int_equal(stream_write(&walked, file), STATUS_OK);
    struct feed *feed = open_record(file, 1);
    assert_non_null(feed);
    read_all(feed);
    for (int i = 0; i < 3; i++) /* the commands that a person gave */
        assert_int_equal(feed->ops->move(feed, MOVE_PHASE, 1), STATUS_OK);
    assert_int_equal(feed->state->step.step.step, 20);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(feed->ops->move(feed, MOVE_PHASE, 1), STATUS_OK);
        assert_int_equal(feed->state->step_phase.kind, EVENT_PHASE);
        assert_string_equal(feed->state->step_phase.phase.phase, names[i]);
    }
    assert_int_equal(feed->ops->move(feed, MOVE_PHASE, 1), STATUS_NOT_FOUND);
    assert_int_equal(feed->ops->move(feed, MOVE_PHASE, -1), STATUS_OK);
    assert_string_equal(feed->state->step_phase.phase.phase, "average");
    assert_int_equal(feed->ops->move(feed, MOVE_MARKER, -1), STATUS_OK);
    assert_int_equal(feed->state->step.step.step, 20);
    feed_close(feed);
    unlink(file);
}

static void markers(void **state) {
    (void)state;
    struct feed *feed = open_record(path, 1);
    assert_non_null(feed);
    read_all(feed);
    assert_int_equal(feed->ops->move(feed, MOVE_MARKER, 1), STATUS_OK);
    assert_int_equal(feed->state->step.step.step, 1000);
    assert_int_equal(feed->ops->move(feed, MOVE_MARKER, 1), STATUS_OK);
    assert_int_equal(feed->state->step.step.step, 2000);
    assert_int_equal(feed->ops->move(feed, MOVE_MARKER, 1), STATUS_OK); /* the command */
    assert_int_equal(feed->ops->move(feed, MOVE_MARKER, 1), STATUS_OK); /* the towers */
    assert_int_equal(feed->state->step.step.step, 2499);
    assert_int_equal(feed->ops->move(feed, MOVE_MARKER, -1), STATUS_OK);
    assert_int_equal(feed->ops->move(feed, MOVE_MARKER, -1), STATUS_OK);
    assert_int_equal(feed->state->step.step.step, 2000);
    assert_int_equal(feed->ops->move(feed, MOVE_BEGIN, 0), STATUS_OK);
    assert_int_equal(feed->ops->move(feed, MOVE_MARKER, -1), STATUS_NOT_FOUND);
    feed_close(feed);
}

/* Played at the run's pace times a speed, by a clock that is given. */
static void playing(void **state) {
    (void)state;
    struct feed *feed = open_record(path, WIRE_UNKNOWN_INT);
    assert_non_null(feed);
    read_all(feed);
    bool more;
    double now = clock_seconds() + 100; /* time went by: a gap is shortened, not skipped through */
    for (int i = 0; i < 5; i++)
        feed->ops->move(feed, MOVE_SPEED, 1); /* 2, 4, 10, 25, 100 */
    feed->ops->pump(feed, now, 10, &more);
    int64_t before = feed->state->step.step.step;
    for (int i = 1; i <= 10; i++)
        feed->ops->pump(feed, now + 0.01 * i, 10, &more);
    int64_t played = feed->state->step.step.step - before;
    assert_true(played > 0 || before == 6000);
    struct feed_status about;
    feed->ops->status(feed, &about);
    assert_true(!(fabs(about.speed - 100) > 1e-9));
    for (int i = 0; i < 20; i++)
        feed->ops->move(feed, MOVE_SPEED, -1);
    feed->ops->status(feed, &about);
    assert_true(!(fabs(about.speed - 0.25) > 1e-9));
    feed_close(feed);
}

/* A night in the middle is as long on the clock as it takes to play, and the bar goes by the same time. */
static void a_long_gap(void **state) {
    (void)state;
    static const double times[] = {100, 101, 102, 50000, 50001, 49000, 49001};
    enum { TIMES = sizeof times / sizeof *times };
    char file[1100];
    snprintf(file, sizeof file, "%s-gap", path);
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    for (int i = 0; i < TIMES; i++)
        fprintf(out, "{\"event\":\"step\",\"seq\":%d,\"time\":%.0f,\"step\":%d,\"loss\":1}\n", i + 1,
                times[i], i + 1);
    assert_int_equal(fclose(out), 0);
    struct feed *feed = open_record(file, 1);
    struct feed_status about;
    assert_non_null(feed);
    read_all(feed);
    static const double played[] = {0, 1, 2, 4, 5, 5, 6};
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(feed->ops->move(feed, MOVE_STEP, i + 1), STATUS_OK);
        feed->ops->status(feed, &about);
        assert_true(!(fabs(about.seconds - played[i]) > 1e-9));
        assert_true(!(fabs(about.all - 6) > 1e-9));
    }
    assert_int_equal(feed->ops->move(feed, MOVE_SHARE, -0.5), STATUS_OK); /* 3 s back */
    assert_int_equal(feed->state->step.step.step, 3);
    assert_int_equal(feed->ops->move(feed, MOVE_SHARE, 0.01), STATUS_OK); /* one event at least */
    assert_int_equal(feed->state->step.step.step, 4);
    assert_int_equal(feed->ops->move(feed, MOVE_SHARE, -0.01), STATUS_OK);
    assert_int_equal(feed->state->step.step.step, 3);
    assert_int_equal(feed->ops->move(feed, MOVE_SHARE, 0.99), STATUS_OK);
    assert_int_equal(feed->state->step.step.step, 7);
    feed_close(feed);
    unlink(file);
}

/* A torn last line and a hole in the middle are said; the end without run_end is a crash. */
static void damaged(void **state) {
    (void)state;
    char torn[1100], command[4096];
    snprintf(torn, sizeof torn, "%s.torn", path);
    snprintf(command, sizeof command,
             "head -n 500 \"%s\" | sed '200,220d; 300s/.*/not json at all/' >\"%s\"; printf "
             "'{\"event\":\"st' >>\"%s\"",
             path, torn, torn);
    assert_int_equal(system(command), 0);
    struct feed *feed = open_record(torn, 1);
    assert_non_null(feed);
    read_all(feed);
    assert_int_equal(feed->ops->move(feed, MOVE_END, 0), STATUS_OK);
    assert_true(feed->state->crashed);
    assert_true(feed->state->missing >= 21);
    struct feed_status about;
    feed->ops->status(feed, &about);
    assert_true(*about.trouble);
    assert_int_equal(feed->ops->move(feed, MOVE_BEGIN, 0), STATUS_OK);
    assert_false(feed->state->crashed);
    feed_close(feed);
}

static void no_record(void **state) {
    (void)state;
    char empty[1100];
    snprintf(empty, sizeof empty, "%s.empty", path);
    close(open(empty, O_CREAT | O_WRONLY, 0600));
    struct feed *feed;
    struct replay_options options = {.at = 1};
    assert_int_equal(feed_replay(empty, &options, &feed), STATUS_BAD_INPUT);
    assert_int_equal(feed_replay("/nonexistent/record", &options, &feed), STATUS_NOT_FOUND);
}

static int make_record(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s/record.jsonl", getenv("TEST_TMP"));
    return stream_write(&script, path) == STATUS_OK ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeking), cmocka_unit_test(behind_the_end), cmocka_unit_test(a_long_gap),
        cmocka_unit_test(markers), cmocka_unit_test(phases),         cmocka_unit_test(playing),
        cmocka_unit_test(damaged), cmocka_unit_test(no_record),
    };
    return cmocka_run_group_tests(tests, make_record, NULL);
}
