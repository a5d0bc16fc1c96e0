/* Which of cuDNN's engines the plugin takes, and how it calls them: the real calls on a simulated cuDNN, some
 * of whose engines must not be taken, and compute something wrong. Nothing here says what a GPU would do.
 * test-timeout: 300; test-skip-under: thread (threads of kernels are contexts that it does not follow) */
#include "kernels/registry.h"
#include "tests/cudasim/sim.h"
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"
#include "tests/support/op_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(const char *precision, bool deterministic, const struct op *ops, int count, int images) {
    struct op_check c = {.device = "sim:0",
                         .precision = precision,
                         .deterministic = deterministic,
                         .ops = ops,
                         .count = count,
                         .images = images,
                         .tolerance = precision[0] == 't' ? 2e-3 : 2e-6, /* TF32: ten bits of each factor */
                         .seed = 6 + (uint64_t)count};
    for (int first = 0; first < 2; first++) {
        c.no_input_gradient = first;
        if (op_check(&c) != STATUS_OK)
            fail_msg("%s: %s", precision, status_text());
    }
    assert_true(sim_clean());
}

/* Windows that the heuristics know, of which only the fallback does, and with bias and ReLU that no engine
 * takes along; each alone, with those, and with a pool behind. */
static void convolutions(const char *precision, bool deterministic) {
    static const int windows[][2] = {{1, 1}, {3, 1}, {3, 2}, {5, 1}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i += SIM_THOROUGH ? 1 : 3) {
        struct shape in = {7, 6, (int)i + 3};
        struct op ops[4] = {make_conv(in, 8, windows[i][0], windows[i][1])};
        ops[1] = make_bias(ops[0].out);
        ops[2] = make_relu(ops[0].out);
        ops[3] = make_max_pool(ops[2].out, 3, 2);
        for (int count = 1; count <= 4; count++)
            check(precision, deterministic, ops, count, 3);
    }
}

static void engines_are_right(void **state) {
    (void)state;
    sim_set(sim_healthy(1, 1));
    convolutions("f32", false);
    convolutions("tf32", false);
    assert_true(sim_odd_engines() > 0); /* it was tried, as one of many */
}

/* With `deterministic` none is run that may give other bytes each time, not even to be measured. */
static void engines_are_deterministic(void **state) {
    (void)state;
    sim_set(sim_healthy(1, 2));
    long before = sim_odd_engines();
    convolutions("f32", true);
    convolutions("tf32", true);
    assert_int_equal(sim_odd_engines(), before);
}

/* ---- what was measured is kept */

/* How many pieces of work it took to plan a convolution, to compute it and to compare it. */
static long pieces_with(const char *kept, bool deterministic) {
    struct op op = make_conv((struct shape){5, 6, 3}, 8, 5, 1);
    struct op_check c = {.device = "sim:0",
                         .kept = kept,
                         .deterministic = deterministic,
                         .ops = &op,
                         .count = 1,
                         .images = 2,
                         .tolerance = 2e-6,
                         .seed = 12};
    sim_set(sim_healthy(1, 4));
    if (op_check(&c) != STATUS_OK)
        fail_msg("%s", status_text());
    assert_true(sim_clean());
    return sim_pieces();
}

/* The file's size; every `step`-th byte is replaced, unless that is 0. */
static long damage(const char *path, int step) {
    char text[8192];
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    long length = (long)fread(text, 1, sizeof text, file);
    for (long i = step; step && i < length; i += step)
        text[i] ^= 5;
    rewind(file);
    assert_int_equal(fwrite(text, 1, (size_t)length, file), length);
    assert_int_equal(fclose(file), 0);
    return length;
}

static void choices_are_kept(void **state) {
    (void)state;
    const char *folder = getenv("TEST_TMP");
    char path[4096], deep[4200];
    snprintf(path, sizeof path, "%s/engines-%ld/kept", folder ? folder : "/tmp", (long)getpid());
    snprintf(deep, sizeof deep, "%s-no/such/folder", path);
    long measured = pieces_with(NULL, false);
    assert_int_equal(pieces_with(path, false), measured);
    long size = damage(path, 0), taken = pieces_with(path, false);
    assert_true(taken < measured); /* nothing was tried */
    assert_int_equal(damage(path, 0), size);
    (void)pieces_with(path, true); /* deterministic ones are not measured */
    assert_int_equal(damage(path, 0), size);

    damage(path, 61); /* every line */
    assert_int_equal(pieces_with(path, false), measured);
    assert_true(damage(path, 0) > size);
    assert_int_equal(pieces_with(path, false), taken);
    assert_int_equal(truncate(path, 30), 0);
    assert_int_equal(pieces_with(path, false), measured); /* behind what is left of a line */
    assert_int_equal(pieces_with(path, false), taken);

    assert_int_equal(pieces_with("/dev/null", false), measured);
    assert_int_equal(pieces_with(deep, false), measured);
    unlink(path);
    *strrchr(path, '/') = 0;
    assert_int_equal(pieces_with(path, false), measured); /* a folder */
    rmdir(path);
}

/* The simulated ReLU makes 0 of what is not a number, as cuDNN's does, unless it is told. */
static void relu_keeps_what_is_not_a_number(void **state) {
    (void)state;
    struct op ops[3] = {make_conv((struct shape){5, 5, 3}, 8, 5, 1)};
    ops[1] = make_bias(ops[0].out);
    ops[2] = make_relu(ops[0].out);
    sim_set(sim_healthy(1, 3));
    struct op_check c = {.device = "sim:0", .ops = ops, .count = 3, .images = 2, .seed = 9};
    if (op_check_not_a_number(&c) != STATUS_OK)
        fail_msg("%s", status_text());
    assert_true(sim_clean());
}

int main(void) {
    if (!sim_begin()) {
        printf("this build has no simulated GPU: it takes a C++ compiler and the headers of CUDA and NCCL\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engines_are_right),
        cmocka_unit_test(engines_are_deterministic),
        cmocka_unit_test(choices_are_kept),
        cmocka_unit_test(relu_keeps_what_is_not_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
