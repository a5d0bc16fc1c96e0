/* The hub's stream and its record: everybody gets all of it, whatever becomes of clients, disk, folder and
 * engine. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/wire/record.h"
#include "tests/support/cmocka.h"
#include "tests/support/events.h"
#include "tests/support/hub_run.h"

static struct hub_run h;

static void everybody_gets_the_whole_stream(void **context) {
    (void)context;
    hub_run_steps(&h, 1, 500, true);
    struct watcher early = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&early, early.last_seq == 500);
    hub_run_steps(&h, 501, 2000, true);
    struct watcher late = watch_as(&h, "console", false, false);
    hub_run_steps(&h, 2001, 4000, true);
    TAKE_UNTIL(&early, early.last_seq == 4000);
    TAKE_UNTIL(&late, late.last_seq == 4000);
    assert_int_equal(early.steps, 4000);
    assert_int_equal(late.steps, 4000);
    assert_int_equal(client_state(early.client), CLIENT_LIVE);
    /* it keeps up when it reads; at most the end of what it missed is still to come */
    int64_t gaps = early.gaps;
    for (int64_t i = 0; i < 20; i++) {
        hub_run_note(&h, "a", true);
        TAKE_UNTIL(&early, early.last_seq == 4001 + i);
    }
    assert_true(early.gaps <= gaps + 1);
    client_close(early.client);
    client_close(late.client);
}

static void live_steps_are_ten_a_second_at_most(void **context) {
    (void)context;
    struct watcher w = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_LIVE && w.yours);
    double start = clock_seconds();
    hub_run_steps(&h, 1, 3000, false);
    hub_run_note(&h, "the end", true);
    TAKE_UNTIL(&w, w.last_seq == 1);
    assert_true((double)w.live_steps <= (clock_seconds() - start) * 10 + 1);
    assert_true(w.live_steps >= 1);
    client_close(w.client);
}

/* The thread is not woken for steps that come soon after others: it looks for them by itself. */
static void steps_soon_after_others_are_not_left_lying(void **context) {
    (void)context;
    struct watcher w = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&w, w.yours);
    for (int64_t step = 1; step <= 5; step++) {
        hub_run_steps(&h, step, step, true);
        TAKE_UNTIL(&w, w.last_seq == step);
    }
    hub_run_steps(&h, 6, 6, true);
    assert_true(hub_flush(h.hub)); /* whoever waits wakes it */
    TAKE_UNTIL(&w, w.last_seq == 6);
    client_close(w.client);
}

static void go_back(int64_t from, int64_t to) {
    struct event event = event_new(EVENT_REWIND);
    event.rewind.step = from;
    event.rewind.to = to;
    hub_emit(h.hub, &event, true);
}

/* A loss of a step that was taken back is not said to be that of the step gone back to. */
static void a_rewind_takes_the_loss_back_too(void **context) {
    (void)context;
    char before[200];
    hub_run_steps(&h, 1, GOOD_EVERY, true);
    snprintf(before, sizeof before, "%s", hub_run_status(&h));
    assert_non_null(strstr(before, "step 100,"));
    assert_non_null(strstr(before, "loss "));
    struct arena arena = {0};
    struct event bad = events_step(0, GOOD_EVERY + 1, 2, &arena);
    bad.step.loss = 5e15;
    hub_emit(h.hub, &bad, true);
    assert_non_null(strstr(hub_run_status(&h), "loss 5.0000e+15"));
    go_back(GOOD_EVERY + 1, GOOD_EVERY);
    assert_string_equal(hub_run_status(&h), before);
    /* to a step whose loss was not kept: it is left out */
    hub_emit(h.hub, &bad, true);
    go_back(GOOD_EVERY + 1, 7);
    assert_non_null(strstr(hub_run_status(&h), "step 7,"));
    assert_non_null(strstr(hub_run_status(&h), " lr "));
    assert_null(strstr(hub_run_status(&h), "loss"));
    arena_free(&arena);
}

static void a_slow_reader_gets_a_gap_and_loses_nothing(void **context) {
    (void)context;
    struct watcher slow = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&slow, slow.yours);
    hub_run_steps(&h, 1, 20000, true); /* far more than its queue and its socket hold */
    struct watcher quick = watch_as(&h, "console", true, false);
    TAKE_UNTIL(&quick, quick.last_seq == 20000);
    TAKE_UNTIL(&slow, slow.last_seq == 20000);
    assert_true(slow.gaps >= 1);
    assert_int_equal(slow.steps, 20000);
    hub_run_note(&h, "on", true);
    TAKE_UNTIL(&slow, slow.last_seq == 20001);
    client_close(slow.client);
    client_close(quick.client);
}

static bool exists(const char *ending) {
    char path[700];
    struct stat info;
    snprintf(path, sizeof path, "%s/state/towerscope/live/%s.%s", h.folder, h.run.id, ending);
    return lstat(path, &info) == 0;
}

static void the_socket_is_made_again(void **context) {
    (void)context;
    struct watcher w = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&w, w.yours);
    char command[700];
    snprintf(command, sizeof command, "rm -rf '%s/state'", h.folder);
    assert_int_equal(system(command), 0);
    double end = clock_seconds() + WATCH_SECONDS;
    while (!(exists("sock") && exists("run")) && clock_seconds() < end)
        poll(NULL, 0, 10);
    assert_true(exists("sock") && exists("run"));
    assert_non_null(hub_run_status(&h));
    hub_run_note(&h, "the old connection stands", true);
    TAKE_UNTIL(&w, w.last_seq == 1);
    client_close(w.client);
}

static void an_orderly_end_and_a_crash_are_told_apart(void **context) {
    (void)context;
    struct watcher w = watch_as(&h, "console", false, false);
    hub_run_steps(&h, 1, 10, true);
    struct event end = event_new(EVENT_RUN_END);
    end.run_end.reason = "done";
    hub_emit(h.hub, &end, true);
    hub_run_stop(&h);
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_ENDED);
    assert_true(w.last_seq == 11 && w.ended);
    assert_false(exists("sock") || exists("run"));
    /* it is resumed: the same console goes on with it */
    hub_run_start(&h);
    hub_run_steps(&h, 11, 20, true);
    TAKE_UNTIL(&w, w.last_seq == 21);
    /* a hub that is closed without run_end is what a crash looks like from outside */
    hub_run_stop(&h);
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_CRASHED);
    client_close(w.client);
    /* and whoever comes later reads the record */
    w = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_CRASHED);
    assert_int_equal(w.last_seq, 21);
    client_close(w.client);
}

static void a_lost_connection_is_made_again(void **context) {
    (void)context;
    hub_run_steps(&h, 1, 100, true);
    struct watcher w = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&w, w.last_seq == 100);
    shutdown(client_fd(w.client), SHUT_RDWR);
    hub_run_steps(&h, 101, 200, true);
    TAKE_UNTIL(&w, w.last_seq == 200);
    assert_int_equal(w.steps, 200);
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_LIVE);
    client_close(w.client);
}

/* Moved while it runs and while it does not, even with another run in its old place: the same client goes on.
 */
static void a_run_that_was_moved_is_found_again(void **context) {
    (void)context;
    char moved[500], again[500];
    snprintf(moved, sizeof moved, "%s/run-2", h.folder);
    snprintf(again, sizeof again, "%s/run-3", h.folder);
    hub_run_steps(&h, 1, 10, true);
    struct watcher w = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&w, w.last_seq == 10);
    assert_int_equal(rename(h.run.folder, moved), 0);
    assert_int_equal(mkdir(h.run.folder, 0755), 0);
    hub_run_stop(&h);
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_CRASHED);
    assert_string_equal(client_run(w.client)->name, "run-2");
    assert_int_equal(rename(moved, again), 0);
    assert_int_equal(live_describe(again, &h.run), STATUS_OK);
    hub_run_start(&h);
    hub_run_steps(&h, 11, 20, true);
    TAKE_UNTIL(&w, w.last_seq == 20);
    assert_string_equal(client_run(w.client)->folder, h.run.folder);
    client_close(w.client);
}

static int64_t count_alarms(const char *words) {
    struct record_reader *reader;
    struct arena arena = {0};
    struct event event;
    int64_t count = 0;
    assert_int_equal(record_reader_open(h.run.folder, 0, &reader), STATUS_OK);
    while (record_next(reader, -1, &arena, &event) == STATUS_OK) {
        count += event.kind == EVENT_ALARM && strstr(event.alarm.text, words);
        arena_reset(&arena);
    }
    arena_free(&arena);
    record_reader_close(reader);
    return count;
}

static void repeated_alarms_are_counted(void **context) {
    (void)context;
    for (int i = 0; i < 12345; i++) {
        struct event alarm = event_new(EVENT_ALARM);
        alarm.alarm.level = "warning";
        alarm.alarm.step = i;
        alarm.alarm.text = "the disk is slow";
        hub_emit(h.hub, &alarm, true);
        if (i % 1000 == 0) {
            alarm.alarm.text = i ? "other words" : "first words";
            hub_emit(h.hub, &alarm, true);
        }
    }
    (void)hub_flush(h.hub);
    assert_int_equal(count_alarms("the disk is slow"), 5);
    assert_int_equal(count_alarms("(10000 times)"), 1);
    assert_int_equal(count_alarms("other words"), 2);
}

static void a_full_disk_stops_nothing(void **context) {
    (void)context;
    hub_run_stop(&h);
    char path[700];
    snprintf(path, sizeof path, "%s/run-1/" RECORD_FILE, h.folder);
    unlink(path);
    assert_int_equal(symlink("/dev/full", path), 0);
    hub_run_start(&h);
    struct watcher w = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&w, w.yours);
    hub_run_steps(&h, 1, 100, true);
    TAKE_UNTIL(&w, w.last_seq == 101); /* with the alarm */
    struct watcher late = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&late, late.last_seq == 101); /* from memory */
    client_close(w.client);
    client_close(late.client);
}

static void a_line_too_long_is_left_out_and_told(void **context) {
    (void)context;
    static char text[WIRE_LINE_MAX];
    memset(text, 'x', sizeof text - 1);
    hub_run_note(&h, text, true);
    hub_run_note(&h, "after", true);
    (void)hub_flush(h.hub);
    assert_int_equal(count_alarms("a line has at most"), 1);
}

static void *emit_many(void *context) {
    (void)context;
    for (int i = 0; i < 2000; i++)
        hub_run_note(&h, "from a thread", i % 3 != 0);
    return NULL;
}

static void any_thread_may_emit(void **context) {
    (void)context;
    pthread_t threads[4];
    struct watcher w = watch_as(&h, "console", false, false);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, emit_many, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    TAKE_UNTIL(&w, w.last_seq == 4 * 1333);
    client_close(w.client);
}

#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, hub_run_set_up, hub_run_tear_down, &h)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(everybody_gets_the_whole_stream),
        TEST(live_steps_are_ten_a_second_at_most),
        TEST(steps_soon_after_others_are_not_left_lying),
        TEST(a_rewind_takes_the_loss_back_too),
        TEST(a_slow_reader_gets_a_gap_and_loses_nothing),
        TEST(the_socket_is_made_again),
        TEST(an_orderly_end_and_a_crash_are_told_apart),
        TEST(a_lost_connection_is_made_again),
        TEST(a_run_that_was_moved_is_found_again),
        TEST(repeated_alarms_are_counted),
        TEST(a_full_disk_stops_nothing),
        TEST(a_line_too_long_is_left_out_and_told),
        TEST(any_thread_may_emit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
