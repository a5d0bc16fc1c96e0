#include "tests/support/devices.h"

#include "kernels/registry.h"
#include "tests/support/guarded.h"

#include <stdio.h>

struct names {
    char name[16][32];
    int count;
};

static void collect(void *context, const char *name, bool usable, const char *reason,
                    const struct device_info *info) {
    struct names *names = context;
    (void)reason, (void)info;
    if (usable && names->count < 16)
        snprintf(names->name[names->count++], sizeof names->name[0], "%s", name);
}

void for_each_device(void (*test)(struct device_handle device)) {
    struct names names = {.count = 0};
    device_visit(collect, &names);
    for (int i = 0; i < names.count; i++) {
        struct device_handle device = {0};
        printf("  on %s\n", names.name[i]);
        fflush(stdout);
        expect_ok(device_open(names.name[i], 3, NULL, &device), names.name[i]);
        test(device);
        device_close(&device);
    }
}
