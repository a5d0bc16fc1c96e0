/* bfloat16 values on the host: the upper half of a float. */
#ifndef TOWERSCOPE_KERNELS_CUDA_BF16_H
#define TOWERSCOPE_KERNELS_CUDA_BF16_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Rounded to the nearest, a tie to even; not a number stays one. */
static inline void floats_to_bf16(const float *from, uint16_t *to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &from[i], sizeof bits);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded);
    }
}

static inline void bf16_to_floats(const uint16_t *from, float *to, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(&to[i], &bits, sizeof bits);
    }
}

#endif
