#include <math.h>
#include <string.h>
#include "tests/support/cmocka.h"

#include "engine/base/random.h"
#include "engine/train/collection.h"
#include "engine/train/noise.h"
#include "engine/train/running.h"
#include "engine/train/schedule.h"
#include "tests/support/train_run.h"

static void test_rate(void **state) {
    (void)state;
    struct schedule s = {.base = 0.1, .decay = 0.1, .period_images = 1000};
    assert_near(schedule_rate(&s, 0), 0.1, 1e-15);
    assert_near(schedule_rate(&s, 999), 0.1, 1e-15);
    assert_near(schedule_rate(&s, 1000), 0.01, 1e-15);
    assert_near(schedule_rate(&s, 2500), 0.001, 1e-15);
    /* set in the third period: X now, falls where it would have fallen */
    schedule_set(&s, 0.5, 2500);
    assert_near(schedule_rate(&s, 2500), 0.5, 1e-15);
    assert_near(schedule_until_fall(&s, 2500), 500, 1e-12);
    assert_near(schedule_rate(&s, 2999), 0.5, 1e-15);
    assert_near(schedule_rate(&s, 3000), 0.05, 1e-15);
    /* gone back to before it was set, the rate stays what was set, and never rises above it */
    assert_near(schedule_rate(&s, 1999), 0.5, 1e-15);
    assert_near(schedule_rate(&s, 0), 0.5, 1e-15);
    assert_near(schedule_until_fall(&s, 900), 2100, 1e-12);
}

/* A period is whole images, whatever a product of doubles makes of it. */
static void test_period(void **state) {
    (void)state;
    for (int64_t tenths = 1; tenths <= 4000; tenths++) {
        struct schedule s = {
            .base = 0.1, .decay = 0.1, .period_images = schedule_period((double)tenths / 10, 50000)};
        assert_near(schedule_rate(&s, tenths * 5000 - 1), 0.1, 1e-15);
        assert_near(schedule_rate(&s, tenths * 5000), 0.01, 1e-15);
    }
    assert_near(schedule_period(1e-9, 100), 1, 0);
}

/* The tutorial's rule, lr = 0.1 * 0.1^floor(step / decay_steps), for a constant batch that divides an epoch.
 */
static void test_rate_is_the_tutorials(void **state) {
    (void)state;
    const int64_t images = 50000, batch = 125, epochs = 350;
    struct schedule s = {.base = 0.1, .decay = 0.1, .period_images = (double)(images * epochs)};
    int64_t decay_steps = images / batch * epochs;
    for (int64_t step = 0; step < 3 * decay_steps; step += 1 + step % 977)
        assert_near(schedule_rate(&s, step * batch) / (0.1 * pow(0.1, (double)(step / decay_steps))), 1,
                    1e-12);
    assert_near(schedule_rate(&s, (decay_steps - 1) * batch), 0.1, 1e-15);
    assert_near(schedule_rate(&s, decay_steps * batch), 0.01, 1e-15);
}

static void test_average_decay(void **state) {
    (void)state;
    assert_near(average_decay(0.9999, 0), 0.1, 1e-15);
    assert_near(average_decay(0.9999, 1), 2.0 / 11, 1e-15);
    assert_near(average_decay(0.9999, 89989), 89990.0 / 89999, 1e-15);
    assert_true(average_decay(0.9999, 1000000) == 0.9999);
    assert_true(average_decay(0.5, 1000) == 0.5);
}

static int64_t recorded(int64_t steps, int64_t planned, int64_t every) {
    int64_t count = 0;
    for (int64_t i = 1; i <= steps; i++)
        count += recorded_by_count(i, planned, every);
    return count;
}

static void test_recorded(void **state) {
    (void)state;
    assert_int_equal(recorded(1000, 1000000, 0), 1000);
    assert_int_equal(recorded(20000, 20000, 0), 20000);
    /* k = 2 */
    assert_int_equal(recorded(20001, 20001, 0), 1000 + 9500);
    assert_true(recorded_by_count(1002, 20001, 0) && !recorded_by_count(1001, 20001, 0));
    /* k = 3: 1,000 is recorded for being one of the first thousand */
    assert_true(recorded_by_count(1000, 60000, 0) && recorded_by_count(1002, 60000, 0));
    assert_false(recorded_by_count(1001, 60000, 0));
    /* k = 50 */
    assert_int_equal(recorded(1000000, 1000000, 0), 1000 + 19980);
    assert_int_equal(recorded(2000, -1, 0), 1000 + 20);
    assert_int_equal(recorded(100, 100, 7), 14);
    assert_true(recorded_by_count(7, 100, 7) && !recorded_by_count(1, 100, 7));
}

static void test_running(void **state) {
    (void)state;
    struct running r = {0};
    running_update(&r, 4, 2);
    running_update(&r, 2, 5);
    assert_near(r.loss, 3, 1e-15);
    assert_true(r.loss_min == 2 && r.loss_max == 4 && r.grad_norm_max == 5);
    running_recorded(&r);
    running_update(&r, 3, 1);
    assert_true(r.loss_min == 3 && r.loss_max == 3 && r.grad_norm_max == 1);
    assert_true(running_good(&r, 29.9));
    assert_false(running_good(&r, 30.1));
    assert_false(running_good(&r, NAN));
    assert_false(running_good(&r, INFINITY));
}

/* ---- the collection */

static void test_scopes(void **state) {
    (void)state;
    struct model *model;
    struct model_ends ends = {8, 8, 1, 5};
    assert_int_equal(model_parse("t", mlp_text, ends, NAN, &model), STATUS_OK);
    struct collection c;
    assert_int_equal(collection_new(model, 12, &c), STATUS_OK);
    assert_int_equal(c.count, 12 * 4);
    double norms2[6] = {10, 0, 20, 0, 30, 0};
    for (int k = 0; k < 12; k++)
        collection_fill(&c, k, model->segments, norms2, 100 + k);
    /* decay terms first, a given decay of 0 has its term, and the names are TensorFlow's */
    assert_string_equal(c.terms[4].name, "tower_1/one/weight_loss");
    assert_string_equal(c.terms[5].name, "tower_1/two/weight_loss");
    assert_string_equal(c.terms[6].name, "tower_1/out/weight_loss");
    assert_string_equal(c.terms[7].name, "tower_1/cross_entropy");
    int chosen[48];
    int count = collection_select(&c, "tower_1/", chosen); /* not those of tower_10 and tower_11 */
    assert_int_equal(count, 4);
    assert_near(collection_sum(&c, chosen, count), 0.004 * 10 / 2 + 0 + 0.01 * 30 / 2 + 101, 1e-12);
    /* without the slash the scope also takes towers 10 and 11; without a scope everything */
    assert_int_equal(collection_select(&c, "tower_1", chosen), 12);
    count = collection_select(&c, "", chosen);
    assert_int_equal(count, 48);
    assert_near(collection_sum(&c, chosen, count), 12 * (0.02 + 0.15) + 12 * 100 + 66, 1e-12);
    collection_free(&c);
    model_free(model);
}

/* ---- the noise scale, on gradients whose noise is known */

enum { DIMENSIONS = 50 };

/* A gradient over `images` images: G + noise with covariance s^2 / images in each of the dimensions. */
static void draw_gradient(struct random *r, double g, double s, double images, double out[DIMENSIONS]) {
    for (int i = 0; i < DIMENSIONS; i++)
        out[i] = g + s / sqrt(images) * random_normal(r);
}

static double noise_of(const int64_t *shards, int towers, double g, double s, int steps) {
    struct noise_scale noise = {0};
    struct random r = random_begin(3, RANDOM_TEST, 0);
    int64_t images = 0;
    for (int k = 0; k < towers; k++)
        images += shards[k];
    for (int step = 0; step < steps; step++) {
        double average[DIMENSIONS] = {0}, one[DIMENSIONS], towers_norm2 = 0, average_norm2 = 0;
        for (int k = 0; k < towers; k++) {
            double weight = (double)shards[k] / (double)images;
            draw_gradient(&r, g, s, (double)shards[k], one);
            for (int i = 0; i < DIMENSIONS; i++) {
                average[i] += weight * one[i];
                towers_norm2 += weight * one[i] * one[i];
            }
        }
        for (int i = 0; i < DIMENSIONS; i++)
            average_norm2 += average[i] * average[i];
        noise_update(&noise, towers_norm2, average_norm2, images, towers);
    }
    return noise_value(&noise);
}

static void test_noise(void **state) {
    (void)state;
    /* |G|^2 = 50 * 0.04 = 2, tr S = 50 * 9 = 450: 225 images */
    const int64_t even[] = {32, 32, 32, 32}, uneven[] = {100, 20, 8}, two[] = {64, 64};
    assert_near(noise_of(even, 4, 0.2, 3, 4000) / 225, 1, 0.15);
    assert_near(noise_of(uneven, 3, 0.2, 3, 4000) / 225, 1, 0.15);
    assert_near(noise_of(two, 2, 0.2, 3, 4000) / 225, 1, 0.15);
    assert_near(noise_of(even, 4, 0.2, 6, 4000) / 900, 1, 0.3);
}

static void test_noise_unknown(void **state) {
    (void)state;
    struct noise_scale noise = {0};
    assert_true(noise_value(&noise) < 0);
    noise_update(&noise, 4, 4, 128, 1); /* one tower tells nothing */
    assert_true(noise_value(&noise) < 0);
    noise_update(&noise, NAN, 1, 128, 2);
    assert_true(noise_value(&noise) < 0);
    noise_update(&noise, 5, 4, 128, 2);
    double known = noise_value(&noise); /* |G|^2 = (128*4 - 64*5)/64 = 3, S = 1 / (1/64 - 1/128) = 128 */
    assert_near(known, 128.0 / 3, 1e-12);
    noise_update(&noise, 4, 4, 128, 1);
    assert_true(noise_value(&noise) == known);
    noise = (struct noise_scale){0};
    noise_update(&noise, 10, 4, 128, 2); /* an estimate of |G|^2 below 0 */
    assert_true(noise_value(&noise) < 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rate),          cmocka_unit_test(test_rate_is_the_tutorials),
        cmocka_unit_test(test_average_decay), cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_running),       cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_noise),         cmocka_unit_test(test_noise_unknown),
        cmocka_unit_test(test_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
