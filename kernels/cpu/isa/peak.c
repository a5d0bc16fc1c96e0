#include "kernels/cpu/isa/peak.h"

#include "kernels/cpu/isa/vec.h"

/* Chains of dependent operations side by side: enough to hide their latency, few enough for the registers. */
#if defined(ISA_avx512)
enum { CHAINS = 24 };
#else
enum { CHAINS = 12 };
#endif

static double multiply_add(long rounds) {
    vec sum[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        sum[i] = vec_set((float)i);
    vec factor = vec_set(0.5f), term = vec_set(1);
    /* The compiler must not know them, or it would do without the loop. */
    __asm__ volatile("" : "+m"(factor), "+m"(term));
    for (long round = 0; round < rounds; round++)
#pragma GCC unroll 24
        for (int i = 0; i < CHAINS; i++)
            sum[i] = sum[i] * factor + term;
    vec total = vec_zero();
    for (int i = 0; i < CHAINS; i++)
        total += sum[i];
    __asm__ volatile("" : : "m"(total));
    return 2.0 * CHAINS * VEC * (double)rounds;
}

const struct peak_kernels ISA_SYMBOL(peak_kernels) = {.multiply_add = multiply_add};
