/* What the CPU device promises beside the values of its operations: the number of threads changes no bit of
 * an average or an update, and a plan tells who refused and why. */
#include "kernels/registry.h"
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"

#include <stdlib.h>
#include <string.h>

enum { TOWERS = 6, SEGMENTS = 5, VALUES = 7168 };

static const struct segment segments[SEGMENTS] = {
    {0, 1, 0}, {16, 17, 0.004}, {48, 1023, 0}, {1072, 1024, 0.5}, {2096, 5000, 0.004}};

struct result {
    float average[VALUES], parameters[VALUES], velocity[VALUES], shadow[VALUES];
    double norms2[TOWERS], dots[TOWERS], segment_norms2[SEGMENTS], average_norm2;
    double parameter_norms2[SEGMENTS], update_norms2[SEGMENTS];
};

static void must(enum status status) {
    if (status != STATUS_OK)
        fail_msg("%s", status_text());
}

static struct device_handle opened(int threads) {
    struct device_handle device;
    must(device_open("cpu", threads, NULL, &device));
    return device;
}

static struct span filled(struct device_handle device, unsigned seed) {
    struct span span;
    must(device.ops->buffer_new(device.device, VALUES * sizeof(float), PLACE_SHARED, &span));
    for (int i = 0; i < VALUES; i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)span.data)[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    return span;
}

/* An average of six towers, one of them idle, and the update that follows. */
static void step(int threads, struct result *r) {
    struct device_handle device = opened(threads);
    const double weights[TOWERS] = {0.2, 0.1, 0, 0.3, 0.25, 0.15};
    struct span gradients[TOWERS];
    for (int k = 0; k < TOWERS; k++)
        gradients[k] = weights[k] != 0 ? filled(device, 100 + (unsigned)k) : (struct span){NULL, 0};
    struct span parameters = filled(device, 1), velocity = filled(device, 2), shadow = filled(device, 3);
    struct span average = filled(device, 4);
    memset(r, 0, sizeof *r);
    must(device.ops->combine(device.device, &(struct combine_args){.towers = TOWERS,
                                                                   .gradients = gradients,
                                                                   .weights = weights,
                                                                   .parameters = parameters,
                                                                   .segments = segments,
                                                                   .segment_count = SEGMENTS,
                                                                   .want_dots = true,
                                                                   .average = average,
                                                                   .norms2 = r->norms2,
                                                                   .dots = r->dots,
                                                                   .segment_norms2 = r->segment_norms2,
                                                                   .average_norm2 = &r->average_norm2}));
    must(device.ops->update(device.device, &(struct update_args){.parameters = parameters,
                                                                 .average = average,
                                                                 .velocity = velocity,
                                                                 .shadow = shadow,
                                                                 .segments = segments,
                                                                 .segment_count = SEGMENTS,
                                                                 .learning_rate = 0.1,
                                                                 .momentum = 0.9,
                                                                 .gradient_scale = 0.5,
                                                                 .ema_decay = 0.99,
                                                                 .parameter_norms2 = r->parameter_norms2,
                                                                 .update_norms2 = r->update_norms2}));
    memcpy(r->average, average.data, sizeof r->average);
    memcpy(r->parameters, parameters.data, sizeof r->parameters);
    memcpy(r->velocity, velocity.data, sizeof r->velocity);
    memcpy(r->shadow, shadow.data, sizeof r->shadow);
    struct span all[] = {parameters, velocity, shadow, average};
    for (int k = 0; k < TOWERS; k++)
        device.ops->buffer_free(device.device, gradients[k]);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        device.ops->buffer_free(device.device, all[i]);
    device_close(&device);
}

static void test_threads_change_no_bit(void **state) {
    (void)state;
    static struct result one, more;
    step(1, &one);
    assert_true(one.average_norm2 > 0 && one.norms2[0] > 0);
    assert_true(one.norms2[2] == 0 && one.dots[2] == 0); /* idle */
    for (int threads = 2; threads <= 7; threads++) {
        step(threads, &more);
        assert_memory_equal(&more, &one, sizeof one);
    }
}

static const char *refusals(struct device_handle device, const struct plan *plan) {
    void *extra = device.ops->extra(device.device, "refusals");
    const char *(*ask)(const struct plan *);
    assert_non_null(extra);
    memcpy(&ask, &extra, sizeof ask);
    return ask(plan);
}

static void test_refusals_are_told(void **state) {
    (void)state;
    struct device_handle device = opened(1);
    struct op op = make_conv((struct shape){8, 8, 16}, 16, 7, 1); /* 7x7: no kernel of our own */
    struct plan_request request = {.ops = &op, .count = 1, .images = 2, .training = true};
    struct plan *plan;
    must(device.ops->plan(device.device, &request, &plan));
    assert_memory_equal(device.ops->plan_info(plan)->implementation, "onednn", 6);
    assert_non_null(strstr(refusals(device, plan), "7x7"));
    device.ops->plan_free(plan);
    /* Forced to somebody who can't, it falls to the default, and that is told first. */
    request.force = "dense";
    must(device.ops->plan(device.device, &request, &plan));
    assert_memory_equal(refusals(device, plan), "dense: ", 7);
    assert_memory_equal(device.ops->plan_info(plan)->implementation, "onednn", 6);
    device.ops->plan_free(plan);
    device_close(&device);
}

/* A call with too little memory is refused, not carried out. */
static enum status forward_without_memory(void *context, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    void **both = context;
    struct device_handle *device = both[0];
    struct plan_args nothing = {0};
    return device->ops->forward(stream, both[1], &nothing);
}

static void test_missing_memory_is_refused(void **state) {
    (void)state;
    struct device_handle device = opened(1);
    struct op op = make_relu((struct shape){2, 2, 2});
    struct plan_request request = {.ops = &op, .count = 1, .images = 2};
    struct plan *plan;
    must(device.ops->plan(device.device, &request, &plan));
    void *both[] = {&device, plan};
    assert_int_equal(device.ops->each(device.device, 1, forward_without_memory, both), STATUS_INTERNAL);
    assert_non_null(strstr(status_text(), "the input"));
    device.ops->plan_free(plan);
    device_close(&device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_refusals_are_told),
        cmocka_unit_test(test_missing_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
