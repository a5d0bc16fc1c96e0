/* Instruction sets. Our own kernels lie in kernels/cpu/isa and are compiled once for each; which are used is
 * chosen when the device is opened. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_H
#define TOWERSCOPE_KERNELS_CPU_ISA_H

#include "kernels/status.h"

enum cpu_isa { ISA_AVX512, ISA_AVX2, ISA_PLAIN, ISA_COUNT }; /* best first */

const char *isa_name(enum cpu_isa isa); /* "avx512", "avx2", "plain": also the Makefile's names */

/* Does this processor (and its system) have it? ISA_PLAIN always. avx512 means F, BW, VL and DQ; avx2
 * includes FMA. */
bool isa_available(enum cpu_isa isa);

/* NULL: the best there is. STATUS_BAD_INPUT for an unknown name, STATUS_UNSUPPORTED for one this processor
 * lacks; the text lists what can be had. */
enum status isa_choose(const char *name, enum cpu_isa *out);

/* In kernels/cpu/isa, ISA_NAME is set for each compilation: name a table of functions
 * ISA_SYMBOL(relu_kernels), declare all of them with ISA_DECLARE(const struct relu_kernels, relu_kernels),
 * and pick one outside with ISA_PICK(isa, relu_kernels). */
#define ISA_JOIN_(name, isa)    name##_##isa
#define ISA_JOIN(name, isa)     ISA_JOIN_(name, isa)
#define ISA_SYMBOL(name)        ISA_JOIN(name, ISA_NAME)
#define ISA_DECLARE(type, name) extern type name##_avx512, name##_avx2, name##_plain
#define ISA_PICK(isa, name)                                                                                  \
    ((isa) == ISA_AVX512 ? &name##_avx512 : (isa) == ISA_AVX2 ? &name##_avx2 : &name##_plain)

#endif
