#include "cli/bench_folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status bench_folder_make(struct bench_folder *out) {
    const char *temporary = getenv("TMPDIR");
    int length = snprintf(out->path, sizeof out->path, "%s/towerscope-bench.XXXXXX",
                          temporary && *temporary ? temporary : "/tmp");
    if (length >= (int)sizeof out->path) {
        *out->path = 0;
        return status_fail(STATUS_BAD_INPUT, "TMPDIR: a path of %d bytes is too long", length);
    }
    if (!mkdtemp(out->path) || setenv("XDG_STATE_HOME", out->path, 1)) {
        enum status status = status_fail(
            STATUS_IO, "%s: no folder for the records can be made there: %s; set TMPDIR to one that has room",
            out->path, strerror(errno));
        *out->path = 0;
        return status;
    }
    return STATUS_OK;
}

static int take_away(const char *path, const struct stat *about, int kind, struct FTW *place) {
    (void)about, (void)kind, (void)place;
    return remove(path);
}

void bench_folder_remove(struct bench_folder *folder) {
    if (*folder->path)
        nftw(folder->path, take_away, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    *folder->path = 0;
}
