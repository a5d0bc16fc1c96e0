/* Our own vector kernels (kernels/cpu/isa) against ref64, forced, for each instruction set that this
 * processor has: image sizes that no tile divides, channels that no vector divides, windows and paddings of
 * all sorts. */
#include "kernels/cpu/isa.h"
#include "kernels/registry.h"
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"
#include "tests/support/op_check.h"

#include <stdio.h>
#include <string.h>

static enum cpu_isa tested;

/* Under the thread sanitizer what threads do at the same time counts, which is the same for each instruction
 * set: see main(). */
#ifdef __SANITIZE_THREAD__
enum { BRIEF = true };
#else
enum { BRIEF = false };
#endif

/* What may follow a convolution: bias (1), ReLU (2) or both; the address sanitizer goes through the ends of
 * the list. */
#ifdef __SANITIZE_ADDRESS__
enum { NEXT_FOLLOWING = 3 };
#else
enum { NEXT_FOLLOWING = 1 };
#endif

/* Operations that the implementation takes when it is forced. */
static int taken_by(const char *force, const struct op *ops, int count) {
    struct device_handle device;
    assert_int_equal(device_open("cpu", 1, isa_name(tested), &device), STATUS_OK);
    struct plan_request request = {.ops = ops, .count = count, .images = 2, .force = force};
    struct plan *plan;
    int taken = 0;
    if (device.ops->plan(device.device, &request, &plan) == STATUS_OK) { /* another may take it, or none */
        const struct plan_info *info = device.ops->plan_info(plan);
        taken = strcmp(info->implementation, force) == 0 ? info->taken : 0;
        device.ops->plan_free(plan);
    }
    device_close(&device);
    return taken;
}

/* On one thread for an even number of images, for an odd one on three, which share out prepare()'s work. */
static void check(const char *force, const struct op *ops, int count, int images, bool quantised) {
    assert_int_equal(taken_by(force, ops, count), count);
    struct op_check one = {.device = "cpu",
                           .isa = isa_name(tested),
                           .force = force,
                           .threads = images % 2 ? 3 : 1,
                           .ops = ops,
                           .count = count,
                           .images = images,
                           .tolerance = 1e-5,
                           .no_input_gradient = images == 5 && ops->kind == OP_CONV,
                           .quantised = quantised,
                           .seed = (uint64_t)(100 * ops->in.h + ops->in.c)};
    assert_int_equal(op_check(&one), STATUS_OK);
}

static void test_lrn(void **state) {
    (void)state;
    static const int channels[] = {1, 3, 4, 8, 16, 20, 47, 64, 96};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        struct shape in = {3, 5, channels[i]};
        struct op narrow = make_lrn(in, 4, 1, 0.1, 0.75), wide = make_lrn(in, 7, 2, 0.3, 0.75);
        struct op none = make_lrn(in, 0, 0.5, 1, 0.75);
        check("lrn", &narrow, 1, 3, false);
        check("lrn", &wide, 1, 5, false);
        check("lrn", &none, 1, 4, false);
    }
    struct op root = make_lrn((struct shape){2, 2, 16}, 4, 1, 0.1, 0.5);
    struct op bare = make_lrn((struct shape){2, 2, 16}, 4, 0, 0.1, 0.75);
    assert_int_equal(taken_by("lrn", &root, 1), 0);
    assert_int_equal(taken_by("lrn", &bare, 1), 0);
}

static struct op pool_with_padding(struct shape in, int kernel_h, int kernel_w, int stride, int top,
                                   int left) {
    struct op op = make_max_pool(in, 3, stride);
    op.window = (struct op_window){kernel_h, kernel_w, stride, top, left, kernel_h / 2, kernel_w / 2};
    op.out.h = (in.h + top + kernel_h / 2 - kernel_h) / stride + 1;
    op.out.w = (in.w + left + kernel_w / 2 - kernel_w) / stride + 1;
    return op;
}

static void test_max_pool(void **state) {
    (void)state;
    static const int channels[] = {1, 3, 16, 29, 64};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        struct shape in = {9, 6, channels[i]};
        struct op ops[] = {make_max_pool(in, 3, 2),
                           make_max_pool(in, 2, 2),
                           make_max_pool(in, 3, 1),
                           make_max_pool(in, 2, 3),
                           pool_with_padding(in, 4, 3, 1, 2, 1),
                           pool_with_padding(in, 3, 5, 2, 1, 4)};
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            check("max-pool", &ops[k], 1, 4, true);
    }
    struct op large = make_max_pool((struct shape){40, 40, 1}, 16, 16);
    assert_int_equal(taken_by("max-pool", &large, 1), 0);
}

static void test_lrn_pool(void **state) {
    (void)state;
    static const int channels[] = {16, 48, 64};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        struct shape in = {7, 6, channels[i]};
        struct op ops[2] = {make_lrn(in, 4, 1, 0.001 / 9, 0.75), make_max_pool(in, 3, 2)};
        check("lrn-pool", ops, 2, 5, false);
        ops[1] = make_max_pool(in, 2, 3);
        check("lrn-pool", ops, 2, 2, false);
        ops[1] = make_max_pool(in, 3, 1);
        check("lrn-pool", ops, 2, 3, false);
    }
    struct shape odd = {4, 4, 24};
    struct op ops[2] = {make_lrn(odd, 4, 1, 0.1, 0.75), make_max_pool(odd, 3, 2)};
    assert_int_equal(taken_by("lrn-pool", ops, 2), 0);
}

/* Convolution alone, with bias, with ReLU, with both. */
static void check_convolution(const char *force, struct op conv, int images) {
    for (int with = 0; with < 4; with += NEXT_FOLLOWING) {
        struct op ops[3] = {conv};
        int count = 1;
        if (with & 1)
            ops[count++] = make_bias(conv.out);
        if (with & 2)
            ops[count++] = make_relu(conv.out);
        check(force, ops, count, images, false);
    }
}

static struct op conv_with_padding(struct shape in, int channels, int kernel, int top, int left, int bottom,
                                   int right) {
    struct op op = make_conv(in, channels, kernel, 1);
    op.window.pad_top = top;
    op.window.pad_left = left;
    op.window.pad_bottom = bottom;
    op.window.pad_right = right;
    op.out.h = in.h + top + bottom - kernel + 1;
    op.out.w = in.w + left + right - kernel + 1;
    return op;
}

static void test_winograd_5x5(void **state) {
    (void)state;
    const char *force = "winograd-4x4-5x5";
    check_convolution(force, make_conv((struct shape){12, 12, 64}, 64, 5, 1), 5);
    check_convolution(force, make_conv((struct shape){7, 9, 16}, 48, 5, 1), 3);
    check_convolution(force, make_conv((struct shape){1, 2, 80}, 16, 5, 1), 4);
    check_convolution(force, make_conv((struct shape){5, 31, 32}, 96, 5, 1), 2);
    check_convolution(force, conv_with_padding((struct shape){9, 8, 16}, 16, 5, 0, 0, 0, 0), 5);
    check_convolution(force, conv_with_padding((struct shape){6, 7, 16}, 32, 5, 4, 1, 3, 4), 3);
}

static void test_winograd_3x3(void **state) {
    (void)state;
    const char *force = "winograd-4x4-3x3";
    check_convolution(force, make_conv((struct shape){16, 16, 16}, 16, 3, 1), 5);
    check_convolution(force, make_conv((struct shape){7, 9, 48}, 32, 3, 1), 3);
    check_convolution(force, make_conv((struct shape){8, 8, 64}, 128, 3, 1), 2);
    check_convolution(force, conv_with_padding((struct shape){9, 5, 16}, 16, 3, 0, 2, 1, 0), 5);
}

/* With LRN and pool behind it, as in cifar10's second block. */
static void test_winograd_lrn_pool(void **state) {
    (void)state;
    static const struct shape in[] = {{12, 12, 64}, {7, 10, 16}};
    for (size_t i = BRIEF; i < 2; i++)
        for (int relu = 0; relu < 2; relu++) {
            struct op ops[5] = {make_conv(in[i], 64, 5, 1), make_bias((struct shape){in[i].h, in[i].w, 64})};
            int count = 2;
            if (relu)
                ops[count++] = make_relu(ops[1].out);
            ops[count++] = make_lrn(ops[1].out, 4, 1, 0.001 / 9, 0.75);
            ops[count++] = make_max_pool(ops[1].out, 3, 2);
            check("winograd-4x4-5x5", ops, count, 7, false);
        }
}

static void test_winograd_refuses(void **state) {
    (void)state;
    struct op ops[] = {
        make_conv((struct shape){8, 8, 16}, 24, 5, 1), make_conv((struct shape){8, 8, 16}, 16, 5, 2),
        make_conv((struct shape){8, 8, 16}, 16, 3, 1), make_conv((struct shape){8, 8, 3}, 16, 5, 1)};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        assert_int_equal(taken_by("winograd-4x4-5x5", &ops[i], 1), 0);
}

/* A first block: conv, bias, ReLU, pool and, with lrn, LRN. */
static int first_block(struct op *ops, struct op conv, struct op pool, bool lrn) {
    ops[0] = conv;
    ops[1] = make_bias(conv.out);
    ops[2] = make_relu(conv.out);
    ops[3] = pool;
    if (lrn)
        ops[4] = make_lrn(pool.out, 4, 1, 0.1, 0.75);
    return lrn ? 5 : 4;
}

static void test_conv_pool(void **state) {
    (void)state;
    const char *force = "conv-pool-lrn";
    struct op ops[5], conv;
    for (int channels = 1; channels <= 4; channels++)
        for (int lrn = 0; lrn < 2; lrn++) {
            conv = make_conv((struct shape){9, 7, channels}, 16, 5, 1);
            check(force, ops, first_block(ops, conv, make_max_pool(conv.out, 3, 2), lrn), 5 + lrn, false);
        }
    conv = make_conv((struct shape){24, 24, 3}, 64, 5, 1);
    check(force, ops, first_block(ops, conv, make_max_pool(conv.out, 3, 2), true), 2, false);
    conv = conv_with_padding((struct shape){12, 17, 1}, 48, 5, 0, 0, 0, 0);
    check(force, ops, first_block(ops, conv, make_max_pool(conv.out, 2, 2), false), 3, false);
    conv = conv_with_padding((struct shape){8, 10, 3}, 32, 5, 4, 1, 2, 3);
    check(force, ops, first_block(ops, conv, pool_with_padding(conv.out, 4, 3, 1, 2, 1), true), 3, false);
    check(force, ops, first_block(ops, conv, make_max_pool(conv.out, 2, 5), true), 5, false);
    check(force, ops, first_block(ops, conv, make_max_pool(conv.out, 5, 4), false), 2, false);
    conv = make_conv((struct shape){8, 8, 5}, 16, 5, 1);
    assert_int_equal(taken_by(force, ops, first_block(ops, conv, make_max_pool(conv.out, 3, 2), true)), 0);
}

/* Blocks as in cifar10, one after the other: forward bytes whatever the shard. */
static void test_shards(void **state) {
    (void)state;
    struct op ops[12], conv = make_conv((struct shape){14, 11, 3}, 16, 5, 1);
    first_block(ops, conv, make_max_pool(conv.out, 3, 2), true);
    ops[5] = make_conv(ops[4].out, 64, 5, 1);
    ops[6] = make_bias(ops[5].out);
    ops[7] = make_relu(ops[5].out);
    ops[8] = make_lrn(ops[5].out, 4, 1, 0.001 / 9, 0.75);
    ops[9] = make_max_pool(ops[5].out, 3, 2);
    ops[10] = make_conv(ops[9].out, 16, 3, 1);
    ops[11] = make_lrn(ops[10].out, 4, 1, 0.1, 0.75);
    for (int threads = 1; threads <= 4; threads += 3) {
        struct op_check one = {.device = "cpu",
                               .isa = isa_name(tested),
                               .threads = threads,
                               .ops = ops,
                               .count = 12,
                               .images = BRIEF ? 19 : 37,
                               .tolerance = 1e-5,
                               .seed = 3};
        assert_int_equal(op_check_shards(&one), STATUS_OK);
    }
}

int main(void) {
    int failed = 0;
    for (int i = 0; i < ISA_COUNT; i++) {
        if (!isa_available((enum cpu_isa)i))
            continue;
        tested = (enum cpu_isa)i;
        printf("instruction set %s\n", isa_name(tested));
        fflush(stdout);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_lrn),
            cmocka_unit_test(test_max_pool),
            cmocka_unit_test(test_lrn_pool),
            cmocka_unit_test(test_winograd_5x5),
            cmocka_unit_test(test_winograd_3x3),
            cmocka_unit_test(test_winograd_refuses),
            cmocka_unit_test(test_winograd_lrn_pool),
            cmocka_unit_test(test_conv_pool),
            cmocka_unit_test(test_shards),
        };
        const struct CMUnitTest threads[] = {
            cmocka_unit_test(test_winograd_lrn_pool), /* prepare() shared out */
            cmocka_unit_test(test_shards),            /* side by side */
        };
        failed |=
            BRIEF ? cmocka_run_group_tests(threads, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
        if (BRIEF)
            break;
    }
    return failed;
}
