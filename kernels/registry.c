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

/* "cuda:0,cuda:1" of what is to be opened. */
static void group_name(const struct kind *kind, const struct device_options *options, char *out,
                       size_t size) {
    snprintf(out, size, "%s", kind->name);
    if (!kind->numbered)
        return;
    size_t used = 0;
    for (int i = 0; i < options->count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s:%d", i ? "," : "", kind->name,
                                 options->indices[i]);
}

static enum status kind_open(const struct kind *kind, const struct device_options *options, bool asked,
                             struct device_handle *out) {
    const struct device_ops *ops = NULL;
    struct device *device = NULL;
    char name[DEVICE_GROUP_MAX * 16];
    enum status status = kind_ops(kind, asked, &ops);
    if (status == STATUS_OK) {
        status = ops->open(options, &device);
        if (status != STATUS_OK && kind->worth_loading && !kind->worth_loading())
            (void)status_prefix(status, "%s; ", kind->absence());
    }
    group_name(kind, options, name, sizeof name);
    if (status != STATUS_OK)
        return status_prefix(status, "device %s cannot be used: ", name);
    *out = (struct device_handle){ops, device};
    return STATUS_OK;
}

static enum status unknown_device(const char *name) {
    char known[128] = "";
    for (int i = 0; i < KINDS; i++) {
        if (kind_hidden(&kinds[i]))
            continue;
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s%s", used ? ", " : "", kinds[i].name,
                 kinds[i].numbered ? ":N" : "");
    }
    return status_fail(STATUS_BAD_INPUT, "there is no device \"%s\"; known are %s", name, known);
}

/* One more device of a list. */
static enum status add_device(const char *names, const char *name, const struct kind **kind,
                              struct device_options *options) {
    const struct kind *found = NULL;
    int index = 0;
    for (int i = 0; i < KINDS && !found; i++)
        if (kind_matches(&kinds[i], name, &index))
            found = &kinds[i];
    if (!found)
        return unknown_device(name);
    if (*kind && (*kind != found || !found->numbered))
        return status_fail(STATUS_BAD_INPUT, "devices %s: several devices have to be GPUs of one kind",
                           names);
    if (options->count == DEVICE_GROUP_MAX)
        return status_fail(STATUS_BAD_INPUT, "devices %s: at most %d", names, DEVICE_GROUP_MAX);
    for (int i = 0; i < options->count; i++)
        if (options->indices[i] == index)
            return status_fail(STATUS_BAD_INPUT,
                               "devices %s: %s stands there twice; several towers share a GPU anyway", names,
                               name);
    *kind = found;
    options->indices[options->count++] = index;
    return STATUS_OK;
}

enum status device_open_with(const char *names, const struct device_options *options,
                             struct device_handle *out) {
    struct device_options own = *options;
    const struct kind *kind = NULL;
    own.count = 0;
    for (const char *at = names;; at++) {
        char name[64];
        size_t length = strcspn(at, ",");
        if (length >= sizeof name)
            return unknown_device(at);
        memcpy(name, at, length);
        name[length] = 0;
        STATUS_TRY(add_device(names, name, &kind, &own));
        at += length;
        if (!*at)
            break;
    }
    return kind_open(kind, &own, true, out);
}

enum status device_open(const char *names, int threads, const char *isa, struct device_handle *out) {
    return device_open_with(names, &(struct device_options){.threads = threads, .isa = isa}, out);
}

void device_place_name(struct device_handle handle, int place, char *out, size_t size) {
    if (handle.ops->place_name)
        handle.ops->place_name(handle.device, place, out, size);
    else
        snprintf(out, size, "%s", handle.ops->name);
}

void device_close(struct device_handle *handle) {
    if (handle->ops)
        handle->ops->close(handle->device);
    *handle = (struct device_handle){0};
}

enum status device_open_default(const struct device_options *options, struct device_handle *out) {
    struct device_options own = *options;
    own.count = 1;
    own.indices[0] = 0;
    enum status status = STATUS_UNSUPPORTED;
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].by_default) {
            status = kind_open(&kinds[i], &own, false, out);
            /* instruction sets are the cpu's: that it can't compute with the one asked for is the answer */
            if (status == STATUS_OK || (own.isa && *own.isa && kinds[i].ops == &cpu_device_ops))
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
        status = ops->open(&(struct device_options){.indices = {index}, .count = 1}, &handle.device);
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
