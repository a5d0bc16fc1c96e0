/* The hub's clients: commands, control, other versions, and those who mean harm: nobody holds up training. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "tests/support/bad_client.h"
#include "tests/support/cmocka.h"
#include "tests/support/hub_run.h"

static struct hub_run h;

static void commands_reach_the_trainer_and_are_answered(void **context) {
    (void)context;
    struct watcher w = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&w, w.yours);
    char id[40];
    struct command command;
    assert_int_equal(client_send(w.client, "towers x", WIRE_UNKNOWN_INT, id), STATUS_BAD_INPUT);
    assert_int_equal(client_send(w.client, "towers 4", 120, id), STATUS_OK);
    TAKE_UNTIL(&w, !strcmp(w.pending, "towers 4"));
    assert_false(hub_take(h.hub, 119, &command));
    assert_true(hub_take(h.hub, 120, &command));
    assert_true(command.kind == COMMAND_TOWERS && command.count == 4 && command.at == 120);
    assert_string_equal(command.id, id);
    assert_non_null(strstr(command.from, "@test"));
    assert_false(hub_take(h.hub, 1000, &command));
    struct event event = event_new(EVENT_COMMAND);
    event.command.id = command.id;
    event.command.text = command.text;
    event.command.status = "applied";
    event.command.reason = "because";
    hub_emit(h.hub, &event, true);
    TAKE_UNTIL(&w, !strcmp(w.status, "applied"));
    assert_string_equal(w.reason, "because");
    /* ctl needs no control and sees only answers */
    struct watcher ctl = watch_as(&h, "ctl", false, true);
    TAKE_UNTIL(&ctl, client_state(ctl.client) == CLIENT_LIVE);
    assert_int_equal(client_send(ctl.client, "pause", WIRE_UNKNOWN_INT, id), STATUS_OK);
    struct pollfd polled = {.fd = hub_command_fd(h.hub), .events = POLLIN};
    assert_int_equal(poll(&polled, 1, (int)(1000 * WATCH_SECONDS)), 1);
    assert_true(hub_take(h.hub, 0, &command) && command.kind == COMMAND_PAUSE);
    assert_string_equal(command.from, "ctl");
    assert_false(hub_stop_waits(h.hub, 500));
    assert_int_equal(client_send(ctl.client, "stop", 500, id), STATUS_OK);
    assert_int_equal(poll(&polled, 1, (int)(1000 * WATCH_SECONDS)), 1);
    assert_false(hub_stop_waits(h.hub, 499));
    assert_true(hub_stop_waits(h.hub, 500));
    assert_true(hub_take(h.hub, 500, &command) && command.kind == COMMAND_STOP);
    assert_false(hub_stop_waits(h.hub, 500));
    hub_run_steps(&h, 1, 10, true);
    assert_int_equal(client_send(ctl.client, "status", WIRE_UNKNOWN_INT, id), STATUS_OK);
    TAKE_UNTIL(&ctl, !strcmp(ctl.status, "applied"));
    assert_non_null(strstr(ctl.reason, "step 10"));
    /* what the next step will use, and not what was refused */
    event.command.text = "set lr 0.0625";
    event.command.lr = 0.0625;
    hub_emit(h.hub, &event, false);
    struct event refused = event;
    refused.command.text = "set lr 3";
    refused.command.lr = wire_unknown();
    refused.command.status = "refused";
    refused.command.reason = "too fast";
    hub_emit(h.hub, &refused, false);
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
        hub_emit(h.hub, &event, false);
        TAKE_UNTIL(&w, *w.reason); /* it is on its way to ctl too, before the answer */
        *ctl.reason = 0;
        assert_int_equal(client_send(ctl.client, "status", WIRE_UNKNOWN_INT, id), STATUS_OK);
        TAKE_UNTIL(&ctl, strstr(ctl.reason, "step 10"));
        assert_int_equal(strstr(ctl.reason, "wrong rule sum") != NULL, i == 0);
    }
    /* at its end the run takes no more */
    hub_end_commands(h.hub);
    assert_int_equal(client_send(ctl.client, "pause", WIRE_UNKNOWN_INT, id), STATUS_OK);
    TAKE_UNTIL(&ctl, !strcmp(ctl.status, "refused"));
    assert_non_null(strstr(ctl.reason, "ending"));
    assert_false(hub_take(h.hub, INT64_MAX, &command));
    client_close(ctl.client);
    client_close(w.client);
}

/* Until there is something to read from fd. */
static void await_bytes(int fd) {
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, (int)(1000 * WATCH_SECONDS)), 1);
}

static void say_of(const struct command *command, const char *status, const char *reason) {
    struct event event = event_new(EVENT_COMMAND);
    event.command.id = command->id;
    event.command.text = command->text;
    event.command.status = status;
    event.command.reason = reason;
    hub_emit(h.hub, &event, strcmp(status, "pending") != 0);
}

/* Its time is over while it stands; what it then hears of its command gives it as much again. */
static void ctl_waits_while_it_is_told_how_far_its_command_is(void **context) {
    (void)context;
    int said[2], code;
    struct command command;
    char words[400];
    assert_int_equal(pipe(said), 0);
    pid_t ctl = fork();
    if (ctl == 0) {
        dup2(said[1], STDERR_FILENO);
        execl(getenv("TOWERSCOPE"), "towerscope", "ctl", h.run.folder, "towers", "9", "--timeout", "3",
              (char *)NULL);
        _exit(127);
    }
    close(said[1]);
    await_bytes(hub_command_fd(h.hub));
    assert_true(hub_take(h.hub, 0, &command) && command.kind == COMMAND_TOWERS);
    assert_int_equal(kill(ctl, SIGSTOP), 0);
    double end = clock_seconds() + 3;
    say_of(&command, "pending", "5 of 9 towers");
    while (clock_seconds() < end)
        poll(NULL, 0, 50);
    assert_int_equal(kill(ctl, SIGCONT), 0);
    await_bytes(said[0]);
    say_of(&command, "applied", "at last");
    assert_int_equal(waitpid(ctl, &code, 0), ctl);
    ssize_t length = read(said[0], words, sizeof words - 1);
    words[length < 0 ? 0 : length] = 0;
    close(said[0]);
    assert_string_equal(words, "towerscope: not yet: 5 of 9 towers\n");
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
}

static void one_console_holds_control(void **context) {
    (void)context;
    struct watcher a = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&a, a.yours);
    struct watcher b = watch_as(&h, "console", false, false), c = watch_as(&h, "console", true, false);
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
    struct watcher d = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&d, d.yours);
    watcher_take(&c);
    assert_false(c.yours);
    client_close(c.client);
    client_close(d.client);
}

/* Nobody answers: it comes by itself, to the one who asked. */
static void control_comes_without_an_answer(void **context) {
    (void)context;
    hub_run_stop(&h);
    h.control_seconds = 0.05;
    hub_run_start(&h);
    struct watcher a = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&a, a.yours);
    struct watcher b = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&b, client_state(b.client) == CLIENT_LIVE);
    assert_int_equal(client_control(b.client, "ask"), STATUS_OK);
    TAKE_UNTIL(&b, b.yours);
    TAKE_UNTIL(&a, !a.yours && !a.asking[0]);
    client_close(a.client);
    client_close(b.client);
}

static int open_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

static void bad_clients_do_no_harm(void **context) {
    (void)context;
    int before = open_descriptors();
    struct watcher good = watch_as(&h, "console", false, false);
    TAKE_UNTIL(&good, good.yours);
    int fds[60], count = 0;
    struct random random = random_begin(9, RANDOM_TEST, 0);
    static char garbage[70000];
    for (size_t i = 0; i < sizeof garbage; i++)
        garbage[i] = (char)random_u32(&random);
    for (int i = 0; i < 10; i++) {
        assert_true((fds[count++] = bad_connect(&h.run)) >= 0); /* silent */
        assert_true((fds[count++] = bad_connect(&h.run)) >= 0); /* half a line */
        bad_say(fds[count - 1], "{\"client\":\"con");
        assert_true((fds[count++] = bad_connect(&h.run)) >= 0); /* a line without end */
        static char endless[100000];
        memset(endless, 'A', sizeof endless);
        bad_send(fds[count - 1], endless, sizeof endless);
        assert_true((fds[count++] = bad_connect(&h.run)) >= 0); /* garbage */
        bad_send(fds[count - 1], garbage, sizeof garbage);
        assert_true((fds[count++] = bad_connect(&h.run)) >= 0); /* never reads */
        bad_greet(fds[count - 1], WIRE_PROTOCOL, "console", true);
    }
    for (int i = 0; i < 500; i++) { /* slam */
        int fd = bad_connect(&h.run);
        assert_true(fd >= 0);
        bad_greet(fd, WIRE_PROTOCOL, "console", true);
        close(fd);
    }
    hub_run_steps(&h, 1, 5000, true);
    TAKE_UNTIL(&good, good.last_seq == 5000);
    assert_non_null(strstr(hub_run_status(&h), "step 5000"));
    for (int i = 0; i < count; i++)
        close(fds[i]);
    client_close(good.client);
    double end = clock_seconds() + WATCH_SECONDS;
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
        assert_true((fds[i] = bad_connect(&h.run)) >= 0);
    assert_non_null(hub_run_status(&h));
    assert_true(bad_closed(fds[0], WATCH_SECONDS));
    for (int i = 0; i < MORE; i++)
        close(fds[i]);
    /* those that do, don't: the next is refused with a reason */
    int refused = 0;
    for (int i = 0; i < MORE; i++) {
        assert_true((fds[i] = bad_connect(&h.run)) >= 0);
        bad_greet(fds[i], WIRE_PROTOCOL, "console", false);
        assert_true(bad_line(fds[i], line, sizeof line, WATCH_SECONDS));
        if (strstr(line, "attached already")) {
            refused++;
            continue;
        }
        assert_non_null(strstr(line, "\"hello\""));
        bad_say(fds[i], "{\"command\":\"status\",\"id\":\"1\"}\n"); /* its answer: the greeting is read */
        assert_true(bad_line(fds[i], line, sizeof line, WATCH_SECONDS));
    }
    /* one that has just left may still be counted */
    assert_true(refused == MORE - MOST || refused == MORE - MOST + 1);
    for (int i = 0; i < MORE; i++)
        close(fds[i]);
    assert_non_null(hub_run_status(&h));
}

/* In a process of its own: as many consoles as the hub takes, until it refuses one; then it waits to be
 * ended. */
static void attach_many(const struct hub_run *run, int told) {
    char line[4096];
    bool refused = false;
    for (int i = 0; i < 200 && !refused; i++) {
        int fd = bad_connect(&run->run);
        bad_greet(fd, WIRE_PROTOCOL, "console", false);
        if (fd < 0 || !bad_line(fd, line, sizeof line, WATCH_SECONDS))
            break;
        refused = strstr(line, "ulimit -n");
        bad_say(fd, "{\"command\":\"status\",\"id\":\"1\"}\n"); /* its answer: the greeting is read */
        if (!refused && !bad_line(fd, line, sizeof line, WATCH_SECONDS))
            break;
    }
    _exit(write(told, refused ? "x" : "-", 1) == 1 && pause() ? 0 : 1);
}

/* However many clients come: a checkpoint can still be written. */
static void clients_leave_some_descriptors(void **context) {
    (void)context;
    enum { FILES = 100, NEEDED = 8 };
    struct rlimit was, less;
    int told[2], fds[NEEDED];
    char how;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    less = was;
    less.rlim_cur = FILES;
    hub_run_stop(&h);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    hub_run_start(&h);
    assert_int_equal(pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_NOFILE, &was);
        attach_many(&h, told[1]);
    }
    assert_true(pid > 0 && read(told[0], &how, 1) == 1 && how == 'x');
    for (int i = 0; i < NEEDED; i++)
        assert_true((fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
    for (int i = 0; i < NEEDED; i++)
        close(fds[i]);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    close(told[0]);
    close(told[1]);
    assert_non_null(hub_run_status(&h));
}

static void silent_and_babbling_clients_are_dropped(void **context) {
    (void)context;
    char line[4096];
    int babbler = bad_connect(&h.run), silent = bad_connect(&h.run);
    assert_true(babbler >= 0 && silent >= 0);
    for (int i = 0; i < 10; i++)
        bad_say(babbler, "what?\n");
    assert_true(bad_line(babbler, line, sizeof line, WATCH_SECONDS)); /* hello */
    assert_true(bad_line(babbler, line, sizeof line, WATCH_SECONDS));
    assert_non_null(strstr(line, "no line of a client"));
    assert_true(bad_closed(babbler, WATCH_SECONDS));
    assert_true(bad_closed(silent, WATCH_SECONDS));
    close(babbler);
    close(silent);
}

static void another_protocol_may_only_save_and_stop(void **context) {
    (void)context;
    char line[4096];
    struct command command;
    int console = bad_connect(&h.run), ctl = bad_connect(&h.run);
    bad_greet(console, WIRE_PROTOCOL + 1, "console", true);
    bad_greet(ctl, WIRE_PROTOCOL + 1, "ctl", false);
    assert_true(bad_line(console, line, sizeof line, WATCH_SECONDS));
    assert_non_null(strstr(line, "\"protocol\":1,\"version\":\"" TOWERSCOPE_VERSION "\""));
    assert_true(bad_closed(console, WATCH_SECONDS));
    assert_true(bad_line(ctl, line, sizeof line, WATCH_SECONDS));
    bad_say(ctl, "{\"command\":\"towers 4\",\"id\":\"1\"}\n");
    assert_true(bad_line(ctl, line, sizeof line, WATCH_SECONDS));
    assert_non_null(strstr(line, "refused"));
    bad_say(ctl, "{\"command\":\"save\",\"id\":\"2\"}\n");
    assert_true(bad_line(ctl, line, sizeof line, WATCH_SECONDS));
    assert_non_null(strstr(line, "pending"));
    assert_true(hub_take(h.hub, 0, &command) && command.kind == COMMAND_SAVE);
    close(console);
    close(ctl);
}

/* An engine of another protocol, for our client. */
static void a_client_says_what_to_do_about_another_version(void **context) {
    (void)context;
    hub_close(h.hub);
    h.hub = NULL;
    int fd, listener;
    assert_int_equal(live_folder_open(true, &fd), STATUS_OK);
    assert_int_equal(live_enter(fd, &h.run), STATUS_OK);
    assert_int_equal(live_listen(fd, &h.run, &listener), STATUS_OK);
    struct watcher w = watch_as(&h, "console", false, false);
    watcher_take(&w);
    struct pollfd polled = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, (int)(1000 * WATCH_SECONDS)), 1);
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

#define TEST(name) cmocka_unit_test_prestate_setup_teardown(name, hub_run_set_up, hub_run_tear_down, &h)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(commands_reach_the_trainer_and_are_answered),
        TEST(ctl_waits_while_it_is_told_how_far_its_command_is),
        TEST(one_console_holds_control),
        TEST(control_comes_without_an_answer),
        TEST(bad_clients_do_no_harm),
        TEST(the_number_of_clients_has_a_limit),
        TEST(clients_leave_some_descriptors),
        TEST(silent_and_babbling_clients_are_dropped),
        TEST(another_protocol_may_only_save_and_stop),
        TEST(a_client_says_what_to_do_about_another_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
