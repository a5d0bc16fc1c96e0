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

enum status find_record(const char *what, const char *runs, char *path, size_t size) {
    struct stat about;
    char tried[PATH_MAX];
    snprintf(path, size, "%s", what);
    if (strchr(what, '/') || (!stat(path, &about) && S_ISREG(about.st_mode)))
        return STATUS_OK;
    snprintf(tried, sizeof tried, "%s/%s", runs, what);
    if (!stat(tried, &about)) {
        snprintf(path, size, "%s", tried);
        return STATUS_OK;
    }
    struct live_run live; /* a live run may be in any folder */
    if (live_find(what, NULL, &live) == STATUS_OK) {
        snprintf(path, size, "%s", live.folder);
        return STATUS_OK;
    }
    if (!stat(path, &about))
        return STATUS_OK;
    return status_fail(STATUS_NOT_FOUND, "no run or file \"%s\" (looked for %s too)", what, tried);
}
