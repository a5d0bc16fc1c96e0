#include "kernels/cpu/isa/step.h"

#include <string.h>

#if defined(ISA_avx512)
#include <immintrin.h>
#endif

/* Sums and what leads to them are in double, LANES at a time. */
enum { LANES = 8 };
typedef double doubles __attribute__((vector_size(LANES * 8)));
typedef float floats_at __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef double doubles_at __attribute__((vector_size(LANES * 8), aligned(8), may_alias));

#define INLINE_STEP static inline __attribute__((always_inline))

/* By pointer: a vector wider than the registers of an instruction set has no agreed way to be passed. */
INLINE_STEP void widen(doubles *to, const float *from) {
#if defined(ISA_avx512)
    *to = (doubles)_mm512_cvtps_pd(_mm256_loadu_ps(from)); /* one instruction, where gcc 12 makes five */
#else
    *to = __builtin_convertvector(*(const floats_at *)from, doubles);
#endif
}

INLINE_STEP double sum_lanes(const doubles *lanes) {
    double sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += (*lanes)[i];
    return sum;
}

/* Towers whose gradients are read side by side: as many streams as a processor foresees well. */
enum { ABREAST = 4 };

struct abreast {
    int count, tower[ABREAST];
    const float *g[ABREAST];
    double weight[ABREAST];
    double result[ABREAST]; /* |G|^2 or G . average over the block */
};

/* sum += weight * G over one block for each of n towers in their order, G = g + decay * p, and |G|^2. */
INLINE_STEP void add_n(struct abreast *t, const int n, const float *p, double decay, double *sum,
                       size_t count) {
    doubles norm[ABREAST];
    for (int k = 0; k < n; k++)
        norm[k] = (doubles){0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        doubles w, s = *(const doubles_at *)(sum + i);
        widen(&w, p + i);
        w *= decay;
#pragma GCC unroll 4
        for (int k = 0; k < n; k++) {
            doubles total;
            widen(&total, t->g[k] + i);
            total += w;
            norm[k] += total * total;
            s += t->weight[k] * total;
        }
        *(doubles_at *)(sum + i) = s;
    }
    for (int k = 0; k < n; k++)
        t->result[k] = sum_lanes(&norm[k]);
    for (; i < count; i++)
        for (int k = 0; k < n; k++) {
            double total = t->g[k][i] + decay * p[i];
            t->result[k] += total * total;
            sum[i] += t->weight[k] * total;
        }
}

/* G . average of each of n towers. */
INLINE_STEP void dot_n(struct abreast *t, const int n, const float *p, double decay, const float *average,
                       size_t count) {
    doubles dot[ABREAST];
    for (int k = 0; k < n; k++)
        dot[k] = (doubles){0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        doubles w, a;
        widen(&w, p + i);
        widen(&a, average + i);
        w *= decay;
#pragma GCC unroll 4
        for (int k = 0; k < n; k++) {
            doubles total;
            widen(&total, t->g[k] + i);
            dot[k] += (total + w) * a;
        }
    }
    for (int k = 0; k < n; k++)
        t->result[k] = sum_lanes(&dot[k]);
    for (; i < count; i++)
        for (int k = 0; k < n; k++)
            t->result[k] += (t->g[k][i] + decay * p[i]) * average[i];
}

static void add_towers(struct abreast *t, const float *p, double decay, double *sum, size_t count) {
    switch (t->count) {
    case 4:
        add_n(t, 4, p, decay, sum, count);
        break;
    case 3:
        add_n(t, 3, p, decay, sum, count);
        break;
    case 2:
        add_n(t, 2, p, decay, sum, count);
        break;
    default:
        add_n(t, 1, p, decay, sum, count);
        break;
    }
}

static void dot_towers(struct abreast *t, const float *p, double decay, const float *average, size_t count) {
    switch (t->count) {
    case 4:
        dot_n(t, 4, p, decay, average, count);
        break;
    case 3:
        dot_n(t, 3, p, decay, average, count);
        break;
    case 2:
        dot_n(t, 2, p, decay, average, count);
        break;
    default:
        dot_n(t, 1, p, decay, average, count);
        break;
    }
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

/* average = sum, rounded; returns |average|^2 */
INLINE_STEP double round_average(const double *sum, float *average, size_t count) {
    doubles norm = {0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        doubles a;
        *(floats_at *)(average + i) = __builtin_convertvector(*(const doubles_at *)(sum + i), floats_at);
        widen(&a, average + i);
        norm += a * a;
    }
    double rest = sum_lanes(&norm);
    for (; i < count; i++) {
        average[i] = (float)sum[i];
        rest += (double)average[i] * average[i];
    }
    return rest;
}

static void combine(const struct combine_args *args, size_t first, size_t count, double decay, double *norms2,
                    double *dots, double *average_norm2) {
    double sum[STEP_BLOCK] __attribute__((aligned(64)));
    for (size_t i = 0; i < count; i++)
        sum[i] = 0;
    const float *p = (const float *)args->parameters.data + first;
    float *average = (float *)args->average.data + first;
    struct abreast t;
    for (int next = 0; take_abreast(args, &next, first, &t);) {
        add_towers(&t, p, decay, sum, count);
        for (int k = 0; k < t.count; k++)
            norms2[t.tower[k]] += t.result[k];
    }
    *average_norm2 += round_average(sum, average, count);
    for (int next = 0; args->want_dots && take_abreast(args, &next, first, &t);) {
        dot_towers(&t, p, decay, average, count);
        for (int k = 0; k < t.count; k++)
            dots[t.tower[k]] += t.result[k];
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
            *(floats_at *)(b->velocity + i) = __builtin_convertvector(m, floats_at);
        }
        widen(&w, b->w + i);
        *(floats_at *)(b->w + i) = __builtin_convertvector(w - b->rate * m, floats_at);
        widen(&after, b->w + i);
        change = after - w;
        change_norm += change * change;
        norm += after * after;
        if (has_shadow) {
            doubles s;
            widen(&s, b->shadow + i);
            *(floats_at *)(b->shadow + i) = __builtin_convertvector(s - b->toward * (s - after), floats_at);
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

static void column_sums(const float *x, float *restrict sums, size_t rows, size_t columns, size_t stride) {
    enum { STRIP = 64 }; /* columns summed in registers at a time */
    for (size_t from = 0; from < columns; from += STRIP) {
        float sum[STRIP] = {0};
        size_t width = columns - from < STRIP ? columns - from : STRIP;
        if (width == STRIP)
            for (size_t row = 0; row < rows; row++)
                for (size_t i = 0; i < STRIP; i++)
                    sum[i] += x[row * stride + from + i];
        else
            for (size_t row = 0; row < rows; row++)
                for (size_t i = 0; i < width; i++)
                    sum[i] += x[row * stride + from + i];
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
