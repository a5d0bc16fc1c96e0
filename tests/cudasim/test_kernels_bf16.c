/* Kernels with bfloat16 in memory: they give what the same kernel gives for the same values as floats,
 * rounded once, to the bit; sums of the bias' gradient the very floats. test_kernels_layers.c compares the
 * floats with ref64. test-skip-under: thread (fibres) */
#include "kernels/cuda/kernels.h"
#include "tests/cudasim/room.h"
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const enum cuda_type f32 = CUDA_TYPE_F32, bf16 = CUDA_TYPE_BF16;

static void ok(cudaError_t error) {
    assert_int_equal(error, cudaSuccess);
}

/* The upper half of a float's bits, rounded to nearest even; not a number stays not a number. */
static uint16_t rounded(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return 0x7FFF;
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static void run_bf16(const void *args) {
    const size_t *size = args; /* count, shift of the floats, shift of the others */
    size_t count = size[0];
    struct room from = room_normal(count, size[1], 100, 6),
                half = room_new(count * sizeof(uint16_t), size[2]);
    float *value = from.data;
    static const float special[] = {0,           -0.0f,       INFINITY, -INFINITY, NAN,
                                    1.00390625f, 1.01171875f, 3.4e38f,  1e-40f};
    for (size_t i = 0; i < count && i < sizeof special / sizeof *special; i++)
        value[i] = special[i];
    const struct cuda_rewrite rounding = {value, half.data, 1, count, false};
    ok(cuda_rewrite_all(NULL, bf16, &rounding, 1));
    for (size_t i = 0; i < count; i++) {
        uint16_t found = ((uint16_t *)half.data)[i];
        uint32_t bits = (uint32_t)found << 16;
        float again;
        memcpy(&again, &bits, sizeof again);
        if (isnan(value[i]))
            assert_true(isnan(again));
        else
            assert_int_equal(found, rounded(value[i]));
    }
    room_end(&from, "floats");
    room_end(&half, "bfloat16");
}

static void test_bf16(void **state) {
    (void)state;
    static const size_t sizes[][3] = {{1, 0, 0},    {9, 0, 0},    {1027, 0, 0},
                                      {4096, 0, 0}, {1027, 4, 0}, {1027, 0, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        both_orders(run_bf16, sizes[i]);
}

/* ---- the same values in both types */

struct pair {
    struct room wide, narrow;
    size_t count;
};

/* shift: bytes that the floats lie off a 64-byte border, and twice what the others do. */
static struct pair pair_new(size_t count, size_t shift) {
    return (struct pair){room_new(count * sizeof(float), shift),
                         room_new(count * sizeof(uint16_t), shift / 2), count};
}

static struct pair pair_normal(size_t count, size_t shift, uint64_t stream) {
    struct pair p = {room_normal(count, shift, 1, stream), room_new(count * sizeof(uint16_t), shift / 2),
                     count};
    for (size_t i = 0; i < count; i++) {
        float *wide = (float *)p.wide.data + i;
        uint16_t *narrow = (uint16_t *)p.narrow.data + i;
        *narrow = rounded(*wide);
        uint32_t bits = (uint32_t)*narrow << 16;
        memcpy(wide, &bits, sizeof bits);
    }
    return p;
}

static void check_pair(const char *what, const struct pair *p) {
    for (size_t i = 0; i < p->count; i++) {
        float wide = ((float *)p->wide.data)[i];
        uint16_t found = ((uint16_t *)p->narrow.data)[i];
        if (found != rounded(wide))
            fail_msg("%s: value %zu of %zu: %04x, the float %.9g is %04x", what, i, p->count, found,
                     (double)wide, rounded(wide));
    }
    both_orders_keep(what, p->narrow.data, p->narrow.bytes);
}

static void pair_end(struct pair *p) {
    room_end(&p->wide, "floats");
    room_end(&p->narrow, "bfloat16");
}

static void check_same(const char *what, struct room *a, struct room *b) {
    if (a->bytes && memcmp(a->data, b->data, a->bytes) != 0)
        fail_msg("%s: other bytes than with floats", what);
    room_end(a, what);
    room_end(b, what);
}

struct layer {
    struct shape in;
    int images, kernel, stride;
    struct op_lrn lrn;
    size_t shift;
};

static void run_bias_relu(const void *args) {
    const struct layer *l = args;
    int channels = l->in.c;
    size_t count = (size_t)l->images * shape_size(l->in), rows = count / (size_t)channels;
    size_t sums = cuda_bias_relu_scratch(rows, channels);
    struct pair x = pair_normal(count, l->shift, 1), y = pair_new(count, l->shift),
                dy = pair_normal(count, l->shift, 2), dx = pair_new(count, l->shift);
    struct room bias = room_normal((size_t)channels, 0, 0.3, 3), late = room_new(count * 2, l->shift / 2),
                scratch = room_new(sums, 0), db[2];
    ok(cuda_bias_relu(NULL, f32, x.wide.data, bias.data, f32, y.wide.data, rows, channels, true));
    ok(cuda_bias_relu(NULL, bf16, x.narrow.data, bias.data, bf16, y.narrow.data, rows, channels, true));
    check_pair("bias and ReLU", &y);
    ok(cuda_bias_relu(NULL, f32, x.wide.data, bias.data, bf16, late.data, rows, channels, true));
    assert_memory_equal(late.data, y.narrow.data, late.bytes);
    assert_int_equal(
        cuda_bias_relu(NULL, bf16, x.narrow.data, bias.data, f32, y.wide.data, rows, channels, true),
        cudaErrorInvalidValue);
    for (int t = 0; t < 2; t++) {
        db[t] = room_new((size_t)channels * sizeof(float), 0);
        ok(cuda_bias_relu_backward(NULL, t ? bf16 : f32, t ? dy.narrow.data : dy.wide.data,
                                   t ? y.narrow.data : y.wide.data, t ? dx.narrow.data : dx.wide.data,
                                   db[t].data, scratch.data, rows, channels));
    }
    check_pair("bias and ReLU: dx", &dx);
    check_same("bias and ReLU: db", &db[0], &db[1]);
    struct pair *all[] = {&x, &y, &dy, &dx};
    for (int i = 0; i < 4; i++)
        pair_end(all[i]);
    room_end(&bias, "bias");
    room_end(&late, "rounded late");
    room_end(&scratch, "scratch");
}

static void run_max_pool(const void *args) {
    const struct layer *l = args;
    struct op op = make_max_pool(l->in, l->kernel, l->stride);
    size_t in = (size_t)l->images * shape_size(op.in), out = (size_t)l->images * shape_size(op.out);
    struct pair x = pair_normal(in, l->shift, 1), y = pair_new(out, l->shift),
                dy = pair_normal(out, l->shift, 2), dx = pair_new(in, l->shift);
    struct room places[2];
    for (int t = 0; t < 2; t++) {
        places[t] = room_new(cuda_max_pool_places(&op, l->images), 0);
        ok(cuda_max_pool(NULL, t ? bf16 : f32, &op, l->images, t ? x.narrow.data : x.wide.data,
                         t ? y.narrow.data : y.wide.data, places[t].data));
        ok(cuda_max_pool_backward(NULL, t ? bf16 : f32, &op, l->images, t ? dy.narrow.data : dy.wide.data,
                                  places[t].data, t ? dx.narrow.data : dx.wide.data));
    }
    check_pair("max pool", &y);
    check_pair("max pool: dx", &dx);
    check_same("places", &places[0], &places[1]);
    struct pair *all[] = {&x, &y, &dy, &dx};
    for (int i = 0; i < 4; i++)
        pair_end(all[i]);
}

static void run_lrn(const void *args) {
    const struct layer *l = args;
    size_t count = (size_t)l->images * shape_size(l->in), pixels = count / (size_t)l->in.c;
    struct pair x = pair_normal(count, l->shift, 1), y = pair_new(count, l->shift),
                dy = pair_normal(count, l->shift, 2), dx = pair_new(count, l->shift);
    for (int t = 0; t < 2; t++) {
        const void *from = t ? x.narrow.data : x.wide.data;
        ok(cuda_lrn(NULL, t ? bf16 : f32, &l->lrn, pixels, l->in.c, from, t ? y.narrow.data : y.wide.data));
        ok(cuda_lrn_backward(NULL, t ? bf16 : f32, &l->lrn, pixels, l->in.c, from,
                             t ? dy.narrow.data : dy.wide.data, t ? dx.narrow.data : dx.wide.data));
    }
    check_pair("LRN", &y);
    check_pair("LRN: dx", &dx);
    struct pair *all[] = {&x, &y, &dy, &dx};
    for (int i = 0; i < 4; i++)
        pair_end(all[i]);
}

/* A normalisation behind a pool, and before one. */
static void run_pool_lrn(const void *args) {
    const struct layer *l = args;
    struct op pool = make_max_pool(l->in, l->kernel, l->stride);
    int channels = l->in.c;
    size_t in = (size_t)l->images * shape_size(pool.in), out = (size_t)l->images * shape_size(pool.out),
           pixels = out / (size_t)channels;
    struct pair x = pair_normal(in, l->shift, 1), y = pair_new(out, l->shift), kept = pair_new(out, l->shift),
                dy = pair_normal(out, l->shift, 2), dx = pair_new(out, l->shift);
    struct room places[2], db[2], scratch = room_new(cuda_bias_relu_scratch(pixels, channels), 0);
    for (int t = 0; t < 2; t++) {
        places[t] = room_new(cuda_max_pool_places(&pool, l->images), 0);
        db[t] = room_new((size_t)channels * sizeof(float), 0);
        void *pooled = t ? kept.narrow.data : kept.wide.data;
        ok(cuda_pool_lrn(NULL, t ? bf16 : f32, &pool, &l->lrn, l->images, t ? x.narrow.data : x.wide.data,
                         pooled, places[t].data, t ? y.narrow.data : y.wide.data));
        ok(cuda_lrn_relu_backward(NULL, t ? bf16 : f32, &l->lrn, pixels, channels, pooled,
                                  t ? dy.narrow.data : dy.wide.data, t ? dx.narrow.data : dx.wide.data,
                                  db[t].data, scratch.data));
    }
    check_pair("pool, LRN: pooled", &kept);
    check_pair("pool, LRN", &y);
    check_pair("pool, LRN: dx", &dx);
    check_same("pool, LRN: places", &places[0], &places[1]);
    check_same("pool, LRN: db", &db[0], &db[1]);
    struct pair *all[] = {&x, &y, &kept, &dy, &dx};
    for (int i = 0; i < 5; i++)
        pair_end(all[i]);
    room_end(&scratch, "scratch");
}

static void run_lrn_pool(const void *args) {
    const struct layer *l = args;
    struct op pool = make_max_pool(l->in, l->kernel, l->stride);
    int channels = l->in.c;
    size_t in = (size_t)l->images * shape_size(pool.in), out = (size_t)l->images * shape_size(pool.out);
    struct pair x = pair_normal(in, l->shift, 1), y = pair_new(out, l->shift),
                dy = pair_normal(out, l->shift, 2), dx = pair_new(in, l->shift);
    struct room places[2], db[2],
        scratch = room_new(cuda_bias_relu_scratch(in / (size_t)channels, channels), 0);
    for (int t = 0; t < 2; t++) {
        places[t] = room_new(cuda_max_pool_places(&pool, l->images), 0);
        db[t] = room_new((size_t)channels * sizeof(float), 0);
        const void *from = t ? x.narrow.data : x.wide.data;
        ok(cuda_lrn_pool(NULL, t ? bf16 : f32, &l->lrn, &pool, l->images, from,
                         t ? y.narrow.data : y.wide.data, places[t].data));
        ok(cuda_lrn_pool_relu_backward(NULL, t ? bf16 : f32, &l->lrn, &pool, l->images, from,
                                       t ? dy.narrow.data : dy.wide.data, places[t].data,
                                       t ? dx.narrow.data : dx.wide.data, db[t].data, scratch.data));
    }
    check_pair("LRN, pool", &y);
    check_pair("LRN, pool: dx", &dx);
    check_same("LRN, pool: places", &places[0], &places[1]);
    check_same("LRN, pool: db", &db[0], &db[1]);
    struct pair *all[] = {&x, &y, &dy, &dx};
    for (int i = 0; i < 4; i++)
        pair_end(all[i]);
    room_end(&scratch, "scratch");
}

static void test_layers(void **state) {
    (void)state;
    static const struct layer layers[] = {
        {{12, 12, 16}, 2, 3, 2, {4, 1, 0.001 / 9, 0.75}, 0}, {{5, 8, 7}, 3, 2, 2, {2, 1.5, 0.3, 0.6}, 0},
        {{7, 5, 12}, 1, 3, 2, {4, 1, 0.1, 0.75}, 4},         {{3, 3, 260}, 1, 3, 1, {4, 1, 0.1, 0.75}, 0},
        {{24, 24, 8}, 3, 3, 2, {1, 2, 0.5, 0.75}, 0},
    };
    void (*const runs[])(const void *) = {run_bias_relu, run_max_pool, run_lrn, run_pool_lrn, run_lrn_pool};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++)
            both_orders(runs[r], &layers[i]);
}

/* ---- weights and the loss */

static void run_transpose(const void *args) {
    const int *size = args;
    size_t rows = (size_t)size[0], columns = (size_t)size[1], count = rows * columns;
    struct pair from = pair_normal(count, 0, 1), to = pair_new(count, 0);
    struct room back = room_new(count * sizeof(float), 0);
    ok(cuda_transpose(NULL, f32, from.wide.data, f32, to.wide.data, rows, columns));
    ok(cuda_transpose(NULL, f32, from.wide.data, bf16, to.narrow.data, rows, columns));
    check_pair("transpose", &to);
    ok(cuda_transpose(NULL, bf16, to.narrow.data, f32, back.data, columns, rows));
    assert_memory_equal(back.data, from.wide.data, back.bytes);
    assert_int_equal(cuda_transpose(NULL, bf16, to.narrow.data, bf16, from.narrow.data, columns, rows),
                     cudaErrorInvalidValue);
    pair_end(&from);
    pair_end(&to);
    room_end(&back, "back again");
}

static void test_transpose(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {75, 64}, {33, 31}, {1, 100}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        both_orders(run_transpose, sizes[i]);
}

/* Some matrices at once, turned or not, in both types. */
static void run_rewrites(const void *args) {
    static const struct cuda_rewrite shapes[CUDA_REWRITES_AT_ONCE] = {
        {.rows = 75, .columns = 64, .turned = true},
        {.rows = 1, .columns = 64},
        {.rows = 40, .columns = 61},
        {.rows = 1, .columns = 1, .turned = true},
        {.rows = 33, .columns = 31, .turned = true},
    };
    (void)args;
    enum { MATRICES = 5 };
    for (int type = CUDA_TYPE_F32; type <= CUDA_TYPE_BF16; type++) {
        struct cuda_rewrite of[MATRICES];
        struct room from[MATRICES], to[MATRICES];
        for (int i = 0; i < MATRICES; i++) {
            size_t count = shapes[i].rows * shapes[i].columns;
            from[i] = room_normal(count, 0, 1, 1 + (uint64_t)i);
            to[i] = room_new(count * cuda_type_bytes((enum cuda_type)type), 0);
            of[i] = shapes[i];
            of[i].from = from[i].data;
            of[i].to = to[i].data;
        }
        ok(cuda_rewrite_all(NULL, (enum cuda_type)type, of, MATRICES));
        for (int i = 0; i < MATRICES; i++) {
            for (size_t at = 0; at < of[i].rows * of[i].columns; at++) {
                size_t r = at / of[i].columns, c = at % of[i].columns,
                       there = of[i].turned ? c * of[i].rows + r : at;
                if (type == CUDA_TYPE_BF16)
                    assert_int_equal(((uint16_t *)to[i].data)[there], rounded(of[i].from[at]));
                else
                    assert_true(((float *)to[i].data)[there] == of[i].from[at]);
            }
            room_end(&from[i], "a matrix");
            room_end(&to[i], "what was made of it");
        }
    }
}

static void test_rewrites(void **state) {
    (void)state;
    struct cuda_rewrite none[CUDA_REWRITES_AT_ONCE + 1] = {{0}};
    both_orders(run_rewrites, NULL);
    assert_int_equal(cuda_rewrite_all(NULL, f32, none, 0), cudaErrorInvalidValue);
    assert_int_equal(cuda_rewrite_all(NULL, f32, none, 1), cudaErrorInvalidValue);
    assert_int_equal(cuda_rewrite_all(NULL, f32, none, CUDA_REWRITES_AT_ONCE + 1), cudaErrorInvalidValue);
}

/* Logits are floats or bfloat16, their gradient bfloat16. */
static void run_loss(const void *args) {
    const int *size = args;
    int images = size[0], classes = size[1];
    size_t count = (size_t)images * (size_t)classes;
    struct pair logits = pair_normal(count, 0, 1), dlogits = pair_new(count, 0);
    struct room labels = room_new((size_t)images * sizeof(int32_t), 0), losses[3], probabilities[3],
                again = room_new(dlogits.narrow.bytes, 0);
    for (int i = 0; i < images; i++)
        ((int32_t *)labels.data)[i] = i % classes;
    for (int t = 0; t < 3; t++) {
        losses[t] = room_new((size_t)images * sizeof(float), 0);
        probabilities[t] = room_new(count * sizeof(float), 0);
        ok(cuda_softmax_loss(NULL, images, classes, t == 2 ? bf16 : f32,
                             t == 2 ? logits.narrow.data : logits.wide.data, labels.data, 1.0 / images,
                             losses[t].data, probabilities[t].data, t ? bf16 : f32,
                             t == 0   ? dlogits.wide.data
                             : t == 1 ? dlogits.narrow.data
                                      : again.data));
    }
    check_pair("gradient of the logits", &dlogits);
    check_same("gradient of the logits", &again, &dlogits.narrow);
    for (int t = 1; t < 3; t++) {
        assert_memory_equal(losses[t].data, losses[0].data, losses[0].bytes);
        assert_memory_equal(probabilities[t].data, probabilities[0].data, probabilities[0].bytes);
    }
    assert_int_equal(cuda_softmax_loss(NULL, images, classes, bf16, logits.narrow.data, labels.data, 1,
                                       losses[0].data, NULL, f32, dlogits.wide.data),
                     cudaErrorInvalidValue);
    pair_end(&logits);
    room_end(&dlogits.wide, "dlogits");
    room_end(&labels, "labels");
    for (int t = 0; t < 3; t++) {
        room_end(&losses[t], "losses");
        room_end(&probabilities[t], "probabilities");
    }
}

static void test_loss(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 2}, {9, 10}, {3, 100}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        both_orders(run_loss, sizes[i]);
}

/* ---- measures */

static void run_measures(const void *args) {
    const size_t *count = args;
    struct pair x = pair_normal(*count, 0, 4);
    struct room scratch = room_new(cuda_measure_scratch(*count), 0);
    long long found[2], first[2];
    for (size_t i = 0; i < *count; i += 3) {
        ((float *)x.wide.data)[i] = 0;
        ((uint16_t *)x.narrow.data)[i] = i % 2 ? 0x8000 : 0; /* -0 is one too */
    }
    size_t at = *count / 2 + 1;
    if (at < *count) {
        ((float *)x.wide.data)[at] = INFINITY;
        ((uint16_t *)x.narrow.data)[at] = 0x7F80;
    }
    for (int t = 0; t < 2; t++) {
        const void *values = t ? x.narrow.data : x.wide.data;
        ok(cuda_count_zeros(NULL, t ? bf16 : f32, values, *count, scratch.data, &found[t]));
        ok(cuda_first_non_finite(NULL, t ? bf16 : f32, values, *count, scratch.data, &first[t]));
    }
    assert_int_equal(found[0], found[1]);
    assert_int_equal(first[0], first[1]);
    assert_int_equal(first[1], at < *count ? (long long)at : -1);
    pair_end(&x);
    room_end(&scratch, "scratch");
}

static void test_measures(void **state) {
    (void)state;
    static const size_t counts[] = {1, 1000, 40001};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        both_orders(run_measures, &counts[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16),     cmocka_unit_test(test_layers), cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_rewrites), cmocka_unit_test(test_loss),   cmocka_unit_test(test_measures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
