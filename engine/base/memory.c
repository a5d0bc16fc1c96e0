#include "engine/base/memory.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The first number after `key` in a file of "Key:  123 kB" lines, or of a bare number (key ""). */
static int read_number(const char *path, const char *key, size_t *out) {
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    char line[256];
    int found = 0;
    size_t length = strlen(key);
    while (!found && fgets(line, sizeof line, file))
        found = !strncmp(line, key, length) && sscanf(line + length, "%zu", out) == 1;
    fclose(file);
    return found;
}

static void at_most(size_t *least, size_t limit, size_t used) {
    size_t left = used < limit ? limit - used : 1;
    if (!*least || left < *least)
        *least = left;
}

size_t memory_available(void) {
    size_t least = 0, limit, used, pages, cache;
    if (read_number("/proc/meminfo", "MemAvailable:", &limit))
        at_most(&least, limit * 1024, 0);
    if (read_number("/sys/fs/cgroup/memory.max", "", &limit) &&
        read_number("/sys/fs/cgroup/memory.current", "", &used)) {
        if (!read_number("/sys/fs/cgroup/memory.stat", "inactive_file ", &cache) || cache > used)
            cache = 0; /* else: what the system would drop when asked for more */
        at_most(&least, limit, used - cache);
    }
    struct rlimit space;
    if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur != RLIM_INFINITY &&
        read_number("/proc/self/statm", "", &pages))
        at_most(&least, space.rlim_cur, pages * (size_t)sysconf(_SC_PAGESIZE));
    return least;
}

const char *memory_words(size_t bytes, char out[32]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    snprintf(out, 32, "%.*f %s", unit ? 1 : 0, value, units[unit]);
    return out;
}
