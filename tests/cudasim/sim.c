#include "tests/cudasim/sim.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *plugin;

static void *symbol(const char *name) {
    void *found = dlsym(plugin, name);
    if (!found) {
        fprintf(stderr, "backend_sim.so has no %s\n", name);
        abort();
    }
    return found;
}

bool sim_begin(void) {
    char folder[PATH_MAX], path[PATH_MAX + 32];
    const char *build = getenv("BUILD");
    snprintf(folder, sizeof folder, "%s/sim", build ? build : "build/release");
    snprintf(path, sizeof path, "%s/backend_sim.so", folder);
    if (access(path, R_OK) != 0 || setenv("TOWERSCOPE_PLUGINS", folder, 1) != 0)
        return false;
    plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin)
        fprintf(stderr, "%s\n", dlerror());
    return plugin != NULL;
}

void sim_set(struct cudasim_settings settings) {
    void (*set)(const struct cudasim_settings *);
    void *at = symbol("cudasim_set");
    memcpy(&set, &at, sizeof set);
    set(&settings);
}

int sim_waits(void) {
    int (*waits)(void);
    void *at = symbol("cudasim_waits");
    memcpy(&waits, &at, sizeof waits);
    return waits();
}

long sim_pieces(void) {
    long (*pieces)(void);
    void *at = symbol("cudasim_pieces");
    memcpy(&pieces, &at, sizeof pieces);
    return pieces();
}

long sim_graphs(void) {
    long (*graphs)(void);
    void *at = symbol("cudasim_graphs");
    memcpy(&graphs, &at, sizeof graphs);
    return graphs();
}

long sim_spoiled(void) {
    long (*spoiled)(void);
    void *at = symbol("cudasim_spoiled");
    memcpy(&spoiled, &at, sizeof spoiled);
    return spoiled();
}

long sim_odd_engines(void) {
    long (*odd)(void);
    void *at = symbol("cudasim_odd_engines");
    memcpy(&odd, &at, sizeof odd);
    return odd();
}

bool sim_clean(void) {
    int (*clean)(void);
    void *at = symbol("cudasim_clean");
    memcpy(&clean, &at, sizeof clean);
    return clean() != 0;
}

struct cudasim_settings sim_healthy(int gpus, unsigned seed) {
    return (struct cudasim_settings){.gpus = gpus,
                                     .seed = seed,
                                     .drop_wait = -1,
                                     .lose_gpu = -1,
                                     .hang_collective = -1,
                                     .fail_collective = -1};
}

const char *sim_names(int gpus) {
    static char names[256];
    size_t used = 0;
    for (int i = 0; i < gpus; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%ssim:%d", i ? "," : "", i);
    return names;
}
