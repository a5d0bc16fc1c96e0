#include "kernels/registry.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cuda/host/driver.h"
#include "kernels/plugin.h"
#include "kernels/ref/ref.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kinds of devices, best first. */
static const struct kind {
    const char *name;
    bool numbered;                /* NAME:INDEX names one of several */
    bool by_default;              /* may be chosen when nobody asks for a device */
    bool optional;                /* not spoken of where there is no plugin for it */
    const struct device_ops *ops; /* NULL: a plugin's */
    bool (*worth_loading)(void);  /* NULL: always. Else the plugin is loaded only then, or when asked for */
    const char *(*absence)(void); /* why it was not worth it */
} kinds[] = {
    {"cuda", true, true, false, NULL, cuda_driver_present, cuda_driver_absence},
    {"cpu", false, true, false, &cpu_device_ops, NULL, NULL},
    {"ref", false, true, false, &ref_device_ops, NULL, NULL},
    {"ref64", false, false, false, &ref64_device_ops, NULL, NULL},
    {"sim", true, false, true, NULL, NULL, NULL}, /* the CUDA engine on a simulated GPU, for tests */
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* Whether `name` names a device of this kind, and which. */
static bool kind_matches(const struct kind *kind, const char *name, int *index) {
    size_t length = strlen(kind->name);
    *index = 0;
    if (strncmp(name, kind->name, length) != 0)
        return false;
    if (!name[length])
        return true;
    if (!kind->numbered || name[length] != ':')
        return false;
    const char *digits = name + length + 1;
    size_t count = strspn(digits, "0123456789");
    if (count < 1 || count > 4 || digits[count])
        return false;
    *index = atoi(digits);
    return true;
}

static bool kind_hidden(const struct kind *kind) {
    char path[PATH_MAX];
    return kind->optional && plugin_find(kind->name, path, sizeof path) != STATUS_OK;
}

/* The table of a kind. `asked`: somebody named it, so a plugin is loaded even where it will hardly be of use.
 */
static enum status kind_ops(const struct kind *kind, bool asked, const struct device_ops **out) {
    char path[PATH_MAX];
    *out = kind->ops;
    if (kind->ops)
        return STATUS_OK;
    if (!asked && kind->worth_loading && !kind->worth_loading()) {
        STATUS_TRY(plugin_find(kind->name, path, sizeof path)); /* the nearer reason */
        return status_fail(STATUS_UNSUPPORTED, "%s", kind->absence());
    }
    return plugin_load(kind->name, out);
}

static enum status kind_open(const struct kind *kind, int index, bool asked, int threads, const char *isa,
                             struct device_handle *out) {
    const struct device_ops *ops = NULL;
    struct device *device = NULL;
    enum status status = kind_ops(kind, asked, &ops);
    if (status == STATUS_OK) {
        status = ops->open(index, threads, isa, &device);
        if (status != STATUS_OK && kind->worth_loading && !kind->worth_loading())
            (void)status_prefix(status, "%s; ", kind->absence());
    }
    if (status != STATUS_OK)
        return kind->numbered ? status_prefix(status, "device %s:%d cannot be used: ", kind->name, index)
                              : status_prefix(status, "device %s cannot be used: ", kind->name);
    *out = (struct device_handle){ops, device};
    return STATUS_OK;
}

enum status device_open(const char *name, int threads, const char *isa, struct device_handle *out) {
    char known[128] = "";
    for (int i = 0; i < KINDS; i++) {
        int index;
        if (kind_matches(&kinds[i], name, &index))
            return kind_open(&kinds[i], index, true, threads, isa, out);
        if (kind_hidden(&kinds[i]))
            continue;
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s%s", used ? ", " : "", kinds[i].name,
                 kinds[i].numbered ? ":N" : "");
    }
    return status_fail(STATUS_BAD_INPUT, "there is no device \"%s\"; known are %s", name, known);
}

void device_close(struct device_handle *handle) {
    if (handle->ops)
        handle->ops->close(handle->device);
    *handle = (struct device_handle){0};
}

enum status device_open_default(int threads, const char *isa, struct device_handle *out) {
    enum status status = STATUS_UNSUPPORTED;
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].by_default) {
            status = kind_open(&kinds[i], 0, false, threads, isa, out);
            /* instruction sets are the cpu's: that it can't compute with the one asked for is the answer */
            if (status == STATUS_OK || (isa && *isa && kinds[i].ops == &cpu_device_ops))
                return status;
        }
    return status;
}

/* Visit the devices of one kind: of a numbered one, each that there is. */
static void kind_visit(const struct kind *kind,
                       void (*visit)(void *context, const char *name, bool usable, const char *reason,
                                     const struct device_info *info),
                       void *context) {
    const struct device_ops *ops;
    enum status status = kind_ops(kind, false, &ops);
    if (status != STATUS_OK) {
        visit(context, kind->name, false, status_text(), NULL);
        return;
    }
    for (int index = 0; index == 0 || kind->numbered; index++) {
        struct device_handle handle = {ops, NULL};
        struct device_info info = {0};
        char name[sizeof info.name];
        if (kind->numbered)
            snprintf(name, sizeof name, "%s:%d", kind->name, index);
        else
            snprintf(name, sizeof name, "%s", kind->name);
        status = ops->open(index, 0, NULL, &handle.device);
        if (status == STATUS_OK) {
            status = ops->describe(handle.device, &info);
            visit(context, name, status == STATUS_OK, status == STATUS_OK ? "" : status_text(),
                  status == STATUS_OK ? &info : NULL);
            device_close(&handle);
        } else if (index == 0 || status != STATUS_NOT_FOUND)
            visit(context, index ? name : kind->name, false, status_text(), NULL);
        if (status != STATUS_OK)
            return;
    }
}

void device_visit(void (*visit)(void *context, const char *name, bool usable, const char *reason,
                                const struct device_info *info),
                  void *context) {
    for (int i = 0; i < KINDS; i++)
        if (!kind_hidden(&kinds[i]))
            kind_visit(&kinds[i], visit, context);
}
