#include "tests/fuzz/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_FILES = 16, PATH = 600 };

static char folder[512];
static struct {
    char name[64];
    int descriptor;
    int present;
} files[MOST_FILES];

static void need(int holds, const char *what) {
    if (holds)
        return;
    perror(what);
    exit(1);
}

static void path_of(const char *name, char path[PATH]) {
    snprintf(path, PATH, "%.500s/%.63s", fuzz_folder(), name);
}

void fuzz_clear(void) {
    char path[PATH];
    for (int i = 0; i < MOST_FILES; i++)
        if (files[i].present) {
            path_of(files[i].name, path);
            unlink(path);
            files[i].present = 0;
        }
}

const char *fuzz_path(const char *name) {
    static char path[PATH];
    path_of(name, path);
    return path;
}

static void leave(void) {
    fuzz_clear();
    rmdir(folder);
}

const char *fuzz_folder(void) {
    if (*folder)
        return folder;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/towerscope-fuzz.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    need(mkdtemp(folder) != NULL, folder);
    atexit(leave);
    return folder;
}

void fuzz_put(const char *name, const void *bytes, size_t size) {
    int slot = 0;
    while (slot < MOST_FILES && *files[slot].name && strcmp(files[slot].name, name) != 0)
        slot++;
    need(slot < MOST_FILES, "too many files");
    if (!*files[slot].name) {
        snprintf(files[slot].name, sizeof files[slot].name, "%s", name);
        files[slot].descriptor = memfd_create(name, MFD_CLOEXEC);
        need(files[slot].descriptor >= 0, "memfd_create");
    }
    int descriptor = files[slot].descriptor;
    need(ftruncate(descriptor, 0) == 0, "ftruncate");
    need(pwrite(descriptor, bytes, size, 0) == (ssize_t)size, "pwrite");
    if (files[slot].present)
        return;
    char path[PATH], target[64];
    path_of(name, path);
    snprintf(target, sizeof target, "/proc/self/fd/%d", descriptor);
    need(symlink(target, path) == 0, path);
    files[slot].present = 1;
}
