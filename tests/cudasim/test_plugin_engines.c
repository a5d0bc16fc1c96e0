/* Which of cuDNN's engines the plugin takes, and how it calls them: the real calls on a simulated cuDNN, some
 * of whose engines must not be taken, and compute something wrong. Nothing here says what a GPU would do.
 * test-timeout: 300; test-skip-under: thread (threads of kernels are contexts that it does not follow) */
#include "kernels/registry.h"
#include "tests/cudasim/sim.h"
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"
#include "tests/support/op_check.h"

#include <stdio.h>

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
        cmocka_unit_test(relu_keeps_what_is_not_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
