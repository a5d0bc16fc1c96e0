/* A run's folder of checkpoints: names by step, the newest and the best stay. */
#include "engine/base/clock.h"
#include "engine/base/text.h"
#include "engine/train/checkpoint_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char PREFIX[] = "step-", SUFFIX[] = ".safetensors", ASIDE[] = ".safetensors.tmp";
static const char REWOUND[] = ".rewound.safetensors"; /* later steps that the run went back from */

struct found {
    int64_t step;
    char name[256];
    bool aside; /* what a writer that was killed left behind */
};

struct list {
    struct found *found;
    int count;
};

/* Whether a name is step-DIGITS followed by a suffix. */
static bool named(const char *name, const char *suffix, int64_t *step) {
    char digits[24];
    size_t before = sizeof PREFIX - 1;
    if (strncmp(name, PREFIX, before) != 0)
        return false;
    size_t count = strspn(name + before, "0123456789");
    if (count < 1 || count >= sizeof digits || strcmp(name + before + count, suffix) != 0)
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)count, name + before);
    return text_integer(digits, step);
}

static int newest_first(const void *a, const void *b) {
    const struct found *p = a, *q = b;
    return p->step < q->step ? 1 : p->step > q->step ? -1 : strcmp(p->name, q->name);
}

/* The checkpoints of an open folder, newest first; what else lies there is left alone. */
static enum status list_folder(int fd, const char *path, struct list *out) {
    *out = (struct list){0};
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = own >= 0 ? fdopendir(own) : NULL;
    if (!folder) {
        int error = errno;
        if (own >= 0)
            close(own);
        return status_fail(STATUS_IO, "%s: %s", path, strerror(error));
    }
    enum status status = STATUS_OK;
    const struct dirent *entry;
    while (status == STATUS_OK && (entry = readdir(folder))) {
        struct found found = {0};
        found.aside = named(entry->d_name, ASIDE, &found.step);
        if (!found.aside && !named(entry->d_name, SUFFIX, &found.step))
            continue;
        snprintf(found.name, sizeof found.name, "%s", entry->d_name);
        struct found *larger = realloc(out->found, (size_t)(out->count + 1) * sizeof *larger);
        if (!larger)
            status = status_fail(STATUS_NO_MEMORY, "%s: no memory to list it", path);
        else {
            out->found = larger;
            out->found[out->count++] = found;
        }
    }
    closedir(folder);
    if (status != STATUS_OK) {
        free(out->found);
        *out = (struct list){0};
    } else if (out->count > 1)
        qsort(out->found, (size_t)out->count, sizeof *out->found, newest_first);
    return status;
}

static void join(const char *folder, const char *name, char *out, size_t size) {
    snprintf(out, size, "%s/%s", folder, name);
}

/* The precision a file says it has; NaN: none, or it can't be read. */
static double precision_of(int folder, const struct found *found) {
    struct safetensors file;
    double precision = NAN;
    if (safetensors_open_in(folder, found->name, found->name, &file) == STATUS_OK) {
        const char *word = safetensors_word(&file, "precision");
        if (word)
            (void)text_real(word, &precision);
    }
    safetensors_close(&file);
    return precision;
}

/* A checkpoint beyond the step just saved is of a way the run went back from: it is no longer the newest, and
 * keeps what it holds under another name. */
static void set_aside(int folder, const struct found *found) {
    char name[96];
    snprintf(name, sizeof name, "%s%08lld%s", PREFIX, (long long)found->step, REWOUND);
    (void)renameat(folder, found->name, folder, name);
}

/* The best of those up to a step: the highest precision, the newest of equal ones; -1: none has one. */
static int best_of(int folder, const struct list *list, int64_t saved) {
    int best = -1;
    double highest = NAN;
    for (int i = 0; i < list->count; i++) {
        if (list->found[i].aside || list->found[i].step > saved)
            continue;
        double precision = precision_of(folder, &list->found[i]);
        if (precision > highest || (isnan(highest) && !isnan(precision))) {
            highest = precision;
            best = i;
        }
    }
    return best;
}

/* Remove what is neither new nor best. That a file could not be removed harms nobody: the next save tries
 * again. */
static void prune(int folder, int64_t keep, int64_t saved) {
    struct list list;
    if (list_folder(folder, "checkpoints", &list) != STATUS_OK)
        return;
    int best = best_of(folder, &list, saved);
    int64_t kept = 0;
    for (int i = 0; i < list.count; i++) {
        const struct found *found = &list.found[i];
        if (found->aside)
            (void)unlinkat(folder, found->name, 0);
        else if (found->step > saved)
            set_aside(folder, found);
        else if (kept++ >= keep && i != best)
            (void)unlinkat(folder, found->name, 0);
    }
    free(list.found);
}

/* The folder of checkpoints, made when it is not there; -1: it can't be had. */
static int open_folder(const struct checkpoint_folder *folder) {
    int base = folder->held ? folder->run : AT_FDCWD;
    const char *name = folder->held ? "checkpoints" : folder->path;
    bool made = mkdirat(base, name, 0755) == 0;
    if (!made && errno != EEXIST)
        return -1;
    if (made && folder->held)
        (void)fsync(base); /* its own name has to be on the disk, too */
    return openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

enum status checkpoint_save(struct checkpoint_folder *folder, const struct snapshot *snapshot,
                            struct event_checkpoint *out) {
    double start = clock_seconds();
    char name[64];
    int fd = open_folder(folder);
    if (fd < 0)
        return status_fail(status_of_write(errno), "%s: can't make or open the folder: %s", folder->path,
                           strerror(errno));
    snprintf(name, sizeof name, "%s%08lld%s", PREFIX, (long long)snapshot->progress.steps, SUFFIX);
    join(folder->path, name, folder->last, sizeof folder->last);
    uint64_t bytes;
    enum status status = checkpoint_write_in(fd, name, folder->last, snapshot, &bytes);
    if (status == STATUS_OK)
        prune(fd, snapshot->settings.keep, snapshot->progress.steps);
    close(fd);
    STATUS_TRY(status);
    out->path = folder->last;
    out->bytes = (int64_t)bytes;
    out->seconds = clock_seconds() - start;
    return STATUS_OK;
}

bool checkpoint_there(const struct checkpoint_folder *folder, int64_t step) {
    char name[96];
    struct stat info;
    snprintf(name, sizeof name, "checkpoints/%s%08lld%s", PREFIX, (long long)step, SUFFIX);
    if (folder->held)
        return fstatat(folder->run, name, &info, 0) == 0;
    char path[sizeof folder->path + sizeof name];
    join(folder->path, strchr(name, '/') + 1, path, sizeof path);
    return stat(path, &info) == 0;
}

enum status checkpoint_newest(const char *folder, char *out, size_t size) {
    struct list list;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return status_fail(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", folder, strerror(errno));
    enum status status = list_folder(fd, folder, &list);
    close(fd);
    STATUS_TRY(status);
    int i = 0;
    while (i < list.count && list.found[i].aside)
        i++;
    if (i == list.count)
        status = status_fail(STATUS_NOT_FOUND, "%s: there is no checkpoint in it", folder);
    else
        join(folder, list.found[i].name, out, size);
    free(list.found);
    return status;
}

int64_t checkpoint_newest_step(const char *folder) {
    char path[PATH_MAX + 64];
    const char *name = checkpoint_newest(folder, path, sizeof path) == STATUS_OK ? strrchr(path, '-') : NULL;
    return name ? strtoll(name + 1, NULL, 10) : -1;
}
