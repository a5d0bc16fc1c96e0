/* A run's folder of checkpoints: names by step, the newest and the best stay. */
#include "engine/base/clock.h"
#include "engine/base/text.h"
#include "engine/train/checkpoint_parts.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char PREFIX[] = "step-", SUFFIX[] = ".safetensors", ASIDE[] = ".safetensors.tmp";
static const char REWOUND[] = ".rewound.safetensors"; /* later steps that the run went back from */

enum { PATH_BYTES = 1400 };

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

/* The checkpoints of a folder, newest first; what else lies there is left alone. */
static enum status list_folder(const char *path, struct list *out) {
    *out = (struct list){0};
    DIR *folder = opendir(path);
    if (!folder)
        return status_fail(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path, strerror(errno));
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
static double precision_of(const char *folder, const struct found *found) {
    char path[PATH_BYTES];
    join(folder, found->name, path, sizeof path);
    struct safetensors file;
    double precision = NAN;
    if (safetensors_open(path, &file) == STATUS_OK) {
        const char *word = safetensors_word(&file, "precision");
        if (word)
            (void)text_real(word, &precision);
    }
    safetensors_close(&file);
    return precision;
}

/* A checkpoint beyond the step just saved is of a way the run went back from: it is no longer the newest, and
 * keeps what it holds under another name. */
static void set_aside(const char *folder, const struct found *found) {
    char from[PATH_BYTES], to[PATH_BYTES], name[96];
    join(folder, found->name, from, sizeof from);
    snprintf(name, sizeof name, "%s%08lld%s", PREFIX, (long long)found->step, REWOUND);
    join(folder, name, to, sizeof to);
    (void)rename(from, to);
}

/* The best of those up to a step: the highest precision, the newest of equal ones; -1: none has one. */
static int best_of(const char *folder, const struct list *list, int64_t saved) {
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
static void prune(const char *folder, int64_t keep, int64_t saved) {
    struct list list;
    if (list_folder(folder, &list) != STATUS_OK)
        return;
    int best = best_of(folder, &list, saved);
    int64_t kept = 0;
    for (int i = 0; i < list.count; i++) {
        const struct found *found = &list.found[i];
        char path[PATH_BYTES];
        join(folder, found->name, path, sizeof path);
        if (found->aside)
            (void)unlink(path);
        else if (found->step > saved)
            set_aside(folder, found);
        else if (kept++ >= keep && i != best)
            (void)unlink(path);
    }
    free(list.found);
}

enum status checkpoint_save(struct checkpoint_folder *folder, const struct snapshot *snapshot,
                            struct event_checkpoint *out) {
    double start = clock_seconds();
    if (mkdir(folder->path, 0777) != 0 && errno != EEXIST)
        return status_fail(STATUS_IO, "%s: can't make the folder: %s", folder->path, strerror(errno));
    snprintf(folder->last, sizeof folder->last, "%s/%s%08lld%s", folder->path, PREFIX,
             (long long)snapshot->progress.steps, SUFFIX);
    uint64_t bytes;
    STATUS_TRY(checkpoint_write(folder->last, snapshot, &bytes));
    prune(folder->path, snapshot->settings.keep, snapshot->progress.steps);
    out->path = folder->last;
    out->bytes = (int64_t)bytes;
    out->seconds = clock_seconds() - start;
    return STATUS_OK;
}

enum status checkpoint_newest(const char *folder, char *out, size_t size) {
    struct list list;
    STATUS_TRY(list_folder(folder, &list));
    int i = 0;
    while (i < list.count && list.found[i].aside)
        i++;
    enum status status = STATUS_OK;
    if (i == list.count)
        status = status_fail(STATUS_NOT_FOUND, "%s: there is no checkpoint in it", folder);
    else
        join(folder, list.found[i].name, out, size);
    free(list.found);
    return status;
}
