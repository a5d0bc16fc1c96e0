#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/cmocka.h"

#include "datasets/distort.h"
#include "datasets/loader.h"
#include "datasets/order.h"
#include "engine/base/random.h"

enum { SIDE = 12, SIZE = 8, ALL = DISTORT_CROP | DISTORT_FLIP | DISTORT_BRIGHTNESS | DISTORT_CONTRAST };

static struct image_set make_set(int64_t count) {
    struct image_set set = {.count = count, .shape = {SIDE, SIDE, 3}};
    size_t bytes = (size_t)count * shape_size(set.shape);
    set.pixels = malloc(bytes);
    set.labels = malloc((size_t)count);
    assert_true(set.pixels && set.labels);
    struct random random = random_begin(5, RANDOM_TEST, 0);
    for (size_t i = 0; i < bytes; i++)
        set.pixels[i] = (uint8_t)random_u32(&random);
    for (int64_t i = 0; i < count; i++)
        set.labels[i] = (uint8_t)random_below(&random, 10);
    return set;
}

static void free_set(struct image_set *set) {
    free(set->pixels);
    free(set->labels);
}

static struct loader *open_loader(const struct image_set *set, int threads, int ahead,
                                  struct loader_place place, int64_t batch) {
    struct loader_options options = {
        .seed = 9, .size = SIZE, .distortions = ALL, .threads = threads, .ahead = ahead};
    struct loader *loader;
    assert_int_equal(loader_open(set, &options, place, batch, &loader), STATUS_OK);
    return loader;
}

/* A batch is what order and distort say, computed here one image at a time. */
static void check_batch(const struct image_set *set, const struct batch *b, struct loader_place place,
                        int64_t images) {
    static uint32_t order[4096];
    float expected[SIZE * SIZE * 3];
    assert_int_equal(b->place.epoch, place.epoch);
    assert_int_equal(b->place.position, place.position);
    assert_int_equal(b->images, images);
    assert_int_equal((uintptr_t)b->pixels % 64, 0);
    order_epoch(9, place.epoch, set->count, order);
    for (int64_t i = 0; i < images; i++) {
        int64_t sample = order[place.position + i];
        assert_int_equal(b->samples[i], sample);
        assert_int_equal(b->labels[i], set->labels[sample]);
        distort_training(set, &(struct distort_options){.seed = 9, .size = SIZE, .distortions = ALL}, sample,
                         place.epoch, expected);
        assert_memory_equal(b->pixels + i * SIZE * SIZE * 3, expected, sizeof expected);
    }
}

struct maker {
    const struct loader *loader;
    const struct batch *batch;
    int64_t first, images;
};

static void *make_slice(void *argument) {
    const struct maker *m = argument;
    loader_make(m->loader, m->batch, m->first, m->images);
    return NULL;
}

/* In slices of 0, 1, ... pictures at random, the last first, half of them by a second thread. */
static void make_pictures(const struct loader *loader, const struct batch *b) {
    struct random random = random_begin(4, RANDOM_TEST, (uint64_t)b->place.position);
    for (int64_t left = b->images; left > 0;) {
        int64_t here = random_below(&random, (uint32_t)(left + 1)),
                there = random_below(&random, (uint32_t)(left - here + 1));
        struct maker mine = {loader, b, left - here, here}, other = {loader, b, left - here - there, there};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, make_slice, &other), 0);
        make_slice(&mine);
        pthread_join(thread, NULL);
        left -= here + there;
    }
}

/* From a place, `batches` batches in order, each epoch ending with a short one. */
static struct loader_place check_run(struct loader *loader, int threads, const struct image_set *set,
                                     struct loader_place place, int64_t batch, int batches) {
    for (int i = 0; i < batches; i++) {
        const struct batch *b;
        double waited = -1;
        assert_int_equal(loader_next(loader, &b, &waited), STATUS_OK);
        assert_true(waited >= 0);
        if (threads == 0)
            make_pictures(loader, b);
        int64_t left = set->count - place.position;
        check_batch(set, b, place, left < batch ? left : batch);
        place = loader_after(set, b);
        if (left <= batch)
            assert_true(place.epoch == b->place.epoch + 1 && place.position == 0);
        else
            assert_true(place.epoch == b->place.epoch && place.position == b->place.position + batch);
    }
    return place;
}

static void batches_are_the_same_whatever_the_threads(void **state) {
    (void)state;
    const int64_t counts[] = {1, 10, 100, 203}, sizes[] = {1, 7, 64, 256};
    for (size_t c = 0; c < 4; c++) {
        struct image_set set = make_set(counts[c]);
        for (size_t s = 0; s < 4; s++)
            for (int threads = 0; threads <= 5; threads++) {
                struct loader *loader =
                    open_loader(&set, threads, 1 + threads / 2, (struct loader_place){0, 0}, sizes[s]);
                check_run(loader, threads, &set, (struct loader_place){0, 0}, sizes[s], 9);
                loader_close(loader);
            }
        free_set(&set);
    }
}

static void seeks(void **state) {
    (void)state;
    struct image_set set = make_set(150);
    for (int threads = 0; threads <= 3; threads++) {
        struct loader_place place = {2, 140};
        struct loader *loader = open_loader(&set, threads, 3, place, 8);
        struct random random = random_begin(3, RANDOM_TEST, (uint64_t)threads);
        int64_t batch = 8;
        for (int i = 0; i < 60; i++) {
            place = check_run(loader, threads, &set, place, batch, (int)random_below(&random, 4));
            batch = 1 + (int64_t)random_below(&random, i < 30 ? 20 : 200);
            if (random_below(&random, 2))
                place = (struct loader_place){random_below(&random, 5), random_below(&random, 150)};
            assert_int_equal(loader_seek(loader, place, batch), STATUS_OK);
        }
        loader_close(loader);
    }
    free_set(&set);
}

static void closes_at_any_moment(void **state) {
    (void)state;
    struct image_set set = make_set(1000);
    for (int i = 0; i < 50; i++) {
        struct loader *loader = open_loader(&set, 1 + i % 4, 1 + i % 3, (struct loader_place){0, 0}, 300);
        const struct batch *b;
        for (int k = 0; k < i % 3; k++)
            assert_int_equal(loader_next(loader, &b, NULL), STATUS_OK);
        loader_close(loader);
    }
    loader_close(NULL);
    free_set(&set);
}

static void refuses_what_cannot_be(void **state) {
    (void)state;
    struct image_set set = make_set(10);
    struct loader_options options = {.size = SIDE + 1, .threads = 1, .ahead = 1};
    struct loader *loader;
    struct loader_place start = {0, 0};
    assert_int_equal(loader_open(&set, &options, start, 4, &loader), STATUS_BAD_INPUT);
    assert_non_null(strstr(status_text(), "12x12"));
    assert_non_null(strstr(status_text(), "13x13"));
    assert_null(loader);
    options.size = SIZE;
    assert_int_equal(loader_open(&set, &options, start, 0, &loader), STATUS_BAD_INPUT);
    assert_int_equal(loader_open(&set, &options, (struct loader_place){0, 10}, 4, &loader), STATUS_BAD_INPUT);
    assert_int_equal(loader_open(&set, &options, (struct loader_place){-1, 0}, 4, &loader), STATUS_BAD_INPUT);
    assert_int_equal(loader_open(&set, &options, start, INT64_MAX, &loader),
                     STATUS_OK); /* the whole set at once */
    assert_int_equal(loader_seek(loader, (struct loader_place){0, -1}, 4), STATUS_BAD_INPUT);
    const struct batch *b;
    assert_int_equal(loader_next(loader, &b, NULL), STATUS_OK); /* a refused seek changes nothing */
    assert_int_equal(b->images, 10);
    loader_close(loader);
    free_set(&set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_the_same_whatever_the_threads),
        cmocka_unit_test(seeks),
        cmocka_unit_test(closes_at_any_moment),
        cmocka_unit_test(refuses_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
