/* A net cut into lanes: the same bits forward, the same gradient up to rounding, as one that is whole. */
#include "tests/support/cmocka.h"
#include "tests/support/net_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct whole_step {
    struct net_run *run;
    const int32_t *labels;
};

static enum status run_whole(void *context, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    const struct whole_step *step = context;
    struct net_run *r = step->run;
    struct net_operands operands = net_run_operands(r);
    operands.labels = step->labels;
    struct net_seconds seconds;
    STATUS_TRY(net_pass(r->net, stream, &r->memory, &operands, NET_STEP, &seconds));
    assert_true(seconds.forward > 0 && seconds.loss >= 0 && seconds.backward > 0);
    return STATUS_OK;
}

/* The bytes of the first `bytes` of both are equal. */
static void same_bytes(struct span a, struct span b, const char *what, int images, int lanes) {
    assert_true(a.bytes >= b.bytes);
    if (memcmp(a.data, b.data, b.bytes) != 0)
        fail_msg("%s of %d images differ in %d lanes", what, images, lanes);
}

/* A net cut into lanes on a pool of threads against one of a single lane, on one thread. */
static void compare_lanes(struct device_handle pool, struct net_run *whole, int lanes,
                          const double *parameters, const double *pixels, const int32_t *labels) {
    const struct model *model = whole->model;
    const int images = whole->images, most = images < 4 ? 1 : images / 2;
    struct net_run cut;
    net_run_open_with(&cut, pool, model,
                      &(struct net_options){.images = images, .lanes = lanes, .training = true});
    assert_int_equal(net_lanes(cut.net), lanes < most ? lanes : most);
    net_run_step(&cut, parameters, pixels, labels);
    same_bytes(net_logits(cut.net, &cut.memory), net_logits(whole->net, &whole->memory), "logits", images,
               lanes);
    same_bytes(net_losses(cut.net, &cut.memory), net_losses(whole->net, &whole->memory), "losses", images,
               lanes);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct model_parameter *p = &model->parameters[i];
        double error = 0, norm = 0;
        for (size_t k = p->offset; k < p->offset + p->count; k++) {
            double expected = net_run_value(whole, whole->memory.gradient, k);
            error += pow(net_run_value(&cut, cut.memory.gradient, k) - expected, 2);
            norm += pow(expected, 2);
        }
        if (model->ops[p->op].kind == OP_DENSE) /* made from all lanes' images at once */
            assert_true(error == 0);
        if (!(sqrt(error) <= 2e-5 * sqrt(norm)))
            fail_msg("the gradient of %s of %d images in %d lanes is off by %g of %g", p->name, images, lanes,
                     sqrt(error), sqrt(norm));
    }
    /* all at once, over what the last step left, gives the same bytes */
    struct span flat = {malloc(model->flat_count * sizeof(float)), model->flat_count * sizeof(float)};
    assert_non_null(flat.data);
    memcpy(flat.data, cut.memory.gradient.data, flat.bytes);
    net_run_poison(&cut);
    net_run_fill(&cut, pixels);
    assert_int_equal(pool.ops->each(pool.device, 1, run_whole, &(struct whole_step){&cut, labels}),
                     STATUS_OK);
    same_bytes(cut.memory.gradient, flat, "gradients at once", images, lanes);
    same_bytes(net_logits(cut.net, &cut.memory), net_logits(whole->net, &whole->memory), "logits at once",
               images, lanes);
    free(flat.data);
    net_run_close(&cut);
}

static void test_lanes(void **state) {
    (void)state;
    struct device_handle one, pool;
    net_run_device("cpu", 1, &one);
    net_run_device("cpu", 3, &pool);
    assert_int_equal(net_lanes_for(pool, 1), 3);
    assert_int_equal(net_lanes_for(pool, 2), 1);
    assert_int_equal(net_lanes_for(one, 1), 1);
    struct model *models[] = {net_run_small(), net_run_cifar10()};
    for (int m = 0; m < 2; m++) {
        static const int sizes[] = {1, 2, 3, 4, 5, 7, 9};
        double *parameters = net_run_parameters(models[m], 3), *pixels = net_run_pixels(models[m], 9, 4);
        int32_t *labels = net_run_labels(models[m], 9, 4);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            if (m == 1 && sizes[i] != 5 && sizes[i] != 7) /* the small one tries the rest in no time */
                continue;
            struct net_run whole;
            net_run_open(&whole, one, models[m], sizes[i], true);
            net_run_step(&whole, parameters, pixels, labels);
            for (int lanes = m + 1; lanes <= 4 - m; lanes++)
                compare_lanes(pool, &whole, lanes, parameters, pixels, labels);
            net_run_close(&whole);
        }
        free(parameters);
        free(pixels);
        free(labels);
        model_free(models[m]);
    }
    device_close(&pool);
    device_close(&one);
}

/* What a lane kept for backward is that of its own images. */
static void test_activations_of_lanes(void **state) {
    (void)state;
    struct device_handle pool;
    net_run_device("cpu", 2, &pool);
    struct model *model = net_run_cifar10();
    enum { IMAGES = 5 };
    double *parameters = net_run_parameters(model, 5), *pixels = net_run_pixels(model, IMAGES, 6);
    struct net_run run[2];
    for (int cut = 0; cut < 2; cut++) {
        net_run_open_with(&run[cut], pool, model,
                          &(struct net_options){.images = IMAGES, .lanes = 1 + cut, .training = true});
        for (size_t i = 0; i < model->flat_count; i++)
            ((float *)run[cut].parameters.data)[i] = (float)parameters[i];
        net_run_fill(&run[cut], pixels);
        assert_int_equal(pool.ops->each(pool.device, 1, net_run_prepare, &run[cut]), STATUS_OK);
        assert_int_equal(pool.ops->each(pool.device, 1, net_run_forward, &run[cut]), STATUS_OK);
    }
    int seen = 0;
    for (int l = 0; l < model->layer_count; l++) {
        struct span whole = net_activation(run[0].net, &run[0].memory, l, 0);
        for (int lane = 0; lane < net_lanes(run[1].net); lane++) {
            struct span y = net_activation(run[1].net, &run[1].memory, l, lane);
            assert_true(!y.data == !whole.data);
            assert_true(!y.data || y.bytes == net_activation_count(run[1].net, l, lane) * sizeof(float));
            if (y.data)
                assert_memory_equal(y.data, whole.data, y.bytes);
            whole.data = y.data ? (char *)whole.data + y.bytes : NULL;
            seen += y.data != NULL;
        }
    }
    assert_true(seen >= 6);
    for (int cut = 0; cut < 2; cut++)
        net_run_close(&run[cut]);
    free(parameters);
    free(pixels);
    model_free(model);
    device_close(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_activations_of_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
