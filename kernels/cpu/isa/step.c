#include "kernels/cpu/isa/step.h"

#include <stdbool.h>
#include <string.h>

#if defined(ISA_avx512) || defined(ISA_avx2)
#include <immintrin.h>
#endif

/* Sums and what leads to them are in double, LANES at a time. */
#if defined(ISA_avx2)
enum { LANES = 4 };
#else
enum { LANES = 8 };
#endif
typedef double doubles __attribute__((vector_size(LANES * 8)));
typedef float floats_at __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef double doubles_at __attribute__((vector_size(LANES * 8), aligned(8), may_alias));

#define INLINE_STEP static inline __attribute__((always_inline))

/* By pointer: a vector wider than the registers of an instruction set has no agreed way to be passed. By
 * instructions of their own, where gcc 12 goes value by value. */
INLINE_STEP void widen(doubles *to, const float *from) {
#if defined(ISA_avx512)
    *to = (doubles)_mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif defined(ISA_avx2)
    *to = (doubles)_mm256_cvtps_pd(_mm_loadu_ps(from));
#else
    *to = __builtin_convertvector(*(const floats_at *)from, doubles);
#endif
}

INLINE_STEP void narrow(float *to, const doubles *from) {
#if defined(ISA_avx512)
    _mm256_storeu_ps(to, _mm512_cvtpd_ps((__m512d)*from));
#elif defined(ISA_avx2)
    _mm_storeu_ps(to, _mm256_cvtpd_ps((__m256d)*from));
#else
    *(floats_at *)to = __builtin_convertvector(*from, floats_at);
#endif
}

INLINE_STEP double sum_lanes(const doubles *lanes) {
    double sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += (*lanes)[i];
    return sum;
}

/* Towers whose gradients are read side by side: as many as there are registers for three vectors of each. */
#if defined(ISA_avx512)
enum { ABREAST = 8 };
#else
enum { ABREAST = 4 };
#endif

struct abreast {
    int count, tower[ABREAST];
    const float *g[ABREAST];
    double weight[ABREAST];
    double norm2[ABREAST], dot[ABREAST]; /* |G|^2 and G . average over the block */
};

/* A block of combine: the parameters, the sum so far, and what it comes to. */
struct combine_block {
    const float *p;
    double decay;
    double *sum;
    float *average;
    double average_norm2;
    size_t count;
};

/* sum += weight * G for each of n towers in their order, G = g + decay * p, and |G|^2. With `last` the sum is
 * whole: it becomes the average, rounded, and with `dots` there is G . average. Always called with constant
 * n, last and dots. */
INLINE_STEP void add_n(struct abreast *t, const int n, const bool last, const bool dots,
                       struct combine_block *b) {
    doubles norm[ABREAST], dot[ABREAST], total[ABREAST], average_norm = {0};
    for (int k = 0; k < n; k++)
        norm[k] = dot[k] = (doubles){0};
    size_t i = 0;
    for (; i + LANES <= b->count; i += LANES) {
        doubles w, a, s = *(const doubles_at *)(b->sum + i);
        widen(&w, b->p + i);
        w *= b->decay;
#pragma GCC unroll 8
        for (int k = 0; k < n; k++) {
            widen(&total[k], t->g[k] + i);
            total[k] += w;
            norm[k] += total[k] * total[k];
            s += t->weight[k] * total[k];
        }
        if (!last) {
            *(doubles_at *)(b->sum + i) = s;
            continue;
        }
        narrow(b->average + i, &s);
        widen(&a, b->average + i);
        average_norm += a * a;
#pragma GCC unroll 8
        for (int k = 0; dots && k < n; k++)
            dot[k] += total[k] * a;
    }
    for (int k = 0; k < n; k++) {
        t->norm2[k] = sum_lanes(&norm[k]);
        t->dot[k] = sum_lanes(&dot[k]);
    }
    b->average_norm2 = sum_lanes(&average_norm);
    for (; i < b->count; i++) {
        for (int k = 0; k < n; k++) {
            double rest = t->g[k][i] + b->decay * b->p[i];
            t->norm2[k] += rest * rest;
            b->sum[i] += t->weight[k] * rest;
        }
        if (!last)
            continue;
        b->average[i] = (float)b->sum[i];
        b->average_norm2 += (double)b->average[i] * b->average[i];
        for (int k = 0; dots && k < n; k++)
            t->dot[k] += (t->g[k][i] + b->decay * b->p[i]) * b->average[i];
    }
}

/* G . average of a full number of towers that came before the last ones. */
static void dot_earlier(struct abreast *t, const struct combine_block *b) {
    doubles dot[ABREAST] = {{0}};
    size_t i = 0;
    for (; i + LANES <= b->count; i += LANES) {
        doubles w, a;
        widen(&w, b->p + i);
        widen(&a, b->average + i);
        w *= b->decay;
#pragma GCC unroll 8
        for (int k = 0; k < ABREAST; k++) {
            doubles total;
            widen(&total, t->g[k] + i);
            dot[k] += (total + w) * a;
        }
    }
    for (int k = 0; k < ABREAST; k++)
        t->dot[k] = sum_lanes(&dot[k]);
    for (; i < b->count; i++)
        for (int k = 0; k < ABREAST; k++)
            t->dot[k] += (t->g[k][i] + b->decay * b->p[i]) * b->average[i];
}

/* Each number of towers has code of its own, in registers. */
INLINE_STEP void add_last(struct abreast *t, const bool dots, struct combine_block *b) {
#define CASE(n)                                                                                              \
    case n:                                                                                                  \
        add_n(t, n, true, dots, b);                                                                          \
        break;
    switch (t->count) {
        CASE(0) /* none has a weight */
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
#if defined(ISA_avx512)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
#endif
    }
#undef CASE
}

/* The next towers from *next on that have a weight; false when there are none. */
static bool take_abreast(const struct combine_args *args, int *next, size_t first, struct abreast *t) {
    t->count = 0;
    for (; *next < args->towers && t->count < ABREAST; ++*next) {
        if (args->weights[*next] == 0)
            continue;
        t->g[t->count] = (const float *)args->gradients[*next].data + first;
        t->weight[t->count] = args->weights[*next];
        t->tower[t->count++] = *next;
    }
    return t->count > 0;
}

static void combine(const struct combine_args *args, size_t first, size_t count, double decay, double *norms2,
                    double *dots, double *average_norm2) {
    double sum[STEP_BLOCK] __attribute__((aligned(64)));
    for (size_t i = 0; i < count; i++)
        sum[i] = 0;
    struct combine_block block = {.p = (const float *)args->parameters.data + first,
                                  .decay = decay,
                                  .sum = sum,
                                  .average = (float *)args->average.data + first,
                                  .count = count};
    struct abreast t, following;
    int next = 0;
    take_abreast(args, &next, first, &t);
    for (; take_abreast(args, &next, first, &following); t = following) {
        add_n(&t, ABREAST, false, false, &block);
        for (int k = 0; k < ABREAST; k++)
            norms2[t.tower[k]] += t.norm2[k];
    }
    if (args->want_dots)
        add_last(&t, true, &block);
    else
        add_last(&t, false, &block);
    *average_norm2 += block.average_norm2;
    for (int k = 0; k < t.count; k++) {
        norms2[t.tower[k]] += t.norm2[k];
        if (args->want_dots)
            dots[t.tower[k]] += t.dot[k];
    }
    const int last = t.count ? t.tower[0] : 0;
    for (next = 0; args->want_dots && take_abreast(args, &next, first, &t) && t.tower[0] < last;) {
        dot_earlier(&t, &block);
        for (int k = 0; k < ABREAST; k++)
            dots[t.tower[k]] += t.dot[k];
    }
}

/* The arrays of one block of update, and its factors. */
struct update_block {
    float *w, *velocity, *shadow;
    const float *g;
    double rate, momentum, scale, toward; /* toward = 1 - ema_decay */
};

/* Each element is computed in double and rounded once. Always called with constant flags. */
INLINE_STEP void update_elements(const struct update_block *b, size_t count, bool has_velocity,
                                 bool has_shadow, double *parameter_norm2, double *update_norm2) {
    doubles norm = {0}, change_norm = {0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        doubles m, w, after, change;
        widen(&m, b->g + i);
        m *= b->scale;
        if (has_velocity) {
            doubles v;
            widen(&v, b->velocity + i);
            m += b->momentum * v;
            narrow(b->velocity + i, &m);
        }
        widen(&w, b->w + i);
        change = w - b->rate * m;
        narrow(b->w + i, &change);
        widen(&after, b->w + i);
        change = after - w;
        change_norm += change * change;
        norm += after * after;
        if (has_shadow) {
            doubles s;
            widen(&s, b->shadow + i);
            s -= b->toward * (s - after);
            narrow(b->shadow + i, &s);
        }
    }
    double norm_rest = sum_lanes(&norm), change_rest = sum_lanes(&change_norm);
    for (; i < count; i++) {
        double m = b->scale * b->g[i];
        if (has_velocity) {
            m += b->momentum * b->velocity[i];
            b->velocity[i] = (float)m;
        }
        double w = b->w[i];
        b->w[i] = (float)(w - b->rate * m);
        double after = b->w[i];
        change_rest += (after - w) * (after - w);
        norm_rest += after * after;
        if (has_shadow)
            b->shadow[i] = (float)(b->shadow[i] - b->toward * (b->shadow[i] - after));
    }
    *parameter_norm2 += norm_rest;
    *update_norm2 += change_rest;
}

static void update(const struct update_args *args, size_t first, size_t count, double *parameter_norm2,
                   double *update_norm2) {
    float *velocity = args->velocity.data, *shadow = args->shadow.data;
    struct update_block b = {
        .w = (float *)args->parameters.data + first,
        .g = (const float *)args->average.data + first,
        .velocity = velocity ? velocity + first : NULL,
        .shadow = shadow ? shadow + first : NULL,
        .rate = args->learning_rate,
        .momentum = args->momentum,
        .scale = args->gradient_scale,
        .toward = 1 - args->ema_decay,
    };
    if (velocity && shadow)
        update_elements(&b, count, true, true, parameter_norm2, update_norm2);
    else if (velocity)
        update_elements(&b, count, true, false, parameter_norm2, update_norm2);
    else if (shadow)
        update_elements(&b, count, false, true, parameter_norm2, update_norm2);
    else
        update_elements(&b, count, false, false, parameter_norm2, update_norm2);
}

static void relu(const float *x, float *y, size_t count) {
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] < 0 ? 0 : x[i];
}

static void relu_backward(const float *y, const float *dy, float *dx, size_t count) {
    for (size_t i = 0; i < count; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
}

static void bias(const float *x, const float *b, float *y, size_t rows, size_t columns) {
    for (size_t row = 0; row < rows; row++, x += columns, y += columns)
        for (size_t i = 0; i < columns; i++)
            y[i] = x[i] + b[i];
}

static void column_sums(const float *x, float *restrict sums, size_t rows, size_t columns) {
    enum { STRIP = 64 }; /* columns summed in registers at a time */
    for (size_t from = 0; from < columns; from += STRIP) {
        float sum[STRIP] = {0};
        size_t width = columns - from < STRIP ? columns - from : STRIP;
        if (width == STRIP)
            for (size_t row = 0; row < rows; row++)
                for (size_t i = 0; i < STRIP; i++)
                    sum[i] += x[row * columns + from + i];
        else
            for (size_t row = 0; row < rows; row++)
                for (size_t i = 0; i < width; i++)
                    sum[i] += x[row * columns + from + i];
        for (size_t i = 0; i < width; i++)
            sums[from + i] = sum[i];
    }
}

static void add(float *restrict to, const float *restrict from, size_t count) {
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

static void copy(float *to, const float *from, size_t count) {
    memcpy(to, from, count * sizeof *to);
}

const struct step_kernels ISA_SYMBOL(step_kernels) = {
    .combine = combine,
    .update = update,
    .relu = relu,
    .relu_backward = relu_backward,
    .bias = bias,
    .column_sums = column_sums,
    .add = add,
    .copy = copy,
};
