#include "tests/support/hub_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/cmocka.h"
#include "tests/support/events.h"

static void say(void *context, const char *text) {
    (void)context;
    (void)text;
}

void hub_run_start(struct hub_run *h) {
    assert_int_equal(lock_take(h->run.folder, &h->lock), STATUS_OK);
    struct hub_options options = {.run = h->run, .say = say, .control_seconds = h->control_seconds};
    if (hub_open(&options, &h->hub) != STATUS_OK)
        fail_msg("%s", status_text());
}

void hub_run_stop(struct hub_run *h) {
    hub_close(h->hub);
    h->hub = NULL;
    lock_give(&h->lock);
}

void hub_run_open(struct hub_run *h) {
    const char *tmp = getenv("TEST_TMP");
    char path[500];
    *h = (struct hub_run){.lock = {-1, -1}, .control_seconds = 1e6};
    snprintf(h->folder, sizeof h->folder, "%s/hub.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(h->folder));
    snprintf(path, sizeof path, "%s/state", h->folder);
    setenv("XDG_STATE_HOME", path, 1);
    snprintf(path, sizeof path, "%s/run-1", h->folder);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(live_describe(path, &h->run), STATUS_OK);
    hub_run_start(h);
}

void hub_run_close(struct hub_run *h) {
    hub_run_stop(h);
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", h->folder);
    assert_int_equal(system(command), 0);
}

int hub_run_set_up(void **h) {
    hub_run_open(*h);
    return 0;
}

int hub_run_tear_down(void **h) {
    hub_run_close(*h);
    return 0;
}

void hub_run_steps(const struct hub_run *h, int64_t first, int64_t last, bool recorded) {
    struct arena arena = {0};
    for (int64_t step = first; step <= last; step++) {
        struct event event = events_step(0, step, 2, &arena);
        hub_emit(h->hub, &event, recorded);
        arena_reset(&arena);
    }
    arena_free(&arena);
}

void hub_run_note(const struct hub_run *h, const char *text, bool recorded) {
    struct event event = event_new(EVENT_NOTE);
    event.note.text = text;
    hub_emit(h->hub, &event, recorded);
}

const char *hub_run_status(const struct hub_run *h) {
    static struct watcher ctl;
    ctl = watch_as(h, "ctl", false, true);
    TAKE_UNTIL(&ctl, client_state(ctl.client) == CLIENT_LIVE);
    assert_int_equal(client_send(ctl.client, "status", WIRE_UNKNOWN_INT, NULL), STATUS_OK);
    TAKE_UNTIL(&ctl, ctl.status[0]);
    client_close(ctl.client);
    return ctl.reason;
}

/* ---- a client that keeps count */

struct watcher watch_as(const struct hub_run *h, const char *program, bool watch, bool commands_only) {
    struct watcher w = {0};
    struct client_options options = {program, "test", watch, commands_only};
    assert_int_equal(client_open(&h->run, &options, &w.client), STATUS_OK);
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

bool watcher_take(struct watcher *w) {
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
