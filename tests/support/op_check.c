#include "tests/support/op_check.h"

#include "engine/base/random.h"
#include "kernels/registry.h"
#include "tests/support/chain.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A ReLU's input or the distance between the two largest of a pool's window must be this far from 0, relative
 * to the largest value: beyond what any order of float sums, or a Winograd transform, changes. */
static const double margin = 1e-5;

/* Host copies of what goes in: the same floats for every device. */
struct inputs {
    float *x, *dy, *parameter[CHAIN_MAX];
};

static float *floats(size_t count) {
    float *values = malloc(count * sizeof *values + 1);
    assert_non_null(values);
    return values;
}

static void normal_values(float *to, size_t count, double scale, uint64_t seed, uint64_t stream) {
    struct random r = random_begin(seed, RANDOM_TEST, stream);
    for (size_t i = 0; i < count; i++)
        to[i] = (float)(scale * random_normal(&r));
}

/* Multiples of 1/4 up to `most` of those. */
static void multiples(float *to, size_t count, int most, uint64_t seed, uint64_t stream) {
    struct random r = random_begin(seed, RANDOM_TEST, stream);
    for (size_t i = 0; i < count; i++)
        to[i] = ((float)random_below(&r, 2 * (uint32_t)most + 1) - (float)most) / 4;
}

static void quantised_values(float *to, size_t count, uint64_t seed, uint64_t stream) {
    multiples(to, count, 4, seed, stream);
}

/* Products of quarters, a few hundred of them: sixteenths, of which bfloat16 has all up to 16. */
static bool exact_sums(const struct op_check *check) {
    return check->precision && !strcmp(check->precision, "bf16");
}

/* Weights of a size that keeps the values' deviation near 1. */
static double parameter_scale(const struct op *op) {
    switch (op->kind) {
    case OP_CONV:
        return 1 / sqrt((double)op_parameter_size(op) / op->out.c);
    case OP_DENSE:
        return 1 / sqrt((double)shape_size(op->in));
    default:
        return 0.2;
    }
}

/* Is every value far enough from 0 (before a ReLU)? Values of an image that are 0 exactly are none of a
 * convolution's. */
static bool relu_has_margin(const float *x, size_t count) {
    double largest = 0, smallest = INFINITY;
    for (size_t i = 0; i < count; i++) {
        double size = fabs(x[i]);
        largest = size > largest ? size : largest;
        smallest = size < smallest ? size : smallest;
    }
    return smallest > margin * largest;
}

/* Does each window's largest value stand clear of the second? A window that is 0 throughout comes from a ReLU
 * that lets no gradient through: whichever wins is right. */
static bool pool_has_margin(const struct op *op, const float *x) {
    double largest = 0;
    for (size_t i = 0; i < shape_size(op->in); i++)
        largest = fabs(x[i]) > largest ? fabs(x[i]) : largest;
    const struct op_window *w = &op->window;
    for (int i = 0; i < op->out.h; i++)
        for (int j = 0; j < op->out.w; j++)
            for (int c = 0; c < op->in.c; c++) {
                double first = -INFINITY, second = -INFINITY;
                for (int u = 0; u < w->kernel_h; u++)
                    for (int v = 0; v < w->kernel_w; v++) {
                        int row = i * w->stride - w->pad_top + u, column = j * w->stride - w->pad_left + v;
                        if (row < 0 || row >= op->in.h || column < 0 || column >= op->in.w)
                            continue;
                        double value = x[((size_t)row * op->in.w + column) * op->in.c + c];
                        if (value > first) {
                            second = first;
                            first = value;
                        } else if (value > second)
                            second = value;
                    }
                if (first != 0 && !(first - second > margin * largest))
                    return false;
            }
    return true;
}

/* Does the image that was put through `one`, a chain of ref64 for one image, hang on no last bit? */
static bool image_has_margin(struct chain *one) {
    bool good = true;
    for (int i = 0; i < one->count && good; i++) {
        const struct op *op = &one->ops[i];
        if (op->kind != OP_RELU && op->kind != OP_MAX_POOL)
            continue;
        size_t count = shape_size(op->in);
        float *x = floats(count);
        guarded_read(one->device, &one->value[i], x, count);
        good = op->kind == OP_RELU ? relu_has_margin(x, count) : pool_has_margin(op, x);
        free(x);
    }
    return good;
}

static void set_parameters(struct chain *chain, const struct inputs *inputs) {
    for (int i = 0; i < chain->count; i++)
        guarded_write(chain->device, &chain->parameter[i], inputs->parameter[i],
                      op_parameter_size(&chain->ops[i]));
}

/* Draw images until each has its margins. */
static void draw_images(const struct op_check *check, struct inputs *inputs) {
    enum { TRIES = 200 };
    size_t size = shape_size(check->ops[0].in);
    double scale = check->input_scale != 0 ? check->input_scale : 1;
    struct device_handle reference = {0};
    struct chain one;
    expect_ok(device_open("ref64", 1, NULL, &reference), "the plain C device");
    expect_ok(chain_open(&one, reference, check->ops, check->count, 1, false, false, NULL),
              "a chain of ref64");
    set_parameters(&one, inputs);
    for (int n = 0; n < check->images; n++) {
        float *image = inputs->x + (size_t)n * size;
        int tries = 0;
        for (bool good = false; !good; tries++) {
            if (tries == TRIES)
                fail_msg("no image with margins in %d tries: choose smaller operations", TRIES);
            uint64_t stream = 1000 + (uint64_t)n * TRIES + (uint64_t)tries;
            if (check->quantised || exact_sums(check))
                quantised_values(image, size, check->seed, stream);
            else
                normal_values(image, size, scale, check->seed, stream);
            if (check->quantised || exact_sums(check))
                break;
            guarded_write(reference, &one.value[0], image, size);
            expect_ok(chain_forward(&one, NULL), "ref64");
            good = image_has_margin(&one);
        }
    }
    chain_close(&one);
    device_close(&reference);
}

static struct inputs inputs_new(const struct op_check *check) {
    struct inputs inputs = {0};
    size_t images = (size_t)check->images;
    size_t out = images * shape_size(check->ops[check->count - 1].out);
    for (int i = 0; i < check->count; i++) {
        size_t count = op_parameter_size(&check->ops[i]);
        inputs.parameter[i] = floats(count);
        if (exact_sums(check))
            multiples(inputs.parameter[i], count, 1, check->seed, 1 + (uint64_t)i);
        else
            normal_values(inputs.parameter[i], count, parameter_scale(&check->ops[i]), check->seed,
                          1 + (uint64_t)i);
    }
    inputs.x = floats(images * shape_size(check->ops[0].in));
    draw_images(check, &inputs);
    inputs.dy = floats(out);
    if (exact_sums(check))
        quantised_values(inputs.dy, out, check->seed, 0);
    else
        normal_values(inputs.dy, out, 1, check->seed, 0);
    return inputs;
}

static void inputs_free(struct inputs *inputs) {
    free(inputs->x);
    free(inputs->dy);
    for (int i = 0; i < CHAIN_MAX; i++)
        free(inputs->parameter[i]);
}

static void set_values(struct chain *chain, const struct inputs *inputs, int first_image) {
    size_t images = (size_t)chain->images, in = shape_size(chain_shape(chain, 0));
    set_parameters(chain, inputs);
    guarded_write(chain->device, &chain->value[0], inputs->x + (size_t)first_image * in, images * in);
    if (chain->training) {
        size_t out = shape_size(chain_shape(chain, chain->groups));
        guarded_write(chain->device, &chain->gradient[chain->groups], inputs->dy + (size_t)first_image * out,
                      images * out);
    }
}

static void expect_near(const char *what, const struct op_check *check, const float *found,
                        const float *expected, size_t count) {
    double difference2 = 0, norm2 = 0, worst = 0, largest = 0;
    size_t worst_at = 0;
    for (size_t i = 0; i < count; i++) {
        double d = fabs((double)found[i] - expected[i]);
        difference2 += d * d;
        norm2 += (double)expected[i] * expected[i];
        largest = fabs(expected[i]) > largest ? fabs(expected[i]) : largest;
        if (!(d <= worst)) {
            worst = d;
            worst_at = i;
        }
    }
    bool good =
        sqrt(difference2) <= check->tolerance * sqrt(norm2) && worst <= 10 * check->tolerance * largest;
    if (!good)
        fail_msg(
            "%s: %s: %d images, first %s %dx%dx%d: off by %.3g of the norm (allowed %.3g); worst at %zu of "
            "%zu: found %.9g, expected %.9g",
            check->device, what, check->images, op_kind_name(check->ops[0].kind), check->ops[0].in.h,
            check->ops[0].in.w, check->ops[0].in.c, sqrt(difference2) / (norm2 > 0 ? sqrt(norm2) : 1),
            check->tolerance, worst_at, count, found[worst_at], expected[worst_at]);
}

/* Compare one buffer of the device with the reference's. */
static void compare(const char *what, int number, const struct op_check *check, const struct chain *chain,
                    const struct guarded *found, const struct chain *reference,
                    const struct guarded *expected, size_t count) {
    char name[64];
    float *a = floats(count), *b = floats(count);
    snprintf(name, sizeof name, "%s %d", what, number);
    guarded_read(chain->device, found, a, count);
    guarded_read(reference->device, expected, b, count);
    expect_near(name, check, a, b, count);
    free(a);
    free(b);
}

/* The reference has a group per operation: the border after operation `done - 1` is its value[done]. */
static int reference_border(const struct chain *chain, int border) {
    return border == 0 ? 0 : chain->group[border - 1].first + chain->group[border - 1].taken;
}

static void expect_unchanged(const char *what, struct device_handle device, const struct guarded *buffer,
                             const float *before, size_t count) {
    float *now = floats(count);
    guarded_read(device, buffer, now, count);
    if (memcmp(now, before, count * sizeof *now) != 0)
        fail_msg("%s was changed", what);
    free(now);
}

static void compare_forward(const struct op_check *check, struct chain *chain, struct chain *reference,
                            const struct inputs *inputs) {
    size_t images = (size_t)check->images;
    for (int b = 1; b <= chain->groups; b++) {
        int at = reference_border(chain, b);
        compare("output of operation", at - 1, check, chain, &chain->value[b], reference,
                &reference->value[at], images * shape_size(chain_shape(chain, b)));
    }
    expect_unchanged("the input", chain->device, &chain->value[0], inputs->x,
                     images * shape_size(chain_shape(chain, 0)));
}

static void compare_backward(const struct op_check *check, struct chain *chain, struct chain *reference,
                             const struct inputs *inputs) {
    size_t images = (size_t)check->images;
    if (!check->no_input_gradient) /* those between groups may have been destroyed by their readers */
        compare("gradient of the input of operation", 0, check, chain, &chain->gradient[0], reference,
                &reference->gradient[0], images * shape_size(chain_shape(chain, 0)));
    for (int i = 0; i < chain->count; i++) {
        size_t count = op_parameter_size(&chain->ops[i]);
        compare("parameter's gradient of operation", i, check, chain, &chain->parameter_gradient[i],
                reference, &reference->parameter_gradient[i], count);
        expect_unchanged("a parameter", chain->device, &chain->parameter[i], inputs->parameter[i], count);
    }
}

/* A plan for evaluation saves nothing and gives the same bytes. */
static void compare_evaluation(const struct op_check *check, const struct chain *trained,
                               const struct inputs *inputs) {
    struct chain chain;
    expect_ok(chain_open(&chain, trained->device, check->ops, check->count, check->images, false, false,
                         check->force),
              "planning forward only");
    set_values(&chain, inputs, 0);
    chain_run(&chain, chain_prepare, "prepare (forward only)");
    chain_run(&chain, chain_forward, "forward (forward only)");
    size_t count = (size_t)check->images * shape_size(chain_shape(&chain, chain.groups));
    float *values = floats(count);
    guarded_read(trained->device, &trained->value[trained->groups], values, count);
    expect_unchanged("the output, in a plan for forward only,", chain.device, &chain.value[chain.groups],
                     values, count);
    free(values);
    chain_close(&chain);
}

static enum status open_device(const struct op_check *check, struct device_handle *out) {
    struct device_options options = {.count = 1,
                                     .threads = check->threads,
                                     .isa = check->isa,
                                     .precision = check->precision,
                                     .deterministic = check->deterministic,
                                     .kept = check->kept};
    return device_open_with(check->device, &options, out);
}

enum status op_check(const struct op_check *check) {
    struct device_handle device = {0}, reference_device = {0};
    struct chain chain, reference;
    STATUS_TRY(open_device(check, &device));
    enum status status = chain_open(&chain, device, check->ops, check->count, check->images, true,
                                    !check->no_input_gradient, check->force);
    if (status != STATUS_OK) {
        device_close(&device);
        if (status != STATUS_UNSUPPORTED)
            expect_ok(status, "planning");
        return status;
    }
    expect_ok(device_open("ref64", 1, NULL, &reference_device), "the plain C device");
    expect_ok(chain_open(&reference, reference_device, check->ops, check->count, check->images, true,
                         !check->no_input_gradient, NULL),
              "planning on ref64");
    struct inputs inputs = inputs_new(check);
    set_values(&reference, &inputs, 0);
    set_values(&chain, &inputs, 0);
    chain_run(&reference, chain_forward, "forward of ref64");
    chain_run(&chain, chain_prepare, "prepare");
    chain_run(&chain, chain_forward, "forward");
    compare_forward(check, &chain, &reference, &inputs);
    compare_evaluation(check, &chain, &inputs);
    chain_run(&reference, chain_backward, "backward of ref64");
    chain_forget_unread(&chain);
    chain_run(&chain, chain_backward, "backward");
    compare_backward(check, &chain, &reference, &inputs);
    inputs_free(&inputs);
    chain_close(&chain);
    chain_close(&reference);
    device_close(&device);
    device_close(&reference_device);
    return STATUS_OK;
}

static int not_numbers(const float *values, size_t count) {
    int found = 0;
    for (size_t i = 0; i < count; i++)
        found += isnan(values[i]);
    return found;
}

enum status op_check_not_a_number(const struct op_check *check) {
    struct device_handle device = {0};
    struct chain chain;
    STATUS_TRY(open_device(check, &device));
    expect_ok(chain_open(&chain, device, check->ops, check->count, check->images, true, false, check->force),
              "planning");
    struct op_check any = *check;
    any.quantised = true;
    struct inputs inputs = inputs_new(&any);
    for (int c = 0; c < check->ops[0].in.c; c++)
        inputs.x[c] = NAN;
    set_values(&chain, &inputs, 0);
    chain_run(&chain, chain_prepare, "prepare");
    chain_run(&chain, chain_forward, "forward");
    size_t out = shape_size(chain_shape(&chain, chain.groups)), count = (size_t)check->images * out;
    float *values = floats(count);
    guarded_read(device, &chain.value[chain.groups], values, count);
    if (!not_numbers(values, out))
        fail_msg("%s, %d operations: an input that is not a number has become one", check->device,
                 check->count);
    if (not_numbers(values + out, count - out))
        fail_msg("%s, %d operations: an input that is not a number is in other images", check->device,
                 check->count);
    free(values);
    inputs_free(&inputs);
    chain_close(&chain);
    device_close(&device);
    return STATUS_OK;
}

/* The images in shards of `size`, the last one moved forward so that it is whole too. */
static void check_shards_of(const struct op_check *check, const struct chain *whole,
                            const struct inputs *inputs, int size) {
    int count = (check->images + size - 1) / size;
    struct chain *shards = calloc((size_t)count, sizeof *shards);
    assert_non_null(shards);
    size_t out = shape_size(chain_shape(whole, whole->groups));
    float *expected = floats((size_t)check->images * out), *found = floats((size_t)size * out);
    guarded_read(whole->device, &whole->value[whole->groups], expected, (size_t)check->images * out);
    for (int s = 0; s < count; s++) {
        int first = s == count - 1 ? check->images - size : s * size;
        expect_ok(
            chain_open(&shards[s], whole->device, check->ops, check->count, size, true, true, check->force),
            "planning a shard");
        set_values(&shards[s], inputs, first);
    }
    chain_run_all(shards, count, chain_prepare, "prepare of shards");
    chain_run_all(shards, count, chain_forward, "forward of shards");
    for (int s = 0; s < count; s++) {
        int first = s == count - 1 ? check->images - size : s * size;
        guarded_read(whole->device, &shards[s].value[shards[s].groups], found, (size_t)size * out);
        const float *same = expected + (size_t)first * out;
        for (size_t i = 0; i < (size_t)size * out; i++)
            if (memcmp(&found[i], &same[i], sizeof found[i]) != 0)
                fail_msg("%s: image %d in a shard of %d: value %zu is %.9g, with all %d images together %.9g",
                         check->device, first + (int)(i / out), size, i % out, found[i], check->images,
                         same[i]);
        chain_close(&shards[s]);
    }
    free(expected);
    free(found);
    free(shards);
}

enum status op_check_shards(const struct op_check *check) {
    static const int sizes[] = {2, 3, 7, 16, 33, 64};
    struct device_handle device = {0};
    struct chain whole;
    STATUS_TRY(open_device(check, &device));
    enum status status =
        chain_open(&whole, device, check->ops, check->count, check->images, true, true, check->force);
    if (status != STATUS_OK) {
        device_close(&device);
        if (status != STATUS_UNSUPPORTED)
            expect_ok(status, "planning");
        return status;
    }
    struct op_check any = *check;
    any.quantised = true; /* margins do not matter when bytes are compared */
    struct inputs inputs = inputs_new(&any);
    normal_values(inputs.x, (size_t)check->images * shape_size(check->ops[0].in),
                  check->input_scale != 0 ? check->input_scale : 1, check->seed, 999);
    set_values(&whole, &inputs, 0);
    chain_run(&whole, chain_prepare, "prepare");
    chain_run(&whole, chain_forward, "forward");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] <= check->images)
            check_shards_of(check, &whole, &inputs, sizes[i]);
    inputs_free(&inputs);
    chain_close(&whole);
    device_close(&device);
    return STATUS_OK;
}
