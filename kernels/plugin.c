#include "kernels/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the running program; false where the system does not say. */
static bool program_folder(char *out, size_t size) {
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    if (length <= 0)
        return false;
    out[length] = 0;
    char *slash = strrchr(out, '/');
    if (!slash)
        return false;
    *slash = 0;
    return true;
}

static bool present(char *path, size_t size, const char *folder, const char *below, const char *name) {
    int length = snprintf(path, size, "%s%s/backend_%s.so", folder, below, name);
    return length > 0 && (size_t)length < size && !access(path, R_OK);
}

enum status plugin_find(const char *name, char *path, size_t size) {
    const char *told = getenv("TOWERSCOPE_PLUGINS");
    char folder[PATH_MAX];
    if (told && *told) {
        if (present(path, size, told, "", name))
            return STATUS_OK;
        return status_fail(STATUS_UNSUPPORTED, "there is no backend_%s.so in TOWERSCOPE_PLUGINS=%s", name,
                           told);
    }
    if (program_folder(folder, sizeof folder)) {
        if (present(path, size, folder, "", name) || present(path, size, folder, "/../lib/towerscope", name))
            return STATUS_OK;
        return status_fail(STATUS_UNSUPPORTED,
                           "no plugin in this build: there is no backend_%s.so in %s or %s/../lib/towerscope",
                           name, folder, folder);
    }
    return status_fail(STATUS_UNSUPPORTED,
                       "no plugin in this build: where the program lies is not known (/proc); set "
                       "TOWERSCOPE_PLUGINS to the folder of backend_%s.so",
                       name);
}

/* What the loader could not do, in words that say what to do: "libX.so.2: cannot open shared object file: No
 * such file or directory" is about a library that is missing when X is not the plugin itself. */
static enum status load_failed(const char *path) {
    const char *said = dlerror();
    if (!said)
        said = "the loader gave no reason";
    const char *end = strstr(said, ": cannot open shared object file");
    if (end && strncmp(said, path, strlen(path)) != 0)
        return status_fail(STATUS_UNSUPPORTED,
                           "library missing: %.*s, which %s needs, is not found; install it, or name its "
                           "folder in LD_LIBRARY_PATH",
                           (int)(end - said), said, path);
    return status_fail(STATUS_UNSUPPORTED, "%s does not load: %s", path, said);
}

enum status plugin_load(const char *name, const struct device_ops **out) {
    char path[PATH_MAX];
    STATUS_TRY(plugin_find(name, path, sizeof path));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return load_failed(path);
    void *symbol = dlsym(library, PLUGIN_ENTRY_NAME);
    plugin_entry *entry;
    memcpy(&entry, &symbol, sizeof entry);
    const struct device_ops *ops = symbol ? entry() : NULL;
    if (!ops)
        return status_fail(STATUS_UNSUPPORTED, "%s is not a plugin of this program: it has no %s()", path,
                           PLUGIN_ENTRY_NAME);
    if (ops->api != DEVICE_API)
        return status_fail(STATUS_UNSUPPORTED,
                           "%s speaks version %d of the device table, this program version %d; install the "
                           "two together",
                           path, ops->api, DEVICE_API);
    *out = ops;
    return STATUS_OK;
}
