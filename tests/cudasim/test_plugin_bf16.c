/* The plugin with --precision bf16, over simulated GPUs: activations are bfloat16 from layer to layer, while
 * parameters, their gradients and all sums stay floats. Against ref64, and trained against the CPU.
 * test-timeout: 300; test-skip-under: thread (threads of kernels are contexts that it does not follow) */
#include "engine/model/net.h"
#include "kernels/registry.h"
#include "tests/cudasim/sim.h"
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"
#include "tests/support/op_check.h"
#include "tests/support/train_run.h"

#include <math.h>
#include <stdio.h>

/* A value of bfloat16 has eight bits: rounding one costs at most 1/512 of it, and on the average of many a
 * third of that. A gradient is rounded up to three times on its way through a block. */
static const double tolerance = 4e-3;

static void check(const struct op *ops, int count, int images) {
    struct op_check c = {.device = "sim:0",
                         .precision = "bf16",
                         .ops = ops,
                         .count = count,
                         .images = images,
                         .tolerance = tolerance,
                         .seed = 5 + (uint64_t)count};
    for (int first = 0; first < 2; first++) {
        c.no_input_gradient = first;
        assert_int_equal(op_check(&c), STATUS_OK);
    }
}

static void single_operations(void **state) {
    (void)state;
    sim_set(sim_healthy(1, 1));
    struct shape in = {7, 5, 12};
    struct op ops[] = {make_conv(in, 9, 3, 2),  make_bias(in),      make_relu(in),
                       make_max_pool(in, 3, 2), make_dense(in, 10), make_lrn(in, 4, 1, 0.1, 0.75)};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        check(&ops[i], 1, 3);
}

/* A convolution with its bias and ReLU, alone and with what a block of cifar10 has behind them; a dense layer
 * in the middle (bfloat16 out) and at the end (floats out). */
static void groups(void **state) {
    (void)state;
    sim_set(sim_healthy(1, 2));
    struct shape in = {8, 8, 6};
    struct op ops[5] = {make_conv(in, 8, 5, 1)};
    ops[1] = make_bias(ops[0].out);
    ops[2] = make_relu(ops[0].out);
    check(ops, 2, 2);
    check(ops, 3, 2);
    ops[3] = make_max_pool(ops[2].out, 3, 2);
    check(ops, 4, 3);
    ops[4] = make_lrn(ops[3].out, 4, 1, 0.1, 0.75);
    check(ops, 5, 3);
    ops[3] = make_lrn(ops[2].out, 4, 1, 0.1, 0.75);
    ops[4] = make_max_pool(ops[3].out, 3, 2);
    check(ops, 5, 3);
    struct op dense[4] = {make_dense(in, 12)};
    dense[1] = make_bias(dense[0].out);
    dense[2] = make_relu(dense[0].out);
    dense[3] = make_dense(dense[2].out, 5);
    check(dense, 2, 4);
    check(dense, 3, 4);
    check(dense, 4, 4);
}

/* With --deterministic an image's bytes are the same in every shard. (What cuDNN does on a GPU is seen there:
 * tests/gpu/operations.c.) */
static void shards(void **state) {
    (void)state;
    sim_set(sim_healthy(1, 3));
    struct shape in = {6, 6, 3};
    struct op ops[8] = {make_conv(in, 8, 3, 1)};
    ops[1] = make_bias(ops[0].out);
    ops[2] = make_relu(ops[0].out);
    ops[3] = make_max_pool(ops[2].out, 3, 2);
    ops[4] = make_lrn(ops[3].out, 4, 1, 0.1, 0.75);
    ops[5] = make_dense(ops[4].out, 70);
    ops[6] = make_relu(ops[5].out);
    ops[7] = make_dense(ops[6].out, 10);
    static const char *const precisions[] = {"f32", "bf16"};
    for (int p = 0; p < 2; p++) {
        struct op_check c = {.device = "sim:0",
                             .precision = precisions[p],
                             .deterministic = true,
                             .ops = ops,
                             .count = 8,
                             .images = 17,
                             .tolerance = p ? tolerance : 2e-6,
                             .seed = 8};
        assert_int_equal(op_check_shards(&c), STATUS_OK);
        c.ops = &ops[5];
        c.count = 3;
        assert_int_equal(op_check(&c), STATUS_OK);
    }
}

/* Bytes of a tower's activations are half as many, and the logits are floats. */
static void memory_halves(void **state) {
    (void)state;
    const struct model_ends ends = {10, 10, 3, 5};
    struct model *model;
    size_t arena[2], logits[2];
    sim_set(sim_healthy(1, 1));
    if (model_parse("test.ini", conv_text, ends, NAN, &model) != STATUS_OK)
        fail_msg("%s", status_text());
    for (int i = 0; i < 2; i++) {
        struct device_options options = {.count = 1, .precision = i ? "bf16" : "f32"};
        struct device_handle device;
        struct device_info info;
        struct net *net;
        assert_int_equal(device_open_with("sim:0", &options, &device), STATUS_OK);
        assert_int_equal(device.ops->describe(device.device, &info), STATUS_OK);
        assert_int_equal(info.activation_bytes, i ? 2 : 4);
        assert_int_equal(info.element_bytes, 4);
        assert_string_equal(info.precision, i ? "bf16" : "f32");
        assert_int_equal(net_plan(model, device, &(struct net_options){.images = 64, .training = true}, &net),
                         STATUS_OK);
        arena[i] = net_sizes(net).arena_bytes;
        struct net_memory memory = {.arena = {.data = &net, .bytes = arena[i]}};
        logits[i] = net_logits(net, &memory).bytes;
        net_free(net);
        device_close(&device);
    }
    model_free(model);
    assert_int_equal(logits[0], 64 * 5 * 4);
    assert_int_equal(logits[1], logits[0]);
    if (!((double)arena[1] < 0.7 * (double)arena[0])) /* places of the pools are bytes in both */
        fail_msg("a tower's arena has %zu bytes, with floats %zu", arena[1], arena[0]);
}

static double train(const char *device, const char *const *words, int steps, double *losses) {
    struct train_run *run = train_run_open(device, conv_text, 96, 20, words);
    train_run_steps(run, steps);
    assert_int_equal(run->steps, steps);
    for (int i = 0; i < steps; i++)
        losses[i] = run->kept[i].step.loss;
    double norm = run->kept[steps - 1].step.grad_norm;
    train_run_close(run);
    return norm;
}

static void training_follows_the_cpu(void **state) {
    (void)state;
    enum { STEPS = SIM_THOROUGH ? 5 : 2, RUNS = SIM_THOROUGH ? 3 : 1 };
    const char *const f32[] = {"towers=3", "batch=16", "lr=0.02", NULL},
                      *const words[][8] = {
                          {"towers=3", "batch=16", "lr=0.02", "precision=bf16", NULL},
                          {"towers=3", "batch=16", "lr=0.02", "precision=bf16", "no-graphs=yes", NULL},
                          {"towers=3", "batch=16", "lr=0.02", "precision=bf16", "deterministic=yes", NULL},
                      };
    double cpu[STEPS], sim[3][STEPS], largest = 0, norms[3];
    double norm = train("cpu", f32, STEPS, cpu);
    for (int w = 0; w < RUNS; w++) {
        sim_set(sim_healthy(2, 3));
        norms[w] = train(sim_names(2), words[w], STEPS, sim[w]);
        assert_true(sim_clean());
        for (int i = 0; i < STEPS; i++)
            largest = fmax(largest, isnan(sim[w][i]) ? INFINITY : fabs(cpu[i] - sim[w][i]));
        if (!(fabs(norms[w] - norm) <= 0.02 * norm))
            fail_msg("run %d: the gradient's norm is %g, the CPU's %g", w, norms[w], norm);
    }
    printf("cuda-sim, bf16: %d steps, losses within %.1e of the CPU's\n", STEPS, largest);
    assert_true(largest <= 1e-2);
    assert_true(largest > 0); /* something was rounded */
    for (int w = 1; w < RUNS;
         w++) /* graphs, launches one by one, and (by simulated libraries) deterministic */
        assert_true(fabs(sim[w][STEPS - 1] - sim[0][STEPS - 1]) <= (w == 1 ? 0 : 1e-3));
}

int main(void) {
    if (!sim_begin()) {
        printf("this build has no simulated GPU: it takes a C++ compiler and the headers of CUDA and NCCL\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_operations),
        cmocka_unit_test(groups),
        cmocka_unit_test(shards),
        cmocka_unit_test(memory_halves),
        cmocka_unit_test(training_follows_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
