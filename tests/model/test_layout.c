/* Pieces of memory: those alive together never overlap, and little is wasted. */
#include "engine/base/random.h"
#include "engine/model/layout.h"
#include "tests/support/cmocka.h"

static size_t aligned(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* The most bytes that are alive at one moment: no layout can do with less. */
static size_t busiest(const struct piece *pieces, int count, int moments) {
    size_t most = 0;
    for (int t = 0; t < moments; t++) {
        size_t alive = 0;
        for (int i = 0; i < count; i++)
            if (pieces[i].first <= t && t <= pieces[i].last)
                alive += aligned(pieces[i].bytes);
        if (alive > most)
            most = alive;
    }
    return most;
}

static void check(struct piece *pieces, int count, int moments, double waste) {
    size_t total;
    assert_int_equal(layout_place(pieces, count, &total), STATUS_OK);
    for (int i = 0; i < count; i++) {
        const struct piece *p = &pieces[i];
        assert_int_equal(p->offset % 64, 0);
        assert_true(p->offset + p->bytes <= total);
        for (int k = 0; k < i; k++) {
            const struct piece *q = &pieces[k];
            if (p->first <= q->last && q->first <= p->last && p->bytes && q->bytes)
                assert_true(p->offset + p->bytes <= q->offset || q->offset + q->bytes <= p->offset);
        }
    }
    size_t least = busiest(pieces, count, moments);
    assert_true(total >= least);
    assert_true((double)total <= waste * (double)least);
}

static void test_random(void **state) {
    (void)state;
    enum { COUNT = 60, MOMENTS = 40 };
    for (uint64_t trial = 0; trial < 300; trial++) {
        struct piece pieces[COUNT];
        struct random r = random_begin(trial, RANDOM_TEST, 0);
        int count = 1 + (int)random_below(&r, COUNT);
        for (int i = 0; i < count; i++) {
            int first = (int)random_below(&r, MOMENTS), length = (int)random_below(&r, 8);
            int last = first + length < MOMENTS ? first + length : MOMENTS - 1;
            pieces[i] = (struct piece){.bytes = random_below(&r, 10000), .first = first, .last = last};
        }
        check(pieces, count, MOMENTS, 1.6);
    }
}

/* Kept activations and gradients that take turns, as in a net: nothing is wasted. */
static void test_chain(void **state) {
    (void)state;
    enum { GROUPS = 12, MOMENTS = 2 * GROUPS + 1 };
    struct piece pieces[2 * GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        pieces[2 * g] = (struct piece){.bytes = 6400, .first = g, .last = 2 * GROUPS - g};
        pieces[2 * g + 1] =
            (struct piece){.bytes = 6400, .first = 2 * GROUPS - g - 1, .last = 2 * GROUPS - g};
    }
    check(pieces, 2 * GROUPS, MOMENTS, 1.0);
}

static void test_too_much(void **state) {
    (void)state;
    struct piece pieces[2] = {{.bytes = SIZE_MAX / 2 + 1, .last = 1}, {.bytes = SIZE_MAX / 2 + 1, .last = 1}};
    size_t total;
    assert_int_equal(layout_place(pieces, 2, &total), STATUS_NO_MEMORY);
    pieces[0].bytes = SIZE_MAX;
    assert_int_equal(layout_place(pieces, 1, &total), STATUS_NO_MEMORY);
    assert_int_equal(layout_place(pieces, 0, &total), STATUS_OK);
    assert_int_equal(total, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
