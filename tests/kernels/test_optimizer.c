/* combine and update of every usable device against plain loops in double. */
#include "engine/base/random.h"
#include "tests/support/cmocka.h"
#include "tests/support/devices.h"
#include "tests/support/guarded.h"

#include <math.h>
#include <string.h>

/* Three tensors with gaps between them, the first longer than any block a device sums over. */
enum { COUNT = 20000, SEGMENTS = 3, TOWERS = 4 };

static const struct segment segments[SEGMENTS] = {{0, 15001, 0.004}, {15008, 1, 0}, {15024, 4970, 0.1}};

static float parameters[COUNT], gradients[TOWERS][COUNT];
static const double weights[TOWERS] = {0.5, 0, 0.2, 0.3};

static bool in_segment(size_t at, double *decay) {
    for (int s = 0; s < SEGMENTS; s++)
        if (at >= segments[s].offset && at < segments[s].offset + segments[s].count) {
            *decay = segments[s].weight_decay;
            return true;
        }
    return false;
}

/* Random values in the segments, 0 in the gaps. */
static void draw(float *to, uint64_t stream, double scale) {
    struct random r = random_begin(23, RANDOM_TEST, stream);
    double decay;
    for (size_t i = 0; i < COUNT; i++)
        to[i] = in_segment(i, &decay) ? (float)(scale * random_normal(&r)) : 0;
}

static void expect_close(const char *what, double found, double expected, double tolerance) {
    if (!(fabs(found - expected) <= tolerance * fmax(1, fabs(expected))))
        fail_msg("%s is %.12g, expected %.12g", what, found, expected);
}

static struct guarded flat(struct device_handle device, const float *values) {
    struct guarded buffer = guarded_new(device, COUNT * device_element_bytes(device));
    guarded_write(device, &buffer, values, COUNT);
    return buffer;
}

struct measured {
    double norms2[TOWERS], dots[TOWERS], segment_norms2[SEGMENTS], average_norm2;
};

static void combine(struct device_handle device, struct measured *m, float *average, bool dots) {
    static const float zeros[COUNT];
    struct guarded parameter = flat(device, parameters), out = flat(device, zeros), gradient[TOWERS];
    struct span spans[TOWERS];
    for (int k = 0; k < TOWERS; k++) {
        gradient[k] = flat(device, gradients[k]);
        if (weights[k] == 0) /* not read */
            guarded_poison(device, &gradient[k]);
        spans[k] = gradient[k].span;
    }
    struct combine_args args = {.towers = TOWERS,
                                .gradients = spans,
                                .weights = weights,
                                .parameters = parameter.span,
                                .segments = segments,
                                .segment_count = SEGMENTS,
                                .want_dots = dots,
                                .average = out.span,
                                .norms2 = m->norms2,
                                .dots = m->dots,
                                .segment_norms2 = m->segment_norms2,
                                .average_norm2 = &m->average_norm2};
    expect_ok(device.ops->combine(device.device, &args), "combine");
    guarded_read(device, &out, average, COUNT);
    guarded_check(device, &out, "average");
    guarded_check(device, &parameter, "parameters");
    for (int k = 0; k < TOWERS; k++) {
        guarded_check(device, &gradient[k], "gradient");
        guarded_free(device, &gradient[k]);
    }
    guarded_free(device, &parameter);
    guarded_free(device, &out);
}

static void test_combine(struct device_handle device) {
    static float average[COUNT], again[COUNT];
    struct measured m, naive = {{0}, {0}, {0}, 0}, repeated;
    combine(device, &m, average, true);
    for (size_t i = 0; i < COUNT; i++) {
        double decay, expected = 0, total[TOWERS];
        if (!in_segment(i, &decay)) {
            assert_true(average[i] == 0);
            continue;
        }
        for (int k = 0; k < TOWERS; k++) {
            if (weights[k] == 0)
                continue;
            total[k] = gradients[k][i] + decay * parameters[i];
            expected += weights[k] * total[k];
            naive.norms2[k] += total[k] * total[k];
        }
        expect_close("an average", average[i], expected, 3e-7);
        for (int k = 0; k < TOWERS; k++)
            if (weights[k] != 0)
                naive.dots[k] += total[k] * expected;
        for (int s = 0; s < SEGMENTS; s++)
            if (i >= segments[s].offset && i < segments[s].offset + segments[s].count)
                naive.segment_norms2[s] += expected * expected;
        naive.average_norm2 += expected * expected;
    }
    for (int k = 0; k < TOWERS; k++) {
        expect_close("a tower's norm", m.norms2[k], naive.norms2[k], 1e-6);
        expect_close("a tower's dot", m.dots[k], naive.dots[k], 1e-6);
    }
    for (int s = 0; s < SEGMENTS; s++)
        expect_close("a tensor's norm", m.segment_norms2[s], naive.segment_norms2[s], 1e-6);
    expect_close("the average's norm", m.average_norm2, naive.average_norm2, 1e-6);
    /* the same bytes again, with and without dots */
    combine(device, &repeated, again, false);
    assert_memory_equal(average, again, sizeof average);
    assert_memory_equal(m.norms2, repeated.norms2, sizeof m.norms2);
    assert_memory_equal(&m.average_norm2, &repeated.average_norm2, sizeof m.average_norm2);
}

/* One tower of weight 1 and no decay: the average is its gradient, to the bit. */
static void test_combine_one(struct device_handle device) {
    static float average[COUNT];
    struct guarded parameter = flat(device, parameters), gradient = flat(device, gradients[0]),
                   out = flat(device, parameters);
    struct segment whole = {0, COUNT, 0};
    double norm2, dot, average_norm2;
    struct combine_args args = {.towers = 1,
                                .gradients = &gradient.span,
                                .weights = (double[]){1},
                                .parameters = parameter.span,
                                .segments = &whole,
                                .segment_count = 1,
                                .want_dots = true,
                                .average = out.span,
                                .norms2 = &norm2,
                                .dots = &dot,
                                .average_norm2 = &average_norm2};
    expect_ok(device.ops->combine(device.device, &args), "combine");
    guarded_read(device, &out, average, COUNT);
    assert_memory_equal(average, gradients[0], sizeof average);
    expect_close("cosine", dot / sqrt(norm2 * average_norm2), 1, 1e-12);
    guarded_free(device, &parameter);
    guarded_free(device, &gradient);
    guarded_free(device, &out);
}

static void update(struct device_handle device, bool momentum, bool shadow) {
    static float w[COUNT], v[COUNT], e[COUNT], g[COUNT], found[COUNT];
    draw(w, 40, 1), draw(v, 41, 0.1), draw(e, 42, 1), draw(g, 43, 0.1);
    struct guarded parameter = flat(device, w), average = flat(device, g), velocity = {0}, moving = {0};
    if (momentum)
        velocity = flat(device, v);
    if (shadow)
        moving = flat(device, e);
    double parameter_norms2[SEGMENTS], update_norms2[SEGMENTS], naive_w[SEGMENTS] = {0},
                                                                naive_u[SEGMENTS] = {0};
    struct update_args args = {.parameters = parameter.span,
                               .average = average.span,
                               .velocity = velocity.span,
                               .shadow = moving.span,
                               .segments = segments,
                               .segment_count = SEGMENTS,
                               .learning_rate = 0.25,
                               .momentum = 0.9,
                               .gradient_scale = 0.5,
                               .ema_decay = 0.7,
                               .parameter_norms2 = parameter_norms2,
                               .update_norms2 = update_norms2};
    expect_ok(device.ops->update(device.device, &args), "update");
    static double new_w[COUNT], new_v[COUNT], new_e[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        new_v[i] = 0.5 * g[i] + (momentum ? 0.9 * v[i] : 0);
        new_w[i] = w[i] - 0.25 * new_v[i];
        new_e[i] = e[i] - (1 - 0.7) * (e[i] - new_w[i]);
        for (int s = 0; s < SEGMENTS; s++)
            if (i >= segments[s].offset && i < segments[s].offset + segments[s].count) {
                naive_w[s] += new_w[i] * new_w[i];
                naive_u[s] += (new_w[i] - w[i]) * (new_w[i] - w[i]);
            }
    }
    guarded_read(device, &parameter, found, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        expect_close("a parameter", found[i], new_w[i], 4e-7);
    guarded_read(device, &velocity, found, momentum ? COUNT : 0);
    for (size_t i = 0; momentum && i < COUNT; i++)
        expect_close("a momentum", found[i], new_v[i], 2e-7);
    guarded_read(device, &moving, found, shadow ? COUNT : 0);
    for (size_t i = 0; shadow && i < COUNT; i++)
        expect_close("a moving average", found[i], new_e[i], 4e-7);
    for (int s = 0; s < SEGMENTS; s++) {
        expect_close("a tensor's norm", parameter_norms2[s], naive_w[s], 1e-6);
        expect_close("an update's norm", update_norms2[s], naive_u[s], 2e-5);
    }
    struct guarded *all[] = {&parameter, &average, &velocity, &moving};
    for (int i = 0; i < 4; i++) {
        guarded_check(device, all[i], "update");
        guarded_free(device, all[i]);
    }
}

static void test_update(struct device_handle device) {
    for (int i = 0; i < 4; i++)
        update(device, i & 1, i & 2);
}

static void run_all(void **state) {
    (void)state;
    draw(parameters, 50, 1);
    for (int k = 0; k < TOWERS; k++)
        draw(gradients[k], 60 + (uint64_t)k, 0.5);
    for_each_device(test_combine);
    for_each_device(test_combine_one);
    for_each_device(test_update);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(run_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
