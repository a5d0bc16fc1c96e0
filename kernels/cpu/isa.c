#include "kernels/cpu/isa.h"

#include <stdio.h>
#include <string.h>

const char *isa_name(enum cpu_isa isa) {
    static const char *const names[ISA_COUNT] = {"avx512", "avx2", "plain"};
    return isa < ISA_COUNT ? names[isa] : "unknown";
}

bool isa_available(enum cpu_isa isa) {
    switch (isa) {
#if defined(__x86_64__)
    case ISA_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("fma");
    case ISA_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    case ISA_PLAIN:
        return true;
    default:
        return false;
    }
}

enum status isa_choose(const char *name, enum cpu_isa *out) {
    char available[64] = "";
    enum cpu_isa best = ISA_PLAIN;
    for (int i = ISA_PLAIN; i >= 0; i--) {
        if (!isa_available((enum cpu_isa)i))
            continue;
        best = (enum cpu_isa)i;
        size_t used = strlen(available);
        snprintf(available + used, sizeof available - used, "%s%s", used ? ", " : "",
                 isa_name((enum cpu_isa)i));
    }
    *out = best;
    if (!name || !*name)
        return STATUS_OK;
    for (int i = 0; i < ISA_COUNT; i++) {
        if (strcmp(name, isa_name((enum cpu_isa)i)) != 0)
            continue;
        *out = (enum cpu_isa)i;
        if (isa_available(*out))
            return STATUS_OK;
        return status_fail(STATUS_UNSUPPORTED, "isa: this processor has no %s; it has %s", name, available);
    }
    return status_fail(STATUS_BAD_INPUT, "isa: %s is not known; this processor has %s", name, available);
}
