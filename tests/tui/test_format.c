/* Numbers in columns: the dot keeps its place, nothing is wider than its column, unknown is no 0. */
#include <math.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/wire/event.h"
#include "engine/base/text.h"
#include "tests/support/cmocka.h"
#include "tui/canvas.h"
#include "tui/format.h"

static void fixed(double value, int width, int decimals, const char *wanted) {
    char text[FORMAT_SIZE];
    format_fixed(text, value, width, decimals);
    assert_string_equal(text, wanted);
}

static void fixed_columns(void **state) {
    (void)state;
    fixed(1.5166, 8, 4, "  1.5166");
    fixed(0.00005, 8, 4, "  0.0001");
    fixed(0.00004, 8, 4, "4.000e-5");
    fixed(-0.25, 8, 4, " -0.2500");
    fixed(0, 8, 4, "  0.0000");
    fixed(123.45678, 8, 4, "123.4568");
    fixed(12345.678, 9, 4, "12345.678");
    fixed(13.437, 5, 3, "13.44");
    fixed(1343.7, 7, 3, "1343.70");
    fixed(12345678, 7, 3, "1.235e7");
    fixed(128, 6, 0, "   128");
    fixed(wire_unknown(), 8, 4, "  \u2013     ");
    fixed(NAN, 8, 4, "     NaN");
    fixed(INFINITY, 10, 3, "       inf");
    fixed(wire_unknown(), 6, 0, "     \u2013");
}

static void never_too_wide(void **state) {
    (void)state;
    static const double values[] = {0,    1,    -1,    9.99999, 99999,  1e5,     1e9,
                                    -1e9, 1e-9, 1e300, -1e300,  4e-320, INFINITY};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        for (int width = 1; width <= 20; width++)
            for (int decimals = 0; decimals <= 4; decimals++) {
                char text[FORMAT_SIZE];
                format_fixed(text, values[i], width, decimals);
                if (isfinite(values[i]))
                    assert_true(text_width(text) <= width);
            }
}

/* Within a sentence: whole numbers alone, and nothing is written past the end. */
static void sentences(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"step 1241: loss of tower 0 is not finite", "step 1 241: loss of tower 0 is not finite"},
        {"12345 of 10000, (60000) more.", "12 345 of 10 000, (60 000) more."},
        {"128 images, 999", "128 images, 999"},
        {"0.12345 1234.5 1e10000 x1234 1234x 2026-11-30 ckpt-00001000.safetensors 0001000",
         "0.12345 1234.5 1e10000 x1234 1234x 2026-11-30 ckpt-00001000.safetensors 0001000"},
        {"1000", "1 000"},
        {"", ""}};
    char out[200], less[40];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        text_counts(out, sizeof out, pairs[i][0]);
        assert_string_equal(out, pairs[i][1]);
        memset(less, 'x', sizeof less);
        text_counts(less, sizeof less - 1, pairs[i][0]);
        assert_memory_equal(less, pairs[i][1], strlen(less));
        assert_int_equal(less[sizeof less - 1], 'x');
    }
}

static void others(void **state) {
    (void)state;
    char text[FORMAT_SIZE];
    format_count(text, 1234567);
    assert_string_equal(text, "1 234 567");
    format_count(text, -1000);
    assert_string_equal(text, "-1 000");
    format_count(text, WIRE_UNKNOWN_INT);
    assert_string_equal(text, "\u2013");
    format_cosine(text, 0.714);
    assert_string_equal(text, " .71");
    format_cosine(text, -0.5);
    assert_string_equal(text, "-.50");
    format_cosine(text, -0.004);
    assert_string_equal(text, " .00");
    format_cosine(text, 1);
    assert_string_equal(text, "1.00");
    format_duration(text, 41.4);
    assert_string_equal(text, "41 s");
    format_duration(text, 22 * 60 + 5);
    assert_string_equal(text, "22 min");
    format_duration(text, 3 * 3600 + 300);
    assert_string_equal(text, "3 h 05 min");
    assert_string_equal(memory_words(1434, text), "1.4 KiB");
    format_short(text, 0.0312, 3);
    assert_string_equal(text, "0.0312");
    format_short(text, 12345, 3);
    assert_string_equal(text, "12345");
    format_short(text, 3.1e-5, 2);
    assert_string_equal(text, "3.1e-5");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_columns),
        cmocka_unit_test(never_too_wide),
        cmocka_unit_test(others),
        cmocka_unit_test(sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
