/* Kernels of the step: loss, combining of gradients and update, against ref's; both orders of threads.
 * test-skip-under: thread (fibres) */
#include "engine/base/random.h"
#include "kernels/cuda/kernels.h"
#include "kernels/device.h"
#include "kernels/registry.h"
#include "tests/cudasim/room.h"
#include "tests/support/cmocka.h"
#include "tests/support/guarded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct device_handle ref;

static void ok(cudaError_t error) {
    assert_int_equal(error, cudaSuccess);
}

static double *widened(const float *from, size_t count) {
    double *to = malloc((count + 1) * sizeof *to);
    assert_non_null(to);
    for (size_t i = 0; i < count; i++)
        to[i] = from[i];
    return to;
}

/* found, floats of the kernel, against expected, floats of ref. */
static void near_floats(const char *what, const void *found, const void *expected, size_t count,
                        double tolerance) {
    double *wide = widened(expected, count);
    expect_near(what, found, wide, count, tolerance);
    free(wide);
}

static void near_double(const char *what, double found, double expected, double tolerance) {
    if (!(fabs(found - expected) <= tolerance * fabs(expected)))
        fail_msg("%s is %.15g, expected %.15g", what, found, expected);
}

static struct span span_of(const struct room *room) {
    return (struct span){room->data, room->bytes};
}

/* ---- loss */

struct loss_case {
    int images, classes;
    double scale_of_logits;
};

static void run_loss(const void *args) {
    const struct loss_case *c = args;
    size_t images = (size_t)c->images, values = images * (size_t)c->classes;
    struct room logits = room_normal(values, 0, c->scale_of_logits, 11),
                labels = room_new(images * sizeof(int32_t), 0);
    struct room losses[2], probabilities[2], dlogits[2];
    struct random r = random_begin(3, RANDOM_TEST, 12);
    for (size_t i = 0; i < images; i++)
        ((int32_t *)labels.data)[i] = (int32_t)random_below(&r, (uint32_t)c->classes);
    for (int i = 0; i < 2; i++) {
        losses[i] = room_new(images * sizeof(float), 0);
        probabilities[i] = room_new(values * sizeof(float), 0);
        dlogits[i] = room_new(values * sizeof(float), 0);
    }
    double scale = 1.0 / c->images;
    struct loss_args expected = {.images = c->images,
                                 .classes = c->classes,
                                 .logits = span_of(&logits),
                                 .labels = labels.data,
                                 .scale = scale,
                                 .losses = span_of(&losses[0]),
                                 .probabilities = span_of(&probabilities[0]),
                                 .dlogits = span_of(&dlogits[0])};
    expect_ok(ref.ops->loss(NULL, &expected), "ref's loss");
    ok(cuda_softmax_loss(NULL, c->images, c->classes, CUDA_TYPE_F32, logits.data, labels.data, scale,
                         losses[1].data, NULL, CUDA_TYPE_F32, NULL));
    near_floats("losses alone", losses[1].data, losses[0].data, images, 1e-6);
    ok(cuda_softmax_loss(NULL, c->images, c->classes, CUDA_TYPE_F32, logits.data, labels.data, scale,
                         losses[1].data, probabilities[1].data, CUDA_TYPE_F32, dlogits[1].data));
    near_floats("losses", losses[1].data, losses[0].data, images, 1e-6);
    near_floats("probabilities", probabilities[1].data, probabilities[0].data, values, 1e-6);
    near_floats("gradient of the logits", dlogits[1].data, dlogits[0].data, values, 1e-6);
    both_orders_keep("losses", losses[1].data, losses[1].bytes);
    both_orders_keep("probabilities", probabilities[1].data, probabilities[1].bytes);
    both_orders_keep("gradient", dlogits[1].data, dlogits[1].bytes);
    room_end(&logits, "logits");
    room_end(&labels, "labels");
    for (int i = 0; i < 2; i++) {
        room_end(&losses[i], "losses");
        room_end(&probabilities[i], "probabilities");
        room_end(&dlogits[i], "gradient of the logits");
    }
}

static void test_loss(void **state) {
    (void)state;
    static const struct loss_case cases[] = {{128, 10, 1},  {1, 10, 3},     {3, 2, 1},   {5, 1, 1},
                                             {33, 100, 20}, {2, 1003, 200}, {17, 32, 0}, {9, 33, 1000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        both_orders(run_loss, &cases[i]);
}

/* What is not a number, or infinite, shows in the loss of its image and in no other; so does a wrong label.
 */
static void test_loss_not_a_number(void **state) {
    (void)state;
    enum { IMAGES = 5, CLASSES = 40 };
    struct room logits = room_normal(IMAGES * CLASSES, 0, 1, 13),
                losses = room_new(IMAGES * sizeof(float), 0),
                dlogits = room_new(IMAGES * CLASSES * sizeof(float), 0);
    int32_t labels[IMAGES] = {0, 1, CLASSES, 3, -1};
    ((float *)logits.data)[1 * CLASSES + 35] = NAN;
    ((float *)logits.data)[3 * CLASSES + 7] = INFINITY;
    ok(cuda_softmax_loss(NULL, IMAGES, CLASSES, CUDA_TYPE_F32, logits.data, labels, 1, losses.data, NULL,
                         CUDA_TYPE_F32, dlogits.data));
    for (int i = 0; i < IMAGES; i++)
        assert_true(isfinite(((float *)losses.data)[i]) == (i == 0));
    for (int c = 0; c < CLASSES; c++)
        assert_true(isfinite(((float *)dlogits.data)[c]));
    room_end(&logits, "logits");
    room_end(&losses, "losses");
    room_end(&dlogits, "gradient of the logits");
}

/* ---- combine and update. Three tensors with gaps between them, one of them longer than a piece. */

enum { COUNT = 7000, SEGMENTS = 3, MOST_PIECES = 16, MOST_TOWERS = 40 };
static const struct segment segments[SEGMENTS] = {{0, 5001, 0.004}, {5005, 1, 0}, {5011, 1989, 0.1}};

struct flat_case {
    int towers;
    double weights[MOST_TOWERS];
    bool momentum, shadow, decay;
    double clip_norm;
};

/* The table as the host makes it. */
struct pieces {
    struct cuda_piece table[MOST_PIECES];
    int count, begin[SEGMENTS + 1];
};

static void cut(struct pieces *p, bool decay) {
    p->count = 0;
    for (int s = 0; s < SEGMENTS; s++) {
        p->begin[s] = p->count;
        for (size_t at = 0; at < segments[s].count; at += CUDA_PIECE) {
            size_t left = segments[s].count - at;
            p->table[p->count++] =
                (struct cuda_piece){segments[s].offset + at, (int)(left < CUDA_PIECE ? left : CUDA_PIECE), s,
                                    decay ? segments[s].weight_decay : 0};
        }
    }
    p->begin[SEGMENTS] = p->count;
    assert_true(p->count <= MOST_PIECES);
}

static void cut_segments(struct segment *to, bool decay) {
    memcpy(to, segments, sizeof segments);
    for (int s = 0; s < SEGMENTS && !decay; s++)
        to[s].weight_decay = 0;
}

/* Zero the gaps of a flat buffer, which nobody writes. */
static void zero_gaps(struct room *flat) {
    float *value = flat->data;
    for (size_t i = 0; i < COUNT; i++) {
        bool inside = false;
        for (int s = 0; s < SEGMENTS; s++)
            inside |= i >= segments[s].offset && i < segments[s].offset + segments[s].count;
        if (!inside)
            value[i] = 0;
    }
}

static struct room flat_new(double scale, uint64_t stream) {
    struct room flat = room_normal(COUNT, 0, scale, stream);
    zero_gaps(&flat);
    return flat;
}

struct towers {
    struct room gradient[MOST_TOWERS];
    struct span span[MOST_TOWERS];
    const float *pointer[MOST_TOWERS];
};

static void towers_new(struct towers *t, const struct flat_case *c) {
    for (int k = 0; k < c->towers; k++) {
        t->gradient[k] = c->weights[k] != 0 ? flat_new(0.5, 100 + (uint64_t)k) : room_new(0, 0);
        t->span[k] = span_of(&t->gradient[k]);
        t->pointer[k] = t->gradient[k].data; /* NULL where nothing may be read */
    }
}

/* All in one pass, and all sums by one launch: the bytes of those one after another. */
static void compare_at_once(const struct flat_case *c, const struct pieces *p, const struct towers *t,
                            const struct room *parameters, const struct room *average,
                            const double *expected) {
    size_t towers = (size_t)c->towers, rows = towers * (size_t)p->count;
    struct room norms = room_new(rows * sizeof(double), 0), products = room_new(rows * sizeof(double), 0),
                norm_of_average = room_new((size_t)p->count * sizeof(double), 0), out = flat_new(0, 0),
                sums = room_new((2 * towers + SEGMENTS + 1) * sizeof(double), 0);
    double *sum = sums.data;
    const float *w = c->decay ? parameters->data : NULL;
    ok(cuda_combine_all(NULL, p->table, p->count, c->towers, t->pointer, c->weights, w, out.data, norms.data,
                        NULL, norm_of_average.data));
    memset(norm_of_average.data, 0xFF, norm_of_average.bytes);
    ok(cuda_combine_all(NULL, p->table, p->count, c->towers, t->pointer, c->weights, w, out.data, norms.data,
                        products.data, norm_of_average.data));
    struct cuda_sum of[] = {{norms.data, NULL, c->towers, sum},
                            {NULL, NULL, 0, NULL},
                            {products.data, NULL, c->towers, sum + towers},
                            {norm_of_average.data, p->begin, SEGMENTS, sum + 2 * towers},
                            {norm_of_average.data, NULL, 1, sum + 2 * towers + SEGMENTS}};
    ok(cuda_sums(NULL, of, sizeof of / sizeof *of, p->count));
    assert_memory_equal(out.data, average->data, out.bytes);
    assert_memory_equal(sum, expected, sums.bytes);
    room_end(&norms, "norms");
    room_end(&products, "dots");
    room_end(&norm_of_average, "the average's norm");
    room_end(&out, "average");
    room_end(&sums, "sums");
}

static void run_combine(const void *args) {
    const struct flat_case *c = args;
    struct pieces p;
    struct towers t;
    struct segment decayed[SEGMENTS];
    cut(&p, c->decay);
    cut_segments(decayed, c->decay);
    towers_new(&t, c);
    size_t towers = (size_t)c->towers, rows = towers * (size_t)p.count;
    struct room parameters = flat_new(1, 20), average[2] = {flat_new(0, 0), flat_new(0, 0)};
    double norms2[MOST_TOWERS], dots[MOST_TOWERS], segment_norms2[SEGMENTS], average_norm2;
    struct combine_args expected = {.towers = c->towers,
                                    .gradients = t.span,
                                    .weights = c->weights,
                                    .parameters = span_of(&parameters),
                                    .segments = decayed,
                                    .segment_count = SEGMENTS,
                                    .want_dots = true,
                                    .average = span_of(&average[0]),
                                    .norms2 = norms2,
                                    .dots = dots,
                                    .segment_norms2 = segment_norms2,
                                    .average_norm2 = &average_norm2};
    expect_ok(ref.ops->combine(ref.device, &expected), "ref's combine");

    struct room norms = room_new(rows * sizeof(double), 0), products = room_new(rows * sizeof(double), 0),
                norm_of_average = room_new((size_t)p.count * sizeof(double), 0),
                sums = room_new((2 * towers + SEGMENTS + 1) * sizeof(double), 0);
    double *sum = sums.data;
    float *out = average[1].data;
    const float *w = c->decay ? parameters.data : NULL;
    ok(cuda_combine(NULL, p.table, p.count, c->towers, t.pointer, c->weights, w, out, NULL));
    ok(cuda_combine(NULL, p.table, p.count, c->towers, t.pointer, c->weights, w, out, norms.data));
    near_floats("average", out, average[0].data, COUNT, 0);
    ok(cuda_dots(NULL, p.table, p.count, c->towers, t.pointer, c->weights, w, out, products.data,
                 norm_of_average.data));
    ok(cuda_sum_pieces(NULL, norms.data, c->towers, p.count, sum));
    ok(cuda_sum_pieces(NULL, products.data, c->towers, p.count, sum + towers));
    ok(cuda_sum_segments(NULL, norm_of_average.data, p.begin, SEGMENTS, sum + 2 * towers));
    ok(cuda_sum_pieces(NULL, norm_of_average.data, 1, p.count, sum + 2 * towers + SEGMENTS));
    for (size_t k = 0; k < towers; k++) {
        near_double("a tower's norm", sum[k], norms2[k], 1e-12);
        near_double("a tower's dot", sum[towers + k], dots[k], 1e-12);
    }
    for (int s = 0; s < SEGMENTS; s++)
        near_double("a tensor's norm", sum[2 * towers + (size_t)s], segment_norms2[s], 1e-12);
    near_double("the average's norm", sum[2 * towers + SEGMENTS], average_norm2, 1e-12);
    memset(norm_of_average.data, 0xFF, norm_of_average.bytes);
    ok(cuda_dots(NULL, p.table, p.count, 0, NULL, NULL, NULL, out, NULL, norm_of_average.data));
    ok(cuda_sum_pieces(NULL, norm_of_average.data, 1, p.count, sum + 2 * towers + SEGMENTS));
    near_double("the average's norm alone", sum[2 * towers + SEGMENTS], average_norm2, 1e-12);
    compare_at_once(c, &p, &t, &parameters, &average[1], sums.data);
    both_orders_keep("average", out, average[1].bytes);
    both_orders_keep("norms and dots", sums.data, sums.bytes);
    struct room *all[] = {&parameters, &average[0], &average[1], &norms, &products, &norm_of_average, &sums};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        room_end(all[i], "combine");
    for (size_t k = 0; k < towers; k++)
        room_end(&t.gradient[k], "a tower's gradient");
}

static void test_combine(void **state) {
    (void)state;
    static const struct flat_case few[] = {
        {.towers = 1, .weights = {1}},
        {.towers = 1, .weights = {1}, .decay = true},
        {.towers = 4, .weights = {0.5, 0, 0.2, 0.3}, .decay = true},
        {.towers = 2, .weights = {0.25, 0.25}, .decay = true},
    };
    for (size_t i = 0; i < sizeof few / sizeof *few; i++)
        both_orders(run_combine, &few[i]);
    struct flat_case many = {.towers = MOST_TOWERS, .decay = true};
    for (int k = 0; k < many.towers; k++)
        many.weights[k] = k % 5 == 3 ? 0 : 1.0 / (k + 1);
    both_orders(run_combine, &many);
}

static double norm2_of(const struct room *flat) {
    double sum = 0;
    for (size_t i = 0; i < COUNT; i++)
        sum += (double)((float *)flat->data)[i] * ((float *)flat->data)[i];
    return sum;
}

/* The buffers of an update: [0] for ref, [1] for the kernel. */
struct state_of_update {
    struct room parameters[2], velocity[2], shadow[2], average;
};

static void state_new(struct state_of_update *s, const struct flat_case *c) {
    for (int i = 0; i < 2; i++) {
        s->parameters[i] = flat_new(1, 40);
        s->velocity[i] = c->momentum ? flat_new(0.1, 41) : room_new(0, 0);
        s->shadow[i] = c->shadow ? flat_new(1, 42) : room_new(0, 0);
    }
    s->average = flat_new(0.1, 43);
}

static void state_end(struct state_of_update *s) {
    for (int i = 0; i < 2; i++) {
        room_end(&s->parameters[i], "parameters");
        room_end(&s->velocity[i], "velocity");
        room_end(&s->shadow[i], "shadow");
    }
    room_end(&s->average, "average");
}

static void run_update(const void *args) {
    const struct flat_case *c = args;
    struct pieces p;
    struct state_of_update s;
    cut(&p, true);
    state_new(&s, c);
    double average_norm2 = norm2_of(&s.average), norm = sqrt(average_norm2);
    struct cuda_update_scalars scalars = {.learning_rate = 0.25,
                                          .momentum = 0.9,
                                          .gradient_scale = 0.5,
                                          .ema_decay = 0.7,
                                          .clip_norm = c->clip_norm,
                                          .guard = c->clip_norm > 0};
    int held = 0;
    double clip = c->clip_norm > 0 && norm > c->clip_norm ? c->clip_norm / norm : 1,
           expected_norms2[2][SEGMENTS];
    struct update_args expected = {.parameters = span_of(&s.parameters[0]),
                                   .average = span_of(&s.average),
                                   .velocity = span_of(&s.velocity[0]),
                                   .shadow = span_of(&s.shadow[0]),
                                   .segments = segments,
                                   .segment_count = SEGMENTS,
                                   .learning_rate = scalars.learning_rate,
                                   .momentum = scalars.momentum,
                                   .gradient_scale = scalars.gradient_scale * clip,
                                   .ema_decay = scalars.ema_decay,
                                   .parameter_norms2 = expected_norms2[0],
                                   .update_norms2 = expected_norms2[1]};
    expect_ok(ref.ops->update(ref.device, &expected), "ref's update");
    struct room sums = room_new(2 * (size_t)p.count * sizeof(double), 0),
                norms2 = room_new(2 * SEGMENTS * sizeof(double), 0);
    double *sum = sums.data, *found = norms2.data;
    ok(cuda_update(NULL, p.table, p.count, &scalars, c->clip_norm > 0 ? &average_norm2 : NULL,
                   c->clip_norm > 0 ? &held : NULL, s.average.data, s.parameters[1].data, s.velocity[1].data,
                   s.shadow[1].data, sum, sum + p.count));
    assert_int_equal(held, 0);
    ok(cuda_sum_segments(NULL, sum, p.begin, SEGMENTS, found));
    ok(cuda_sum_segments(NULL, sum + p.count, p.begin, SEGMENTS, found + SEGMENTS));
    near_floats("parameters", s.parameters[1].data, s.parameters[0].data, COUNT, 0);
    if (c->momentum)
        near_floats("velocity", s.velocity[1].data, s.velocity[0].data, COUNT, 0);
    if (c->shadow)
        near_floats("shadow", s.shadow[1].data, s.shadow[0].data, COUNT, 0);
    for (int i = 0; i < SEGMENTS; i++) {
        near_double("a tensor's norm", found[i], expected_norms2[0][i], 1e-12);
        near_double("a change's norm", found[SEGMENTS + i], expected_norms2[1][i], 1e-12);
    }
    both_orders_keep("parameters", s.parameters[1].data, s.parameters[1].bytes);
    both_orders_keep("norms", norms2.data, norms2.bytes);
    room_end(&sums, "sums");
    room_end(&norms2, "norms");
    state_end(&s);
}

static void test_update(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct flat_case c = {.momentum = i & 1, .shadow = i & 2, .clip_norm = i & 4 ? 0.5 : 0};
        both_orders(run_update, &c);
    }
    struct flat_case far = {.clip_norm = 1e9}; /* nothing to clip */
    both_orders(run_update, &far);
}

/* With the guard, an average that is not finite changes nothing, nor does a finite one after it; without, it
 * does. */
static void test_guard(void **state) {
    (void)state;
    static const double bad[] = {NAN, INFINITY};
    struct flat_case c = {.momentum = true, .shadow = true};
    for (int i = 0; i < 4; i++) {
        struct pieces p;
        struct state_of_update s;
        cut(&p, true);
        state_new(&s, &c);
        bool guard = i & 1;
        ((float *)s.average.data)[17] = (float)bad[i / 2];
        struct cuda_update_scalars scalars = {.learning_rate = 0.25, .gradient_scale = 1, .guard = guard};
        struct room sums = room_new(2 * (size_t)p.count * sizeof(double), 0);
        double *sum = sums.data;
        const double norms2[] = {bad[i / 2], 1};
        int held = 0;
        for (int turn = 0; turn < 1 + guard; turn++)
            ok(cuda_update(NULL, p.table, p.count, &scalars, &norms2[turn], &held, s.average.data,
                           s.parameters[1].data, s.velocity[1].data, s.shadow[1].data, sum, sum + p.count));
        assert_int_equal(held, guard);
        bool same = memcmp(s.parameters[0].data, s.parameters[1].data, s.parameters[0].bytes) == 0 &&
                    memcmp(s.velocity[0].data, s.velocity[1].data, s.velocity[0].bytes) == 0 &&
                    memcmp(s.shadow[0].data, s.shadow[1].data, s.shadow[0].bytes) == 0;
        assert_true(same == guard);
        assert_true(isfinite(sum[0]) == guard);
        scalars.guard = 0;
        ok(cuda_update(NULL, p.table, p.count, &scalars, norms2, &held, s.average.data, s.parameters[1].data,
                       s.velocity[1].data, s.shadow[1].data, sum, sum + p.count));
        assert_int_equal(held, 0);
        assert_false(isfinite(sum[0]));
        room_end(&sums, "sums");
        state_end(&s);
    }
}

/* ---- what is asked of many values */

static void run_measures(const void *args) {
    size_t count = *(const size_t *)args;
    struct room values = room_normal(count, 0, 1, 70), scratch = room_new(cuda_measure_scratch(count), 0);
    float *value = values.data;
    long long zeros = 0, found = -7;
    for (size_t i = 0; i < count; i++) {
        value[i] = value[i] < 0 ? 0 : value[i];
        zeros += value[i] == 0;
    }
    ok(cuda_count_zeros(NULL, CUDA_TYPE_F32, value, count, scratch.data, &found));
    assert_int_equal(found, zeros);
    ok(cuda_first_non_finite(NULL, CUDA_TYPE_F32, value, count, scratch.data, &found));
    assert_int_equal(found, -1);
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) { /* from the last place to the first */
        size_t at = (count - 1) * (size_t)(2 - i) / 2;
        value[at] = bad[i];
        ok(cuda_first_non_finite(NULL, CUDA_TYPE_F32, value, count, scratch.data, &found));
        assert_int_equal(found, at);
    }
    room_end(&values, "values");
    room_end(&scratch, "scratch");
}

static void test_measures(void **state) {
    (void)state;
    static const size_t counts[] = {1, 2, 255, 4097, 300001};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        both_orders(run_measures, &counts[i]);
}

static int open_ref(void **state) {
    (void)state;
    return device_open("ref", 1, NULL, &ref) != STATUS_OK;
}

static int close_ref(void **state) {
    (void)state;
    device_close(&ref);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss),    cmocka_unit_test(test_loss_not_a_number),
        cmocka_unit_test(test_combine), cmocka_unit_test(test_update),
        cmocka_unit_test(test_guard),   cmocka_unit_test(test_measures),
    };
    return cmocka_run_group_tests(tests, open_ref, close_ref);
}
