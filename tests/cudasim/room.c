#include "tests/cudasim/room.h"

#include "engine/base/random.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64 };
#ifdef __SANITIZE_ADDRESS__
static const size_t AFTER = 0; /* the sanitizer watches that side, to the byte */
#else
static const size_t AFTER = GUARD;
#endif

static const unsigned char guard_byte = 0xFB; /* as a float, a double: a huge negative number */

struct room room_new(size_t bytes, size_t shift) {
    struct room room = {.bytes = bytes};
    if (bytes == 0)
        return room;
    assert_int_equal(posix_memalign(&room.whole, 64, GUARD + shift + bytes + AFTER), 0);
    memset(room.whole, guard_byte, GUARD + shift + bytes + AFTER);
    room.data = (char *)room.whole + GUARD + shift;
    memset(room.data, 0xFF, bytes);
    return room;
}

void room_end(struct room *room, const char *what) {
    const unsigned char *at = room->whole, *data = room->data;
    for (; at && at < data; at++)
        if (*at != guard_byte)
            fail_msg("%s: written %zu bytes before its beginning", what, (size_t)(data - at));
    for (size_t i = 0; at && i < AFTER; i++)
        if (data[room->bytes + i] != guard_byte)
            fail_msg("%s: written %zu bytes after its end", what, i);
    free(room->whole);
    *room = (struct room){0};
}

struct room room_normal(size_t count, size_t shift, double scale, uint64_t stream) {
    struct room room = room_new(count * sizeof(float), shift);
    struct random r = random_begin(7, RANDOM_TEST, stream);
    for (size_t i = 0; i < count; i++)
        ((float *)room.data)[i] = (float)(scale * random_normal(&r));
    return room;
}

void expect_near(const char *what, const float *found, const double *expected, size_t count,
                 double tolerance) {
    double difference2 = 0, norm2 = 0, worst = 0, largest = 0;
    size_t worst_at = 0;
    for (size_t i = 0; i < count; i++) {
        double d = fabs(found[i] - expected[i]);
        difference2 += d * d;
        norm2 += expected[i] * expected[i];
        largest = fabs(expected[i]) > largest ? fabs(expected[i]) : largest;
        if (!(d <= worst)) {
            worst = d;
            worst_at = i;
        }
    }
    if (!(sqrt(difference2) <= tolerance * sqrt(norm2) && worst <= 10 * tolerance * largest))
        fail_msg("%s: off by %.3g of the norm (allowed %.3g); worst at %zu of %zu: found %.9g, expected %.9g",
                 what, sqrt(difference2) / sqrt(norm2), tolerance, worst_at, count, found[worst_at],
                 expected[worst_at]);
}

/* ---- both orders */

enum { KEPT = 64 };
static struct kept {
    void *data;
    size_t bytes;
} kept[KEPT];
static int kept_count;
static bool second;

void both_orders_keep(const char *what, const void *data, size_t bytes) {
    assert_in_range(kept_count, 0, KEPT - 1);
    struct kept *k = &kept[kept_count++];
    if (!second) {
        k->data = malloc(bytes + 1);
        assert_non_null(k->data);
        memcpy(k->data, data, bytes);
        k->bytes = bytes;
        return;
    }
    assert_int_equal(k->bytes, bytes);
    if (memcmp(k->data, data, bytes) != 0)
        fail_msg("%s: other bytes when threads and blocks run in descending order", what);
    free(k->data);
}

void both_orders(void (*run)(const void *args), const void *args) {
    for (int reverse = 0; reverse < 2; reverse++) {
        assert_int_equal(setenv("CUDASIM_REVERSE", reverse ? "1" : "0", 1), 0);
        second = reverse;
        kept_count = 0;
        run(args);
    }
    unsetenv("CUDASIM_REVERSE");
}
