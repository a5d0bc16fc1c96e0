#include "kernels/registry.h"

#include "kernels/cpu/cpu.h"
#include "kernels/ref/ref.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kinds of devices, best first. */
static const struct kind {
    const char *name;
    bool numbered;                /* NAME:INDEX names one of several */
    bool by_default;              /* may be chosen when nobody asks for a device */
    const struct device_ops *ops; /* NULL: not part of this build, `reason` says so */
    const char *reason;
} kinds[] = {
    {"cuda", true, true, NULL, "this build has no CUDA plugin"},
    {"cpu", false, true, &cpu_device_ops, ""},
    {"ref", false, true, &ref_device_ops, ""},
    {"ref64", false, false, &ref64_device_ops, ""},
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

static enum status kind_open(const struct kind *kind, int index, int threads, const char *isa,
                             struct device_handle *out) {
    if (!kind->ops)
        return status_fail(STATUS_UNSUPPORTED, "device %s cannot be used: %s", kind->name, kind->reason);
    if (kind->ops->api != DEVICE_API)
        return status_fail(STATUS_UNSUPPORTED,
                           "device %s cannot be used: it speaks version %d of the device table, this program "
                           "version %d",
                           kind->name, kind->ops->api, DEVICE_API);
    struct device *device = NULL;
    enum status status = kind->ops->open(index, threads, isa, &device);
    if (status != STATUS_OK)
        return status_prefix(status, "device %s cannot be used: ", kind->name);
    *out = (struct device_handle){kind->ops, device};
    return STATUS_OK;
}

enum status device_open(const char *name, int threads, const char *isa, struct device_handle *out) {
    char known[128] = "";
    for (int i = 0; i < KINDS; i++) {
        int index;
        if (kind_matches(&kinds[i], name, &index))
            return kind_open(&kinds[i], index, threads, isa, out);
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
            status = kind_open(&kinds[i], 0, threads, isa, out);
            if (status == STATUS_OK)
                return STATUS_OK;
        }
    return status;
}

void device_visit(void (*visit)(void *context, const char *name, bool usable, const char *reason,
                                const struct device_info *info),
                  void *context) {
    for (int i = 0; i < KINDS; i++) {
        struct device_handle handle = {0};
        struct device_info info = {0};
        enum status status = kinds[i].ops ? kind_open(&kinds[i], 0, 0, NULL, &handle) : STATUS_UNSUPPORTED;
        if (status == STATUS_OK)
            status = handle.ops->describe(handle.device, &info);
        const char *reason = kinds[i].ops ? status_text() : kinds[i].reason;
        visit(context, kinds[i].name, status == STATUS_OK, status == STATUS_OK ? "" : reason,
              status == STATUS_OK ? &info : NULL);
        device_close(&handle);
    }
}
