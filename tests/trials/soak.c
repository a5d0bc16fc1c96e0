/* A run under random commands, consoles, bad clients and a disk that fills and empties (make soak). At the
 * end: no growth of memory or descriptors, every image of every epoch used exactly once, a record that
 * replays, a checkpoint that resumes. Prints a table; the exit code says whether all held.
 *
 *   soak PROGRAM MINUTES SEED */
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/wire/live.h"
#include "engine/wire/lock.h"
#include "engine/wire/protocol.h"
#include "engine/wire/record.h"
#include "engine/wire/state.h"
#include "tests/support/bad_client.h"
#include "tests/support/process.h"
#include "tests/support/vt.h"

enum { IMAGES = 1000, CONSOLES = 3, BAD = 12 };

static char folder[] = "/tmp/towerscope-soak.XXXXXX", program[500];
static struct live_run run;
static pid_t engine;
static struct random dice;
static struct vt *consoles[CONSOLES];
static int bad[BAD];
static bool disk_full;

static int counts[16]; /* of each action */

static uint32_t below(uint32_t n) {
    return random_below(&dice, n);
}

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int code = process_shell(folder, format, arguments);
    va_end(arguments);
    return code;
}

/* ---- actions */

/* A command; refusals are answers too. */
static void order(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void order(const char *format, ...) {
    char text[100];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int code = shell("timeout 60 '%s' ctl soak %s >>ctl.out 2>&1", program, text);
    if (code != 0 && code != 3) {
        printf("ctl soak %s: exit %d\n", text, code);
        shell("tail -n 2 ctl.out");
    }
}

static void towers(void) {
    order("towers %d", 1 + (int)below(16));
}

static void pause_and_go(void) {
    order("pause");
    if (below(2))
        order("step %d", 1 + (int)below(20));
    poll(NULL, 0, (int)below(300));
    order("resume");
}

static void rate(void) {
    static const char *const rates[] = {"0.001", "0.01", "0.02", "0.05"};
    order("set lr %s", rates[below(4)]);
}

static void batch(void) {
    order("set batch %d", 16 + (int)below(100));
}

static void save(void) {
    order("save");
}

static void eval(void) {
    order("eval");
}

static void why(void) {
    order("why on");
    poll(NULL, 0, (int)below(500));
    order("why off");
}

static void note(void) {
    order("note soak %d", (int)below(1000));
}

/* A console comes, presses keys, is resized, leaves or is killed. */
static void console(void) {
    struct vt **at = &consoles[below(CONSOLES)];
    static const char *const keys[] = {
        "1", "3", "4", "6", "7", "?", "\033", "jjkk", "/a\r", ":set smoothing 2\r", "l"};
    if (!*at) {
        const char *argv[] = {program, "attach", "soak", "--watch", NULL};
        *at = vt_start(24 + (int)below(20), 80 + (int)below(60), argv, NULL);
        return;
    }
    vt_settle(*at, 0.02, 0.2);
    switch (below(4)) {
    case 0:
        vt_signal(*at, SIGKILL);
        vt_end(*at);
        *at = NULL;
        break;
    case 1:
        vt_keys(*at, "q");
        vt_wait_exit(*at, 5, NULL);
        vt_end(*at);
        *at = NULL;
        break;
    case 2:
        vt_resize(*at, 1 + (int)below(60), 1 + (int)below(200));
        break;
    default:
        vt_keys(*at, keys[below(sizeof keys / sizeof *keys)]);
    }
}

/* A client that never reads, or that babbles; or one that leaves. */
static void bad_client(void) {
    int *at = &bad[below(BAD)];
    if (*at >= 0) {
        close(*at);
        *at = -1;
        return;
    }
    *at = bad_connect(&run);
    if (*at < 0)
        return;
    fcntl(*at, F_SETFL, O_NONBLOCK);
    switch (below(3)) {
    case 0:
        bad_greet(*at, WIRE_PROTOCOL, "console", true);
        break;
    case 1:
        bad_say(*at, "{\"client\":\"con");
        break;
    default:
        bad_say(*at, "no line of a client\n\n\n{}\n[]\n");
    }
}

/* The disk is full: no file may grow beyond what the record has now. And has room again. */
static void disk(void) {
    struct rlimit limit, before;
    struct stat info;
    char path[200];
    snprintf(path, sizeof path, "%s/runs/soak/events.jsonl", folder);
    if (prlimit(engine, RLIMIT_FSIZE, NULL, &before) || stat(path, &info))
        return;
    limit = before;
    limit.rlim_cur = disk_full ? before.rlim_max : (rlim_t)info.st_size;
    if (prlimit(engine, RLIMIT_FSIZE, &limit, NULL) == 0)
        disk_full = !disk_full;
    if (disk_full)
        order("save"); /* refused, and the run goes on */
}

static const struct {
    const char *name;
    void (*act)(void);
    int weight;
} actions[] = {
    {"towers 1..16", towers, 10},
    {"pause, step, resume", pause_and_go, 4},
    {"set lr", rate, 3},
    {"set batch", batch, 2},
    {"save", save, 4},
    {"eval", eval, 2},
    {"why on, off", why, 2},
    {"note", note, 1},
    {"consoles", console, 14},
    {"bad clients", bad_client, 8},
    {"disk full, empty", disk, 3},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static void act(void) {
    int sum = 0;
    for (int i = 0; i < ACTIONS; i++)
        sum += actions[i].weight;
    int roll = (int)below((uint32_t)sum), i = 0;
    while (roll >= actions[i].weight)
        roll -= actions[i++].weight;
    counts[i]++;
    actions[i].act();
}

/* ---- calm: nobody there, two towers, paused, so that two moments can be compared */

struct calm {
    int64_t memory;
    int descriptors;
};

static struct calm calm_down(void) {
    for (int i = 0; i < CONSOLES; i++) {
        if (consoles[i])
            vt_end(consoles[i]);
        consoles[i] = NULL;
    }
    for (int i = 0; i < BAD; i++) {
        if (bad[i] >= 0)
            close(bad[i]);
        bad[i] = -1;
    }
    if (disk_full)
        disk();
    order("towers 2");
    order("set batch 64");
    order("why off");
    order("pause");
    poll(NULL, 0, 1500); /* the hub sees who is gone, and writes what waited for the disk */
    struct calm calm = {process_memory(engine), process_descriptors(engine)};
    order("resume");
    return calm;
}

/* ---- what the record says */

struct told {
    int64_t steps, epochs, images, checkpoints, evaluations, events;
    bool good;
};

static bool no(struct told *told, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool no(struct told *told, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (told->good)
        vprintf(format, arguments);
    va_end(arguments);
    told->good = false;
    return false;
}

/* Each epoch is used up image by image: the steps' images add up to its end exactly, whatever the batch was.
 */
static void follow_step(struct told *told, const struct event_step *step) {
    if (step->step != told->steps + 1)
        no(told, "the record goes from step %lld to %lld\n", (long long)told->steps, (long long)step->step);
    int64_t before = told->images % IMAGES;
    told->steps = step->step;
    told->images += step->images;
    if (before + step->images > IMAGES)
        no(told, "step %lld goes beyond the end of its epoch: %lld + %lld images\n", (long long)step->step,
           (long long)before, (long long)step->images);
    if (before + step->images == IMAGES)
        told->epochs++;
    int64_t sum = 0;
    for (int64_t k = 0; k < step->tower_count; k++)
        sum += step->towers[k].images;
    if (sum != step->images)
        no(told, "step %lld: its towers have %lld of %lld images\n", (long long)step->step, (long long)sum,
           (long long)step->images);
    if (!(fabs(step->epoch - (double)told->images / IMAGES) < 1e-6))
        no(told, "step %lld stands at epoch %.6f, its images at %.6f\n", (long long)step->step, step->epoch,
           (double)told->images / IMAGES);
}

static struct told read_record(void) {
    struct told told = {.good = true};
    struct record_reader *reader;
    struct arena arena = {0};
    struct event event;
    struct run_state *state = state_new();
    int64_t seq = 0;
    if (!state || record_reader_open(run.folder, 0, &reader) != STATUS_OK) {
        no(&told, "%s\n", status_text());
        return told;
    }
    while (record_next(reader, -1, &arena, &event) == STATUS_OK) {
        if (event.seq != ++seq)
            no(&told, "the record's number %lld follows %lld\n", (long long)event.seq, (long long)seq - 1);
        seq = event.seq;
        if (event.kind == EVENT_STEP)
            follow_step(&told, &event.step);
        told.checkpoints += event.kind == EVENT_CHECKPOINT;
        told.evaluations += event.kind == EVENT_EVAL;
        if (event.kind == EVENT_EVAL && event.eval.images != IMAGES / 5)
            no(&told, "an evaluation of %lld images\n", (long long)event.eval.images);
        if (state_apply(state, &event) != STATUS_OK)
            no(&told, "%s\n", status_text());
        arena_reset(&arena);
    }
    told.events = seq;
    if (record_reader_damaged(reader) > 0 || record_reader_torn(reader) > 0)
        no(&told, "the record is damaged\n");
    if (!state->ended || state->step.step.step != told.steps)
        no(&told, "folded, the record does not end at its last step\n");
    record_reader_close(reader);
    arena_free(&arena);
    state_free(state);
    return told;
}

/* ---- all of it */

static bool start(void) {
    char path[200];
    snprintf(path, sizeof path, "%s/state", folder);
    setenv("XDG_STATE_HOME", path, 1);
    snprintf(path, sizeof path, "%s/runs/soak", folder);
    if (shell("'%s' data make few --images %d >/dev/null", program, IMAGES) != 0 ||
        shell("'%s' run soak --detach --data few --model mlp --batch 64 --towers 2 --lr 0.01 --record-every "
              "1 --keep 2 "
              "--eval-every 500 --checkpoint-every 500 >start.out",
              program) != 0 ||
        live_describe(path, &run) != STATUS_OK)
        return false;
    engine = (pid_t)lock_holder(run.folder);
    return true;
}

static void table(double minutes, const struct calm *first, const struct calm *last,
                  const struct told *told) {
    printf("\n%-28s %10s\n", "done", "times");
    for (int i = 0; i < ACTIONS; i++)
        printf("%-28s %10d\n", actions[i].name, counts[i]);
    printf("\n%-28s %10.1f\n", "minutes", minutes);
    printf("%-28s %10lld\n", "steps", (long long)told->steps);
    printf("%-28s %10lld\n", "whole epochs", (long long)told->epochs);
    printf("%-28s %10lld\n", "events in the record", (long long)told->events);
    printf("%-28s %10lld\n", "checkpoints", (long long)told->checkpoints);
    printf("%-28s %10lld\n", "evaluations", (long long)told->evaluations);
    printf("%-28s %10.1f -> %.1f MB\n", "memory", (double)first->memory / 1e6, (double)last->memory / 1e6);
    printf("%-28s %10d -> %d\n\n", "descriptors", first->descriptors, last->descriptors);
}

static bool verdict(const char *what, bool good) {
    printf("%-60s %s\n", what, good ? "yes" : "NO");
    return good;
}

int main(int argc, char **argv) {
    double minutes = argc > 2 ? atof(argv[2]) : 0;
    if (argc < 4 || !(minutes > 0) || !realpath(argv[1], program) || !mkdtemp(folder)) {
        fprintf(stderr, "usage: soak PROGRAM MINUTES SEED\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    dice = random_begin((uint64_t)atoll(argv[3]), RANDOM_TEST, 1);
    for (int i = 0; i < BAD; i++)
        bad[i] = -1;
    if (!start()) {
        fprintf(stderr, "the run does not start; see %s\n", folder);
        return 1;
    }
    double begun = clock_seconds(), end = begun + 60 * minutes, warm = begun + 60 * minutes / 5;
    struct calm first = {0, 0}, last;
    while (clock_seconds() < end && lock_held(run.folder)) {
        act();
        if (!first.memory && clock_seconds() > warm)
            first = calm_down();
        poll(NULL, 0, (int)below(200));
    }
    bool lived = lock_held(run.folder);
    last = calm_down();
    order("stop");
    for (int i = 0; i < 500 && lock_held(run.folder); i++)
        poll(NULL, 0, 20);
    struct told told = read_record();
    long long at = (long long)told.steps;
    table((clock_seconds() - begun) / 60, &first, &last, &told);
    bool good = verdict("the engine lived to the end, and ended when asked", lived && !lock_held(run.folder));
    good &= verdict(
        "its log has nothing of a sanitizer and less than 1 MB",
        shell("! grep -qE 'Sanitizer|runtime error' runs/soak/engine.log && [ $(wc -c <runs/soak/engine.log) "
              "-lt 1000000 ]") == 0);
    good &= verdict("memory has not grown by more than a tenth and 4 MB",
                    last.memory <= first.memory + first.memory / 10 + 4000000);
    good &= verdict("descriptors have not grown", last.descriptors <= first.descriptors);
    good &= verdict("every image of every epoch was used once", told.good && told.epochs > 0);
    good &= verdict(
        "the record replays to its last step",
        shell("'%s' replay soak --at %lld --svg last.svg >/dev/null 2>>errors && grep -q '<svg' last.svg",
              program, at) == 0);
    good &= verdict("the newest checkpoint is that of the end, and resumes",
                    shell("'%s' train soak --resume --steps %lld >resume.out 2>>errors && grep -q 'goes on "
                          "after step %lld' "
                          "resume.out",
                          program, at + 5, at) == 0);
    if (good)
        shell("cd /; rm -rf %s", folder);
    else
        printf("everything is kept in %s\n", folder);
    return !good;
}
