#include "cli/find.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/wire/live.h"

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
