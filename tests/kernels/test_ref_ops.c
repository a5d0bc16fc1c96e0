/* ref in float against ref64, on the shapes of the networks and on awkward ones, through the checks that
 * every device's operations go through. */
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"
#include "tests/support/op_check.h"

#include <string.h>

static void check(const struct op *ops, int count, int images, double tolerance) {
    struct op_check c = {.device = "ref",
                         .ops = ops,
                         .count = count,
                         .images = images,
                         .tolerance = tolerance,
                         .seed = 1 + (uint64_t)count};
    assert_int_equal(op_check(&c), STATUS_OK);
    c.threads = 3;
    c.no_input_gradient = true;
    assert_int_equal(op_check(&c), STATUS_OK);
}

static void test_single_operations(void **state) {
    (void)state;
    for (int channels = 1; channels <= 70; channels += 23) {
        struct shape in = {7, 5, channels};
        struct op ops[] = {make_conv(in, 70 - channels + 1, 5, 1),
                           make_conv(in, 9, 3, 2),
                           make_bias(in),
                           make_relu(in),
                           make_max_pool(in, 3, 2),
                           make_lrn(in, 4, 1, 0.1, 0.75),
                           make_dense(in, 11)};
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
            check(&ops[i], 1, 3, 1e-6);
    }
}

static void test_ties_go_to_the_first(void **state) {
    (void)state;
    struct shape in = {9, 6, 8};
    struct op ops[] = {make_relu(in), make_max_pool(in, 3, 2)};
    struct op_check c = {
        .device = "ref", .ops = ops, .count = 2, .images = 4, .tolerance = 1e-6, .quantised = true};
    assert_int_equal(op_check(&c), STATUS_OK);
}

/* The two blocks of cifar10: they differ in the order of pool and norm. */
static int block(struct op *ops, struct shape in, int channels, bool pool_first) {
    int n = 0;
    ops[n++] = make_conv(in, channels, 5, 1);
    ops[n++] = make_bias(ops[0].out);
    ops[n++] = make_relu(ops[0].out);
    if (pool_first)
        ops[n++] = make_max_pool(ops[0].out, 3, 2);
    ops[n] = make_lrn(ops[n - 1].out, 4, 1, 0.001 / 9, 0.75);
    n++;
    if (!pool_first)
        ops[n++] = make_max_pool(ops[0].out, 3, 2);
    return n;
}

static void test_blocks(void **state) {
    (void)state;
    struct op ops[8];
    check(ops, block(ops, (struct shape){12, 12, 3}, 16, true), 2, 1e-6);
    check(ops, block(ops, (struct shape){12, 12, 16}, 16, false), 2, 1e-6);
}

static void test_shards(void **state) {
    (void)state;
    struct op ops[8];
    int count = block(ops, (struct shape){8, 8, 3}, 8, true);
    struct op_check c = {.device = "ref",
                         .ops = ops,
                         .count = count,
                         .images = 17,
                         .tolerance = 1e-6,
                         .seed = 5,
                         .threads = 4};
    assert_int_equal(op_check_shards(&c), STATUS_OK);
}

static void test_unknown_implementation(void **state) {
    (void)state;
    struct op op = make_relu((struct shape){2, 2, 2});
    struct op_check c = {
        .device = "ref", .ops = &op, .count = 1, .images = 2, .tolerance = 1e-6, .force = "winograd"};
    assert_int_equal(op_check(&c), STATUS_UNSUPPORTED);
    assert_non_null(strstr(status_text(), "winograd"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_operations),
        cmocka_unit_test(test_ties_go_to_the_first),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_unknown_implementation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
