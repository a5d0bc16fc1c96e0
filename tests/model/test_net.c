/* A planned net: its shared memory against buffers of their own, its gradient against finite differences, its
 * forward bits against the shard. */
#include "tests/support/net_run.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const DEVICES[] = {"ref64", "ref", "cpu"};

/* ---- the same net, each group with buffers of its own and NaN in what backward says it does not read */

struct apart {
    struct net_run *run;
    struct plan *plans[32];
    struct span y[32], dy[32], saved[32], x, gradient;
    int first[32], count;
    const int32_t *labels;
};

static struct span fresh(const struct net_run *run, size_t values) {
    struct span span = {NULL, values * run->element};
    span.data = aligned_alloc(64, (span.bytes + 64) / 64 * 64);
    assert_non_null(span.data);
    memset(span.data, 0xFF, span.bytes);
    return span;
}

static void tensors(const struct apart *a, int group, struct span flat, struct span *out) {
    const struct model *model = a->run->model;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct model_parameter *p = &model->parameters[i];
        int op = p->op - a->first[group];
        if (op >= 0 && p->op < a->first[group + 1])
            out[op] =
                (struct span){(char *)flat.data + p->offset * a->run->element, p->count * a->run->element};
    }
}

static enum status run_apart(void *context, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    struct apart *a = context;
    const struct device_ops *ops = a->run->device.ops;
    const struct model *model = a->run->model;
    struct span losses = fresh(a->run, (size_t)a->run->images);
    struct plan_args args[32];
    for (int g = 0; g < a->count; g++) {
        const struct plan_info *info = ops->plan_info(a->plans[g]);
        args[g] = (struct plan_args){.x = g ? a->y[g - 1] : a->x, .y = a->y[g], .saved = a->saved[g]};
        args[g].scratch = fresh(a->run, info->scratch_bytes / a->run->element + 1);
        args[g].prepared = fresh(a->run, info->prepared_bytes / a->run->element + 1);
        tensors(a, g, a->run->parameters, args[g].params);
        if (ops->prepare && info->prepared_bytes)
            STATUS_TRY(ops->prepare(stream, a->plans[g], &args[g]));
        STATUS_TRY(ops->forward(stream, a->plans[g], &args[g]));
    }
    STATUS_TRY(ops->loss(stream, &(struct loss_args){.images = a->run->images,
                                                     .classes = model->classes,
                                                     .logits = a->y[a->count - 1],
                                                     .labels = a->labels,
                                                     .scale = 1.0 / a->run->images,
                                                     .losses = losses,
                                                     .dlogits = a->dy[a->count - 1]}));
    for (int g = a->count - 1; g >= 0; g--) {
        if (g > 0)
            args[g].dx = a->dy[g - 1];
        args[g].dy = a->dy[g];
        tensors(a, g, a->gradient, args[g].grads);
        STATUS_TRY(ops->backward(stream, a->plans[g], &args[g]));
    }
    free(losses.data);
    for (int g = 0; g < a->count; g++) {
        free(args[g].scratch.data);
        free(args[g].prepared.data);
    }
    return STATUS_OK;
}

/* Gradient and logits of the run's last step, from memory that is shared with nothing. */
static void compare_apart(struct net_run *run, const double *pixels, const int32_t *labels) {
    const struct device_ops *ops = run->device.ops;
    const struct model *model = run->model;
    struct apart a = {.run = run, .labels = labels};
    a.x = fresh(run, (size_t)run->images * shape_size(model->input));
    a.gradient = fresh(run, model->flat_count);
    for (size_t i = 0; i < a.x.bytes / run->element; i++)
        if (run->element == sizeof(double))
            ((double *)a.x.data)[i] = pixels[i];
        else
            ((float *)a.x.data)[i] = (float)pixels[i];
    for (int op = 0; op < model->op_count; a.count++) {
        int left = model->op_count - op;
        struct plan_request request = {.ops = model->ops + op,
                                       .count = left < PLAN_MAX_OPS ? left : PLAN_MAX_OPS,
                                       .images = run->images,
                                       .training = true,
                                       .input_gradient = op > 0};
        assert_int_equal(ops->plan(run->device.device, &request, &a.plans[a.count]), STATUS_OK);
        const struct plan_info *info = ops->plan_info(a.plans[a.count]);
        a.first[a.count] = op;
        op += info->taken;
        a.first[a.count + 1] = op;
        size_t values = (size_t)run->images * shape_size(model->ops[op - 1].out);
        a.y[a.count] = fresh(run, values);
        a.dy[a.count] = fresh(run, values);
        a.saved[a.count] = fresh(run, info->saved_bytes / run->element + 1);
    }
    assert_int_equal(ops->each(run->device.device, 1, run_apart, &a), STATUS_OK);

    struct span logits = net_logits(run->net, &run->memory);
    assert_memory_equal(logits.data, a.y[a.count - 1].data, logits.bytes);
    for (int i = 0; i < model->parameter_count; i++) {
        const struct model_parameter *p = &model->parameters[i];
        const char *got = (char *)run->memory.gradient.data + p->offset * run->element;
        const char *expected = (char *)a.gradient.data + p->offset * run->element;
        if (memcmp(got, expected, p->count * run->element) != 0)
            fail_msg("the gradient of %s differs", p->name);
    }
    for (int g = 0; g < a.count; g++) {
        ops->plan_free(a.plans[g]);
        free(a.y[g].data);
        free(a.dy[g].data);
        free(a.saved[g].data);
    }
    free(a.x.data);
    free(a.gradient.data);
}

static void test_shared_memory(void **state) {
    (void)state;
    for (size_t d = 0; d < sizeof DEVICES / sizeof *DEVICES; d++) {
        struct device_handle device;
        net_run_device(DEVICES[d], 1, &device);
        struct model *models[] = {net_run_small(), net_run_cifar10()};
        int count = d == 2 ? 2 : 1; /* plain C takes long over the tutorial's network */
        for (int m = 0; m < count; m++) {
            int images = m == 0 ? 6 : 2;
            struct net_run run;
            double *parameters = net_run_parameters(models[m], 3),
                   *pixels = net_run_pixels(models[m], images, 4);
            int32_t *labels = net_run_labels(models[m], images, 4);
            net_run_open(&run, device, models[m], images, true);
            net_run_step(&run, parameters, pixels, labels);
            compare_apart(&run, pixels, labels);
            /* a second step over the first one's leavings gives the same bytes */
            struct span gradient = run.memory.gradient;
            char *first = malloc(gradient.bytes);
            assert_non_null(first);
            memcpy(first, gradient.data, gradient.bytes);
            net_run_step(&run, parameters, pixels, labels);
            assert_memory_equal(first, gradient.data, gradient.bytes);
            net_run_poison(&run);
            net_run_step(&run, parameters, pixels, labels);
            assert_memory_equal(first, gradient.data, gradient.bytes);
            for (int i = 0; i < models[m]->parameter_count; i++) { /* the padding stays 0 */
                const struct model_parameter *p = &models[m]->parameters[i];
                size_t end = i + 1 < models[m]->parameter_count ? p[1].offset : models[m]->flat_count;
                for (size_t k = p->offset + p->count; k < end; k++)
                    assert_true(net_run_value(&run, gradient, k) == 0);
            }
            free(first);
            net_run_close(&run);
            free(parameters);
            free(pixels);
            free(labels);
        }
        model_free(models[0]);
        model_free(models[1]);
        device_close(&device);
    }
}

/* ---- gradients */

/* Central differences of the mean loss in double: with a step of 1e-5 their error is about 1e-10 of the loss.
 * A pool or a ReLU that flips within the step would show as a large one; the seed has none. */
static void test_finite_differences(void **state) {
    (void)state;
    enum { IMAGES = 4 };
    struct device_handle device;
    net_run_device("ref64", 1, &device);
    struct model *model = net_run_small();
    struct net_run run, forward;
    double *parameters = net_run_parameters(model, 11), *pixels = net_run_pixels(model, IMAGES, 12);
    int32_t *labels = net_run_labels(model, IMAGES, 12);
    net_run_open(&run, device, model, IMAGES, true);
    net_run_open(&forward, device, model, IMAGES, false);
    net_run_step(&run, parameters, pixels, labels);
    assert_true(net_sizes(forward.net).arena_bytes < net_sizes(run.net).arena_bytes);
    const double h = 1e-5;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct model_parameter *p = &model->parameters[i];
        double largest = 0, worst = 0;
        for (size_t k = 0; k < p->count; k++) {
            double kept = parameters[p->offset + k], loss[2];
            for (int sign = 0; sign < 2; sign++) {
                parameters[p->offset + k] = kept + (sign ? h : -h);
                net_run_step(&forward, parameters, pixels, labels);
                loss[sign] = net_run_mean_loss(&forward);
            }
            parameters[p->offset + k] = kept;
            double numeric = (loss[1] - loss[0]) / (2 * h);
            double exact = net_run_value(&run, run.memory.gradient, p->offset + k);
            largest = fmax(largest, fabs(exact));
            double off = fabs(numeric - exact);
            if (!(off <= worst))
                worst = off;
        }
        if (!(largest > 1e-3 && worst <= 1e-8 + 1e-6 * largest))
            fail_msg("%s: worst difference %g, largest gradient %g", p->name, worst, largest);
    }
    net_run_close(&forward);
    net_run_close(&run);
    free(parameters);
    free(pixels);
    free(labels);
    model_free(model);
    device_close(&device);
}

/* ---- the tutorial's network at step 0 */

static void test_initial_loss(void **state) {
    (void)state;
    for (size_t d = 1; d < sizeof DEVICES / sizeof *DEVICES; d++) {
        struct device_handle device;
        net_run_device(DEVICES[d], 1, &device);
        enum { IMAGES = 4 };
        struct model *model = net_run_cifar10();
        struct net_run run;
        double *parameters = net_run_parameters(model, 1), *pixels = net_run_pixels(model, IMAGES, 2);
        int32_t *labels = net_run_labels(model, IMAGES, 2);
        net_run_open(&run, device, model, IMAGES, false);
        net_run_step(&run, parameters, pixels, labels);
        double cross_entropy = net_run_mean_loss(&run), decay = 0;
        for (int i = 0; i < model->parameter_count; i++)
            for (size_t k = 0; k < model->parameters[i].count; k++) {
                double w = parameters[model->parameters[i].offset + k];
                decay += model->parameters[i].weight_decay * w * w / 2;
            }
        assert_true(fabs(cross_entropy - log(10)) < 0.01);
        assert_true(fabs(cross_entropy + decay - 4.676) < 0.02);
        for (int n = 0; n < IMAGES; n++) { /* what is said of one image hangs together */
            double sum = 0, p = 0;
            for (int c = 0; c < 10; c++) {
                p = net_run_value(&run, net_probabilities(run.net, &run.memory), (size_t)(n * 10 + c));
                sum += p;
                if (c == labels[n])
                    assert_true(fabs(-log(p) - net_run_value(&run, net_losses(run.net, &run.memory),
                                                             (size_t)n)) < 1e-5);
            }
            assert_true(fabs(sum - 1) < 1e-5);
        }
        net_run_close(&run);
        free(parameters);
        free(pixels);
        free(labels);
        model_free(model);
        device_close(&device);
    }
}

/* ---- an image's bits in any shard */

static void test_shards(void **state) {
    (void)state;
    static const int splits[][6] = {{12}, {7, 5}, {4, 4, 4}, {2, 10}, {3, 2, 2, 5}};
    enum { IMAGES = 12 };
    for (size_t d = 0; d < sizeof DEVICES / sizeof *DEVICES; d++) {
        struct device_handle device;
        net_run_device(DEVICES[d], 1, &device);
        struct model *model = d == 2 ? net_run_cifar10() : net_run_small();
        double *parameters = net_run_parameters(model, 5), *pixels = net_run_pixels(model, IMAGES, 6);
        int32_t *labels = net_run_labels(model, IMAGES, 6);
        char expected[IMAGES * 10 * sizeof(double)];
        for (size_t s = 0; s < sizeof splits / sizeof *splits; s++)
            for (int k = 0, at = 0; k < 6 && splits[s][k]; at += splits[s][k++])
                for (int training = 0; training < 2; training++) {
                    struct net_run run;
                    net_run_open(&run, device, model, splits[s][k], training);
                    net_run_step(&run, parameters, pixels + (size_t)at * shape_size(model->input),
                                 labels + at);
                    struct span logits = net_logits(run.net, &run.memory);
                    size_t row = (size_t)model->classes * run.element;
                    if (s == 0 && training == 0)
                        memcpy(expected, logits.data, logits.bytes);
                    else if (memcmp(expected + (size_t)at * row, logits.data, logits.bytes) != 0)
                        fail_msg("%s: the logits of images %d to %d differ in a shard of %d", DEVICES[d], at,
                                 at + splits[s][k] - 1, splits[s][k]);
                    net_run_close(&run);
                }
        free(parameters);
        free(pixels);
        free(labels);
        model_free(model);
        device_close(&device);
    }
}

/* ---- the plan's own words */

static void test_groups(void **state) {
    (void)state;
    struct device_handle device;
    net_run_device("ref", 1, &device);
    struct model *model = net_run_cifar10();
    struct net *small, *large, *forward;
    struct net_options options = {.images = 4, .training = true};
    assert_int_equal(net_plan(model, device, &options, &small), STATUS_OK);
    options.images = 64;
    assert_int_equal(net_plan(model, device, &options, &large), STATUS_OK);
    options.training = false;
    assert_int_equal(net_plan(model, device, &options, &forward), STATUS_OK);
    assert_true(net_shares_prepared(small, large) && net_shares_prepared(small, forward));
    const struct net_group *groups;
    int count = net_groups(large, &groups), op = 0;
    double flops = 0;
    for (int g = 0; g < count; g++) {
        assert_int_equal(groups[g].first_op, op);
        assert_int_equal(groups[g].op_count, groups[g].info->taken);
        op += groups[g].op_count;
        flops += groups[g].flops;
    }
    assert_int_equal(op, model->op_count);
    /* one image forward: 2 x (24*24*75*64 + 12*12*1600*64 + 2304*384 + 384*192 + 192*10) */
    assert_true(flops == 2.0 * (24. * 24 * 75 * 64 + 12. * 12 * 1600 * 64 + 2304. * 384 + 384. * 192 + 1920));
    assert_string_equal(groups[0].name, "conv1.conv");
    assert_string_equal(groups[3].name, "pool1");
    assert_int_equal(net_sizes(large).gradient_bytes, model->flat_count * sizeof(float));
    assert_int_equal(net_sizes(forward).gradient_bytes, 0);
    /* without sharing, the training arena would hold every activation and its gradient */
    size_t all = 0;
    for (int i = 0; i < model->op_count; i++)
        all += 2 * 64 * shape_size(model->ops[i].out) * sizeof(float);
    assert_true(net_sizes(large).arena_bytes < all * 3 / 4);
    assert_true(net_sizes(forward).arena_bytes < net_sizes(large).arena_bytes);
    net_free(small);
    net_free(forward);
    net_free(large);

    options.images = 0;
    assert_int_equal(net_plan(model, device, &options, &small), STATUS_INTERNAL);
    options.images = 4;
    options.force = "no such";
    assert_int_not_equal(net_plan(model, device, &options, &small), STATUS_OK);
    assert_null(small);
    assert_non_null(strstr(status_text(), "cifar10, conv1: "));
    model_free(model);
    device_close(&device);
}

static enum status run_backward(void *context, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    struct net_run *r = context;
    const struct net_operands operands = net_run_operands(r);
    return net_pass(r->net, stream, &r->memory, &operands, NET_BACKWARD, NULL);
}

static enum status run_loss(void *context, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    struct net_run *r = context;
    const struct net_operands operands = net_run_operands(r);
    return net_pass(r->net, stream, &r->memory, &operands, NET_LOSS, NULL);
}

static void test_too_little_memory(void **state) {
    (void)state;
    struct device_handle device;
    net_run_device("ref", 1, &device);
    struct model *model = net_run_small();
    struct net_run run;
    net_run_open(&run, device, model, 4, true);
    struct span *spans[] = {&run.memory.arena, &run.parameters, &run.scratch, &run.memory.gradient};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        spans[i]->bytes--;
        assert_int_equal(device.ops->each(device.device, 1, i == 3 ? run_backward : net_run_forward, &run),
                         STATUS_INTERNAL);
        assert_non_null(strstr(status_text(), "the net needs"));
        spans[i]->bytes++;
    }
    assert_int_equal(device.ops->each(device.device, 1, run_loss, &run), STATUS_INTERNAL); /* no labels */
    net_run_close(&run);
    net_run_open(&run, device, model, 4, false);
    assert_int_equal(device.ops->each(device.device, 1, run_backward, &run), STATUS_INTERNAL);
    net_run_close(&run);
    model_free(model);
    device_close(&device);
}

/* Outputs of layers that are kept for backward can be looked at; of the others it is said that they can't. */
static void test_activations(void **state) {
    (void)state;
    struct device_handle device;
    net_run_device("ref", 1, &device);
    struct model *model = net_run_small();
    struct net_run run;
    double *parameters = net_run_parameters(model, 5), *pixels = net_run_pixels(model, 3, 6);
    net_run_open(&run, device, model, 3, true);
    for (size_t i = 0; i < model->flat_count; i++)
        ((float *)run.parameters.data)[i] = (float)parameters[i];
    struct span input = net_input(run.net, &run.memory);
    for (size_t i = 0; i < input.bytes / sizeof(float); i++)
        ((float *)input.data)[i] = (float)pixels[i];
    assert_int_equal(device.ops->each(device.device, 1, net_run_forward, &run), STATUS_OK);
    int seen = 0;
    for (int l = 0; l < model->layer_count; l++) {
        struct span y = net_activation(run.net, &run.memory, l, 0);
        const struct op *last = &model->ops[model->layers[l].first_op + model->layers[l].op_count - 1];
        if (!y.data)
            continue;
        seen++;
        assert_int_equal(y.bytes, 3 * shape_size(last->out) * sizeof(float));
        int zeros = 0;
        for (size_t i = 0; i < y.bytes / sizeof(float); i++) {
            float v = ((float *)y.data)[i];
            assert_true(isfinite(v) && !(last->kind == OP_RELU && v < 0));
            zeros += v == 0;
        }
        assert_true(last->kind != OP_RELU || zeros > 0);
    }
    assert_true(seen >= 3);
    struct span logits = net_logits(run.net, &run.memory);
    assert_ptr_equal(net_activation(run.net, &run.memory, model->layer_count - 1, 0).data, logits.data);
    net_run_close(&run);
    free(parameters);
    free(pixels);
    model_free(model);
    device_close(&device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_finite_differences),
        cmocka_unit_test(test_initial_loss),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_too_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
