/* What every device promises beside its arithmetic: names, buffers, copies, items over workers, refusals. */
#include "kernels/registry.h"
#include "tests/support/cmocka.h"
#include "tests/support/devices.h"
#include "tests/support/guarded.h"
#include "tests/support/make_op.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void expect_said(const char *words) {
    if (!strstr(status_text(), words))
        fail_msg("expected \"%s\" in: %s", words, status_text());
}

static void test_unknown_names(void **state) {
    (void)state;
    struct device_handle device = {0};
    static const char *const names[] = {"",       "gpu",     "refs",    "ref:1", "ref64x",           "cuda:",
                                        "cuda:x", "cuda:-1", "cuda:1x", "cuda0", "cuda:123456789012"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(device_open(names[i], 0, NULL, &device), STATUS_BAD_INPUT);
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\"", names[i]);
        expect_said(quoted);
        expect_said("cuda:N");
        expect_said("ref64");
        assert_null(device.ops);
    }
    device_close(&device); /* zeroed: nothing to close */
}

static void test_refusals(void **state) {
    (void)state;
    struct device_handle device = {0};
    assert_int_equal(device_open("ref", 0, "avx512", &device), STATUS_UNSUPPORTED);
    expect_said("avx512");
    assert_int_equal(device_open("ref", -1, NULL, &device), STATUS_BAD_INPUT);
    expect_said("-1");
    assert_null(device.ops);
}

struct seen {
    int kinds, usable;
};

static void visit(void *context, const char *name, bool usable, const char *reason,
                  const struct device_info *info) {
    struct seen *seen = context;
    seen->kinds++;
    seen->usable += usable;
    struct device_handle device = {0};
    enum status status = device_open(name, 0, NULL, &device);
    if (usable) {
        assert_string_equal(reason, "");
        assert_string_equal(info->name, name);
        assert_true(strlen(info->description) > 0);
        assert_int_equal(info->element_bytes, strcmp(name, "ref64") == 0 ? 8 : 4);
        assert_int_equal(status, STATUS_OK);
    } else { /* the reason is the one that opening it gives */
        assert_null(info);
        assert_true(strlen(reason) > 0);
        assert_int_equal(status, STATUS_UNSUPPORTED);
        expect_said(reason);
    }
    device_close(&device);
}

static void test_visit(void **state) {
    (void)state;
    struct seen seen = {0, 0};
    device_visit(visit, &seen);
    assert_true(seen.kinds >= 3);
    assert_true(seen.usable >= 2);
    struct device_handle device = {0};
    assert_int_equal(device_open_default(&(struct device_options){.threads = 2}, &device), STATUS_OK);
    assert_string_not_equal(device.ops->name, "ref64");
    device_close(&device);
}

static void test_buffers(struct device_handle device) {
    size_t element = device_element_bytes(device);
    struct span a, b, empty;
    float out[5] = {1, 1, 1, 1, 1};
    expect_ok(device.ops->buffer_new(device.device, 5 * element, PLACE_SHARED, &a), "a buffer");
    expect_ok(device.ops->buffer_new(device.device, 5 * element, PLACE_SHARED, &b), "a buffer");
    expect_ok(device.ops->buffer_new(device.device, 0, PLACE_SHARED, &empty), "an empty buffer");
    assert_int_equal(a.bytes, 5 * element);
    assert_int_equal((uintptr_t)a.data % 64, 0);
    expect_ok(device.ops->read(device.device, NULL, out, a, 5), "read");
    device_finish(device);
    assert_memory_equal(out, ((float[5]){0}), sizeof out);
    const float in[5] = {1.5f, -2, 3e-30f, 4e30f, 0.1f};
    expect_ok(device.ops->write(device.device, NULL, a, in, 5), "write");
    expect_ok(device.ops->copy(device.device, NULL, b, a), "copy");
    expect_ok(device.ops->read(device.device, NULL, out, b, 5), "read");
    device_finish(device);
    assert_memory_equal(out, in, sizeof out);
    assert_int_not_equal(device.ops->write(device.device, NULL, a, in, 6), STATUS_OK);
    device.ops->buffer_free(device.device, a);
    device.ops->buffer_free(device.device, b);
    device.ops->buffer_free(device.device, empty);
    assert_int_equal(device.ops->buffer_new(device.device, SIZE_MAX - 8, PLACE_SHARED, &a), STATUS_NO_MEMORY);
}

enum { ITEMS = 50 };

struct tally {
    atomic_int visits[ITEMS], busy[ITEMS];
    int workers;
    bool fail;
};

static enum status tally_item(void *context, int item, int worker, struct stream *stream) {
    struct tally *tally = context;
    (void)stream;
    if (worker < 0 || worker >= tally->workers || atomic_fetch_add(&tally->busy[worker], 1) != 0)
        return status_fail(STATUS_INTERNAL, "worker %d at two items", worker);
    atomic_fetch_add(&tally->visits[item], 1);
    atomic_fetch_sub(&tally->busy[worker], 1);
    if (tally->fail && item % 7 == 3)
        return status_fail(STATUS_NON_FINITE, "item %d is not finite", item);
    return STATUS_OK;
}

static void test_each(struct device_handle device) {
    for (int count = 0; count <= ITEMS; count += count < 5 ? 1 : 15) {
        struct tally tally = {.workers = device.ops->workers(device.device, count)};
        expect_ok(device.ops->each(device.device, count, tally_item, &tally), "each");
        for (int i = 0; i < ITEMS; i++)
            assert_int_equal(tally.visits[i], i < count ? 1 : 0);
    }
    struct tally tally = {.workers = device.ops->workers(device.device, ITEMS), .fail = true};
    assert_int_equal(device.ops->each(device.device, ITEMS, tally_item, &tally), STATUS_NON_FINITE);
    expect_said("item 3 is not finite"); /* the first in order, whichever thread came first */
}

/* Operations that do not fit together are refused by every device's plan(). */
static void test_bad_operations(struct device_handle device) {
    struct shape in = {4, 4, 3};
    struct op bad[6] = {make_conv(in, 2, 3, 1), make_max_pool(in, 3, 2),
                        make_relu(in),          make_dense(in, 4),
                        make_conv(in, 2, 3, 1), {.kind = OP_KINDS, .in = in, .out = in}};
    bad[0].out.h++;
    bad[1].out.c = 2;
    bad[2].in.c = 0;
    bad[3].out.w = 2;
    bad[4].window.pad_top = bad[4].window.pad_bottom = 3;
    bad[4].out.h = 8;
    for (int i = 0; i < 6; i++) {
        struct plan_request request = {.ops = &bad[i], .count = 1, .images = 2};
        struct plan *plan = NULL;
        assert_int_equal(device.ops->plan(device.device, &request, &plan), STATUS_INTERNAL);
    }
}

static void test_same_padding(void **state) {
    (void)state;
    static const struct {
        int in, kernel, stride, out, before, after;
    } cases[] = {
        {24, 5, 1, 24, 2, 2}, {24, 3, 2, 12, 0, 1}, {12, 3, 2, 6, 0, 1}, {5, 3, 2, 3, 1, 1},
        {32, 3, 2, 16, 0, 1}, {7, 2, 1, 7, 0, 1},   {4, 1, 2, 2, 0, 0},  {1, 5, 1, 1, 2, 2},
        {8, 3, 3, 3, 0, 1},   {9, 2, 4, 3, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct op_window w = {.kernel_h = cases[i].kernel, .kernel_w = 1, .stride = cases[i].stride};
        struct shape out = op_same_padding((struct shape){cases[i].in, 1, 3}, 8, &w);
        assert_int_equal(out.h, cases[i].out);
        assert_int_equal(out.w, 1);
        assert_int_equal(out.c, 8);
        assert_int_equal(w.pad_top, cases[i].before);
        assert_int_equal(w.pad_bottom, cases[i].after);
    }
}

static void test_sizes_of_operations(void **state) {
    (void)state;
    struct op conv = make_conv((struct shape){24, 24, 3}, 64, 5, 1);
    assert_int_equal(op_parameter_size(&conv), 4800);
    assert_true(op_flops(&conv) == 2.0 * 24 * 24 * 4800);
    struct op dense = make_dense((struct shape){6, 6, 64}, 384);
    assert_int_equal(op_parameter_size(&dense), 2304 * 384);
    assert_true(op_flops(&dense) == 2.0 * 2304 * 384);
    struct op relu = make_relu((struct shape){2, 2, 2});
    assert_int_equal(op_parameter_size(&relu), 0);
    for (int kind = 0; kind < OP_KINDS; kind++)
        assert_string_not_equal(op_kind_name((enum op_kind)kind), "unknown");
}

static void test_on_each_device(void **state) {
    (void)state;
    for_each_device(test_buffers);
    for_each_device(test_each);
    for_each_device(test_bad_operations);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_names),  cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_visit),          cmocka_unit_test(test_same_padding),
        cmocka_unit_test(test_on_each_device), cmocka_unit_test(test_sizes_of_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
