#include "tests/support/fault_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/train/checkpoint.h"
#include "engine/wire/client.h"
#include "engine/wire/codec.h"
#include "engine/wire/record.h"
#include "tests/support/cmocka.h"
#include "tests/support/small_run.h"

enum { SIDE = 6, IMAGES = 50, STEPS = 5 };

/* Seconds after which a run that goes on is told to end (one that never gets what it asks for often does),
 * and after which it hangs. */
static const double PATIENCE = 60, PATIENCE_ONWARD = 15, HANG = 200;

static char folder[600]; /* of all runs */
static char model_path[700];

/* ---- the data set */

/* first: label of the first one; 10: pixels. */
static void put_idx(const char *name, const uint8_t *header, size_t length, size_t count, int first) {
    char path[700];
    snprintf(path, sizeof path, "%s/data/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(header, 1, length, file);
    for (size_t i = 0; i < count; i++)
        fputc(first < 10 ? ((int)i + first) % 10 : (int)(i * 37 % 251), file);
    assert_int_equal(fclose(file), 0);
}

static void make_folder(void) {
    static const uint8_t images[16] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    static const uint8_t labels[8] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    if (*folder)
        return;
    snprintf(folder, sizeof folder, "%s/faults", getenv("TEST_TMP"));
    assert_int_equal(shell("mkdir -p '%s/data'", folder), 0);
    put_idx("train-images-idx3-ubyte", images, 16, IMAGES * SIDE * SIDE, 10);
    put_idx("train-labels-idx1-ubyte", labels, 8, IMAGES, 0);
    put_idx("t10k-images-idx3-ubyte", images, 16, IMAGES * SIDE * SIDE - 1, 10);
    put_idx("t10k-labels-idx1-ubyte", labels, 8, IMAGES, 3);
    /* another picture at the end, or it would be the training set and warned about */
    assert_int_equal(shell("printf '\\001' >>'%s/data/t10k-images-idx3-ubyte'", folder), 0);
    char script[700];
    snprintf(script, sizeof script, "%s/script", folder);
    FILE *file = fopen(script, "w");
    assert_non_null(file);
    fprintf(file, "@2 towers 3\n@%d pause\n", STEPS);
    assert_int_equal(fclose(file), 0);
    snprintf(model_path, sizeof model_path, "%s/tiny.ini", folder);
    assert_non_null(file = fopen(model_path, "w"));
    fprintf(file,
            "[model]\nname = tiny\ninput = %d\n[out]\ntype = dense\nunits = classes\ndeviation = 0.1\n"
            "weight_decay = 0.01\n",
            SIDE);
    assert_int_equal(fclose(file), 0);
    char state[700];
    snprintf(state, sizeof state, "%s/state", folder);
    setenv("XDG_STATE_HOME", state, 1);
    snprintf(state, sizeof state, "%s/trace", folder);
    setenv("TOWERSCOPE_FAULT_TRACE", state, 1);
    setenv("TOWERSCOPE_SAVE_SECONDS", "2", 1); /* a signal ends it: its last state isn't waited for long */
}

/* ---- the engine */

static pid_t start_engine(const char *word, const char *more1, const char *more2) {
    char program[700], out[700], runs[700], data[700], script[700];
    snprintf(program, sizeof program, "%s/towerscope-faults", getenv("BUILD"));
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(runs, sizeof runs, "%s/runs", folder);
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(script, sizeof script, "%s/script", folder);
    const char *const words[] = {"towerscope",
                                 word,
                                 "one",
                                 "--runs",
                                 runs,
                                 "--data",
                                 data,
                                 "--model",
                                 model_path,
                                 "--towers",
                                 "2",
                                 "--batch",
                                 "10",
                                 "--threads",
                                 "1",
                                 "--momentum",
                                 "0.9",
                                 "--lr",
                                 "0.01",
                                 "--keep",
                                 "1000",
                                 "--eval-every",
                                 "0",
                                 "--checkpoint-every",
                                 "1",
                                 more1,
                                 more2 ? more2 : script,
                                 NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawn_file_actions_addopen(&actions, 3, "/dev/null", O_WRONLY, 0);
    assert_int_equal(posix_spawn(&pid, program, &actions, NULL, (char *const *)words, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* A client that says a word when the five steps are done, and then ends the run. */
struct visitor {
    struct client *client;
    struct arena arena;
    char note[40], stop[40];
    double asked; /* when it sent the last command */
};

static void speak(struct visitor *v, const struct event *event) {
    if (event->kind == EVENT_COMMAND && event->command.id && *v->note &&
        !strcmp(event->command.id, v->note) && !*v->stop &&
        client_send(v->client, "stop", WIRE_UNKNOWN_INT, v->stop) == STATUS_OK)
        v->asked = clock_seconds();
}

static void visit(struct visitor *v, int64_t *step) {
    struct live_run run;
    char path[700];
    static const struct client_options options = {.program = "ctl", .terminal = "test"};
    snprintf(path, sizeof path, "%s/runs/one", folder);
    if (!v->client && (live_describe(path, &run) != STATUS_OK || !run.live ||
                       client_open(&run, &options, &v->client) != STATUS_OK))
        return;
    struct event event;
    while (client_next(v->client, &v->arena, &event) == STATUS_OK) {
        if (event.kind == EVENT_STEP)
            *step = event.step.step;
        speak(v, &event);
        arena_reset(&v->arena);
    }
    double now = clock_seconds();
    if (client_state(v->client) == CLIENT_LIVE && *step >= STEPS && now > v->asked + 1) {
        /* an answer that does not come: it was not heard, or the answer was lost */
        if (client_send(v->client, *v->note ? "stop" : "note hello", WIRE_UNKNOWN_INT,
                        *v->note ? v->stop : v->note) == STATUS_OK)
            v->asked = now;
    }
}

/* Until the process has ended; its wait status, or -1: it hung. patience: of a visitor; 0: none comes. */
static int accompany(pid_t pid, double patience) {
    struct visitor visitor = {.asked = 0};
    double begun = clock_seconds();
    int64_t step = 0;
    int status = -1, told = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        double now = clock_seconds();
        if (patience > 0)
            visit(&visitor, &step);
        if (patience > 0 && now > begun + patience && !told++)
            kill(pid, SIGTERM);
        if (now > begun + HANG) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            status = -1;
            break;
        }
        struct pollfd polled = {.fd = visitor.client ? client_fd(visitor.client) : -1, .events = POLLIN};
        poll(&polled, 1, 5);
    }
    client_close(visitor.client);
    arena_free(&visitor.arena);
    return status;
}

/* ---- what must hold */

static char *all_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *all_of(const char *format, ...) {
    char path[900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    if (file) {
        (void)!fread(text, 1, (1 << 20) - 1, file);
        fclose(file);
    }
    return text;
}

static bool says(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strstr(text, *words))
            return true;
    return false;
}

static const struct model *the_model(void) {
    static struct model *model;
    if (!model)
        assert_int_equal(model_read(model_path, (struct model_ends){SIDE, SIDE, 1, 10}, NAN, &model),
                         STATUS_OK);
    return model;
}

static bool checkpoint_good(const char *path) {
    struct checkpoint checkpoint;
    bool good = checkpoint_read(path, the_model(), &checkpoint) == STATUS_OK;
    if (!good)
        printf("  %s\n", status_text());
    checkpoint_free(&checkpoint);
    return good;
}

/* Every file of the folder of checkpoints is whole, and every one that the record tells of is there. */
static bool checkpoints_hold(int *count) {
    char path[900], named[1000];
    snprintf(path, sizeof path, "%s/runs/one/checkpoints", folder);
    DIR *list = opendir(path);
    bool good = true;
    *count = 0;
    for (struct dirent *entry; list && (entry = readdir(list));) {
        snprintf(named, sizeof named, "%s/%.90s", path, entry->d_name);
        if (strstr(entry->d_name, ".tmp")) {
            printf("  %s is left over\n", entry->d_name);
            good = false;
        } else if (strstr(entry->d_name, ".safetensors")) {
            good = checkpoint_good(named) && good;
            ++*count;
        }
    }
    if (list)
        closedir(list);
    char *record = all_of("%s/runs/one/events.jsonl", folder);
    struct arena arena = {0};
    int64_t seq = 0;
    for (char *line = record, *end; (end = strchr(line, '\n')); line = end + 1) {
        struct event event;
        if (event_decode(line, (size_t)(end - line) + 1, &arena, &event) != STATUS_OK || event.seq != ++seq) {
            printf("  line %lld of the record: %.200s\n", (long long)seq, line);
            good = false;
            break;
        }
        if (event.kind == EVENT_CHECKPOINT && access(event.checkpoint.path, R_OK) != 0) {
            printf("  told of, but not there: %s\n", event.checkpoint.path);
            good = false;
        }
        arena_reset(&arena);
    }
    arena_free(&arena);
    free(record);
    return good;
}

/* The run goes on without the fault, or there is none to go on with. */
static bool resumes(void) {
    char path[700];
    snprintf(path, sizeof path, "%s/runs/one", folder);
    if (access(path, F_OK) != 0)
        return true;
    unsetenv("TOWERSCOPE_FAULT");
    int status = accompany(start_engine("train", "--resume", "--steps=7"), 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    printf("  it can't be resumed (status %d)\n", status);
    return false;
}

bool fault_run(const struct fault_place *place, long number, bool onward) {
    static const char *const findings[] = {"Sanitizer", "runtime error", NULL};
    static const char *const messages[] = {"towerscope: ",
                                           "\"level\":\"error\"",
                                           "\"level\":\"warning\"",
                                           "no console can",
                                           "client",
                                           "refused",
                                           "can't",
                                           "warning: ",
                                           NULL};
    char fault[100];
    make_folder();
    assert_int_equal(shell("rm -rf '%s/runs' '%s/state' '%s/out'", folder, folder, folder), 0);
    unsetenv("TOWERSCOPE_FAULT");
    snprintf(fault, sizeof fault, "%s@%llx:%ld%s", place ? place->kind : "", place ? place->place : 0, number,
             onward ? "+" : "");
    if (place)
        setenv("TOWERSCOPE_FAULT", fault, 1);
    double begun = clock_seconds();
    int status = accompany(start_engine("engine", "--script", NULL), onward ? PATIENCE_ONWARD : PATIENCE);
    int count = 0;
    if (clock_seconds() - begun > PATIENCE / 2)
        printf("%s: %.1f s\n", fault, clock_seconds() - begun);
    unsetenv("TOWERSCOPE_FAULT");
    unsetenv("TOWERSCOPE_FAULT_LIST");
    char *out = all_of("%s/out", folder), *log = all_of("%s/runs/one/engine.log", folder);
    char *record = all_of("%s/runs/one/events.jsonl", folder);
    bool good = true, whole = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (status == -1 || !WIFEXITED(status))
        good = false, printf("  it %s\n", status == -1 ? "hung" : "crashed");
    if (says(out, findings) || says(log, findings))
        good = false, printf("  the sanitizer spoke\n");
    good = checkpoints_hold(&count) && good;
    if ((!whole || count < STEPS) && !says(out, messages) && !says(log, messages) && !says(record, messages))
        good = false, printf("  exit %d, %d checkpoints, and not a word\n", WEXITSTATUS(status), count);
    good = resumes() && good;
    if (!place && (!whole || count < STEPS))
        good = false, printf("  without a fault: exit %d, %d checkpoints\n", WEXITSTATUS(status), count);
    if (!good) {
        char *now = all_of("%s/out", folder), *then = all_of("%s/runs/one/engine.log", folder);
        char *trace = all_of("%s/trace", folder);
        printf(
            "TOWERSCOPE_FAULT=%s\naddr2line -pfe towerscope-faults %s\n--- out\n%.6000s\n--- log\n%.3000s\n",
            fault, trace, now, then);
        free(trace);
        free(now);
        free(then);
    }
    free(out);
    free(log);
    free(record);
    return good;
}

bool fault_run_in_order(void) {
    char path[700];
    make_folder();
    snprintf(path, sizeof path, "%s/order", folder);
    (void)remove(path);
    setenv("TOWERSCOPE_FAULT_ORDER", path, 1);
    bool good = fault_run(NULL, 0, false), synced = false;
    unsetenv("TOWERSCOPE_FAULT_ORDER");
    char *order = all_of("%s", path);
    int checkpoints = 0;
    for (const char *line = order, *end; (end = strchr(line, '\n')); line = end + 1) {
        synced = synced || !strncmp(line, "sync " RECORD_FILE "\n", (size_t)(end - line) + 1);
        if (strncmp(line, "rename step-", 12) != 0)
            continue;
        good = good && synced;
        checkpoints++;
        synced = false; /* each by a call of its own */
    }
    if (!good || checkpoints < STEPS)
        printf("%d checkpoints, and before one of them the record was not synced:\n%s\n", checkpoints, order);
    free(order);
    return good && checkpoints >= STEPS;
}

/* ---- the sweep */

static int by_place(const void *a, const void *b) {
    const struct fault_place *x = a, *y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

struct fault_place *fault_places(int *count) {
    enum { MOST = 1 << 14 };
    make_folder();
    char path[700];
    snprintf(path, sizeof path, "%s/list", folder);
    setenv("TOWERSCOPE_FAULT_LIST", path, 1);
    assert_true(fault_run(NULL, 0, false));
    struct fault_place *places = calloc(MOST, sizeof *places);
    FILE *file = fopen(path, "r");
    assert_true(places && file);
    for (*count = 0; *count < MOST; ++*count)
        if (fscanf(file, "%15s %llx %ld", places[*count].kind, &places[*count].place,
                   &places[*count].count) != 3)
            break;
    fclose(file);
    qsort(places, (size_t)*count, sizeof *places, by_place);
    return places;
}

int fault_sweep(int first, int stride, bool thorough) {
    static const char *const kinds[] = {"allocate", "write", "sync", "rename", "poll", "accept", "open"};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    int runs[KINDS] = {0}, wrong[KINDS] = {0}, all[KINDS] = {0}, count, sum = 0;
    struct fault_place *places = fault_places(&count);
    for (int i = 0; i < count; i++) {
        int kind = 0;
        while (kind < KINDS - 1 && strcmp(kinds[kind], places[i].kind) != 0)
            kind++;
        /* every kind is tried, however few its places are */
        bool tried = all[kind]++ % stride == first % stride || (stride > 1 && all[kind] == 1);
        if (!tried)
            continue;
        wrong[kind] += !fault_run(&places[i], 1, false);
        runs[kind]++;
        if (thorough && places[i].count > 1) {
            wrong[kind] += !fault_run(&places[i], places[i].count, false);
            runs[kind]++;
        }
        if (thorough && strcmp(kinds[kind], "poll") != 0) { /* no system fails that one for ever */
            wrong[kind] += !fault_run(&places[i], 1, true);
            runs[kind]++;
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        printf("%-9s %4d places, %4d runs, %d wrong\n", kinds[kind], all[kind], runs[kind], wrong[kind]);
        sum += wrong[kind];
    }
    free(places);
    return sum;
}
