/* distort against a plain double-precision walk through "Numbers" in ARCHITECTURE.md: crop, flip, brightness,
 * contrast, standardise. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/distort.h"
#include "engine/base/random.h"
#include "tests/support/cmocka.h"

enum { ALL = DISTORT_CROP | DISTORT_FLIP | DISTORT_BRIGHTNESS | DISTORT_CONTRAST, MOST = 80 * 80 * 4 };

static struct image_set make_set(struct shape shape, int64_t count, int low, int high) {
    struct image_set set = {.count = count, .shape = shape};
    size_t bytes = (size_t)count * shape_size(shape);
    set.pixels = malloc(bytes);
    set.labels = calloc((size_t)count, 1);
    assert_true(set.pixels && set.labels);
    struct random random = random_begin(1, RANDOM_TEST, (uint64_t)low);
    for (size_t i = 0; i < bytes; i++)
        set.pixels[i] = (uint8_t)(low + (int)random_below(&random, (uint32_t)(high - low + 1)));
    return set;
}

static void free_set(struct image_set *set) {
    free(set->pixels);
    free(set->labels);
}

/* The draws as the manual gives them: fixed places in the stream of (seed, epoch, sample). */
static struct distortion_draw expected_draw(const struct image_set *set, int64_t sample, int size,
                                            unsigned bits, uint64_t seed, int64_t epoch) {
    struct random random =
        random_begin(seed, RANDOM_DISTORT, (uint64_t)epoch * 4294967296u + (uint64_t)sample);
    uint32_t top = random_u32(&random), left = random_u32(&random), flip = random_u32(&random);
    uint32_t brightness = random_u32(&random), contrast = random_u32(&random);
    int above = set->shape.h - size, beside = set->shape.w - size;
    struct distortion_draw d = {above / 2, beside / 2, false, 0, 1};
    if (bits & DISTORT_CROP) {
        d.top = (int)floor(top / 4294967296.0 * (above + 1));
        d.left = (int)floor(left / 4294967296.0 * (beside + 1));
    }
    d.flip = (bits & DISTORT_FLIP) && flip >= 2147483648u;
    if (bits & DISTORT_BRIGHTNESS)
        d.brightness = (float)(-63 + 126 * floor(brightness / 256.0) / 16777216.0);
    if (bits & DISTORT_CONTRAST)
        d.contrast = (float)(0.2 + 1.6 * floor(contrast / 256.0) / 16777216.0);
    return d;
}

static void by_hand(const struct image_set *set, int64_t sample, int size, struct distortion_draw d,
                    double *out) {
    struct shape s = set->shape;
    int n = size * size;
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++)
            for (int c = 0; c < s.c; c++) {
                int from = d.flip ? size - 1 - x : x;
                size_t at = (((size_t)sample * (size_t)s.h + (size_t)(d.top + y)) * (size_t)s.w +
                             (size_t)(d.left + from)) *
                                (size_t)s.c +
                            (size_t)c;
                out[(y * size + x) * s.c + c] = (double)set->pixels[at] + (double)d.brightness;
            }
    for (int c = 0; c < s.c; c++) {
        double mean = 0;
        for (int i = 0; i < n; i++)
            mean += out[i * s.c + c] / n;
        for (int i = 0; i < n; i++)
            out[i * s.c + c] = (out[i * s.c + c] - mean) * (double)d.contrast + mean;
    }
    int values = n * s.c;
    double mean = 0, variance = 0;
    for (int i = 0; i < values; i++)
        mean += out[i] / values;
    for (int i = 0; i < values; i++)
        variance += (out[i] - mean) * (out[i] - mean) / values;
    double divisor = fmax(sqrt(variance), 1 / sqrt(values));
    for (int i = 0; i < values; i++)
        out[i] = (out[i] - mean) / divisor;
}

static void compare(const float *found, const double *expected, int values) {
    for (int i = 0; i < values; i++)
        if (!(fabs((double)found[i] - expected[i]) <= 3e-6 * (1 + fabs(expected[i]))))
            fail_msg("value %d is %.9g, %.9g expected", i, (double)found[i], expected[i]);
}

static void check_set(struct shape shape, int size, int low, int high) {
    static float found[MOST];
    static double expected[MOST];
    enum { COUNT = 40 };
    struct image_set set = make_set(shape, COUNT, low, high);
    int values = size * size * shape.c;
    for (unsigned bits = 0; bits <= ALL; bits++)
        for (int64_t sample = bits % 3; sample < COUNT; sample += 3) {
            int64_t epoch = sample % 5;
            const struct distort_options options = {.seed = 77, .size = size, .distortions = bits};
            struct distortion_draw wanted = expected_draw(&set, sample, size, bits, 77, epoch);
            struct distortion_draw d = distort_draw(&set, &options, sample, epoch);
            assert_int_equal(d.top, wanted.top);
            assert_int_equal(d.left, wanted.left);
            assert_int_equal(d.flip, wanted.flip);
            assert_true(fabsf(d.brightness - wanted.brightness) <= 1e-5f);
            assert_true(fabsf(d.contrast - wanted.contrast) <= 1e-6f);
            by_hand(&set, sample, size, d, expected);
            found[values] = 12345;
            distort_training(&set, &options, sample, epoch, found);
            compare(found, expected, values);
            assert_true(found[values] == 12345); /* nothing beyond the image is written */
        }
    for (int64_t sample = 0; sample < COUNT; sample++) {
        struct distortion_draw centre = {(shape.h - size) / 2, (shape.w - size) / 2, false, 0, 1};
        by_hand(&set, sample, size, centre, expected);
        distort_evaluation(&set, sample, size, found);
        compare(found, expected, values);
    }
    free_set(&set);
}

static void colour_images(void **state) {
    (void)state;
    check_set((struct shape){32, 32, 3}, 24, 0, 255);
}

static void grey_images(void **state) {
    (void)state;
    check_set((struct shape){28, 28, 1}, 24, 0, 255);
    check_set((struct shape){28, 28, 1}, 28, 0, 255);
}

/* Wider than the pieces that are handled together, not square, two and four channels, a single pixel. */
static void odd_images(void **state) {
    (void)state;
    check_set((struct shape){70, 75, 3}, 67, 0, 255);
    check_set((struct shape){9, 40, 4}, 7, 0, 255);
    check_set((struct shape){33, 33, 2}, 33, 100, 140);
    check_set((struct shape){5, 5, 3}, 1, 0, 255);
}

/* So tall and bright that the sums of a column pass 16 bits more than once. */
static void tall_images(void **state) {
    (void)state;
    enum { SIDE = 530 };
    static float found[SIDE * SIDE];
    static double expected[SIDE * SIDE];
    struct image_set set = make_set((struct shape){SIDE, SIDE, 1}, 1, 250, 255);
    struct distortion_draw centre = {.contrast = 1};
    by_hand(&set, 0, SIDE, centre, expected);
    distort_evaluation(&set, 0, SIDE, found);
    compare(found, expected, SIDE * SIDE);
    free_set(&set);
}

/* Little or no difference between the pixels: the deviation is held at 1/sqrt(n). */
static void flat_images(void **state) {
    (void)state;
    check_set((struct shape){12, 12, 3}, 8, 200, 201);
    check_set((struct shape){12, 12, 1}, 8, 7, 7);
    struct image_set set = make_set((struct shape){12, 12, 3}, 1, 255, 255);
    float out[8 * 8 * 3];
    distort_training(&set, &(struct distort_options){.seed = 1, .size = 8, .distortions = ALL}, 0, 0, out);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        assert_true(out[i] == 0);
    free_set(&set);
}

/* Over many draws: each place equally often, half flipped, brightness and contrast over their whole range. */
static void draws_are_spread(void **state) {
    (void)state;
    enum { DRAWS = 81000 };
    struct image_set set = {.count = DRAWS, .shape = {32, 32, 3}};
    static int place[9][9];
    int flips = 0;
    double brightness = 0, contrast = 0, least[2] = {99, 99}, most[2] = {-99, -99};
    const struct distort_options options = {.seed = 5, .size = 24, .distortions = ALL};
    for (int i = 0; i < DRAWS; i++) {
        struct distortion_draw d = distort_draw(&set, &options, i % 1000, i / 1000);
        assert_in_range(d.top, 0, 8);
        assert_in_range(d.left, 0, 8);
        place[d.top][d.left]++;
        flips += d.flip;
        brightness += (double)d.brightness / DRAWS;
        contrast += (double)d.contrast / DRAWS;
        least[0] = fmin(least[0], (double)d.brightness);
        most[0] = fmax(most[0], (double)d.brightness);
        least[1] = fmin(least[1], (double)d.contrast);
        most[1] = fmax(most[1], (double)d.contrast);
    }
    for (int t = 0; t < 9; t++)
        for (int l = 0; l < 9; l++)
            assert_in_range(place[t][l], 1000 - 160, 1000 + 160); /* five deviations */
    assert_in_range(flips, DRAWS / 2 - 720, DRAWS / 2 + 720);
    assert_true(fabs(brightness) < 0.7 && fabs(contrast - 1) < 0.01);
    assert_true(least[0] >= -63 && least[0] < -62.9 && most[0] < 63 && most[0] > 62.9);
    assert_true(least[1] >= 0.2f && least[1] < 0.201 && most[1] <= 1.8f && most[1] > 1.799);
}

/* Turning one distortion off leaves the draws of the others as they were. */
static void draws_do_not_depend_on_each_other(void **state) {
    (void)state;
    struct image_set set = {.count = 100, .shape = {32, 32, 3}};
    const struct distort_options every = {.seed = 5, .size = 24, .distortions = ALL};
    const struct distort_options two = {
        .seed = 5, .size = 24, .distortions = DISTORT_FLIP | DISTORT_CONTRAST};
    for (int64_t sample = 0; sample < 100; sample++) {
        struct distortion_draw all = distort_draw(&set, &every, sample, 2);
        struct distortion_draw some = distort_draw(&set, &two, sample, 2);
        assert_int_equal(some.flip, all.flip);
        assert_true(some.contrast == all.contrast && some.brightness == 0);
        assert_int_equal(some.top, 4);
        assert_int_equal(some.left, 4);
    }
}

static void words(void **state) {
    (void)state;
    static const char *const same[] = {"on", "off", "crop", "flip,contrast", "crop,flip,brightness"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        unsigned bits = 99;
        char text[64];
        assert_int_equal(distort_parse(same[i], &bits), STATUS_OK);
        distort_format(bits, text);
        assert_string_equal(text, same[i]);
    }
    unsigned bits = 99;
    assert_int_equal(distort_parse("contrast,brightness,flip,crop", &bits), STATUS_OK);
    assert_int_equal(bits, ALL);
    bits = 99;
    static const char *const wrong[] = {"",           "On",          "crop,",     ",crop",
                                        "crop,,flip", "crop,rotate", "crop flip", "onn"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(distort_parse(wrong[i], &bits), STATUS_BAD_INPUT);
        assert_int_equal(bits, 99);
    }
    distort_parse("crop,rotate", &bits);
    assert_non_null(strstr(status_text(), "\"rotate\""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colour_images),
        cmocka_unit_test(grey_images),
        cmocka_unit_test(odd_images),
        cmocka_unit_test(tall_images),
        cmocka_unit_test(flat_images),
        cmocka_unit_test(draws_are_spread),
        cmocka_unit_test(draws_do_not_depend_on_each_other),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
