/* Every operation on a GPU against ref64: operations DEVICE [--brief] [--shards]. The same comparisons as for
 * the other devices (tests/support/op_check.h), in true float32 and in bf16; --brief for a simulated GPU.
 * --shards instead: whether an image's forward bytes are the same in any shard, with `deterministic`. */
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"
#include "tests/support/op_check.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *device;
static bool brief;

static void check(const char *what, const struct op *ops, int count, int images, bool quantised) {
    struct op_check c = {.device = device,
                         .ops = ops,
                         .count = count,
                         .images = images,
                         .tolerance = 2e-5, /* Winograd's sums, as on the processor */
                         .quantised = quantised,
                         .seed = 11 + (uint64_t)count + (uint64_t)images};
    for (int first = 0; first < 2; first++) {
        c.no_input_gradient = first;
        enum status status = op_check(&c);
        if (status != STATUS_OK)
            fail_msg("%s, %d images: %s", what, images, status_text());
    }
}

static const int images_of_batch[] = {2, 5, 32, 128};

/* The first `batches` of them. */
static void batches(const char *what, const struct op *ops, int count, bool quantised, int batches) {
    for (int i = 0; i < batches; i++)
        check(what, ops, count, images_of_batch[i], quantised);
}

static void each_batch(const char *what, const struct op *ops, int count, bool quantised) {
    batches(what, ops, count, quantised, brief ? 2 : 4);
}

static void test_single_operations(void **state) {
    (void)state;
    static const int channels[] = {1, 3, 16, 47, 64};
    for (size_t i = 0; i < sizeof channels / sizeof *channels - (brief ? 2 : 0); i++) {
        struct shape in = {7, 5, channels[i]};
        struct op ops[] = {make_conv(in, brief ? 9 : 48, 5, 1),
                           make_conv(in, 9, 3, 2),
                           make_bias(in),
                           make_relu(in),
                           make_max_pool(in, 3, 2),
                           make_max_pool(in, 2, 1),
                           make_dense(in, 10),
                           make_lrn(in, 4, 1, 0.001 / 9, 0.75)};
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
            each_batch(op_kind_name(ops[o].kind), &ops[o], 1,
                       ops[o].kind == OP_MAX_POOL || ops[o].kind == OP_RELU);
    }
}

/* The two blocks of cifar10: what a plan may take at once. */
static int block(struct op *ops, struct shape in, int channels, bool norm_first) {
    ops[0] = make_conv(in, channels, 5, 1);
    ops[1] = make_bias(ops[0].out);
    ops[2] = make_relu(ops[0].out);
    ops[3] = norm_first ? make_lrn(ops[2].out, 4, 1, 0.001 / 9, 0.75) : make_max_pool(ops[2].out, 3, 2);
    ops[4] = norm_first ? make_max_pool(ops[3].out, 3, 2) : make_lrn(ops[3].out, 4, 1, 0.001 / 9, 0.75);
    return 5;
}

/* With a ReLU, ref64 draws each image again and again until none of its values lies near 0, so that many of
 * them take longer than the GPU has. */
static void blocks(struct shape in, int channels, bool norm_first) {
    struct op ops[5];
    block(ops, in, channels, norm_first);
    for (int count = 1; count <= 5; count++)
        batches(norm_first ? "conv, bias, relu, lrn, pool" : "conv, bias, relu, pool, lrn", ops, count, false,
                brief || count > 2 ? 2 : 4);
}

static void test_blocks(void **state) {
    (void)state;
    if (brief) {
        blocks((struct shape){6, 6, 3}, 8, false);
        blocks((struct shape){6, 6, 8}, 8, true);
        return;
    }
    blocks((struct shape){24, 24, 3}, 64, false);
    blocks((struct shape){12, 12, 64}, 64, true);
}

static void test_dense(void **state) {
    (void)state;
    struct op ops[3];
    ops[0] = make_dense((struct shape){6, 6, brief ? 4 : 64}, brief ? 24 : 384);
    ops[1] = make_bias(ops[0].out);
    ops[2] = make_relu(ops[0].out);
    for (int count = 1; count <= 3; count++)
        each_batch("dense, bias, relu", ops, count, false);
}

static void check_bf16(const char *what, const struct op *ops, int count) {
    struct op_check c = {.device = device,
                         .precision = "bf16",
                         .ops = ops,
                         .count = count,
                         .images = brief ? 3 : 32,
                         .tolerance = 4e-3, /* a rounding costs 1/512 at most */
                         .seed = 3};
    enum status status = op_check(&c);
    if (status != STATUS_OK)
        fail_msg("bf16, %s: %s", what, status_text());
}

/* Few enough inputs to a sum that it is exact: see op_check.h. */
static void test_bf16(void **state) {
    (void)state;
    struct op ops[5];
    int channels = brief ? 8 : 64;
    for (int count = 1;
         count <= block(ops, (struct shape){brief ? 6 : 24, brief ? 6 : 24, 3}, channels, false); count++)
        check_bf16("conv, bias, relu, pool, lrn", ops, count);
    check_bf16("conv, bias, relu, lrn, pool", ops,
               block(ops, (struct shape){brief ? 6 : 12, brief ? 6 : 12, brief ? 8 : 16}, channels, true));
    ops[0] = make_dense((struct shape){3, 3, 32}, brief ? 24 : 192);
    ops[1] = make_bias(ops[0].out);
    ops[2] = make_relu(ops[0].out);
    ops[3] = make_dense(ops[2].out, 10);
    for (int count = 1; count <= 4; count++)
        check_bf16("dense, bias, relu, dense", ops, count);
}

/* cuDNN's ReLU makes 0 of what is not a number unless it is told. */
static void test_not_a_number(void **state) {
    (void)state;
    static const char *const precisions[] = {"f32", "tf32", "bf16"};
    struct op ops[5];
    block(ops, (struct shape){8, 8, 3}, 16, false);
    for (int p = 0; p < 3; p++)
        for (int count = 1; count <= 5; count++) {
            struct op_check c = {.device = device,
                                 .precision = precisions[p],
                                 .ops = ops,
                                 .count = count,
                                 .images = 4,
                                 .seed = 5};
            enum status status = op_check_not_a_number(&c);
            if (status != STATUS_OK)
                fail_msg("%s: %s", precisions[p], status_text());
        }
}

static void shards(const char *precision) {
    struct op ops[16];
    int side = brief ? 6 : 24, count = block(ops, (struct shape){side, side, 3}, brief ? 8 : 64, false);
    count += block(ops + count, ops[count - 1].out, brief ? 8 : 64, true);
    ops[count] = make_dense(ops[count - 1].out, brief ? 20 : 384);
    ops[count + 1] = make_relu(ops[count].out);
    ops[count + 2] = make_dense(ops[count + 1].out, 10);
    struct op_check c = {.device = device,
                         .precision = precision,
                         .deterministic = true,
                         .ops = ops,
                         .count = count + 3,
                         .images = brief ? 7 : 128,
                         .seed = 4};
    enum status status = op_check_shards(&c);
    if (status != STATUS_OK)
        fail_msg("%s: %s", precision, status_text());
}

static void test_shards_f32(void **state) {
    (void)state;
    shards("f32");
}

static void test_shards_tf32(void **state) {
    (void)state;
    shards("tf32");
}

static void test_shards_bf16(void **state) {
    (void)state;
    shards("bf16");
}

int main(int argc, char **argv) {
    bool only_shards = false;
    for (int i = 2; i < argc; i++) {
        brief |= !strcmp(argv[i], "--brief");
        only_shards |= !strcmp(argv[i], "--shards");
    }
    if (argc < 2) {
        fprintf(stderr, "usage: operations DEVICE [--brief] [--shards]\n");
        return 2;
    }
    device = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_operations),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_not_a_number),
    };
    const struct CMUnitTest shard_tests[] = {
        cmocka_unit_test(test_shards_f32),
        cmocka_unit_test(test_shards_tf32),
        cmocka_unit_test(test_shards_bf16),
    };
    return only_shards ? cmocka_run_group_tests(shard_tests, NULL, NULL)
                       : cmocka_run_group_tests(tests, NULL, NULL);
}
