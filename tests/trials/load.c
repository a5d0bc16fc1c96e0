/* What 200 clients cost a run (make load): a hundred that read all, sixty that read next to nothing, and
 * forty that stall, babble, and come and go. Seconds without them and with them take turns; the table and the
 * exit code say whether the hub's thread, the steps and the memory stay within their bounds.
 *
 *   load PROGRAM SECONDS     (of each of the four turns) */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/wire/live.h"
#include "engine/wire/lock.h"
#include "engine/wire/protocol.h"
#include "engine/wire/record.h"
#include "tests/support/bad_client.h"
#include "tests/support/process.h"

enum { READERS = 100, SLOW = 60, HOSTILE = 40, CLIENTS = READERS + SLOW + HOSTILE, MOST_STEPS = 1 << 20 };

static const double HUB_MOST = 0.06;             /* of a core */
static const int64_t MEMORY_MOST = 40 * 1000000; /* bytes more than without clients */

static char folder[] = "/tmp/towerscope-load.XXXXXX";
static struct live_run run;
static pid_t engine;
static int fds[CLIENTS];

/* ---- clients */

static void come(int i) {
    if (fds[i] >= 0)
        close(fds[i]);
    fds[i] = bad_connect(&run);
    if (fds[i] < 0)
        return;
    if (i < READERS + SLOW)
        bad_greet(fds[i], WIRE_PROTOCOL, "console", true);
    fcntl(fds[i], F_SETFL, O_NONBLOCK);
}

/* One of the hostile: half a line, no line at all, garbage, a thousand commands, or gone again. */
static void annoy(int i, int turn) {
    static char garbage[5000];
    if (fds[i] < 0 || (i + turn) % 5 == 0) {
        come(i);
        return;
    }
    memset(garbage, 'A' + turn % 26, sizeof garbage);
    switch (i % 5) {
    case 0:
        bad_say(fds[i], "{\"client\":\"con");
        break;
    case 1:
        break; /* silent */
    case 2:
        (void)!write(fds[i], garbage, sizeof garbage);
        break;
    case 3:
        bad_greet(fds[i], 99, "console", true);
        break;
    default:
        bad_greet(fds[i], WIRE_PROTOCOL, "console", true);
        for (int k = 0; k < 50; k++)
            bad_say(fds[i], "{\"command\":\"status\",\"id\":\"1\"}\n");
    }
}

static void read_some(int i, size_t most) {
    static char bytes[1 << 16];
    ssize_t got = fds[i] >= 0 ? recv(fds[i], bytes, most, MSG_DONTWAIT) : 0;
    if (got == 0)
        come(i);
}

static void visit(double seconds) {
    double end = clock_seconds() + seconds;
    for (int turn = 0; clock_seconds() < end; turn++) {
        for (int i = 0; i < READERS; i++)
            read_some(i, 1 << 16);
        for (int i = READERS; turn % 10 == 0 && i < READERS + SLOW; i++)
            read_some(i, 1);
        for (int i = READERS + SLOW; turn % 5 == 0 && i < CLIENTS; i++)
            annoy(i, turn / 5);
        poll(NULL, 0, 50);
    }
}

/* ---- what it costs */

struct turn {
    double hub; /* share of a core */
    double p50, p99;
    int64_t steps, memory;
};

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The steps that are in the record from `offset` on. */
static void read_steps(int64_t *offset, struct turn *turn) {
    static double seconds[MOST_STEPS];
    struct record_reader *reader;
    struct arena arena = {0};
    struct event event;
    turn->steps = 0;
    if (record_reader_open(run.folder, *offset, &reader) != STATUS_OK) {
        fprintf(stderr, "%s\n", status_text());
        exit(1);
    }
    while (record_next(reader, -1, &arena, &event) == STATUS_OK) {
        if (event.kind == EVENT_STEP && turn->steps < MOST_STEPS)
            seconds[turn->steps++] = event.step.seconds;
        arena_reset(&arena);
    }
    *offset = record_reader_offset(reader);
    record_reader_close(reader);
    arena_free(&arena);
    qsort(seconds, (size_t)turn->steps, sizeof *seconds, by_size);
    turn->p50 = turn->steps ? seconds[turn->steps / 2] : 0;
    turn->p99 = turn->steps ? seconds[turn->steps * 99 / 100] : 0;
}

static struct turn take_turn(bool with_clients, double seconds) {
    static int64_t offset;
    struct turn turn;
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = -1;
        if (with_clients)
            come(i);
    }
    if (with_clients)
        visit(1); /* their coming is not measured */
    read_steps(&offset, &turn);
    double hub = process_thread_seconds(engine, "hub"), begun = clock_seconds();
    if (with_clients)
        visit(seconds);
    else
        poll(NULL, 0, (int)(seconds * 1000));
    turn.hub = (process_thread_seconds(engine, "hub") - hub) / (clock_seconds() - begun);
    turn.memory = process_memory(engine);
    read_steps(&offset, &turn);
    printf("%-22s %8lld %9.2f %9.2f %8.2f %% %9.1f\n", with_clients ? "200 clients" : "none",
           (long long)turn.steps, 1000 * turn.p50, 1000 * turn.p99, 100 * turn.hub,
           (double)turn.memory / 1e6);
    fflush(stdout);
    for (int i = 0; i < CLIENTS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return turn;
}

static void start(const char *program) {
    char command[1000], path[200];
    snprintf(
        command, sizeof command,
        "XDG_STATE_HOME=%s/state '%s' run load --detach --runs %s/runs --data generated --model cifar10 "
        "--towers "
        "2 "
        "--batch 32 --lr 0.01 --threads 1 --eval-every 0 --checkpoint-every 0 --record-every 1 >/dev/null",
        folder, program, folder);
    snprintf(path, sizeof path, "%s/state", folder);
    setenv("XDG_STATE_HOME", path, 1);
    snprintf(path, sizeof path, "%s/runs/load", folder);
    if (system(command) != 0 || live_describe(path, &run) != STATUS_OK) {
        fprintf(stderr, "the run does not start\n");
        exit(1);
    }
    engine = (pid_t)lock_holder(run.folder);
}

int main(int argc, char **argv) {
    double seconds = argc > 2 ? atof(argv[2]) : 10;
    if (argc < 2 || !(seconds > 0) || !mkdtemp(folder)) {
        fprintf(stderr, "usage: load PROGRAM SECONDS\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    start(argv[1]);
    poll(NULL, 0, 2000);
    printf("%-22s %8s %9s %9s %10s %9s\n", "clients", "steps", "median ms", "p99 ms", "hub", "MB");
    struct turn turns[4];
    for (int i = 0; i < 4; i++)
        turns[i] = take_turn(i % 2, seconds);
    kill(engine, SIGTERM);
    for (int i = 0; i < 500 && lock_held(run.folder); i++)
        poll(NULL, 0, 20);
    bool ended = !lock_held(run.folder);
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    (void)!system(command);
    /* The noise is what the two turns without clients differ by, and at least a quarter. */
    double calm = turns[0].p99 > turns[2].p99 ? turns[0].p99 : turns[2].p99;
    double busy = turns[1].p99 < turns[3].p99 ? turns[1].p99 : turns[3].p99;
    double hub = (turns[1].hub + turns[3].hub) / 2;
    int64_t more = turns[3].memory - turns[0].memory;
    bool good = ended && hub <= HUB_MOST && busy <= 1.25 * calm && more <= MEMORY_MOST;
    printf("hub %.2f %% of a core (at most %.0f), p99 %.2f times that without clients (at most 1.25), memory "
           "%+.1f MB "
           "(at most %.0f)%s\n%s\n",
           100 * hub, 100 * HUB_MOST, busy / calm, (double)more / 1e6, (double)MEMORY_MOST / 1e6,
           ended ? "" : ", and it does not end", good ? "all within bounds" : "OUT OF BOUNDS");
    return !good;
}
