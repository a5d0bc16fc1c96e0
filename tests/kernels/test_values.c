/* Values worked out by hand, or by another way of computing, on every device that is usable here. */
#include "engine/base/random.h"
#include "kernels/registry.h"
#include "tests/support/chain.h"
#include "tests/support/cmocka.h"
#include "tests/support/devices.h"
#include "tests/support/make_op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

/* Put x (and a parameter) through one operation; two images, both the same, since one alone may be computed
 * in another way. false, and nothing in y, when the device does not do the operation. */
static bool forward(struct device_handle device, struct op op, const float *x, const float *parameter,
                    float *y) {
    enum { IMAGES = 2 };
    struct chain chain;
    float both[IMAGES * MOST];
    size_t in = shape_size(op.in), out = shape_size(op.out);
    assert_true(in <= MOST && out <= MOST);
    for (size_t n = 0; n < IMAGES; n++)
        memcpy(both + n * in, x, in * sizeof *x);
    enum status status = chain_open(&chain, device, &op, 1, IMAGES, false, false, NULL);
    if (status == STATUS_UNSUPPORTED) {
        printf("    no %s\n", op_kind_name(op.kind));
        return false;
    }
    expect_ok(status, "a plan");
    guarded_write(device, &chain.value[0], both, IMAGES * in);
    guarded_write(device, &chain.parameter[0], parameter, op_parameter_size(&op));
    chain_run(&chain, chain_prepare, "prepare");
    chain_run(&chain, chain_forward, "forward");
    guarded_read(device, &chain.value[1], both, IMAGES * out);
    memcpy(y, both, out * sizeof *y);
    chain_close(&chain);
    return true;
}

static void expect_values(const float *found, const double *expected, size_t count, double tolerance) {
    for (size_t i = 0; i < count; i++)
        if (!(fabs(found[i] - expected[i]) <= tolerance))
            fail_msg("value %zu is %.9g, expected %.9g", i, found[i], expected[i]);
}

static void test_pool_pads_after(struct device_handle device) {
    float x[16], y[4];
    for (int i = 0; i < 16; i++)
        x[i] = (float)i + 1;
    /* rows 0-2 and 2-3: nothing is padded before */
    if (forward(device, make_max_pool((struct shape){4, 4, 1}, 3, 2), x, NULL, y))
        expect_values(y, (double[]){11, 12, 15, 16}, 4, 0);
    /* padding is no 0 that could win */
    for (int i = 0; i < 16; i++)
        x[i] = -(float)i - 1;
    if (forward(device, make_max_pool((struct shape){4, 4, 1}, 3, 2), x, NULL, y))
        expect_values(y, (double[]){-1, -3, -9, -11}, 4, 0);
}

static void test_conv_by_hand(struct device_handle device) {
    /* 3x3 image, 3x3 kernel that looks one pixel up and left, and doubles the middle in its second channel */
    float x[9], w[18] = {0}, y[18];
    for (int i = 0; i < 9; i++)
        x[i] = (float)i + 1;
    w[0] = 1;         /* tap 0,0 to channel 0 */
    w[4 * 2 + 1] = 2; /* tap 1,1 to channel 1 */
    if (forward(device, make_conv((struct shape){3, 3, 1}, 2, 3, 1), x, w, y))
        expect_values(y, (double[]){0, 2, 0, 4, 0, 6, 0, 8, 1, 10, 2, 12, 0, 14, 4, 16, 5, 18}, 18, 1e-5);
}

/* Another way: every output as a sum over all input values, with the tap worked out from the distance. */
static void brute_conv(const struct op *op, const float *x, const float *w, double *y) {
    for (int i = 0; i < op->out.h; i++)
        for (int j = 0; j < op->out.w; j++)
            for (int o = 0; o < op->out.c; o++) {
                double sum = 0;
                for (int at = 0; at < (int)shape_size(op->in); at++) {
                    int c = at % op->in.c, column = at / op->in.c % op->in.w, row = at / op->in.c / op->in.w;
                    int u = row + op->window.pad_top - i * op->window.stride;
                    int v = column + op->window.pad_left - j * op->window.stride;
                    if (u >= 0 && u < op->window.kernel_h && v >= 0 && v < op->window.kernel_w)
                        sum +=
                            (double)x[at] * w[((u * op->window.kernel_w + v) * op->in.c + c) * op->out.c + o];
                }
                y[(i * op->out.w + j) * op->out.c + o] = sum;
            }
}

static void random_values(float *to, size_t count, uint64_t stream) {
    struct random r = random_begin(17, RANDOM_TEST, stream);
    for (size_t i = 0; i < count; i++)
        to[i] = (float)random_normal(&r);
}

static void test_conv_by_force(struct device_handle device) {
    static const struct {
        struct shape in;
        int out, kernel, stride;
    } cases[] = {
        {{6, 6, 3}, 64, 5, 1}, {{5, 7, 2}, 3, 3, 2},  {{1, 1, 5}, 4, 5, 1},
        {{8, 3, 1}, 16, 1, 2}, {{7, 7, 16}, 8, 3, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct op op = make_conv(cases[i].in, cases[i].out, cases[i].kernel, cases[i].stride);
        static float x[MOST], w[MOST * 2], y[MOST];
        static double expected[MOST];
        random_values(x, shape_size(op.in), 2 * i);
        random_values(w, op_parameter_size(&op), 2 * i + 1);
        if (forward(device, op, x, w, y)) {
            brute_conv(&op, x, w, expected);
            expect_values(y, expected, shape_size(op.out), 2e-4);
        }
    }
}

static void test_bias_relu_dense(struct device_handle device) {
    float y[6];
    if (forward(device, make_bias((struct shape){1, 2, 3}), (float[]){1, 2, 3, 4, 5, 6},
                (float[]){.5f, 0, -1}, y))
        expect_values(y, (double[]){1.5, 2, 2, 4.5, 5, 5}, 6, 0);
    if (forward(device, make_relu((struct shape){1, 1, 4}), (float[]){-1, 0, .25f, 3}, NULL, y))
        expect_values(y, (double[]){0, 0, .25, 3}, 4, 0);
    /* [in][out] */
    if (forward(device, make_dense((struct shape){1, 1, 2}, 3), (float[]){2, -1},
                (float[]){1, 2, 3, 10, 20, 30}, y))
        expect_values(y, (double[]){-8, -16, -24}, 3, 1e-5);
}

static void test_lrn(struct device_handle device) {
    float y[10];
    if (forward(device, make_lrn((struct shape){1, 1, 1}, 4, 1, 0.5, 0.75), (float[]){2}, NULL, y))
        expect_values(y, (double[]){2 * pow(3, -0.75)}, 1, 1e-6);
    /* ten channels of 1: channels 0 and 9 see five of them, 1 sees six, ... 4 and 5 nine */
    float ones[10];
    double expected[10];
    static const int seen[10] = {5, 6, 7, 8, 9, 9, 8, 7, 6, 5};
    for (int i = 0; i < 10; i++) {
        ones[i] = 1;
        expected[i] = pow(1 + 0.25 * seen[i], -0.75);
    }
    if (forward(device, make_lrn((struct shape){1, 1, 10}, 4, 1, 0.25, 0.75), ones, NULL, y))
        expect_values(y, expected, 10, 1e-6);
}

/* In plain C a value that is not a number comes out at the other end, where it can be found. */
static void test_not_a_number_stays(struct device_handle device) {
    if (strncmp(device.ops->name, "ref", 3) != 0)
        return;
    float x[16] = {0}, y[16];
    x[5] = NAN;
    if (forward(device, make_relu((struct shape){4, 4, 1}), x, NULL, y))
        assert_true(isnan(y[5]));
    if (forward(device, make_max_pool((struct shape){4, 4, 1}, 3, 2), x, NULL, y))
        assert_true(isnan(y[0]));
    if (forward(device, make_lrn((struct shape){1, 1, 16}, 4, 1, 0.25, 0.75), x, NULL, y))
        assert_true(isnan(y[5]));
}

static enum status loss_item(void *context, int item, int worker, struct stream *stream) {
    void **both = context;
    (void)item, (void)worker;
    return ((struct device_handle *)both[0])->ops->loss(stream, both[1]);
}

static void test_loss(struct device_handle device) {
    enum { IMAGES = 3, CLASSES = 3 };
    size_t element = device_element_bytes(device);
    struct guarded logits = guarded_new(device, IMAGES * CLASSES * element);
    struct guarded losses = guarded_new(device, IMAGES * element);
    struct guarded probabilities = guarded_new(device, IMAGES * CLASSES * element);
    struct guarded dlogits = guarded_new(device, IMAGES * CLASSES * element);
    float two = logf(2), five = logf(5), out[9];
    /* the last image overflows exp() when nothing is subtracted */
    guarded_write(device, &logits, (float[]){0, two, five, 7, 7, 7, 1000, -1000, 999}, 9);
    struct loss_args args = {.images = IMAGES,
                             .classes = CLASSES,
                             .logits = logits.span,
                             .labels = (int32_t[]){1, 0, 2},
                             .scale = 0.5,
                             .losses = losses.span,
                             .probabilities = probabilities.span,
                             .dlogits = dlogits.span};
    expect_ok(device.ops->each(device.device, 1, loss_item, (void *[]){&device, &args}), "loss");
    guarded_read(device, &losses, out, 3);
    expect_values(out, (double[]){log(4), log(3), 1 + log(1 + exp(-1))}, 3, 2e-6);
    guarded_read(device, &probabilities, out, 9);
    double e = 1 / (1 + exp(-1)), third = 1.0 / 3;
    expect_values(out, (double[]){.125, .25, .625, third, third, third, e, 0, 1 - e}, 9, 1e-6);
    guarded_read(device, &dlogits, out, 9);
    expect_values(out, (double[]){.0625, -.375, .3125, -third, third / 2, third / 2, e / 2, 0, -e / 2}, 9,
                  1e-6);
    guarded_check(device, &losses, "losses");
    guarded_check(device, &probabilities, "probabilities");
    guarded_check(device, &dlogits, "dlogits");
    struct guarded *all[] = {&logits, &losses, &probabilities, &dlogits};
    for (int i = 0; i < 4; i++)
        guarded_free(device, all[i]);
}

static void run_all(void **state) {
    (void)state;
    static void (*const tests[])(struct device_handle) = {
        test_pool_pads_after,    test_conv_by_hand, test_conv_by_force, test_bias_relu_dense, test_lrn,
        test_not_a_number_stays, test_loss,
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        for_each_device(tests[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(run_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
