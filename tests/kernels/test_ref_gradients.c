/* Every gradient of ref64 against central finite differences of its own forward pass, in double. */
#include "engine/base/random.h"
#include "kernels/registry.h"
#include "tests/support/chain.h"
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double step = 1e-5;

/* Values that are all at least 0.01 apart and 0.005 from 0, in random order: no pool and no ReLU is within a
 * step of changing its mind. */
static void spread_values(double *to, size_t count, struct random *r) {
    for (size_t i = 0; i < count; i++)
        to[i] = ((double)i - (double)(count / 2) + 0.5) * 0.01;
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = random_below(r, (uint32_t)i + 1);
        double swap = to[i];
        to[i] = to[other];
        to[other] = swap;
    }
}

static void normal_values(double *to, size_t count, struct random *r) {
    for (size_t i = 0; i < count; i++)
        to[i] = random_normal(r);
}

/* sum of dy * y: the scalar whose gradient is looked at. */
static double scalar(struct chain *chain, const double *dy, size_t count) {
    expect_ok(chain_forward(chain, NULL), "forward");
    const double *y = chain->value[1].span.data;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += dy[i] * y[i];
    return sum;
}

static void expect_gradient(struct chain *chain, const char *what, double *at, const double *gradient,
                            size_t count, const double *dy, size_t out) {
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(gradient[i]));
    assert_true(largest > 0);
    for (size_t i = 0; i < count; i++) {
        double before = at[i];
        at[i] = before + step;
        double above = scalar(chain, dy, out);
        at[i] = before - step;
        double below = scalar(chain, dy, out);
        at[i] = before;
        double difference = (above - below) / (2 * step);
        if (!(fabs(difference - gradient[i]) <= 2e-8 * fmax(largest, 1)))
            fail_msg("%s %dx%dx%d, gradient of %s, value %zu: %.12g, finite difference %.12g",
                     op_kind_name(chain->ops[0].kind), chain->ops[0].in.h, chain->ops[0].in.w,
                     chain->ops[0].in.c, what, i, gradient[i], difference);
    }
}

static void check(struct device_handle device, struct op op, int images) {
    struct chain chain;
    expect_ok(chain_open(&chain, device, &op, 1, images, true, true, NULL), "a plan");
    struct random r = random_begin(11, RANDOM_TEST, (uint64_t)op.kind);
    size_t in = (size_t)images * shape_size(op.in), out = (size_t)images * shape_size(op.out);
    size_t parameters = op_parameter_size(&op);
    double *x = chain.value[0].span.data, *parameter = chain.parameter[0].span.data;
    if (op.kind == OP_RELU || op.kind == OP_MAX_POOL)
        spread_values(x, in, &r);
    else
        normal_values(x, in, &r);
    normal_values(parameter, parameters, &r);
    double *dy = malloc(out * sizeof *dy);
    assert_non_null(dy);
    normal_values(dy, out, &r);
    memcpy(chain.gradient[1].span.data, dy, out * sizeof *dy);
    expect_ok(chain_forward(&chain, NULL), "forward");
    expect_ok(chain_backward(&chain, NULL), "backward");
    expect_gradient(&chain, "the input", x, chain.gradient[0].span.data, in, dy, out);
    if (parameters)
        expect_gradient(&chain, "the parameter", parameter, chain.parameter_gradient[0].span.data, parameters,
                        dy, out);
    chain_check_guards(&chain, "gradients");
    free(dy);
    chain_close(&chain);
}

static void test_conv(void **state) {
    struct device_handle device = *(struct device_handle *)*state;
    for (int stride = 1; stride <= 2; stride++)
        for (int kernel = 1; kernel <= 5; kernel += 2) {
            check(device, make_conv((struct shape){6, 5, 3}, 4, kernel, stride), 2);
            check(device, make_conv((struct shape){3, 8, 1}, 19, kernel, stride), 1);
            check(device, make_conv((struct shape){2, 2, 17}, 1, kernel, stride), 1);
        }
    struct op uneven = {.kind = OP_CONV,
                        .in = {5, 7, 2},
                        .out = {5, 3, 3},
                        .window = {.kernel_h = 2, .kernel_w = 4, .stride = 2, .pad_top = 1, .pad_bottom = 1}};
    uneven.out = (struct shape){(5 + 2 - 2) / 2 + 1, (7 - 4) / 2 + 1, 3};
    check(device, uneven, 2);
}

static void test_bias_relu_dense(void **state) {
    struct device_handle device = *(struct device_handle *)*state;
    for (int channels = 1; channels <= 70; channels += 23) {
        check(device, make_bias((struct shape){3, 2, channels}), 2);
        check(device, make_relu((struct shape){3, 2, channels}), 2);
        check(device, make_dense((struct shape){2, 1, channels}, 71 - channels), 3);
    }
}

static void test_max_pool(void **state) {
    struct device_handle device = *(struct device_handle *)*state;
    for (int size = 2; size <= 8;
         size++) /* even sizes: nothing before and one after; odd: one on each side */
        for (int stride = 1; stride <= 3; stride++) {
            check(device, make_max_pool((struct shape){size, 9 - size, 2}, 3, stride), 2);
            check(device, make_max_pool((struct shape){size, size, 1}, 2, stride), 1);
        }
    check(device, make_max_pool((struct shape){4, 4, 70}, 3, 2), 1);
}

static void test_lrn(void **state) {
    struct device_handle device = *(struct device_handle *)*state;
    for (int channels = 1; channels <= 70;
         channels += channels < 12 ? 1 : 29) /* windows clipped on both sides */
        check(device, make_lrn((struct shape){2, 1, channels}, 4, 1, 0.3, 0.75), 2);
    check(device, make_lrn((struct shape){1, 2, 9}, 2, 2, 0.05, 0.5), 1);
    check(device, make_lrn((struct shape){1, 2, 9}, 0, 1, 1, 1.25), 1);
}

/* dlogits against finite differences of the mean loss. */
static void test_loss(void **state) {
    struct device_handle device = *(struct device_handle *)*state;
    enum { IMAGES = 3, CLASSES = 7 };
    double logits[IMAGES * CLASSES], losses[IMAGES], dlogits[IMAGES * CLASSES];
    int32_t labels[IMAGES] = {0, 6, 3};
    struct random r = random_begin(3, RANDOM_TEST, 0);
    normal_values(logits, IMAGES * CLASSES, &r);
    struct loss_args args = {.images = IMAGES,
                             .classes = CLASSES,
                             .logits = {logits, sizeof logits},
                             .labels = labels,
                             .scale = 1.0 / IMAGES,
                             .losses = {losses, sizeof losses},
                             .dlogits = {dlogits, sizeof dlogits}};
    expect_ok(device.ops->loss(NULL, &args), "loss");
    args.dlogits = (struct span){NULL, 0};
    for (int i = 0; i < IMAGES * CLASSES; i++) {
        double mean[2] = {0, 0}, before = logits[i];
        for (int side = 0; side < 2; side++) {
            logits[i] = before + (side ? step : -step);
            expect_ok(device.ops->loss(NULL, &args), "loss");
            for (int n = 0; n < IMAGES; n++)
                mean[side] += losses[n] / IMAGES;
        }
        logits[i] = before;
        double difference = (mean[1] - mean[0]) / (2 * step);
        assert_true(fabs(difference - dlogits[i]) <= 1e-9);
    }
}

int main(void) {
    struct device_handle device = {0};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_conv, &device),
        cmocka_unit_test_prestate(test_bias_relu_dense, &device),
        cmocka_unit_test_prestate(test_max_pool, &device),
        cmocka_unit_test_prestate(test_lrn, &device),
        cmocka_unit_test_prestate(test_loss, &device),
    };
    if (device_open("ref64", 1, NULL, &device) != STATUS_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    device_close(&device);
    return failed;
}
