/* The hub against clients good and bad: all get the whole stream, nobody holds up training. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/hub/hub.h"
#include "engine/wire/client.h"
#include "engine/wire/codec.h"
#include "engine/wire/lock.h"
#include "engine/wire/record.h"
#include "tests/support/bad_client.h"
#include "tests/support/cmocka.h"
#include "tests/support/events.h"

static const double LIMIT = 100; /* seconds */

static char folder[400];
static struct live_run run;
static struct hub *hub;
static struct lock lock = {-1, -1};
static atomic_int said;

static void say(void *context, const char *text) {
    (void)context;
    (void)text;
    atomic_fetch_add(&said, 1);
}

static void start_hub(void) {
    assert_int_equal(lock_take(run.folder, &lock), STATUS_OK);
    struct hub_options options = {.run = run, .say = say};
    if (hub_open(&options, &hub) != STATUS_OK)
        fail_msg("%s", status_text());
}

static void stop_hub(void) {
    hub_close(hub);
    hub = NULL;
    lock_give(&lock);
}

static int set_up(void **context) {
    (void)context;
    const char *tmp = getenv("TEST_TMP");
    char path[500];
    snprintf(folder, sizeof folder, "%s/hub.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/state", folder);
    setenv("XDG_STATE_HOME", path, 1);
    snprintf(path, sizeof path, "%s/run-1", folder);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(live_describe(path, &run), STATUS_OK);
    start_hub();
    return 0;
}

static int tear_down(void **context) {
    (void)context;
    stop_hub();
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* ---- a client that keeps count */

struct watcher {
    struct client *client;
    int64_t last_seq, events, steps, gaps, live_steps;
    bool yours, ended;
    char status[16], reason[200], asking[40], pending[40];
};

static struct watcher watch_as(const char *program, bool watch, bool commands_only) {
    struct watcher w = {0};
    struct client_options options = {program, "test", watch, commands_only};
    assert_int_equal(client_open(&run, &options, &w.client), STATUS_OK);
    return w;
}

static void copy_text(char *out, size_t size, const char *text) {
    snprintf(out, size, "%s", text ? text : "");
}

static void note_event(struct watcher *w, const struct event *event) {
    w->events++;
    if (event->seq > 0) {
        if (event->seq != w->last_seq + 1)
            fail_msg("event %lld after %lld", (long long)event->seq, (long long)w->last_seq);
        w->last_seq = event->seq;
    }
    w->steps += event->kind == EVENT_STEP;
    w->live_steps += event->kind == EVENT_STEP && event->seq == 0;
    w->gaps += event->kind == EVENT_GAP;
    w->ended |= event->kind == EVENT_RUN_END;
    if (event->kind == EVENT_CONTROL) {
        w->yours = event->control.yours;
        copy_text(w->asking, sizeof w->asking, event->control.asking_user);
    }
    if (event->kind == EVENT_COMMAND && strcmp(event->command.status, "pending") != 0) {
        copy_text(w->status, sizeof w->status, event->command.status);
        copy_text(w->reason, sizeof w->reason, event->command.reason);
    } else if (event->kind == EVENT_COMMAND) {
        copy_text(w->pending, sizeof w->pending, event->command.text);
    }
}

/* Take what there is now; false: nothing came. */
static bool take(struct watcher *w) {
    struct arena arena = {0};
    struct event event;
    bool any = false;
    while (client_next(w->client, &arena, &event) == STATUS_OK) {
        note_event(w, &event);
        any = true;
        arena_reset(&arena);
    }
    arena_free(&arena);
    return any;
}

/* Take until `done`, or until LIMIT is over: what is waited for comes at once on a machine that has time. */
#define TAKE_UNTIL(w, done)                                                                                  \
    do {                                                                                                     \
        double end_ = clock_seconds() + LIMIT;                                                               \
        for (take(w); !(done); take(w)) {                                                                    \
            if (clock_seconds() > end_)                                                                      \
                fail_msg("waited in vain for %s", #done);                                                    \
            struct pollfd polled_ = {.fd = client_fd((w)->client), .events = POLLIN};                        \
            int wait_ = client_wait((w)->client);                                                            \
            poll(&polled_, 1, wait_<0 || wait_> 100 ? 100 : wait_);                                          \
        }                                                                                                    \
    } while (0)

static void emit_steps(int64_t first, int64_t last, bool recorded) {
    struct arena arena = {0};
    for (int64_t step = first; step <= last; step++) {
        struct event event = events_step(0, step, 2, &arena);
        hub_emit(hub, &event, recorded);
        arena_reset(&arena);
    }
    arena_free(&arena);
}

static void emit_note(const char *text, bool recorded) {
    struct event event = event_new(EVENT_NOTE);
    event.note.text = text;
    hub_emit(hub, &event, recorded);
}

static void everybody_gets_the_whole_stream(void **context) {
    (void)context;
    emit_steps(1, 500, true);
    struct watcher early = watch_as("console", false, false);
    TAKE_UNTIL(&early, early.last_seq == 500);
    emit_steps(501, 2000, true);
    struct watcher late = watch_as("console", false, false);
    emit_steps(2001, 4000, true);
    TAKE_UNTIL(&early, early.last_seq == 4000);
    TAKE_UNTIL(&late, late.last_seq == 4000);
    assert_int_equal(early.steps, 4000);
    assert_int_equal(late.steps, 4000);
    assert_int_equal(client_state(early.client), CLIENT_LIVE);
    /* it keeps up when it reads; at most the end of what it missed is still to come */
    int64_t gaps = early.gaps;
    for (int64_t i = 0; i < 20; i++) {
        emit_note("a", true);
        TAKE_UNTIL(&early, early.last_seq == 4001 + i);
    }
    assert_true(early.gaps <= gaps + 1);
    client_close(early.client);
    client_close(late.client);
}

static void live_steps_are_ten_a_second_at_most(void **context) {
    (void)context;
    struct watcher w = watch_as("console", false, false);
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_LIVE && w.yours);
    double start = clock_seconds();
    emit_steps(1, 3000, false);
    emit_note("the end", true);
    TAKE_UNTIL(&w, w.last_seq == 1);
    assert_true((double)w.live_steps <= (clock_seconds() - start) * 10 + 1);
    assert_true(w.live_steps >= 1);
    client_close(w.client);
}

/* The thread is not woken for steps that come soon after others: it looks for them by itself. */
static void steps_soon_after_others_are_not_left_lying(void **context) {
    (void)context;
    struct watcher w = watch_as("console", false, false);
    TAKE_UNTIL(&w, w.yours);
    for (int64_t step = 1; step <= 5; step++) {
        emit_steps(step, step, true);
        TAKE_UNTIL(&w, w.last_seq == step);
    }
    emit_steps(6, 6, true);
    assert_true(hub_flush(hub)); /* whoever waits wakes it */
    TAKE_UNTIL(&w, w.last_seq == 6);
    client_close(w.client);
}

static void a_slow_reader_gets_a_gap_and_loses_nothing(void **context) {
    (void)context;
    struct watcher slow = watch_as("console", false, false);
    TAKE_UNTIL(&slow, slow.yours);
    emit_steps(1, 20000, true); /* far more than its queue and its socket hold */
    struct watcher quick = watch_as("console", true, false);
    TAKE_UNTIL(&quick, quick.last_seq == 20000);
    TAKE_UNTIL(&slow, slow.last_seq == 20000);
    assert_true(slow.gaps >= 1);
    assert_int_equal(slow.steps, 20000);
    emit_note("on", true);
    TAKE_UNTIL(&slow, slow.last_seq == 20001);
    client_close(slow.client);
    client_close(quick.client);
}

static void commands_reach_the_trainer_and_are_answered(void **context) {
    (void)context;
    struct watcher w = watch_as("console", false, false);
    TAKE_UNTIL(&w, w.yours);
    char id[40];
    struct command command;
    assert_int_equal(client_send(w.client, "towers x", WIRE_UNKNOWN_INT, id), STATUS_BAD_INPUT);
    assert_int_equal(client_send(w.client, "towers 4", 120, id), STATUS_OK);
    TAKE_UNTIL(&w, !strcmp(w.pending, "towers 4"));
    assert_false(hub_take(hub, 119, &command));
    assert_true(hub_take(hub, 120, &command));
    assert_true(command.kind == COMMAND_TOWERS && command.count == 4 && command.at == 120);
    assert_string_equal(command.id, id);
    assert_non_null(strstr(command.from, "@test"));
    assert_false(hub_take(hub, 1000, &command));
    struct event event = event_new(EVENT_COMMAND);
    event.command.id = command.id;
    event.command.text = command.text;
    event.command.status = "applied";
    event.command.reason = "because";
    hub_emit(hub, &event, true);
    TAKE_UNTIL(&w, !strcmp(w.status, "applied"));
    assert_string_equal(w.reason, "because");
    /* ctl needs no control and sees only answers */
    struct watcher ctl = watch_as("ctl", false, true);
    TAKE_UNTIL(&ctl, client_state(ctl.client) == CLIENT_LIVE);
    assert_int_equal(client_send(ctl.client, "pause", WIRE_UNKNOWN_INT, id), STATUS_OK);
    struct pollfd polled = {.fd = hub_command_fd(hub), .events = POLLIN};
    assert_int_equal(poll(&polled, 1, (int)(1000 * LIMIT)), 1);
    assert_true(hub_take(hub, 0, &command) && command.kind == COMMAND_PAUSE);
    assert_string_equal(command.from, "ctl");
    emit_steps(1, 10, true);
    assert_int_equal(client_send(ctl.client, "status", WIRE_UNKNOWN_INT, id), STATUS_OK);
    TAKE_UNTIL(&ctl, !strcmp(ctl.status, "applied"));
    assert_non_null(strstr(ctl.reason, "step 10"));
    /* what the next step will use, and not what was refused */
    event.command.text = "set lr 0.0625";
    hub_emit(hub, &event, false);
    struct event refused = event;
    refused.command.text = "set lr 3";
    refused.command.status = "refused";
    refused.command.reason = "too fast";
    hub_emit(hub, &refused, false);
    TAKE_UNTIL(&w, !strcmp(w.reason, "too fast"));
    assert_int_equal(client_send(ctl.client, "status", WIRE_UNKNOWN_INT, id), STATUS_OK);
    TAKE_UNTIL(&ctl, strstr(ctl.reason, "lr 0.0625"));
    assert_int_equal(ctl.steps, 0);
    assert_int_equal(client_send(ctl.client, "status --json", WIRE_UNKNOWN_INT, id), STATUS_OK);
    TAKE_UNTIL(&ctl, ctl.reason[0] == '{');
    assert_non_null(strstr(ctl.reason, "\"step\":10"));
    /* a wrong rule is told from its command on, until it is taken back */
    for (int i = 0; i < 2; i++) {
        event.command.text = i ? "why restore" : "why apply sum";
        *w.reason = 0;
        hub_emit(hub, &event, false);
        TAKE_UNTIL(&w, *w.reason); /* it is on its way to ctl too, before the answer */
        *ctl.reason = 0;
        assert_int_equal(client_send(ctl.client, "status", WIRE_UNKNOWN_INT, id), STATUS_OK);
        TAKE_UNTIL(&ctl, strstr(ctl.reason, "step 10"));
        assert_int_equal(strstr(ctl.reason, "wrong rule sum") != NULL, i == 0);
    }
    /* at its end the run takes no more */
    hub_end_commands(hub);
    assert_int_equal(client_send(ctl.client, "pause", WIRE_UNKNOWN_INT, id), STATUS_OK);
    TAKE_UNTIL(&ctl, !strcmp(ctl.status, "refused"));
    assert_non_null(strstr(ctl.reason, "ending"));
    assert_false(hub_take(hub, INT64_MAX, &command));
    client_close(ctl.client);
    client_close(w.client);
}

static void one_console_holds_control(void **context) {
    (void)context;
    struct watcher a = watch_as("console", false, false);
    TAKE_UNTIL(&a, a.yours);
    struct watcher b = watch_as("console", false, false), c = watch_as("console", true, false);
    TAKE_UNTIL(&b, client_state(b.client) == CLIENT_LIVE);
    TAKE_UNTIL(&c, client_state(c.client) == CLIENT_LIVE);
    assert_int_equal(client_send(b.client, "pause", WIRE_UNKNOWN_INT, NULL), STATUS_OK);
    TAKE_UNTIL(&b, !strcmp(b.status, "refused"));
    assert_non_null(strstr(b.reason, "control"));
    assert_int_equal(client_send(c.client, "pause", WIRE_UNKNOWN_INT, NULL), STATUS_REFUSED);
    assert_int_equal(client_control(c.client, "ask"), STATUS_REFUSED);
    /* asked and refused */
    assert_int_equal(client_control(b.client, "ask"), STATUS_OK);
    TAKE_UNTIL(&a, a.asking[0]);
    assert_int_equal(client_control(a.client, "refuse"), STATUS_OK);
    TAKE_UNTIL(&a, !a.asking[0]);
    assert_true(a.yours);
    /* asked and given */
    assert_int_equal(client_control(b.client, "ask"), STATUS_OK);
    TAKE_UNTIL(&a, a.asking[0]);
    assert_int_equal(client_control(a.client, "give"), STATUS_OK);
    TAKE_UNTIL(&b, b.yours);
    TAKE_UNTIL(&a, !a.yours);
    /* the holder dies: the other console has it, never the one that only watches */
    client_close(b.client);
    TAKE_UNTIL(&a, a.yours);
    client_close(a.client);
    struct watcher d = watch_as("console", false, false);
    TAKE_UNTIL(&d, d.yours);
    take(&c);
    assert_false(c.yours);
    client_close(c.client);
    client_close(d.client);
}

static int open_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

static const char *status_answer(void) {
    static struct watcher ctl;
    ctl = watch_as("ctl", false, true);
    TAKE_UNTIL(&ctl, client_state(ctl.client) == CLIENT_LIVE);
    assert_int_equal(client_send(ctl.client, "status", WIRE_UNKNOWN_INT, NULL), STATUS_OK);
    TAKE_UNTIL(&ctl, ctl.status[0]);
    client_close(ctl.client);
    return ctl.reason;
}

static void bad_clients_do_no_harm(void **context) {
    (void)context;
    int before = open_descriptors();
    struct watcher good = watch_as("console", false, false);
    TAKE_UNTIL(&good, good.yours);
    int fds[60], count = 0;
    struct random random = random_begin(9, RANDOM_TEST, 0);
    static char garbage[70000];
    for (size_t i = 0; i < sizeof garbage; i++)
        garbage[i] = (char)random_u32(&random);
    for (int i = 0; i < 10; i++) {
        assert_true((fds[count++] = bad_connect(&run)) >= 0); /* silent */
        assert_true((fds[count++] = bad_connect(&run)) >= 0); /* half a line */
        bad_say(fds[count - 1], "{\"client\":\"con");
        assert_true((fds[count++] = bad_connect(&run)) >= 0); /* a line without end */
        static char endless[100000];
        memset(endless, 'A', sizeof endless);
        bad_send(fds[count - 1], endless, sizeof endless);
        assert_true((fds[count++] = bad_connect(&run)) >= 0); /* garbage */
        bad_send(fds[count - 1], garbage, sizeof garbage);
        assert_true((fds[count++] = bad_connect(&run)) >= 0); /* never reads */
        bad_greet(fds[count - 1], WIRE_PROTOCOL, "console", true);
    }
    for (int i = 0; i < 500; i++) { /* slam */
        int fd = bad_connect(&run);
        assert_true(fd >= 0);
        bad_greet(fd, WIRE_PROTOCOL, "console", true);
        close(fd);
    }
    emit_steps(1, 5000, true);
    TAKE_UNTIL(&good, good.last_seq == 5000);
    assert_non_null(strstr(status_answer(), "step 5000"));
    for (int i = 0; i < count; i++)
        close(fds[i]);
    client_close(good.client);
    double end = clock_seconds() + LIMIT;
    int left;
    while ((left = open_descriptors()) > before && clock_seconds() < end)
        poll(NULL, 0, 20);
    assert_true(left <= before);
}

static void the_number_of_clients_has_a_limit(void **context) {
    (void)context;
    enum { MOST = 256, MORE = MOST + 16 };
    int fds[MORE];
    char line[4096];
    /* those that do not say who they are make room */
    for (int i = 0; i < MORE; i++)
        assert_true((fds[i] = bad_connect(&run)) >= 0);
    assert_non_null(status_answer());
    assert_true(bad_closed(fds[0], LIMIT));
    for (int i = 0; i < MORE; i++)
        close(fds[i]);
    /* those that do, don't: the next is refused with a reason */
    int refused = 0;
    for (int i = 0; i < MORE; i++) {
        assert_true((fds[i] = bad_connect(&run)) >= 0);
        bad_greet(fds[i], WIRE_PROTOCOL, "console", false);
        assert_true(bad_line(fds[i], line, sizeof line, LIMIT));
        if (strstr(line, "attached already")) {
            refused++;
            continue;
        }
        assert_non_null(strstr(line, "\"hello\""));
        bad_say(fds[i], "{\"command\":\"status\",\"id\":\"1\"}\n"); /* its answer: the greeting is read */
        assert_true(bad_line(fds[i], line, sizeof line, LIMIT));
    }
    /* one that has just left may still be counted */
    assert_true(refused == MORE - MOST || refused == MORE - MOST + 1);
    for (int i = 0; i < MORE; i++)
        close(fds[i]);
    assert_non_null(status_answer());
}

static void silent_and_babbling_clients_are_dropped(void **context) {
    (void)context;
    char line[4096];
    int babbler = bad_connect(&run), silent = bad_connect(&run);
    assert_true(babbler >= 0 && silent >= 0);
    for (int i = 0; i < 10; i++)
        bad_say(babbler, "what?\n");
    assert_true(bad_line(babbler, line, sizeof line, LIMIT)); /* hello */
    assert_true(bad_line(babbler, line, sizeof line, LIMIT));
    assert_non_null(strstr(line, "no line of a client"));
    assert_true(bad_closed(babbler, LIMIT));
    assert_true(bad_closed(silent, LIMIT));
    close(babbler);
    close(silent);
}

static void another_protocol_may_only_save_and_stop(void **context) {
    (void)context;
    char line[4096];
    struct command command;
    int console = bad_connect(&run), ctl = bad_connect(&run);
    bad_greet(console, WIRE_PROTOCOL + 1, "console", true);
    bad_greet(ctl, WIRE_PROTOCOL + 1, "ctl", false);
    assert_true(bad_line(console, line, sizeof line, LIMIT));
    assert_non_null(strstr(line, "\"protocol\":1,\"version\":\"" TOWERSCOPE_VERSION "\""));
    assert_true(bad_closed(console, LIMIT));
    assert_true(bad_line(ctl, line, sizeof line, LIMIT));
    bad_say(ctl, "{\"command\":\"towers 4\",\"id\":\"1\"}\n");
    assert_true(bad_line(ctl, line, sizeof line, LIMIT));
    assert_non_null(strstr(line, "refused"));
    bad_say(ctl, "{\"command\":\"save\",\"id\":\"2\"}\n");
    assert_true(bad_line(ctl, line, sizeof line, LIMIT));
    assert_non_null(strstr(line, "pending"));
    assert_true(hub_take(hub, 0, &command) && command.kind == COMMAND_SAVE);
    close(console);
    close(ctl);
}

/* An engine of another protocol, for our client. */
static void a_client_says_what_to_do_about_another_version(void **context) {
    (void)context;
    hub_close(hub);
    hub = NULL;
    int fd, listener;
    assert_int_equal(live_folder_open(true, &fd), STATUS_OK);
    assert_int_equal(live_enter(fd, &run), STATUS_OK);
    assert_int_equal(live_listen(fd, &run, &listener), STATUS_OK);
    struct watcher w = watch_as("console", false, false);
    take(&w);
    struct pollfd polled = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, (int)(1000 * LIMIT)), 1);
    int peer = accept(listener, NULL, NULL);
    static const char hello[] =
        "{\"event\":\"hello\",\"protocol\":2,\"version\":\"7.5\",\"shape\":[1],\"run\":\"x\"}\n";
    bad_say(peer, hello);
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_MISMATCH);
    assert_true(strstr(client_trouble(w.client), "7.5") &&
                strstr(client_trouble(w.client), TOWERSCOPE_VERSION) &&
                strstr(client_trouble(w.client), "stop"));
    assert_int_equal(client_wait(w.client), -1);
    client_close(w.client);
    close(peer);
    close(listener);
    close(fd);
}

static bool exists(const char *ending) {
    char path[700];
    struct stat info;
    snprintf(path, sizeof path, "%s/state/towerscope/live/%s.%s", folder, run.id, ending);
    return lstat(path, &info) == 0;
}

static void the_socket_is_made_again(void **context) {
    (void)context;
    struct watcher w = watch_as("console", false, false);
    TAKE_UNTIL(&w, w.yours);
    char command[700];
    snprintf(command, sizeof command, "rm -rf '%s/state'", folder);
    assert_int_equal(system(command), 0);
    double end = clock_seconds() + LIMIT;
    while (!(exists("sock") && exists("run")) && clock_seconds() < end)
        poll(NULL, 0, 10);
    assert_true(exists("sock") && exists("run"));
    assert_non_null(status_answer());
    emit_note("the old connection stands", true);
    TAKE_UNTIL(&w, w.last_seq == 1);
    client_close(w.client);
}

static void an_orderly_end_and_a_crash_are_told_apart(void **context) {
    (void)context;
    struct watcher w = watch_as("console", false, false);
    emit_steps(1, 10, true);
    struct event end = event_new(EVENT_RUN_END);
    end.run_end.reason = "done";
    hub_emit(hub, &end, true);
    stop_hub();
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_ENDED);
    assert_true(w.last_seq == 11 && w.ended);
    assert_false(exists("sock") || exists("run"));
    /* it is resumed: the same console goes on with it */
    start_hub();
    emit_steps(11, 20, true);
    TAKE_UNTIL(&w, w.last_seq == 21);
    /* a hub that is closed without run_end is what a crash looks like from outside */
    stop_hub();
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_CRASHED);
    client_close(w.client);
    /* and whoever comes later reads the record */
    w = watch_as("console", false, false);
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_CRASHED);
    assert_int_equal(w.last_seq, 21);
    client_close(w.client);
}

static void a_lost_connection_is_made_again(void **context) {
    (void)context;
    emit_steps(1, 100, true);
    struct watcher w = watch_as("console", false, false);
    TAKE_UNTIL(&w, w.last_seq == 100);
    shutdown(client_fd(w.client), SHUT_RDWR);
    emit_steps(101, 200, true);
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
    snprintf(moved, sizeof moved, "%s/run-2", folder);
    snprintf(again, sizeof again, "%s/run-3", folder);
    emit_steps(1, 10, true);
    struct watcher w = watch_as("console", false, false);
    TAKE_UNTIL(&w, w.last_seq == 10);
    assert_int_equal(rename(run.folder, moved), 0);
    assert_int_equal(mkdir(run.folder, 0755), 0);
    stop_hub();
    TAKE_UNTIL(&w, client_state(w.client) == CLIENT_CRASHED);
    assert_string_equal(client_run(w.client)->name, "run-2");
    assert_int_equal(rename(moved, again), 0);
    assert_int_equal(live_describe(again, &run), STATUS_OK);
    start_hub();
    emit_steps(11, 20, true);
    TAKE_UNTIL(&w, w.last_seq == 20);
    assert_string_equal(client_run(w.client)->folder, run.folder);
    client_close(w.client);
}

static int64_t count_alarms(const char *words) {
    struct record_reader *reader;
    struct arena arena = {0};
    struct event event;
    int64_t count = 0;
    assert_int_equal(record_reader_open(run.folder, 0, &reader), STATUS_OK);
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
        hub_emit(hub, &alarm, true);
        if (i % 1000 == 0) {
            alarm.alarm.text = i ? "other words" : "first words";
            hub_emit(hub, &alarm, true);
        }
    }
    (void)hub_flush(hub);
    assert_int_equal(count_alarms("the disk is slow"), 5);
    assert_int_equal(count_alarms("(10000 times)"), 1);
    assert_int_equal(count_alarms("other words"), 2);
}

static void a_full_disk_stops_nothing(void **context) {
    (void)context;
    stop_hub();
    char path[700];
    snprintf(path, sizeof path, "%s/run-1/" RECORD_FILE, folder);
    unlink(path);
    assert_int_equal(symlink("/dev/full", path), 0);
    start_hub();
    struct watcher w = watch_as("console", false, false);
    TAKE_UNTIL(&w, w.yours);
    emit_steps(1, 100, true);
    TAKE_UNTIL(&w, w.last_seq == 101); /* with the alarm */
    struct watcher late = watch_as("console", false, false);
    TAKE_UNTIL(&late, late.last_seq == 101); /* from memory */
    client_close(w.client);
    client_close(late.client);
}

static void a_line_too_long_is_left_out_and_told(void **context) {
    (void)context;
    static char text[WIRE_LINE_MAX];
    memset(text, 'x', sizeof text - 1);
    emit_note(text, true);
    emit_note("after", true);
    (void)hub_flush(hub);
    assert_int_equal(count_alarms("a line has at most"), 1);
}

static void *emit_many(void *context) {
    (void)context;
    for (int i = 0; i < 2000; i++)
        emit_note("from a thread", i % 3 != 0);
    return NULL;
}

static void any_thread_may_emit(void **context) {
    (void)context;
    pthread_t threads[4];
    struct watcher w = watch_as("console", false, false);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, emit_many, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    TAKE_UNTIL(&w, w.last_seq == 4 * 1333);
    client_close(w.client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(everybody_gets_the_whole_stream),
        TEST(live_steps_are_ten_a_second_at_most),
        TEST(steps_soon_after_others_are_not_left_lying),
        TEST(a_slow_reader_gets_a_gap_and_loses_nothing),
        TEST(commands_reach_the_trainer_and_are_answered),
        TEST(one_console_holds_control),
        TEST(bad_clients_do_no_harm),
        TEST(the_number_of_clients_has_a_limit),
        TEST(silent_and_babbling_clients_are_dropped),
        TEST(another_protocol_may_only_save_and_stop),
        TEST(a_client_says_what_to_do_about_another_version),
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
