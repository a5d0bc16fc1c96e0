#include "cli/find.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/train/checkpoint.h"

const char *find_runs(const char *given) {
    const char *environment = getenv("TOWERSCOPE_RUNS");
    if (given && *given)
        return given;
    return environment && *environment ? environment : "runs";
}

/* A run that is live, or was when it crashed, is known whatever folder it is in; the newest of that name. */
static bool find_entry(const char *name, char *path, size_t size) {
    struct live_run *runs;
    int count, found = -1;
    if (live_list(&runs, &count) != STATUS_OK)
        return false;
    for (int i = 0; i < count; i++)
        if (!strcmp(runs[i].name, name) && (found < 0 || (runs[i].live && !runs[found].live)))
            found = i;
    if (found >= 0)
        snprintf(path, size, "%s", runs[found].folder);
    free(runs);
    return found >= 0;
}

enum status find_record(const char *what, const char *runs, char *path, size_t size) {
    struct stat about;
    char tried[PATH_MAX];
    if (!*what)
        return status_fail(STATUS_NOT_FOUND,
                           "the name of the run is empty; `towerscope ls` shows the runs there are");
    snprintf(path, size, "%s", what);
    if (strchr(what, '/') || (!stat(path, &about) && S_ISREG(about.st_mode)))
        return STATUS_OK;
    snprintf(tried, sizeof tried, "%s/%s", runs, what);
    if (!stat(tried, &about)) {
        snprintf(path, size, "%s", tried);
        return STATUS_OK;
    }
    if (find_entry(what, path, size) || !stat(path, &about))
        return STATUS_OK;
    return status_fail(STATUS_NOT_FOUND, "no run or file \"%s\" (looked for %s too)", what, tried);
}

enum status find_summary(const struct live_run *run, struct run_summary *out) {
    char checkpoints[PATH_MAX + 16];
    STATUS_TRY(run_summary_read(run, out));
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", run->folder);
    int64_t step = checkpoint_newest_step(checkpoints);
    out->saved = step < 0 ? WIRE_UNKNOWN_INT : step;
    return STATUS_OK;
}

/* " (crashed after step 12, saved up to step 10)"; "" when the record can't be read. */
static void say_state(const struct live_run *run, char *out, size_t size) {
    struct run_summary summary;
    *out = 0;
    if (find_summary(run, &summary) != STATUS_OK)
        return;
    if (summary.step == WIRE_UNKNOWN_INT)
        snprintf(out, size, " (%s before its first step)",
                 strcmp(summary.state, "empty") ? summary.state : "ended");
    else if (summary.saved == WIRE_UNKNOWN_INT && summary.step > 0)
        snprintf(out, size, " (%s after step %lld, none of it saved)", summary.state,
                 (long long)summary.step);
    else if (summary.saved >= 0 && summary.saved < summary.step)
        snprintf(out, size, " (%s after step %lld, saved up to step %lld)", summary.state,
                 (long long)summary.step, (long long)summary.saved);
    else
        snprintf(out, size, " (%s after step %lld)", summary.state, (long long)summary.step);
}

enum status find_live(const char *name, const char *runs, struct live_run *run) {
    char path[PATH_MAX], why[500], state[128], usual[PATH_MAX], at[PATH_MAX + 16] = "", *slash;
    enum status status = live_find(name, runs, run);
    if (status != STATUS_NOT_FOUND || !name)
        return status;
    snprintf(why, sizeof why, "%s", status_text());
    if (find_record(name, runs, path, sizeof path) != STATUS_OK || live_describe(path, run) != STATUS_OK)
        return status_fail(STATUS_NOT_FOUND, "%s", why);
    say_state(run, state, sizeof state);
    snprintf(path, sizeof path, "%s", run->folder);
    if ((slash = strrchr(path, '/')))
        *slash = 0;
    if (!realpath(find_runs(NULL), usual) || strcmp(usual, path) != 0)
        snprintf(at, sizeof at, " --runs %s", path);
    return status_fail(STATUS_NOT_FOUND,
                       "run %s is not live%s: `towerscope replay %s` shows its record, `towerscope run %s "
                       "--resume%s` goes on with it",
                       run->name, state, name, run->name, at);
}
