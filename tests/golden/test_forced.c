/* test-timeout: 300
 * cifar10's first step on the CPU with each implementation forced in turn, on each instruction set that the
 * processor has, against the golden values. */
#include "kernels/registry.h"
#include "tests/support/chain.h"
#include "tests/support/cmocka.h"
#include "tests/support/golden.h"
#include "tests/support/golden_train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const implementations[] = {
    "conv-pool-lrn", "winograd-4x4-5x5", "winograd-4x4-3x3", "lrn-pool", "lrn", "max-pool", "dense", "onednn",
    "vector"};

static void compare(struct device_handle device, const struct golden *golden, const struct model *model,
                    const char *what, const char *force) {
    const int shards[GOLDEN_TOWERS] = {3, 2, 1};
    double *parameters = malloc(model->flat_count * sizeof *parameters);
    double *pixels = malloc(GOLDEN_BATCH * shape_size(model->input) * sizeof *pixels);
    double *flat = malloc(model->flat_count * sizeof *flat), terms[3 * GOLDEN_TOWERS];
    int32_t labels[GOLDEN_BATCH];
    assert_true(parameters && pixels && flat);
    golden_parameters(model, parameters);
    golden_batch(golden, "plain", 0, model, pixels, labels);
    struct golden_train train;
    struct golden_report report = golden_report(device.ops->name);
    golden_train_open(&train, device, model, (struct golden_settings){.lr = 0.1, .force = force}, shards,
                      parameters);
    golden_train_step(&train, pixels, labels);
    for (int i = 0; i < train.collection.count; i++)
        terms[i] = train.collection.terms[i].value;
    golden_compare(&report, golden_find(golden, "split/3-2-1/terms"), terms, (size_t)train.collection.count);
    golden_compare(&report, golden_find(golden, "split/3-2-1/norms"), train.norms, (size_t)train.towers);
    golden_train_read(&train, train.average, flat);
    golden_compare_flat(&report, golden, "average", model, flat);
    golden_train_read(&train, train.parameters, flat);
    golden_compare_flat(&report, golden, "plain/parameters1", model, flat);
    golden_expect(&report, what);
    golden_train_close(&train);
    free(parameters);
    free(pixels);
    free(flat);
}

static void test_each_implementation(void **state) {
    (void)state;
    static const char *const isas[] = {"avx512", "avx2", "plain"};
    const int channels = GOLDEN_BRIEF ? 1 : 3;
    struct golden *golden = golden_read(channels);
    struct model *model;
    expect_ok(model_read("cifar10", (struct model_ends){24, 24, channels, GOLDEN_CLASSES}, NAN, &model),
              "cifar10");
    int tried = 0;
    for (int i = 0; i < 3 && !(GOLDEN_BRIEF && tried); i++) {
        struct device_handle device;
        if (device_open("cpu", 2, isas[i], &device) != STATUS_OK)
            continue; /* the processor lacks it */
        for (size_t f = 0; f < sizeof implementations / sizeof *implementations; f++) {
            char what[64];
            snprintf(what, sizeof what, "%s on %s", implementations[f], isas[i]);
            compare(device, golden, model, what, implementations[f]);
            tried++;
        }
        device_close(&device);
    }
    assert_true(tried >= 9); /* plain is everywhere */
    model_free(model);
    golden_free(golden);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_implementation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
