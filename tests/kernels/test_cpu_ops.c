/* Every operation of the CPU device against ref64: each implementation forced in turn, one thread and more,
 * each instruction set that this processor has; and the promise that an image's bytes don't depend on its
 * shard. */
#include "kernels/cpu/impl.h"
#include "kernels/registry.h"
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"
#include "tests/support/op_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* oneDNN can be limited to an instruction set once a process, so that each has a process of its own: this
 * one's. */
static enum cpu_isa tested;

/* The sanitizers make the reference tens of times slower and see the same code for each instruction set. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { BRIEF = true };
#else
enum { BRIEF = false };
#endif

/* Calls test(name) for each implementation. */
static void for_each_implementation(void (*test)(const char *force)) {
    const char *last = "";
    for (const struct cpu_implementation *const *list = cpu_implementations(tested); *list; list++) {
        if (strcmp(last, (*list)->name) != 0)
            test((*list)->name);
        last = (*list)->name;
    }
}

/* Does forcing the implementation change who computes the first operation? */
static bool takes(const char *force, const struct op *ops, int count) {
    struct device_handle device;
    assert_int_equal(device_open("cpu", 1, isa_name(tested), &device), STATUS_OK);
    struct plan_request request = {.ops = ops, .count = count, .images = 2, .force = force};
    struct plan *plan;
    assert_int_equal(device.ops->plan(device.device, &request, &plan), STATUS_OK);
    const char *name = device.ops->plan_info(plan)->implementation;
    bool same = strncmp(name, force, strlen(force)) == 0;
    device.ops->plan_free(plan);
    device_close(&device);
    return same;
}

static struct op_check check_of(const char *force, const struct op *ops, int count, int images) {
    return (struct op_check){.device = "cpu",
                             .isa = isa_name(tested),
                             .force = force,
                             .threads = 1,
                             .ops = ops,
                             .count = count,
                             .images = images,
                             .tolerance = 1e-5,
                             .seed = 7 + (uint64_t)count};
}

static void run(const char *force, const struct op *ops, int count, int images) {
    struct op_check check = check_of(force, ops, count, images);
    if (!takes(force, ops, count))
        return;
    check.threads = 3; /* prepare() shares its work out among them */
    assert_int_equal(op_check(&check), STATUS_OK);
    check.no_input_gradient = true;
    check.threads = 1;
    if (images % 2)
        assert_int_equal(op_check(&check), STATUS_OK);
}

static void single_operations(const char *force) {
    static const int channels[] = {1, 3, 16, 47, 64};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        struct shape in = {7, 5, channels[i]};
        struct op ops[] = {make_conv(in, 64 - channels[i] + 1, 5, 1),
                           make_conv(in, 9, 3, 2),
                           make_conv(in, 32, 3, 1),
                           make_conv(in, 16, 1, 1),
                           make_bias(in),
                           make_relu(in),
                           make_max_pool(in, 3, 2),
                           make_max_pool(in, 2, 2),
                           make_lrn(in, 4, 1, 0.1, 0.75),
                           make_lrn(in, 2, 2, 0.01, 0.5),
                           make_dense(in, 11)};
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            run(force, &ops[k], 1, 5);
    }
}

static void test_single_operations(void **state) {
    (void)state;
    for_each_implementation(single_operations);
}

static int weighted(struct op *ops, struct op first, bool bias, bool relu) {
    int n = 0;
    ops[n++] = first;
    if (bias)
        ops[n++] = make_bias(first.out);
    if (relu)
        ops[n++] = make_relu(first.out);
    return n;
}

static void with_bias_and_relu(const char *force) {
    struct op ops[3];
    for (int i = 1; i < 4; i++) {
        run(force, ops, weighted(ops, make_conv((struct shape){12, 12, 16}, 16, 5, 1), i & 1, i & 2), 6);
        run(force, ops, weighted(ops, make_dense((struct shape){3, 3, 16}, 24), i & 1, i & 2), 6);
    }
}

static void test_with_bias_and_relu(void **state) {
    (void)state;
    for_each_implementation(with_bias_and_relu);
}

/* The blocks of cifar10: they differ in the order of pool and norm. */
static int block(struct op *ops, struct shape in, int channels, bool pool_first) {
    int n = weighted(ops, make_conv(in, channels, 5, 1), true, true);
    struct op pool = make_max_pool(ops[n - 1].out, 3, 2);
    struct op norm = make_lrn(pool_first ? pool.out : pool.in, 4, 1, 0.001 / 9, 0.75);
    ops[n++] = pool_first ? pool : norm;
    ops[n++] = pool_first ? norm : pool;
    return n;
}

static void blocks(const char *force) {
    struct op ops[8];
    run(force, ops, block(ops, (struct shape){24, 24, 3}, 64, true), 3);
    run(force, ops, block(ops, (struct shape){12, 12, 64}, 64, false), 3);
}

static void test_blocks(void **state) {
    (void)state;
    for_each_implementation(blocks);
}

static void ties(const char *force) {
    struct shape in = {9, 6, 16};
    struct op ops[] = {make_relu(in), make_max_pool(in, 3, 2)};
    struct op_check check = check_of(force, ops, 2, 4);
    check.quantised = true;
    assert_int_equal(op_check(&check), STATUS_OK);
}

static void test_ties_go_to_the_first(void **state) {
    (void)state;
    for_each_implementation(ties);
}

/* The blocks of cifar10 in small images, and its dense layers as they are. */
static void shards(const char *force) {
    struct op ops[16];
    int count = block(ops, (struct shape){8, 8, 3}, 16, true);
    count += block(ops + count, ops[count - 1].out, 16, false);
    struct op_check check = check_of(force, ops, count, BRIEF ? 9 : 37);
    for (int threads = BRIEF ? 4 : 1; threads <= 4; threads += 3) {
        check.threads = threads;
        assert_int_equal(op_check_shards(&check), STATUS_OK);
    }
}

static void dense_shards(const char *force) {
    /* The matrix products of oneDNN sum in another order for few rows where it has no AVX-512. */
    if (tested != ISA_AVX512 && strcmp(force, "onednn") == 0)
        return;
    struct op ops[4];
    int count = weighted(ops, make_dense((struct shape){6, 6, 64}, 70), true, true);
    if (!takes(force, ops, count))
        return;
    count += weighted(ops + count, make_dense(ops[count - 1].out, 10), false, false);
    struct op_check check = check_of(force, ops, count, BRIEF ? 9 : 37);
    check.threads = 2;
    assert_int_equal(op_check_shards(&check), STATUS_OK);
}

static void test_shards(void **state) {
    (void)state;
    for_each_implementation(shards);
    for_each_implementation(dense_shards);
}

static void test_unknown_implementation(void **state) {
    (void)state;
    struct op op = make_relu((struct shape){2, 2, 2});
    struct op_check check = check_of("nobody", &op, 1, 2);
    assert_int_equal(op_check(&check), STATUS_UNSUPPORTED);
    assert_non_null(strstr(status_text(), "nobody"));
    assert_non_null(strstr(status_text(), "onednn"));
}

static void test_isa(void **state) {
    (void)state;
    struct device_handle device;
    assert_int_equal(device_open("cpu", 1, "sse9", &device), STATUS_BAD_INPUT);
    assert_non_null(strstr(status_text(), "plain"));
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        enum status status = device_open("cpu", 1, isa_name((enum cpu_isa)isa), &device);
        if (!isa_available((enum cpu_isa)isa)) {
            assert_int_equal(status, STATUS_UNSUPPORTED);
            continue;
        }
        assert_int_equal(status, STATUS_OK);
        struct device_info info;
        assert_int_equal(device.ops->describe(device.device, &info), STATUS_OK);
        assert_string_equal(info.isa, isa_name((enum cpu_isa)isa));
        assert_true(info.memory_bytes > 0);
        device_close(&device);
    }
}

static int all_tests(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_operations),
        cmocka_unit_test(test_with_bias_and_relu),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_ties_go_to_the_first),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_unknown_implementation),
        cmocka_unit_test(test_isa),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    int failed = 0;
    for (int i = 0; i < ISA_COUNT; i++) {
        if (!isa_available((enum cpu_isa)i))
            continue;
        tested = (enum cpu_isa)i;
        printf("instruction set %s\n", isa_name(tested));
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            exit(all_tests());
        int status = 1;
        waitpid(child, &status, 0);
        failed |= status != 0;
        if (BRIEF)
            break;
    }
    return failed;
}
