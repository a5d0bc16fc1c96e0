/* What the console costs (make bench-tui): bytes to the terminal, processor time and drawing time at 120x40,
 * for live runs, a replay, and other full-screen monitors where they are installed. Each runs in a
 * pseudo-terminal of its own.
 *
 *   bench_tui PROGRAM SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "tests/support/stream.h"
#include "tests/support/vt.h"

enum { ROWS = 40, COLS = 120, MOST_SECONDS = 600 };

static char folder[] = "/tmp/towerscope-bench.XXXXXX";

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* "drawing 0.4 ms, at most 1.2" from the screen, when the program shows it. */
static void read_drawing(const struct vt *vt, char *out, size_t size) {
    char *screen = vt_screen(vt, false), *at = strstr(screen, "drawing ");
    double mean, worst;
    snprintf(out, size, "-");
    if (at && sscanf(at, "drawing %lf ms, at most %lf", &mean, &worst) == 2)
        snprintf(out, size, "%.1f / %.1f ms", mean, worst);
    free(screen);
}

static void measure(const char *name, const char *const argv[], const char *keys, int seconds) {
    struct vt *vt = vt_start(ROWS, COLS, argv, NULL);
    if (!vt) {
        printf("%-24s can't be started\n", name);
        return;
    }
    vt_settle(vt, 5, 2.5);
    vt_keys(vt, keys);
    vt_settle(vt, 5, 1.5);
    double rates[MOST_SECONDS], cpu = vt_cpu(vt), begun = clock_seconds();
    long long first = vt_bytes(vt);
    for (int i = 0; i < seconds; i++) {
        long long bytes = vt_bytes(vt);
        double from = clock_seconds();
        while (clock_seconds() - from < 1)
            vt_settle(vt, 0.05, 0.05);
        rates[i] = (double)(vt_bytes(vt) - bytes) / (clock_seconds() - from) / 1024;
    }
    double took = clock_seconds() - begun;
    char drawing[48];
    read_drawing(vt, drawing, sizeof drawing);
    qsort(rates, (size_t)seconds, sizeof *rates, by_size);
    printf("%-24s %8.2f %8.2f %8.2f   %6.2f %%   %s\n", name, rates[seconds / 2], rates[seconds - 1],
           (double)(vt_bytes(vt) - first) / took / 1024, 100 * (vt_cpu(vt) - cpu) / took, drawing);
    fflush(stdout);
    vt_keys(vt, "q");
    vt_wait_exit(vt, 2, NULL);
    vt_end(vt);
}

static void live(const char *program, int towers, int seconds) {
    char name[64], command[2048];
    snprintf(name, sizeof name, "bench-%d", towers);
    snprintf(command, sizeof command, "\"%s\" run %s --detach --runs \"%s\" --towers %d >/dev/null", program,
             name, folder, towers);
    if (system(command) != 0) {
        printf("%-24s the run can't be started\n", name);
        return;
    }
    const char *argv[] = {program, "attach", name, NULL};
    char title[64];
    snprintf(title, sizeof title, "live, %d towers", towers);
    measure(title, argv, ":budget\r", seconds);
    snprintf(command, sizeof command, "\"%s\" ctl %s stop >/dev/null 2>&1", program, name);
    if (system(command) != 0)
        printf("%s could not be stopped\n", name);
}

static void installed(const char *name, int seconds) {
    char path[64];
    snprintf(path, sizeof path, "/usr/bin/%s", name);
    if (access(path, X_OK)) {
        printf("%-24s is not installed\n", name);
        return;
    }
    const char *argv[] = {path, NULL};
    measure(name, argv, "", seconds);
}

int main(int argc, char **argv) {
    int seconds = argc > 2 ? atoi(argv[2]) : 20;
    if (argc < 2 || seconds < 2 || seconds > MOST_SECONDS) {
        fprintf(stderr, "usage: bench_tui PROGRAM SECONDS (2 to %d)\n", MOST_SECONDS);
        return 2;
    }
    if (!mkdtemp(folder))
        return 1;
    setenv("XDG_STATE_HOME", folder, 1);
    printf("%-24s %8s %8s %8s   %8s   %s\n", "120x40", "median", "most", "mean", "of a core",
           "drawing, mean / worst");
    printf("%-24s %26s\n", "", "KiB/s to the terminal");
    live(argv[1], 2, seconds);
    live(argv[1], 4, seconds);
    live(argv[1], 16, seconds);
    char record[128];
    snprintf(record, sizeof record, "%s/record.jsonl", folder);
    struct stream_script script = {.towers = 4, .steps = 20000, .eval_every = 500, .ended = true};
    if (stream_write(&script, record) == STATUS_OK) {
        const char *replay[] = {argv[1], "replay", record, NULL};
        measure("replay, 4 towers, 1x", replay, ":budget\r", seconds);
    }
    installed("htop", seconds);
    installed("btop", seconds);
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0;
}
