#include <stdlib.h>
#include <string.h>
#include "tests/support/cmocka.h"

#include "datasets/order.h"

static void every_image_comes_once(void **state) {
    (void)state;
    const int64_t counts[] = {1, 2, 3, 10, 257, 60000};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        uint32_t *order = calloc((size_t)counts[k], sizeof *order);
        uint8_t *seen = calloc((size_t)counts[k], 1);
        assert_true(order && seen);
        order_epoch(7, 3, counts[k], order);
        for (int64_t i = 0; i < counts[k]; i++) {
            assert_true(order[i] < counts[k]);
            assert_int_equal(seen[order[i]]++, 0);
        }
        free(order);
        free(seen);
    }
}

static void seed_and_epoch_decide(void **state) {
    (void)state;
    enum { N = 1000 };
    static uint32_t first[N], again[N], epoch[N], seed[N];
    order_epoch(1, 0, N, first);
    order_epoch(1, 0, N, again);
    order_epoch(1, 1, N, epoch);
    order_epoch(2, 0, N, seed);
    assert_memory_equal(first, again, sizeof first);
    int same_epoch = 0, same_seed = 0;
    for (int i = 0; i < N; i++) {
        same_epoch += first[i] == epoch[i];
        same_seed += first[i] == seed[i];
    }
    /* One place in common is expected of two random orders; ten has a chance of 1e-7. */
    assert_in_range(same_epoch, 0, 10);
    assert_in_range(same_seed, 0, 10);
}

/* All 6 orders of 3 images come equally often, within 5 deviations. */
static void orders_are_uniform(void **state) {
    (void)state;
    int seen[6] = {0};
    for (int epoch = 0; epoch < 6000; epoch++) {
        uint32_t o[3];
        order_epoch(11, epoch, 3, o);
        seen[o[0] * 2 + (o[1] > o[2])]++;
    }
    for (int i = 0; i < 6; i++)
        assert_in_range(seen[i], 1000 - 145, 1000 + 145);
}

static void shards_cut_the_batch(void **state) {
    (void)state;
    for (int64_t images = 0; images <= 70; images++)
        for (int towers = 1; towers <= 64; towers++) {
            int64_t next = 0, largest = 0, smallest = images;
            for (int k = 0; k < towers; k++) {
                int64_t first, size = order_shard(images, towers, k, &first);
                assert_int_equal(first, next);
                next += size;
                largest = size > largest ? size : largest;
                smallest = size < smallest ? size : smallest;
            }
            assert_int_equal(next, images);
            assert_in_range(largest - smallest, 0, 1);
        }
    int64_t first;
    assert_int_equal(order_shard(10, 4, 0, &first), 3);
    assert_int_equal(order_shard(10, 4, 2, &first), 2);
    assert_int_equal(first, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_image_comes_once),
        cmocka_unit_test(seed_and_epoch_decide),
        cmocka_unit_test(orders_are_uniform),
        cmocka_unit_test(shards_cut_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
