/* The golden values notice when the network is not the tutorial's: each number of the model changed alone
 * makes the comparison fail, on every device and at its own tolerance; unchanged it passes in the same way.
 */
#include "tests/support/cmocka.h"
#include "tests/support/devices.h"
#include "tests/support/golden.h"
#include "tests/support/golden_train.h"
#include "tests/support/guarded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct alteration {
    const char *what;
    const char *section, *find,
        *put; /* in the section's text, the first time; put NULL: no change of the text */
    void (*alter)(struct model *model); /* of the model as read */
};

/* The pools pad nothing before and one after; the other way round is what another library would do. */
static void pad_before(struct model *model) {
    for (int i = 0; i < model->op_count; i++) {
        struct op_window *w = &model->ops[i].window;
        if (model->ops[i].kind == OP_MAX_POOL) {
            assert_int_equal(w->pad_top, 0);
            assert_int_equal(w->pad_bottom, 1);
            w->pad_top = w->pad_left = 1;
            w->pad_bottom = w->pad_right = 0;
        }
    }
}

static const char norm2_then_pool2[] = "[norm2]\ntype = lrn\nradius = 4\nbias = 1\nalpha = 0.001/9\nbeta = "
                                       "0.75\n\n[pool2]\ntype = pool\nkernel = 3\n"
                                       "stride = 2\n";
static const char pool2_then_norm2[] = "[pool2]\ntype = pool\nkernel = 3\nstride = 2\n\n[norm2]\ntype = "
                                       "lrn\nradius = 4\nbias = 1\nalpha = 0.001/9\n"
                                       "beta = 0.75\n";
static const char pool1_then_norm1[] = "[pool1]\ntype = pool\nkernel = 3\nstride = 2\n\n# The original "
                                       "writes alpha as 0.001 / 9; it is used as it is, "
                                       "not divided by the window again.\n[norm1]\ntype = lrn\nradius = "
                                       "4\nbias = 1\nalpha = 0.001/9\nbeta = 0.75\n";
static const char norm1_then_pool1[] = "[norm1]\ntype = lrn\nradius = 4\nbias = 1\nalpha = 0.001/9\nbeta = "
                                       "0.75\n\n[pool1]\ntype = pool\nkernel = 3\n"
                                       "stride = 2\n";

static const struct alteration alterations[] = {
    {"alpha of norm1 divided by the window", "[norm1]", "0.001/9", "0.001/81", NULL},
    {"alpha of norm2 divided by the window", "[norm2]", "0.001/9", "0.001/81", NULL},
    {"beta of norm1", "[norm1]", "0.75", "0.5", NULL},
    {"radius of norm2", "[norm2]", "radius = 4", "radius = 3", NULL},
    {"pool2 before norm2", "[norm2]", norm2_then_pool2, pool2_then_norm2, NULL},
    {"norm1 before pool1", "[pool1]", pool1_then_norm1, norm1_then_pool1, NULL},
    {"pools padded before", "", NULL, NULL, pad_before},
    {"weight decay of local3", "[local3]", "0.004", "0.0041", NULL},
    {"weight decay of local4", "[local4]", "0.004", "0.0041", NULL},
    {"local4 without ReLU", "[local4]", "relu = yes", "relu = no", NULL},
};

static char *altered_text(const char *text, const struct alteration *a) {
    char *out = NULL;
    const char *section = strstr(text, a->section);
    const char *at = section ? strstr(section, a->find) : NULL;
    if (!at)
        fail_msg("%s: \"%s\" is not in the model file", a->what, a->find);
    if (asprintf(&out, "%.*s%s%s", (int)(at - text), text, a->put, at + strlen(a->find)) < 0)
        fail_msg("no memory");
    return out;
}

static struct model *altered_model(const struct alteration *a) {
    struct model_ends ends = {24, 24, 3, GOLDEN_CLASSES};
    struct model *model;
    expect_ok(model_read("cifar10", ends, NAN, &model), "cifar10");
    if (a && a->put) {
        char *text = altered_text(model->source, a);
        model_free(model);
        expect_ok(model_parse("altered.ini", text, ends, NAN, &model), a->what);
        free(text);
    }
    if (a && a->alter)
        a->alter(model);
    return model;
}

/* The first step's losses, average and parameters; a model with its layers in another order still has the
 * same parameters. */
static struct golden_report compare(struct device_handle device, const struct golden *golden,
                                    const struct model *model) {
    struct golden_train train;
    struct golden_report report = golden_report(device.ops->name);
    double *flat = malloc(model->flat_count * sizeof *flat);
    double *pixels = malloc(GOLDEN_BATCH * shape_size(model->input) * sizeof *pixels);
    int32_t labels[GOLDEN_BATCH];
    assert_non_null(flat);
    assert_non_null(pixels);
    golden_parameters(model, flat);
    golden_batch(golden, "plain", 0, model, pixels, labels);
    golden_train_open(&train, device, model, (struct golden_settings){.lr = 0.1}, (int[GOLDEN_TOWERS]){6},
                      flat);
    golden_train_step(&train, pixels, labels);
    golden_compare(&report, golden_find(golden, "split/6/loss"), &train.loss, 1);
    golden_train_read(&train, train.average, flat);
    golden_compare_flat(&report, golden, "average", model, flat);
    golden_train_read(&train, train.parameters, flat);
    golden_compare_flat(&report, golden, "plain/parameters1", model, flat);
    golden_train_close(&train);
    free(flat);
    free(pixels);
    return report;
}

static void on_device(struct device_handle device) {
    enum { COUNT = sizeof alterations / sizeof *alterations };
    if (strcmp(device.ops->name, "ref64") == 0)
        return; /* what is noticed within 1e-5 is within 1e-9 */
    struct golden *golden = golden_read(3);
    struct model *model = altered_model(NULL);
    bool does = golden_device_does(device, model);
    if (does) {
        struct golden_report report = compare(device, golden, model);
        golden_expect(&report, "unchanged");
    }
    model_free(model);
    for (size_t i = 0; does && i < (GOLDEN_BRIEF ? 2 : COUNT); i++) {
        model = altered_model(&alterations[i]);
        if (golden_device_does(device, model)) {
            struct golden_report report = compare(device, golden, model);
            printf("  %s: %d of %d comparisons notice\n", alterations[i].what, report.failed,
                   report.compared);
            if (report.failed == 0)
                fail_msg("%s was not noticed: the worst is %.2g of its tolerance", alterations[i].what,
                         report.worst);
        }
        model_free(model);
    }
    golden_free(golden);
}

static void test_alterations(void **state) {
    (void)state;
    for_each_device(on_device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alterations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
