/* test-timeout: 300
 * cifar10's first step against values that an independent program computed: every layer's output, every term
 * of the towers' losses, every gradient, the parameters afterwards; images of three channels and of one, one
 * to three towers with even and uneven shards, on every device. */
#include "tests/support/chain.h"
#include "tests/support/cmocka.h"
#include "tests/support/devices.h"
#include "tests/support/golden.h"
#include "tests/support/golden_train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct golden_settings plain = {.lr = 0.1};

struct first_step {
    struct device_handle device;
    struct golden *golden;
    struct model *model;
    double *parameters, *pixels;
    int32_t labels[GOLDEN_BATCH];
};

static double *doubles(size_t count) {
    double *values = malloc(count * sizeof *values);
    assert_non_null(values);
    return values;
}

static float *floats_of(const double *from, size_t count) {
    float *values = malloc(count * sizeof *values + 1);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)from[i];
        assert_true((double)values[i] == from[i]); /* the golden inputs are floats */
    }
    return values;
}

/* ---- the layers, each operation's output in a buffer of its own */

static void set_chain(struct chain *chain, const struct first_step *f) {
    size_t size = GOLDEN_BATCH * shape_size(f->model->input);
    float *pixels = floats_of(f->pixels, size);
    guarded_write(f->device, &chain->value[0], pixels, size);
    free(pixels);
    for (int t = 0; t < f->model->parameter_count; t++) {
        const struct model_parameter *p = &f->model->parameters[t];
        float *values = floats_of(f->parameters + p->offset, p->count);
        guarded_write(f->device, &chain->parameter[p->op], values, p->count);
        free(values);
    }
}

static void compare_layers(const struct first_step *f, struct golden_report *report) {
    struct chain chain;
    expect_ok(
        chain_open(&chain, f->device, f->model->ops, f->model->op_count, GOLDEN_BATCH, true, false, NULL),
        "planning cifar10");
    set_chain(&chain, f);
    chain_run(&chain, chain_prepare, "prepare");
    chain_run(&chain, chain_forward, "forward");
    int seen = 0;
    for (int l = 0; l < f->model->layer_count; l++) {
        const struct model_layer *layer = &f->model->layers[l];
        for (int g = 0; g < chain.groups; g++) {
            if (chain.group[g].first + chain.group[g].taken != layer->first_op + layer->op_count)
                continue; /* another layer's, or fused with the next */
            size_t count = GOLDEN_BATCH * shape_size(chain_shape(&chain, g + 1));
            double *values = doubles(count);
            size_t element = device_element_bytes(f->device);
            for (size_t i = 0; i < count; i++)
                values[i] = element == sizeof(double) ? ((double *)chain.value[g + 1].span.data)[i]
                                                      : (double)((float *)chain.value[g + 1].span.data)[i];
            golden_compare(report, golden_find(f->golden, "layer/%s", layer->name), values, count);
            free(values);
            seen++;
        }
    }
    assert_true(seen >= 4 && (seen == 9 || strncmp(f->device.ops->name, "ref", 3) != 0));
    chain_close(&chain);
}

/* ---- towers */

static void compare_split(const struct first_step *f, const int shards[GOLDEN_TOWERS], const char *name,
                          struct golden_report *report) {
    struct golden_train train;
    double *flat = doubles(f->model->flat_count), terms[3 * GOLDEN_TOWERS];
    golden_train_open(&train, f->device, f->model, plain, shards, f->parameters);
    golden_train_step(&train, f->pixels, f->labels);
    assert_int_equal(train.collection.per_tower, 3);
    for (int i = 0; i < train.collection.count; i++)
        terms[i] = train.collection.terms[i].value;
    const struct golden *golden = f->golden;
    golden_compare(report, golden_find(golden, "split/%s/terms", name), terms,
                   (size_t)train.collection.count);
    golden_compare(report, golden_find(golden, "split/%s/loss", name), &train.loss, 1);
    golden_compare(report, golden_find(golden, "split/%s/norms", name), train.norms, (size_t)train.towers);
    golden_compare(report, golden_find(golden, "split/%s/norm", name), &train.norm, 1);
    golden_train_read(&train, train.average, flat);
    golden_compare_flat(report, golden, "average", f->model, flat);
    golden_train_read(&train, train.parameters, flat);
    golden_compare_flat(report, golden, "plain/parameters1", f->model, flat);
    for (int k = 0; k < train.towers && strcmp(name, "3-2-1") == 0; k++) {
        char prefix[48];
        snprintf(prefix, sizeof prefix, "split/%s/gradient%d", name, k);
        golden_train_read(&train, train.run[k].memory.gradient, flat);
        for (int t = 0; t < f->model->parameter_count; t++) { /* of the tower's total: with the decay's */
            const struct model_parameter *p = &f->model->parameters[t];
            for (size_t i = p->offset; i < p->offset + p->count; i++)
                flat[i] += p->weight_decay * f->parameters[i];
        }
        golden_compare_flat(report, golden, prefix, f->model, flat);
    }
    golden_train_close(&train);
    free(flat);
}

static void test_names_of_terms(const struct first_step *f) {
    static const char *const expected[6] = {"tower_0/local3/weight_loss", "tower_0/local4/weight_loss",
                                            "tower_0/cross_entropy",      "tower_1/local3/weight_loss",
                                            "tower_1/local4/weight_loss", "tower_1/cross_entropy"};
    struct collection collection;
    expect_ok(collection_new(f->model, 2, &collection), "a collection");
    assert_int_equal(collection.count, 6);
    for (int i = 0; i < 6; i++)
        assert_string_equal(collection.terms[i].name, expected[i]);
    collection_free(&collection);
}

static void compare_channels(struct device_handle device, int channels) {
    static const struct {
        int shards[GOLDEN_TOWERS];
        const char *name;
    } splits[] = {
        {{3, 2, 1}, "3-2-1"}, {{6}, "6"}, {{3, 3}, "3-3"}, {{4, 2}, "4-2"}, {{2, 2, 2}, "2-2-2"},
    };
    struct first_step f = {.device = device, .golden = golden_read(channels)};
    expect_ok(model_read("cifar10", (struct model_ends){24, 24, channels, GOLDEN_CLASSES}, NAN, &f.model),
              "cifar10");
    if (!golden_device_does(device, f.model)) {
        model_free(f.model);
        golden_free(f.golden);
        return;
    }
    f.parameters = doubles(f.model->flat_count);
    f.pixels = doubles(GOLDEN_BATCH * shape_size(f.model->input));
    golden_parameters(f.model, f.parameters);
    golden_batch(f.golden, "plain", 0, f.model, f.pixels, f.labels);
    struct golden_report exact = golden_report("ref64"), report = golden_report(device.ops->name);
    golden_compare_flat(&exact, f.golden, "initial", f.model, f.parameters);
    golden_expect(&exact, "initial parameters");
    test_names_of_terms(&f);
    compare_layers(&f, &report);
    golden_expect(&report, "layers");
    for (size_t s = 0; s < (GOLDEN_BRIEF ? 1 : sizeof splits / sizeof *splits); s++) {
        report = golden_report(device.ops->name);
        compare_split(&f, splits[s].shards, splits[s].name, &report);
        golden_expect(&report, splits[s].name);
    }
    model_free(f.model);
    golden_free(f.golden);
    free(f.parameters);
    free(f.pixels);
}

static void compare_both(struct device_handle device) {
    if (!GOLDEN_BRIEF)
        compare_channels(device, 3);
    compare_channels(device, 1);
}

static void test_first_step(void **state) {
    (void)state;
    for_each_device(compare_both);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_first_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
