/* test-timeout: 300
 * Ten steps of cifar10 against values that an independent program computed: plain SGD, and momentum with
 * clipping and moving averages. Each step has its own batch, on which no pool and no ReLU hangs on the last
 * bits. */
#include "tests/support/cmocka.h"
#include "tests/support/devices.h"
#include "tests/support/golden.h"
#include "tests/support/golden_train.h"
#include "tests/support/guarded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ten_steps {
    const struct golden *golden;
    const struct model *model;
    const char *trajectory;
    struct golden_train train;
    struct golden_report report;
    double *flat;
};

static void compare(struct ten_steps *t, const char *what, int step, struct span span) {
    char prefix[48];
    snprintf(prefix, sizeof prefix, "%s/%s%d", t->trajectory, what, step);
    golden_train_read(&t->train, span, t->flat);
    golden_compare_flat(&t->report, t->golden, prefix, t->model, t->flat);
}

static void run_steps(struct ten_steps *t) {
    double losses[GOLDEN_STEPS], norms[GOLDEN_STEPS];
    double *pixels = malloc(GOLDEN_BATCH * shape_size(t->model->input) * sizeof *pixels);
    int32_t labels[GOLDEN_BATCH];
    assert_non_null(pixels);
    for (int step = 0; step < GOLDEN_STEPS; step++) {
        golden_batch(t->golden, t->trajectory, step, t->model, pixels, labels);
        golden_train_step(&t->train, pixels, labels);
        losses[step] = t->train.loss;
        norms[step] = t->train.norm;
        if (step == 0) {
            compare(t, "parameters", 1, t->train.parameters);
            if (t->train.shadow.data)
                compare(t, "shadow", 1, t->train.shadow);
        }
    }
    golden_compare(&t->report, golden_find(t->golden, "%s/losses", t->trajectory), losses, GOLDEN_STEPS);
    golden_compare(&t->report, golden_find(t->golden, "%s/norms", t->trajectory), norms, GOLDEN_STEPS);
    compare(t, "parameters", GOLDEN_STEPS, t->train.parameters);
    if (t->train.shadow.data) {
        compare(t, "shadow", GOLDEN_STEPS, t->train.shadow);
        compare(t, "velocity", GOLDEN_STEPS, t->train.velocity);
    }
    free(pixels);
}

static void trajectory(struct device_handle device, const struct model *model, const struct golden *golden,
                       const char *name, const int shards[GOLDEN_TOWERS]) {
    const double *s = golden_find(golden, "%s/settings", name)->samples;
    struct golden_settings settings = {.lr = s[0], .momentum = s[1], .clip = s[2], .ema = s[3]};
    struct ten_steps t = {.golden = golden,
                          .model = model,
                          .trajectory = name,
                          .report = golden_report(device.ops->name),
                          .flat = malloc(model->flat_count * sizeof *t.flat)};
    assert_non_null(t.flat);
    golden_parameters(model, t.flat);
    golden_train_open(&t.train, device, model, settings, shards, t.flat);
    run_steps(&t);
    char what[64];
    snprintf(what, sizeof what, "%s, %d channels, %d towers", name, model->input.c, t.train.towers);
    golden_expect(&t.report, what);
    golden_train_close(&t.train);
    free(t.flat);
}

static void channels(struct device_handle device, int count, const int plain[GOLDEN_TOWERS],
                     const int full[GOLDEN_TOWERS]) {
    struct golden *golden = golden_read(count);
    struct model *model;
    expect_ok(model_read("cifar10", (struct model_ends){24, 24, count, GOLDEN_CLASSES}, NAN, &model),
              "cifar10");
    if (golden_device_does(device, model)) {
        if (!GOLDEN_BRIEF)
            trajectory(device, model, golden, "plain", plain);
        trajectory(device, model, golden, "full", full);
    }
    model_free(model);
    golden_free(golden);
}

static void on_device(struct device_handle device) {
    if (GOLDEN_BRIEF && strcmp(device.ops->name, "ref64") == 0)
        return; /* ref is the same source */
    if (!GOLDEN_BRIEF)
        channels(device, 3, (int[GOLDEN_TOWERS]){6}, (int[GOLDEN_TOWERS]){3, 2, 1});
    channels(device, 1, (int[GOLDEN_TOWERS]){2, 2, 2}, (int[GOLDEN_TOWERS]){4, 2});
}

static void test_ten_steps(void **state) {
    (void)state;
    for_each_device(on_device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ten_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
