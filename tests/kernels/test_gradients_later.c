/* Gradients of a dense layer that backward leaves for later: made in shares, and over two lots of images one
 * after the other, they are the bytes that backward makes of all images at once; and so is dx. */
#include "engine/base/random.h"
#include "kernels/cpu/isa.h"
#include "kernels/registry.h"
#include "tests/support/cmocka.h"
#include "tests/support/make_op.h"

#include <string.h>

enum { IMAGES = 13, FIRST = 6, OPS = 3 };

/* One plan for images first .. first + images - 1 of the same data. */
struct lot {
    struct device_handle device;
    struct plan *plan;
    struct plan_args args;
    bool later;      /* backward without grads */
    int part, parts; /* of gradients(); parts 0: forward and backward */
    bool add;
};

static struct span buffer(struct device_handle device, size_t floats, uint64_t seed) {
    struct span span;
    assert_int_equal(device.ops->buffer_new(device.device, floats * sizeof(float), 0, &span), STATUS_OK);
    struct random random = random_begin(seed, RANDOM_TEST, floats);
    for (size_t i = 0; i < floats; i++)
        ((float *)span.data)[i] = 2 * random_float(&random) - 1;
    return span;
}

static struct span rows(struct span whole, int first, int count, size_t values) {
    return (struct span){(float *)whole.data + (size_t)first * values,
                         (size_t)count * values * sizeof(float)};
}

static enum status run(void *context, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    struct lot *lot = context;
    const struct device_ops *ops = lot->device.ops;
    struct plan_args args = lot->args;
    if (lot->parts)
        return ops->gradients(stream, lot->plan, &args, lot->part, lot->parts, lot->add);
    if (lot->later)
        memset(args.grads, 0, sizeof args.grads);
    STATUS_TRY(ops->forward(stream, lot->plan, &args));
    return ops->backward(stream, lot->plan, &args);
}

static void compare(struct device_handle device, int inputs, int outputs, bool bias) {
    const struct shape in = {1, 1, inputs}, out = {1, 1, outputs};
    struct op ops[OPS] = {make_dense(in, outputs), bias ? make_bias(out) : make_relu(out), make_relu(out)};
    const size_t weights = (size_t)inputs * outputs;
    struct span x = buffer(device, (size_t)IMAGES * inputs, 1),
                y = buffer(device, (size_t)IMAGES * outputs, 2);
    struct span w = buffer(device, weights, 3), b = buffer(device, outputs, 4);
    struct span dx[2], dy[2], dw[2], db[2];
    for (int i = 0; i < 2; i++) { /* what is to be written begins different */
        dx[i] = buffer(device, x.bytes / sizeof(float), 5 + i);
        dw[i] = buffer(device, weights, 7 + i);
        db[i] = buffer(device, outputs, 9 + i);
        dy[i] = buffer(device, y.bytes / sizeof(float), 11);
    }
    static const struct part {
        int first, count;
    } parts[] = {{0, IMAGES}, {0, FIRST}, {FIRST, IMAGES - FIRST}};
    struct lot lots[3];
    for (int l = 0; l < 3; l++) {
        struct plan_request request = {.ops = ops,
                                       .count = bias ? 3 : 2,
                                       .images = parts[l].count,
                                       .training = true,
                                       .input_gradient = true,
                                       .force = "dense"};
        struct lot *lot = &lots[l];
        *lot = (struct lot){.device = device, .later = l > 0};
        assert_int_equal(device.ops->plan(device.device, &request, &lot->plan), STATUS_OK);
        const struct plan_info *info = device.ops->plan_info(lot->plan);
        assert_true(info->gradients_later && info->taken == request.count);
        lot->args = (struct plan_args){.x = rows(x, parts[l].first, parts[l].count, inputs),
                                       .y = rows(y, parts[l].first, parts[l].count, outputs),
                                       .dx = rows(dx[l > 0], parts[l].first, parts[l].count, inputs),
                                       .dy = rows(dy[l > 0], parts[l].first, parts[l].count, outputs),
                                       .params = {w, bias ? b : (struct span){0}},
                                       .grads = {dw[l > 0], bias ? db[l > 0] : (struct span){0}},
                                       .scratch = buffer(device, info->scratch_bytes / sizeof(float), 13)};
        assert_int_equal(device.ops->each(device.device, 1, run, lot), STATUS_OK);
    }
    for (int l = 1; l < 3; l++)
        for (int part = 0; part < 3; part++) {
            lots[l].part = part;
            lots[l].parts = 3;
            lots[l].add = l > 1;
            assert_int_equal(device.ops->each(device.device, 1, run, &lots[l]), STATUS_OK);
        }
    assert_memory_equal(dx[0].data, dx[1].data, x.bytes);
    assert_memory_equal(dw[0].data, dw[1].data, w.bytes);
    if (bias)
        assert_memory_equal(db[0].data, db[1].data, b.bytes);
    for (int l = 0; l < 3; l++) {
        device.ops->buffer_free(device.device, lots[l].args.scratch);
        device.ops->plan_free(lots[l].plan);
    }
    struct span all[] = {x, y, w, b, dx[0], dx[1], dy[0], dy[1], dw[0], dw[1], db[0], db[1]};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        device.ops->buffer_free(device.device, all[i]);
}

static void test_gradients_later(void **state) {
    (void)state;
    static const int outputs[] = {1, 7, 10, 16, 40, 64, 83, 192};
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        if (!isa_available((enum cpu_isa)isa))
            continue;
        struct device_handle device;
        assert_int_equal(device_open("cpu", 1, isa_name((enum cpu_isa)isa), &device), STATUS_OK);
        for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
            for (int inputs = 5; inputs < 150; inputs += 48)
                compare(device, inputs, outputs[i], i % 3 != 1);
        device_close(&device);
    }
}

/* An implementation that makes its gradients in backward is not asked for them later. */
static void test_only_where_left(void **state) {
    (void)state;
    struct device_handle device;
    assert_int_equal(device_open("cpu", 1, NULL, &device), STATUS_OK);
    struct op op = make_relu((struct shape){2, 2, 2});
    struct plan_request request = {.ops = &op, .count = 1, .images = 2, .training = true};
    struct lot lot = {.device = device, .parts = 1};
    assert_int_equal(device.ops->plan(device.device, &request, &lot.plan), STATUS_OK);
    assert_false(device.ops->plan_info(lot.plan)->gradients_later);
    assert_int_equal(device.ops->each(device.device, 1, run, &lot), STATUS_INTERNAL);
    device.ops->plan_free(lot.plan);
    device_close(&device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_later),
        cmocka_unit_test(test_only_where_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
