/* `towerscope ls`: the runs there are, from their locks and the ends of their records. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/help.h"
#include "engine/base/printable.h"
#include "engine/wire/record.h"
#include "engine/wire/summary.h"

struct listing {
    struct run_summary *runs;
    int count, room;
    bool missing; /* there is no folder of runs */
    int unread;   /* runs that are not listed, which is told */
};

static void write_help(FILE *to) {
    fprintf(to, "usage: towerscope ls [--json] [--runs DIR]\n\n"
                "The runs of a folder of runs, and those that are live in any other: name, state, step,\n"
                "towers, last averaged loss, and the step of the newest checkpoint.\n\n"
                "  --json                        as a JSON array\n"
                "  --runs DIR                    folder of runs (else $TOWERSCOPE_RUNS, else ./runs)\n");
}

static enum status read_line(int argc, char **argv, bool *json, const char **runs) {
    const struct argument options[] = {{.name = "--json", .flag = json},
                                       {.name = "--runs", .value = "a folder", .text = runs}};
    struct argument_list list = {.command = "ls",
                                 .options = options,
                                 .option_count = sizeof options / sizeof *options,
                                 .takes = "no names"};
    return arguments_read(argc, argv, &list);
}

/* Told, and counted: what can't be read hides no run that can. */
static void leave_out(struct listing *list, enum status status) {
    cli_fail(status);
    list->unread++;
}

static enum status add(struct listing *list, const struct live_run *run) {
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->runs[i].folder, run->folder))
            return STATUS_OK;
    if (list->count == list->room) {
        int room = list->room ? 2 * list->room : 16;
        struct run_summary *more = realloc(list->runs, (size_t)room * sizeof *more);
        if (!more)
            return status_fail(STATUS_NO_MEMORY, "no memory to list the runs");
        list->runs = more;
        list->room = room;
    }
    enum status status = find_summary(run, &list->runs[list->count]);
    if (status == STATUS_OK) {
        list->count++;
    } else if (status != STATUS_NO_MEMORY) {
        leave_out(list, status);
        status = STATUS_OK;
    }
    return status;
}

/* A run's folder has a record or a lock. False with EACCES: nobody but its owner may know. */
static bool is_run(const char *path) {
    char file[PATH_MAX + 16];
    struct stat info;
    snprintf(file, sizeof file, "%s/%s", path, RECORD_FILE);
    if (stat(file, &info) == 0)
        return true;
    snprintf(file, sizeof file, "%s/lock", path);
    return stat(file, &info) == 0;
}

static enum status add_folder(struct listing *list, const char *runs) {
    DIR *folder = opendir(runs);
    if (!folder) {
        if (errno == ENOENT) {
            list->missing = true;
            return STATUS_OK;
        }
        return status_fail(STATUS_IO, "%s: %s", runs, strerror(errno));
    }
    enum status status = STATUS_OK;
    for (const struct dirent *entry; status == STATUS_OK && (entry = readdir(folder));) {
        char path[PATH_MAX];
        struct live_run run;
        if (run_name_check(entry->d_name) != STATUS_OK ||
            (size_t)snprintf(path, sizeof path, "%s/%s", runs, entry->d_name) >= sizeof path)
            continue;
        errno = 0;
        if (!is_run(path)) {
            if (errno == EACCES)
                leave_out(list, status_fail(STATUS_IO, "%s: %s", path, strerror(EACCES)));
            continue;
        }
        if (live_describe(path, &run) == STATUS_OK)
            status = add(list, &run);
    }
    closedir(folder);
    return status;
}

/* Those of other folders, while they are live. */
static enum status add_live(struct listing *list) {
    struct live_run *runs;
    int count;
    enum status status = live_list(&runs, &count);
    if (status != STATUS_OK && status != STATUS_NO_MEMORY) {
        char why[512];
        snprintf(why, sizeof why, "%s", status_text());
        leave_out(list, status_fail(status, "%s; what is live in other folders is not listed", why));
        return STATUS_OK;
    }
    for (int i = 0; i < count && status == STATUS_OK; i++)
        if (runs[i].live && is_run(runs[i].folder))
            status = add(list, &runs[i]);
    free(runs);
    return status;
}

/* Live ones first, then the newest. */
static int by_life(const void *a, const void *b) {
    const struct run_summary *x = a, *y = b;
    double s = isfinite(x->time) ? x->time : 0, t = isfinite(y->time) ? y->time : 0;
    if (x->live != y->live)
        return x->live ? -1 : 1;
    if (s != t)
        return s < t ? 1 : -1;
    return strcmp(x->folder, y->folder);
}

static void print_table(const struct listing *list) {
    if (list->count == 0) {
        if (!list->unread && !list->missing)
            fprintf(stderr, "no runs; `towerscope run` starts one\n");
        return;
    }
    int width = 4;
    for (int i = 0; i < list->count; i++)
        if ((int)strlen(list->runs[i].name) > width)
            width = (int)strlen(list->runs[i].name);
    printf("%-*s  %-10s  %10s  %6s  %10s  %10s  %s\n", width, "name", "state", "step", "towers", "loss",
           "saved", "folder");
    for (int i = 0; i < list->count; i++) {
        const struct run_summary *run = &list->runs[i];
        char step[24] = "-", towers[24] = "-", loss[32] = "-", saved[24] = "-", folder[PATH_MAX], state[40];
        if (run->step != WIRE_UNKNOWN_INT)
            snprintf(step, sizeof step, "%lld", (long long)run->step);
        if (run->towers != WIRE_UNKNOWN_INT)
            snprintf(towers, sizeof towers, "%lld", (long long)run->towers);
        if (!wire_is_unknown(run->loss))
            text_loss(run->loss, loss);
        if (run->saved != WIRE_UNKNOWN_INT)
            snprintf(saved, sizeof saved, "%lld", (long long)run->saved);
        text_printable(folder, sizeof folder, run->folder);
        text_printable(state, sizeof state, run->state);
        printf("%-*s  %-10s  %10s  %6s  %10s  %10s  %s\n", width, run->name, state, step, towers, loss, saved,
               folder);
    }
}

int command_ls(int argc, char **argv) {
    bool json = false;
    const char *runs = NULL;
    if (arguments_help(argc, argv))
        return help_print(write_help);
    enum status status = read_line(argc, argv, &json, &runs);
    if (status != STATUS_OK) {
        cli_fail(status);
        return EXIT_USAGE;
    }
    struct listing list = {0};
    const char *folder = find_runs(runs);
    status = add_folder(&list, folder);
    if (list.missing) { /* which may be a slip of the one who typed it */
        char shown[PATH_MAX];
        text_printable(shown, sizeof shown, folder);
        fprintf(stderr, "no runs of \"%s\": there is no such folder; `towerscope run` makes it\n", shown);
    }
    if (status == STATUS_OK)
        status = add_live(&list);
    if (status == STATUS_OK && list.count > 0)
        qsort(list.runs, (size_t)list.count, sizeof *list.runs, by_life);
    char *text = NULL;
    if (status == STATUS_OK && json && !(text = run_summaries_json(list.runs, list.count)))
        status = status_fail(STATUS_NO_MEMORY, "no memory to list the runs");
    if (status == STATUS_OK && json)
        printf("%s\n", text);
    else if (status == STATUS_OK)
        print_table(&list);
    free(text);
    free(list.runs);
    if (status != STATUS_OK)
        return cli_fail(status);
    return list.unread ? EXIT_FAILED : EXIT_DONE;
}
