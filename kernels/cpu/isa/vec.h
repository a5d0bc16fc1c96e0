/* One vector of floats, as wide as the instruction set this file is compiled for: 16 with AVX-512, 8 with
 * AVX2, 4 in plain C. Every kernel is written once over it. Arithmetic (+ - * /) is that of the compiler's
 * vector extensions, and a * b + c becomes one fused operation where there is one; what they lack is here.
 *
 * Functions are forced inline: with constant arguments their loops unroll into registers. */
#ifndef TOWERSCOPE_KERNELS_CPU_ISA_VEC_H
#define TOWERSCOPE_KERNELS_CPU_ISA_VEC_H

#include "kernels/cpu/isa.h"

#include <stdint.h>
#include <string.h>

#if defined(ISA_avx512)
#include <immintrin.h>
#define VEC 16
#elif defined(ISA_avx2)
#include <immintrin.h>
#define VEC 8
#elif defined(ISA_plain)
#include <math.h>
#define VEC 4
#else
#error "files of kernels/cpu/isa are compiled by the Makefile, once for each instruction set"
#endif

#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(VEC * 4)));
typedef int32_t vec_int __attribute__((vector_size(VEC * 4)));
typedef float vec_at __attribute__((vector_size(VEC * 4), aligned(4), may_alias)); /* anywhere in memory */

INLINE vec vec_load(const float *from) {
    return *(const vec_at *)from;
}

INLINE void vec_store(float *to, vec v) {
    *(vec_at *)to = v;
}

INLINE vec vec_set(float value) {
    return value - (vec){0};
}

INLINE vec vec_zero(void) {
    return (vec){0};
}

/* The first `count` (0 to VEC) values, the rest 0; nothing beyond them is read or written. */
INLINE vec vec_load_some(const float *from, int count) {
#if defined(ISA_avx512)
    return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
#else
    vec v = {0};
    memcpy(&v, from, (size_t)count * sizeof(float));
    return v;
#endif
}

INLINE void vec_store_some(float *to, vec v, int count) {
#if defined(ISA_avx512)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), (__m512)v);
#else
    memcpy(to, &v, (size_t)count * sizeof(float));
#endif
}

/* ---- comparing and choosing */

#if defined(ISA_avx512)
typedef __mmask16 vec_mask;
INLINE vec_mask vec_greater(vec a, vec b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ);
}
/* a > b, or one of them is not a number */
INLINE vec_mask vec_not_at_most(vec a, vec b) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_NLE_UQ);
}
INLINE vec_mask vec_is_number(vec a) {
    return _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q);
}
INLINE vec vec_select(vec_mask mask, vec yes, vec no) {
    return (vec)_mm512_mask_mov_ps((__m512)no, mask, (__m512)yes);
}
INLINE vec_int vec_select_int(vec_mask mask, vec_int yes, vec_int no) {
    return (vec_int)_mm512_mask_mov_epi32((__m512i)no, mask, (__m512i)yes);
}
INLINE vec vec_keep(vec_mask mask, vec v) { /* 0 where the mask is not set */
    return (vec)_mm512_maskz_mov_ps(mask, (__m512)v);
}
INLINE vec_mask vec_equal_int(vec_int a, vec_int b) {
    return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b);
}
#else
typedef vec_int vec_mask;
INLINE vec_mask vec_greater(vec a, vec b) {
    return a > b;
}
INLINE vec_mask vec_not_at_most(vec a, vec b) {
    return ~(a <= b);
}
INLINE vec_mask vec_is_number(vec a) {
    return a == a;
}
INLINE vec_int vec_select_int(vec_mask mask, vec_int yes, vec_int no) {
    return (mask & yes) | (~mask & no);
}
INLINE vec vec_select(vec_mask mask, vec yes, vec no) {
#if defined(ISA_avx2)
    return (vec)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
#else
    return (vec)vec_select_int(mask, (vec_int)yes, (vec_int)no);
#endif
}
INLINE vec vec_keep(vec_mask mask, vec v) {
    return (vec)(mask & (vec_int)v);
}
INLINE vec_mask vec_equal_int(vec_int a, vec_int b) {
    return a == b;
}
#endif

/* The larger of two numbers. */
INLINE vec vec_max(vec a, vec b) {
#if defined(ISA_avx512)
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(ISA_avx2)
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return vec_select(vec_greater(a, b), a, b);
#endif
}

/* max(v, 0); what is not a number stays so. */
INLINE vec vec_relu(vec v) {
#if defined(ISA_avx512)
    return (vec)_mm512_max_ps(_mm512_setzero_ps(), (__m512)v);
#elif defined(ISA_avx2)
    return (vec)_mm256_max_ps(_mm256_setzero_ps(), (__m256)v);
#else
    return vec_keep(vec_not_at_most(v, vec_zero()), v);
#endif
}

/* ---- integers of one byte in memory */

INLINE vec_int vec_set_int(int value) {
    return value - (vec_int){0};
}

typedef uint8_t vec_bytes __attribute__((vector_size(VEC), aligned(1), may_alias));

INLINE vec_int vec_load_bytes(const uint8_t *from) {
#if defined(ISA_avx512)
    return (vec_int)_mm512_cvtepu8_epi32((__m128i)(*(const vec_bytes *)from));
#elif defined(ISA_avx2)
    return (vec_int)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));
#else
    return __builtin_convertvector(*(const vec_bytes *)from, vec_int);
#endif
}

INLINE void vec_store_bytes(uint8_t *to, vec_int v) {
#if defined(ISA_avx2)
    __m128i low = _mm256_castsi256_si128((__m256i)v), high = _mm256_extracti128_si256((__m256i)v, 1);
    __m128i words = _mm_packus_epi32(low, high);
    _mm_storel_epi64((__m128i *)to, _mm_packus_epi16(words, words));
#else
    *(vec_bytes *)to = __builtin_convertvector(v, vec_bytes);
#endif
}

/* The first `count` only. */
INLINE vec_int vec_load_bytes_some(const uint8_t *from, int count) {
    if (count == VEC)
        return vec_load_bytes(from);
    vec_int v = {0};
    for (int i = 0; i < VEC && i < count; i++)
        v[i] = from[i];
    return v;
}

INLINE void vec_store_bytes_some(uint8_t *to, vec_int v, int count) {
    if (count == VEC)
        vec_store_bytes(to, v);
    else
        for (int i = 0; i < VEC && i < count; i++)
            to[i] = (uint8_t)v[i];
}

/* ---- across a vector */

/* Values n .. n + VEC - 1 of low and high laid end to end; n is a constant of 0 to VEC. */
#if defined(ISA_avx512)
#define vec_slide(low, high, n)                                                                              \
    ((n) == 16 ? (high) : (vec)_mm512_alignr_epi32((__m512i)(high), (__m512i)(low), (n)&15))
#else
/* gcc and clang have this under two names; clang's is known to gcc from version 12 on. */
#ifdef __clang__
#define vec_pick(low, high, ...) __builtin_shufflevector(low, high, __VA_ARGS__)
#else
#define vec_pick(low, high, ...) __builtin_shuffle(low, high, (vec_int){__VA_ARGS__})
#endif
#ifdef ISA_avx2
#define vec_slide(low, high, n)                                                                              \
    vec_pick(low, high, (n), (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, (n) + 6, (n) + 7)
#else
#define vec_slide(low, high, n) vec_pick(low, high, (n), (n) + 1, (n) + 2, (n) + 3)
#endif
#endif

/* The sum in a fixed order. */
INLINE float vec_sum(vec v) {
    float sum = 0;
    for (int i = 0; i < VEC; i++)
        sum += v[i];
    return sum;
}

/* ---- roots */

/* 1 / sqrt(v) for positive v, to about one unit in the last place: the processor's estimate and one step of
 * Newton's iteration, r + r * (1/2 - v/2 * r * r). */
INLINE vec vec_inverse_root(vec v) {
#if defined(ISA_plain)
    vec r;
    for (int i = 0; i < VEC; i++)
        r[i] = sqrtf(v[i]);
    return 1 / r;
#else
#if defined(ISA_avx512)
    vec r = (vec)_mm512_rsqrt14_ps((__m512)v);
#else
    vec r = (vec)_mm256_rsqrt_ps((__m256)v);
#endif
    return r + r * (0.5f - 0.5f * v * r * r);
#endif
}

#endif
