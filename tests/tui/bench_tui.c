/* What the console costs (make bench-tui): bytes to the terminal, processor time, drawing time, the answer to
 * a key and the first frame at 120x40, for live runs that use every core, a replay, and other full-screen
 * monitors where they are installed. Each runs in a pseudo-terminal of its own.
 *
 *   bench_tui PROGRAM SECONDS [MODEL|replay TOWERS ...] */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "tests/support/stream.h"
#include "tests/support/vt.h"

enum { ROWS = 40, COLS = 120, MOST_SECONDS = 600, KEYS = 100, SEEKS = 20 };

static char folder[] = "/tmp/towerscope-bench.XXXXXX";

/* What is measured in one terminal. Figures that are not there are below 0. */
struct figures {
    double median, most, mean;             /* KiB/s */
    double console, hub;                   /* processor, of a core */
    double wall, wall_most, cpu, cpu_most; /* ms of a frame: median, 99 of 100 */
    double first_frame, first_towers;      /* ms from the start */
    double keys[KEYS];                     /* ms */
    int key_count;
};

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* "drawn in 0.4 ms, 99 % in 1.2 (processor 0.3 and 0.9)" from the screen, when the program shows it. */
static void read_drawing(const struct vt *vt, struct figures *out) {
    char *screen = vt_screen(vt, false), *at = strstr(screen, "drawn in ");
    out->wall = out->wall_most = out->cpu = out->cpu_most = -1;
    if (at && sscanf(at, "drawn in %lf ms, 99 %% in %lf (processor %lf and %lf)", &out->wall, &out->wall_most,
                     &out->cpu, &out->cpu_most) != 4)
        out->wall = -1;
    free(screen);
}

/* Processor seconds of the engine's thread called "hub"; below 0: there is none. */
static double hub_cpu(pid_t engine) {
    char path[320], name[32];
    double seconds = -1;
    snprintf(path, sizeof path, "/proc/%d/task", (int)engine);
    DIR *tasks = engine > 0 ? opendir(path) : NULL;
    for (struct dirent *task; tasks && (task = readdir(tasks)) != NULL;) {
        unsigned long long nanoseconds;
        snprintf(path, sizeof path, "/proc/%d/task/%s/comm", (int)engine, task->d_name);
        FILE *file = fopen(path, "r");
        bool hub = file && fgets(name, sizeof name, file) && !strcmp(name, "hub\n");
        if (file)
            fclose(file);
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", (int)engine, task->d_name);
        file = hub ? fopen(path, "r") : NULL;
        if (file && fscanf(file, "%llu", &nanoseconds) == 1)
            seconds = 1e-9 * (double)nanoseconds;
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return seconds;
}

/* Bytes and processor time, second by second. */
static void watch(struct vt *vt, pid_t engine, int seconds, struct figures *out) {
    double rates[MOST_SECONDS], cpu = vt_cpu(vt), hub = hub_cpu(engine), begun = clock_seconds();
    long long first = vt_bytes(vt);
    for (int i = 0; i < seconds; i++) {
        long long bytes = vt_bytes(vt);
        double from = clock_seconds();
        while (clock_seconds() - from < 1)
            vt_settle(vt, 0.05, 0.05);
        rates[i] = (double)(vt_bytes(vt) - bytes) / (clock_seconds() - from) / 1024;
    }
    double took = clock_seconds() - begun;
    qsort(rates, (size_t)seconds, sizeof *rates, by_size);
    out->median = rates[seconds / 2];
    out->most = rates[seconds - 1];
    out->mean = (double)(vt_bytes(vt) - first) / took / 1024;
    out->console = 100 * (vt_cpu(vt) - cpu) / took;
    out->hub = hub < 0 ? -1 : 100 * (hub_cpu(engine) - hub) / took;
}

/* From a key to its answer on the screen: the help opened and closed. */
static void press_keys(struct vt *vt, struct figures *out) {
    for (int i = 0; i < KEYS; i++) {
        double from = clock_seconds();
        vt_keys(vt, "?");
        bool answered =
            i % 2 ? vt_wait_no_text(vt, "esc closes", 5) : vt_wait_text(vt, "esc closes", 5);
        if (!answered)
            break;
        out->keys[out->key_count++] = 1000 * (clock_seconds() - from);
        vt_settle(vt, 0.13, 0.13); /* not in step with the frames */
    }
    qsort(out->keys, (size_t)out->key_count, sizeof *out->keys, by_size);
}

/* Of a record: until it is read, from a place that is asked for to its screen, and the most memory. */
static void look_at_record(struct vt *vt, double begun) {
    double seeks[SEEKS], read = 0;
    int count = 0;
    if (vt_wait_text(vt, " s of ", 60))
        read = clock_seconds() - begun;
    vt_keys(vt, " "); /* it stands */
    for (; count < SEEKS; count++) {
        int thousands = 1 + count * 7 % 19, rest = 100 + count * 37;
        char keys[32], shown[32];
        snprintf(keys, sizeof keys, ":goto %d%03d\r", thousands, rest);
        snprintf(shown, sizeof shown, "step %d %03d", thousands, rest);
        double from = clock_seconds();
        vt_keys(vt, keys);
        if (!vt_wait_text(vt, shown, 10))
            break;
        seeks[count] = 1000 * (clock_seconds() - from);
        vt_settle(vt, 0.2, 1);
    }
    qsort(seeks, (size_t)count, sizeof *seeks, by_size);
    char path[64], line[256];
    long memory = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)vt_pid(vt));
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &memory) == 1)
            break;
    if (file)
        fclose(file);
    if (count > 0)
        printf("    read in %.1f s, %d seeks: median %.0f ms, most %.0f ms, memory %.0f MiB\n", read, count,
               seeks[count / 2], seeks[count - 1], (double)memory / 1024);
    vt_keys(vt, " ");
}

static void print_percent(const char *lead, double value, const char *end) {
    if (value < 0)
        printf("%s     -  %s", lead, end);
    else
        printf("%s%6.2f %%%s", lead, value, end);
}

static void print_figures(const char *name, const struct figures *f) {
    printf("%-22s%7.2f%7.2f%7.2f", name, f->median, f->most, f->mean);
    print_percent("  ", f->console, "");
    print_percent(" ", f->hub, "");
    if (f->wall < 0)
        printf("      -     -       -     -");
    else
        printf("  %5.1f %5.1f   %5.1f %5.1f", f->wall, f->wall_most, f->cpu, f->cpu_most);
    if (f->key_count > 0)
        printf("  %5.1f %5.1f %5.1f", f->keys[f->key_count / 2], f->keys[f->key_count * 99 / 100 - 1],
               f->keys[f->key_count - 1]);
    if (f->first_frame > 0)
        printf("  %5.0f %5.0f", f->first_frame, f->first_towers);
    printf("\n");
    fflush(stdout);
}

static void measure(const char *name, const char *const argv[], pid_t engine, bool ours, int seconds) {
    struct figures figures = {.first_frame = -1};
    double begun = clock_seconds();
    struct vt *vt = vt_start(ROWS, COLS, argv, NULL);
    if (!vt) {
        printf("%-22s can't be started\n", name);
        return;
    }
    if (ours) {
        bool shown = vt_wait_text(vt, "? help", 10);
        figures.first_frame = 1000 * (clock_seconds() - begun);
        shown = shown && vt_wait_text(vt, "average", 10);
        figures.first_towers = 1000 * (clock_seconds() - begun);
        if (!shown)
            figures.first_frame = -1;
        if (!engine)
            look_at_record(vt, begun);
        vt_settle(vt, 5, 2.5);
        vt_keys(vt, ":budget\r");
    }
    vt_settle(vt, 5, 2.5);
    watch(vt, engine, seconds, &figures);
    read_drawing(vt, &figures);
    if (ours)
        press_keys(vt, &figures);
    print_figures(name, &figures);
    vt_keys(vt, "q");
    vt_wait_exit(vt, 2, NULL);
    vt_end(vt);
}

static pid_t engine_of(const char *name) {
    char path[128];
    int pid = 0;
    snprintf(path, sizeof path, "%s/%s/lock", folder, name);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%d", &pid) != 1)
        pid = 0;
    if (file)
        fclose(file);
    return pid;
}

static void live(const char *program, const char *model, int towers, int seconds) {
    char name[64], command[2048], title[64];
    snprintf(name, sizeof name, "bench-%s-%d", model, towers);
    snprintf(command, sizeof command,
             "\"%s\" run %s --detach --runs \"%s\" --data generated --model %s --lr 0.01 --towers %d "
             ">/dev/null && "
             "sleep 3",
             program, name, folder, model, towers);
    if (system(command) != 0) {
        printf("%-22s the run can't be started\n", name);
        return;
    }
    const char *argv[] = {program, "attach", name, NULL};
    snprintf(title, sizeof title, "%s, %d towers", model, towers);
    measure(title, argv, engine_of(name), true, seconds);
    snprintf(command, sizeof command, "\"%s\" ctl %s stop >/dev/null 2>&1", program, name);
    if (system(command) != 0)
        printf("%s could not be stopped\n", name);
}

static void replay(const char *program, int towers, int seconds) {
    char record[128], title[64];
    snprintf(record, sizeof record, "%s/record.jsonl", folder);
    snprintf(title, sizeof title, "replay, %d towers, 1x", towers);
    struct stream_script script = {.towers = towers, .steps = 20000, .eval_every = 500, .ended = true};
    const char *argv[] = {program, "replay", record, NULL};
    if (stream_write(&script, record) == STATUS_OK)
        measure(title, argv, 0, true, seconds);
}

static void installed(const char *name, int seconds) {
    char path[64];
    snprintf(path, sizeof path, "/usr/bin/%s", name);
    if (access(path, X_OK)) {
        printf("%-22s is not installed\n", name);
        return;
    }
    const char *argv[] = {path, NULL};
    measure(name, argv, 0, false, seconds);
}

static void print_load(const char *when) {
    double load[3];
    if (getloadavg(load, 3) == 3)
        printf("load of the machine %s: %.1f on %ld processors\n", when, load[0],
               sysconf(_SC_NPROCESSORS_ONLN));
}

int main(int argc, char **argv) {
    int seconds = argc > 2 ? atoi(argv[2]) : 20;
    if (argc < 2 || seconds < 2 || seconds > MOST_SECONDS) {
        fprintf(stderr, "usage: bench_tui PROGRAM SECONDS [MODEL|replay TOWERS ...] (2 to %d seconds)\n",
                MOST_SECONDS);
        return 2;
    }
    if (!mkdtemp(folder))
        return 1;
    setenv("XDG_STATE_HOME", folder, 1);
    print_load("before");
    printf("120x40                       KiB/s          of a core            ms to draw a frame        ms "
           "from key "
           "to answer  ms to first\n");
    printf("                      median   most   mean  console     hub    clock  99 %%  processor  99 %%  "
           "median  99 %% "
           " most  frame towers\n");
    for (int i = 3; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], "replay"))
            replay(argv[1], atoi(argv[i + 1]), seconds);
        else
            live(argv[1], argv[i], atoi(argv[i + 1]), seconds);
    if (argc <= 3) {
        live(argv[1], "cifar10", 2, seconds);
        live(argv[1], "cifar10", 4, seconds);
        live(argv[1], "cifar10", 16, seconds);
        live(argv[1], "softmax", 4, seconds); /* thousands of steps a second */
        replay(argv[1], 4, seconds);
        replay(argv[1], 64, seconds);
        installed("htop", seconds);
        installed("btop", seconds);
    }
    print_load("after");
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0;
}
