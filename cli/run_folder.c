#include "cli/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/wire/lock.h"
#include "engine/wire/record.h"

static const char *const adjectives[] = {
    "amber", "brisk",  "calm",  "clear",  "early", "fair",  "gentle", "golden", "green", "high",  "keen",
    "late",  "light",  "lucky", "mellow", "neat",  "noble", "old",    "plain",  "quiet", "rapid", "silver",
    "small", "steady", "still", "swift",  "tall",  "warm",  "wide",   "wild",   "wise",  "young"};
static const char *const nouns[] = {"anchor",  "beacon", "birch",  "bridge", "brook",   "canyon", "cedar",
                                    "cliff",   "cloud",  "comet",  "delta",  "ember",   "falcon", "fern",
                                    "field",   "forest", "garden", "harbor", "hill",    "island", "lake",
                                    "lantern", "maple",  "meadow", "mill",   "orchard", "otter",  "pine",
                                    "quarry",  "river",  "stone",  "tower"};
enum { WORDS = 32, TRIES = 200, PLAIN_TRIES = 100 };
_Static_assert(sizeof adjectives / sizeof *adjectives == WORDS && sizeof nouns / sizeof *nouns == WORDS,
               "five bits choose a word");

static enum status taken(const char *path) {
    if (lock_held(path))
        return status_fail(STATUS_REFUSED,
                           "%s is a run that is live, process %ld owns it: `towerscope attach` shows it",
                           path, lock_holder(path));
    return status_fail(
        STATUS_REFUSED,
        "%s exists already: --resume goes on with it; else choose another name, or leave the name "
        "out and one is made up",
        path);
}

static enum status set_path(struct run_folder *folder, const char *runs) {
    folder->fd = -1;
    int length = snprintf(folder->path, sizeof folder->path, "%s/%s", runs, folder->name);
    if (length < 0 || (size_t)length >= sizeof folder->path)
        return status_fail(STATUS_BAD_INPUT, "runs: the path %.60s... is longer than %zu bytes", runs,
                           sizeof folder->path - 1);
    return STATUS_OK;
}

enum status run_folder_check(const char *runs, const char *name) {
    struct run_folder folder;
    snprintf(folder.name, sizeof folder.name, "%s", name);
    STATUS_TRY(set_path(&folder, runs));
    struct stat found;
    if (!lstat(folder.path, &found))
        return taken(folder.path);
    return STATUS_OK;
}

/* The folder of all runs, with those above it. */
static enum status make_runs(const char *runs) {
    char path[600];
    snprintf(path, sizeof path, "%s", runs);
    for (char *at = path + 1; at[-1]; at++) {
        if (*at && *at != '/')
            continue;
        char was = *at;
        *at = 0;
        if (mkdir(path, 0755) && errno != EEXIST)
            return status_fail(STATUS_IO, "%s: can't make the folder of runs: %s", path, strerror(errno));
        *at = was;
    }
    struct stat found;
    if (stat(runs, &found) || !S_ISDIR(found.st_mode))
        return status_fail(STATUS_IO, "%s is not a folder; runs are kept in one (--runs, TOWERSCOPE_RUNS)",
                           runs);
    return STATUS_OK;
}

static void make_up_name(char *out, size_t size, int attempt) {
    unsigned number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        number = (unsigned)getpid() * 2654435761u + (unsigned)attempt * 40503u;
    int length = snprintf(out, size, "%s-%s", adjectives[number % WORDS], nouns[number / WORDS % WORDS]);
    if (attempt >= PLAIN_TRIES) /* nearly all are taken */
        snprintf(out + length, size - (size_t)length, "-%u", number / WORDS / WORDS % 10000);
}

enum status run_folder_make(const char *runs, const char *name, struct run_folder *out) {
    STATUS_TRY(make_runs(runs));
    for (int attempt = 0; attempt < TRIES; attempt++) {
        if (*name)
            snprintf(out->name, sizeof out->name, "%s", name);
        else
            make_up_name(out->name, sizeof out->name, attempt);
        STATUS_TRY(set_path(out, runs));
        if (!mkdir(out->path, 0755))
            return STATUS_OK;
        if (errno != EEXIST)
            return status_fail(STATUS_IO, "%s: can't make the run's folder: %s", out->path, strerror(errno));
        if (*name)
            return taken(out->path);
    }
    return status_fail(STATUS_REFUSED, "%s: no made-up name is free; give one", runs);
}

enum status run_folder_find(const char *runs, const char *name, struct run_folder *out) {
    snprintf(out->name, sizeof out->name, "%s", name);
    STATUS_TRY(set_path(out, runs));
    struct stat found;
    if (stat(out->path, &found) != 0)
        return status_fail(errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO,
                           "no run \"%s\": %s: %s", name, out->path, strerror(errno));
    if (!S_ISDIR(found.st_mode))
        return status_fail(STATUS_NOT_FOUND, "no run \"%s\": %s is not a folder", name, out->path);
    return STATUS_OK;
}

static bool is_empty(const char *path) {
    DIR *folder = opendir(path);
    int found = 0;
    if (!folder)
        return false;
    while (found <= 2 && readdir(folder)) /* "." and ".." are always there */
        found++;
    closedir(folder);
    return found <= 2;
}

enum status run_folder_is_run(const struct run_folder *folder) {
    static const char *const names[] = {"config.ini", "lock", "owner", RECORD_FILE, "checkpoints"};
    char path[PATH_MAX + 16];
    struct stat found;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder->path, names[i]);
        if (lstat(path, &found) == 0)
            return STATUS_OK;
    }
    return is_empty(folder->path)
               ? STATUS_OK
               : status_fail(
                     STATUS_NOT_FOUND,
                     "no run \"%s\": %s holds other files, and neither a run's record nor its config.ini or "
                     "checkpoints: nothing was changed; `towerscope ls` lists the runs",
                     folder->name, folder->path);
}

static enum status cannot_write(const struct run_folder *folder) {
    return status_fail(STATUS_IO, "%s/config.ini: can't be written: %s", folder->path, strerror(errno));
}

/* Whether the file has just these bytes. */
static bool says(const struct run_folder *folder, const char *text, size_t size) {
    char block[4096];
    size_t done = 0;
    int fd = openat(folder->fd, "config.ini", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t bytes;
    bool same = true;
    while (same && (bytes = read(fd, block, sizeof block)) > 0) {
        same = (size_t)bytes <= size - done && !memcmp(block, text + done, (size_t)bytes);
        done += (size_t)bytes;
    }
    close(fd);
    return same && bytes == 0 && done == size;
}

static enum status write_config(const struct run_folder *folder, const char *text, size_t size) {
    static const char aside[] = "config.ini.tmp";
    /* a killed writer's, or a pipe that would hold us up, or a link elsewhere */
    (void)unlinkat(folder->fd, aside, 0);
    int fd = openat(folder->fd, aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return cannot_write(folder);
    enum status status = STATUS_OK;
    for (size_t done = 0; status == STATUS_OK && done < size;) {
        ssize_t bytes = write(fd, text + done, size - done);
        if (bytes > 0)
            done += (size_t)bytes;
        else if (bytes == 0 || errno != EINTR)
            status = cannot_write(folder);
    }
    if (status == STATUS_OK && fsync(fd))
        status = cannot_write(folder);
    if (close(fd) && errno != EINTR && status == STATUS_OK)
        status = cannot_write(folder);
    if (status == STATUS_OK && renameat(folder->fd, aside, folder->fd, "config.ini"))
        status = cannot_write(folder);
    if (status != STATUS_OK)
        (void)unlinkat(folder->fd, aside, 0);
    return status;
}

enum status run_folder_config(const struct run_folder *folder, const struct settings *settings) {
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return status_fail(STATUS_NO_MEMORY, "no memory to write config.ini");
    enum status status = settings_write(settings, memory);
    if (fclose(memory) && status == STATUS_OK)
        status = status_fail(STATUS_NO_MEMORY, "no memory to write config.ini");
    if (status == STATUS_OK && !says(folder, text, size))
        status = write_config(folder, text, size);
    free(text);
    return status;
}

void run_folder_unmake(const struct run_folder *folder) {
    static const char *const files[] = {"config.ini", "lock", "owner", RECORD_FILE};
    for (size_t i = 0; folder->fd >= 0 && i < sizeof files / sizeof *files; i++)
        (void)unlinkat(folder->fd, files[i], 0);
    (void)rmdir(folder->path);
}
