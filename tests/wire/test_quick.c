/* The short way to read a line gives what the JSON library gives, to the last bit, or nothing at all; and it
 * is the way of every ordinary line. */
#include <ctype.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/wire/codec.h"
#include "engine/wire/fields.h"
#include "engine/wire/quick.h"
#include "tests/support/cmocka.h"
#include "tests/support/events.h"
#include "tests/support/locale.h"
#include "tests/support/stream.h"

enum { SHOWN = 300 };

/* Whether the line goes the short way. Fails the test where that gives something else than the long one. */
static bool agree(const char *line, size_t length) {
    struct arena arena = {0};
    struct event quick, json, both, untouched;
    memset(&quick, 0x5a, sizeof quick);
    untouched = quick;
    /* exactly as long as it says, so that the address sanitizer sees a byte too many */
    char *exact = malloc(length ? length : 1);
    assert_non_null(exact);
    memcpy(exact, line, length);
    bool taken = event_decode_quick(exact, length, &arena, &quick);
    enum status status = event_decode_json(exact, length, &arena, &json);
    enum status either = event_decode(exact, length, &arena, &both);
    const char *field = "status";
    int cut = length < SHOWN ? (int)length : SHOWN;
    if (either != status || (taken && status != STATUS_OK))
        fail_msg("%d and %d, %s, of: %.*s", (int)either, (int)status, status_text(), cut, line);
    if (!taken && memcmp(&quick, &untouched, sizeof quick) != 0)
        fail_msg("something is left of: %.*s", cut, line);
    if ((taken && !events_equal(&quick, &json, &field)) ||
        (status == STATUS_OK && !events_equal(&both, &json, &field)))
        fail_msg("field %s differs: %.*s", field, cut, line);
    free(exact);
    arena_free(&arena);
    return taken;
}

static bool agree_text(const char *line) {
    return agree(line, strlen(line));
}

/* ---- ordinary lines */

static enum status must_be_quick(void *context, const struct event *event) {
    struct arena arena = {0};
    int *count = context;
    char *line;
    size_t length;
    assert_int_equal(event_encode(event, &arena, &line, &length), STATUS_OK);
    if (!agree(line, length))
        fail_msg("not read the short way: %s", line);
    ++*count;
    arena_free(&arena);
    return STATUS_OK;
}

static void what_a_run_writes_is_quick(void **context) {
    (void)context;
    const struct stream_script scripts[] = {
        {.towers = 4, .steps = 300, .eval_every = 100, .checkpoint_every = 50, .layers = true, .ended = true},
        {.towers = 3, .steps = 40, .planned = 90, .towers_at = 10, .towers_to = 5, .nan_at = 30},
        {.towers = 2, .steps = 40, .commands_at = 20, .refused_at = 21, .alarm_at = 30, .pause_at = 35},
        {.towers = 5, .steps = 40, .applied = "sum", .frozen = "update", .confusion = true, .eval_every = 7},
        {.towers = 64, .steps = 10, .unknown = true, .class_names = true, .device = "cuda:0"},
        {.towers = 0, .steps = 3},
    };
    int count = 0;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        assert_int_equal(stream_play(&scripts[i], must_be_quick, &count), STATUS_OK);
    assert_true(count > 450);
}

/* Any values, odd texts among them. */
static void every_event_is_the_same(void **context) {
    (void)context;
    struct random random = random_begin(11, RANDOM_TEST, 0);
    int taken = 0, lines = 0;
    for (int kind = EVENT_NONE + 1; kind < EVENT_KINDS; kind++)
        for (int i = 0; i < 150; i++, lines++) {
            struct arena arena = {0};
            struct event event = events_fill((enum event_kind)kind, &random, i % 4 * 0.3, &arena);
            char *line;
            size_t length;
            assert_int_equal(event_encode(&event, &arena, &line, &length), STATUS_OK);
            taken += agree(line, length);
            arena_free(&arena);
        }
    assert_true(taken > lines / 10 && taken < lines);
}

/* ---- numbers */

static bool number(const char *digits, double *out) {
    char line[512];
    struct arena arena = {0};
    struct event event;
    int length = snprintf(line, sizeof line, "{\"event\":\"step\",\"time\":%s,\"lr\":%s,\"loss\":%s}\n",
                          digits, digits, digits);
    assert_true(length > 0 && (size_t)length < sizeof line);
    bool taken = agree(line, (size_t)length);
    if (taken) {
        assert_true(event_decode_quick(line, (size_t)length, &arena, &event));
        *out = event.step.loss;
    }
    arena_free(&arena);
    return taken;
}

static void check_number(const char *digits) {
    double got, wanted = strtod(digits, NULL);
    if (number(digits, &got) && memcmp(&got, &wanted, sizeof got) != 0)
        fail_msg("%s: %a, not %a", digits, got, wanted);
}

static void numbers_are_the_nearest_double(void **context) {
    (void)context;
    static const char *const quick[] = {"0",
                                        "0.0",
                                        "-0.0",
                                        "1",
                                        "-1",
                                        "0.1",
                                        "1e22",
                                        "1E+22",
                                        "1e-22",
                                        "9007199254740991",
                                        "9007199254740992",
                                        "-9007199254740992",
                                        "0.000123456789012345",
                                        "123456789012345e-3",
                                        "1.7976931348623e5",
                                        "4.67600012",
                                        "1700000001.2998",
                                        "0e0",
                                        "0.0e-5",
                                        "1e000"};
    static const char *const slow[] = {
        "9007199254740993",
        "123456789012345000e-3",
        "-0",
        "1e23",
        "1e-23",
        "123456789e-31",
        "1e999",
        "1e-999",
        "9223372036854775807",
        "1e400",
        "2e-324",
        "1e0000",
        "12345678901234567890",
        "0.1234567890123456789",
        "1.5e",
        "1.",
        ".5",
        "+1",
        "01",
        "00",
        "-01",
        "0x10",
        "1e+",
        "1.e5",
        "1.5.5",
        "--1",
        "-",
        "NaN",
        "nan",
        "inf",
        "1,5",
        "1e5.5",
        "Infinity",
        "1_000",
        "18446744073709551616",
        "92233720368547758070000000000000000000",
        "0.3e1 ",
        " 3",
        "1e4294967296",
        "184467440737095516160000000000000000000000000000000000000000000000000000000000000000000001"};
    double value;
    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++) {
        if (!number(quick[i], &value))
            fail_msg("not read the short way: %s", quick[i]);
        check_number(quick[i]);
    }
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
        if (number(slow[i], &value))
            fail_msg("read the short way: %s", slow[i]);
    struct random random = random_begin(12, RANDOM_TEST, 0);
    char digits[64];
    for (int i = 0; i < 6000; i++) {
        double some = ldexp(random_double(&random) - 0.5, (int)random_below(&random, 160) - 80);
        snprintf(digits, sizeof digits, "%.*g", 1 + (int)random_below(&random, 18), some);
        check_number(digits);
        snprintf(digits, sizeof digits, "%" PRIu32 ".%0*" PRIu32 "e%d", random_below(&random, 100000),
                 1 + (int)random_below(&random, 9), random_below(&random, 1000),
                 (int)random_below(&random, 60) - 30);
        check_number(digits);
    }
}

static void whole_numbers_are_the_same(void **context) {
    (void)context;
    static const char *const numbers[] = {"0",
                                          "7",
                                          "-7",
                                          "-0",
                                          "00",
                                          "1.0",
                                          "1e2",
                                          "999999999999999999",
                                          "-999999999999999999",
                                          "1e-1",
                                          "null",
                                          "\"1\"",
                                          "true",
                                          "[1]",
                                          "{}",
                                          "",
                                          "9007199254740992",
                                          "-9007199254740992",
                                          "9007199254740993",
                                          "-9007199254740993",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "1 ",
                                          "1.",
                                          "1000000000000000000",
                                          "9223372036854775808",
                                          "123456789012345678901234567890"};
    char line[256];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(line, sizeof line, "{\"event\":\"note\",\"step\":%s}\n", numbers[i]);
        (void)agree_text(line);
        snprintf(line, sizeof line, "{\"event\":\"note\",\"seq\":%s,\"step\":1}\n", numbers[i]);
        (void)agree_text(line);
        snprintf(line, sizeof line, "{\"event\":\"eval\",\"confusion\":[1,%s]}\n", numbers[i]);
        (void)agree_text(line);
        snprintf(line, sizeof line, "{\"event\":\"run_start\",\"data\":{\"shape\":[1,%s,3]}}\n", numbers[i]);
        (void)agree_text(line);
    }
}

/* ---- extraordinary lines */

static void odd_lines_are_the_same(void **context) {
    (void)context;
    static const char *const lines[] = {
        /* form */
        "", "\n", "{}\n", "{", "[]\n", "null\n", "3\n", " {\"event\":\"note\"}\n", "{\"event\":\"note\"} \n",
        "{\"event\":\"note\"}", "{\"event\":\"note\"}\n\n", "{\"event\":\"note\"}\r\n",
        "{\"event\":\"note\"}x\n", "{\"event\":\"note\"}}\n", "{\"event\":\"note\",}\n",
        "{\"event\":\"note\",,\"step\":1}\n", "{\"event\": \"note\"}\n", "{\"event\":\"note\", \"step\":1}\n",
        "{\"event\":\"note\"\n}\n", "{\"event\":\"note\",\"text\":\"a\nb\"}\n",
        "\xef\xbb\xbf{\"event\":\"note\"}\n", "{\"event\":\"note\"\n", "{\"event\":\"note\",\"step\":1\n",
        "{\"event\":\"note\",\"step\n", "{\"event\":\"no\n", "{\"ev\n",
        /* kinds */
        "{\"event\":\"later\",\"seq\":9}\n", "{\"event\":\"\"}\n", "{\"event\":3}\n", "{\"event\":null}\n",
        "{\"event\":\"notes\"}\n", "{\"event\":\"Note\"}\n", "{\"event\":\"a_kind_of_a_very_long_name\"}\n",
        "{\"event\":\"n\\u006fte\"}\n", "{\"seq\":1,\"event\":\"note\"}\n", "{\"event\":\"none\"}\n",
        /* numbering and time */
        "{\"event\":\"note\",\"seq\":0}\n", "{\"event\":\"note\",\"seq\":-1}\n",
        "{\"event\":\"note\",\"seq\":9007199254740993}\n", "{\"event\":\"note\",\"seq\":null}\n",
        "{\"event\":\"note\",\"time\":null}\n", "{\"event\":\"note\",\"time\":1,\"seq\":1}\n",
        "{\"event\":\"note\",\"seq\":1,\"seq\":2}\n", "{\"event\":\"note\",\"time\":1,\"time\":2}\n",
        "{\"event\":\"note\",\"event\":\"step\"}\n", "{\"event\":\"note\",\"time\":\"1\"}\n",
        /* fields: in another order, twice, not known, of another type */
        "{\"event\":\"note\",\"text\":\"a\",\"step\":1}\n", "{\"event\":\"note\",\"step\":1,\"step\":2}\n",
        "{\"event\":\"note\",\"text\":\"a\",\"text\":\"b\"}\n",
        "{\"event\":\"note\",\"colour\":3,\"text\":\"a\"}\n",
        "{\"event\":\"note\",\"step\":1,\"colour\":3}\n",
        "{\"event\":\"note\",\"step\":null,\"text\":null}\n", "{\"event\":\"note\",\"text\":3}\n",
        "{\"event\":\"step\",\"loss\":\"1\"}\n", "{\"event\":\"step\",\"loss\":true}\n",
        "{\"event\":\"step\",\"loss\":null,\"grad_norm\":null}\n", "{\"event\":\"step\",\"loss\":nul}\n",
        "{\"event\":\"step\",\"loss\":nulll}\n", "{\"event\":\"eval\",\"averaged\":tru}\n",
        "{\"event\":\"eval\",\"averaged\":1}\n", "{\"event\":\"eval\",\"averaged\":null}\n",
        "{\"event\":\"eval\",\"averaged\":false}\n", "{\"event\":\"note\",\"tex\":\"a\"}\n",
        "{\"event\":\"note\",\"textt\":\"a\"}\n", "{\"event\":\"note\",\"text\" :\"a\"}\n",
        "{\"event\":\"note\",\"\":\"a\"}\n",
        /* lists and groups */
        "{\"event\":\"step\",\"towers\":[]}\n", "{\"event\":\"step\",\"towers\":[{}]}\n",
        "{\"event\":\"step\",\"towers\":[{},{}]}\n", "{\"event\":\"step\",\"towers\":[{},]}\n",
        "{\"event\":\"step\",\"towers\":[{\"tower\":1},{\"tower\":2}],\"update_ms\":1}\n",
        "{\"event\":\"step\",\"towers\":{}}\n", "{\"event\":\"step\",\"towers\":null}\n",
        "{\"event\":\"step\",\"towers\":[1]}\n", "{\"event\":\"step\",\"towers\":[null]}\n",
        "{\"event\":\"step\",\"towers\":[{\"tower\":1}{\"tower\":2}]}\n",
        "{\"event\":\"step\",\"towers\":[{\"tower\":1}\n",
        "{\"event\":\"step\",\"towers\":[{\"images\":1,\"tower\":2}]}\n",
        "{\"event\":\"step\",\"towers\":[{\"tower\":1,\"tower\":2}]}\n",
        "{\"event\":\"step\",\"towers\":[{\"tower\":1}],\"towers\":[{}]}\n",
        "{\"event\":\"step\",\"towers\":[{\"tower\":1}],\"towers\":[]}\n",
        "{\"event\":\"losses\",\"towers\":[{\"terms\":[{\"value\":1}]}]}\n",
        "{\"event\":\"losses\",\"towers\":[{\"terms\":[]},{\"tower\":1,\"terms\":[{\"name\":\"a\"},{}]}]}\n",
        "{\"event\":\"eval\",\"confusion\":[]}\n",
        "{\"event\":\"eval\",\"confusion\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}\n",
        "{\"event\":\"eval\",\"confusion\":[1,2.5]}\n", "{\"event\":\"eval\",\"confusion\":[1,null]}\n",
        "{\"event\":\"run_start\",\"data\":{}}\n", "{\"event\":\"run_start\",\"data\":[]}\n",
        "{\"event\":\"run_start\",\"data\":null}\n",
        "{\"event\":\"run_start\",\"data\":{\"train\":1},\"data\":{\"test\":2}}\n",
        "{\"event\":\"run_start\",\"data\":{\"batch\":1}}\n",
        "{\"event\":\"run_start\",\"data\":{\"shape\":[1,2]}}\n",
        "{\"event\":\"run_start\",\"data\":{\"shape\":[1,2,3,4]}}\n",
        "{\"event\":\"run_start\",\"data\":{\"shape\":[1,2,3]}}\n",
        "{\"event\":\"run_start\",\"data\":{\"shape\":[]}}\n",
        "{\"event\":\"why\",\"proof\":{\"loss\":1.5},\"alternatives\":[{\"identical\":true},{\"identical\":"
        "false}]}\n",
        "{\"event\":\"control\",\"holder\":{\"user\":\"ada\"},\"watchers\":1,\"yours\":true}\n",
        /* texts */
        "{\"event\":\"note\",\"text\":\"\"}\n",
        "{\"event\":\"note\",\"text\":\"a\\\"b\\\\c\\/d\\n\\t\\u00e9\"}\n",
        "{\"event\":\"note\",\"text\":\"d\xc3\xa9\xe2\x80\xa6\"}\n",
        "{\"event\":\"note\",\"text\":\"\xff\"}\n", "{\"event\":\"note\",\"text\":\"\xc3\"}\n",
        "{\"event\":\"note\",\"text\":\"\xed\xa0\x80\"}\n", "{\"event\":\"note\",\"text\":\"\\u0000\"}\n",
        "{\"event\":\"note\",\"text\":\"\\ud800\"}\n", "{\"event\":\"note\",\"text\":\"\x01\"}\n",
        "{\"event\":\"note\",\"text\":\"\x7f\"}\n", "{\"event\":\"note\",\"text\":\"a\tb\"}\n",
        "{\"event\":\"note\",\"text\":\"a}\n", "{\"event\":\"note\",\"text\":\"{[,:\"}\n",
        "{\"event\":\"note\",\"te\\u0078t\":\"a\"}\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        (void)agree_text(lines[i]);
    static const char zero[] = "{\"event\":\"note\",\"text\":\"a\0b\"}\n",
                      name[] = "{\"event\":\"note\0\"}\n";
    (void)agree(zero, sizeof zero - 1);
    (void)agree(name, sizeof name - 1);
}

static void every_cut_is_the_same(void **context) {
    (void)context;
    struct random random = random_begin(13, RANDOM_TEST, 0);
    for (int kind = EVENT_NONE + 1; kind < EVENT_KINDS; kind++) {
        struct arena arena = {0};
        struct event event = events_fill((enum event_kind)kind, &random, 0.1, &arena);
        char *line;
        size_t length;
        assert_int_equal(event_encode(&event, &arena, &line, &length), STATUS_OK);
        for (size_t cut = 0; cut <= length; cut++) {
            (void)agree(line, cut);
            if (cut == length)
                break;
            char there = line[cut]; /* a torn line that another one was appended to */
            line[cut] = '\n';
            (void)agree(line, cut + 1);
            line[cut] = there;
        }
        arena_free(&arena);
    }
}

static void damaged_lines_are_the_same(void **context) {
    (void)context;
    static const char marks[] = "{}[]\",:0-9eE.\\ntf\x80\xff \n";
    struct random random = random_begin(14, RANDOM_TEST, 0);
    int taken = 0;
    for (int i = 0; i < 6000; i++) {
        struct arena arena = {0};
        struct event event = i % 2
                                 ? events_step(1 + i, 1 + i, 1 + i % 4, &arena)
                                 : events_fill((enum event_kind)(1 + random_below(&random, EVENT_KINDS - 1)),
                                               &random, 0.3, &arena);
        char *line;
        size_t length;
        assert_int_equal(event_encode(&event, &arena, &line, &length), STATUS_OK);
        int changes = 1 + (int)random_below(&random, 3);
        for (int c = 0; c < changes; c++) {
            size_t at = random_below(&random, (uint32_t)length - 1),
                   other = random_below(&random, (uint32_t)length - 1);
            switch (random_below(&random, 4)) {
            case 0: /* a digit for a digit: mostly as good as before */
                if (isdigit((unsigned char)line[at]))
                    line[at] = (char)('0' + random_below(&random, 10));
                break;
            case 1:
                line[at] = marks[random_below(&random, sizeof marks - 1)];
                break;
            case 2:
                line[at] = (char)random_u32(&random);
                break;
            default: /* a piece somewhere else */
                memmove(line + (at < other ? at : other), line + (at < other ? other : at),
                        length - 1 - (at < other ? other : at));
            }
        }
        taken += agree(line, length);
        arena_free(&arena);
    }
    assert_true(taken > 100);
}

static void a_line_has_a_limit(void **context) {
    (void)context;
    struct arena arena = {0};
    struct event note = event_new(EVENT_NOTE);
    char *text = arena_alloc(&arena, WIRE_LINE_MAX + 1), *line,
         *longer = arena_alloc(&arena, WIRE_LINE_MAX + 1);
    size_t length, room = WIRE_LINE_MAX - strlen("{'event':'note','text':''}\n");
    memset(text, 'x', room);
    note.note.text = text;
    assert_int_equal(event_encode(&note, &arena, &line, &length), STATUS_OK);
    assert_int_equal(length, WIRE_LINE_MAX);
    assert_true(agree(line, length));
    memcpy(longer, line, length - 3);
    memcpy(longer + length - 3, "x\"}\n", 4);
    assert_false(agree(longer, length + 1));
    arena_free(&arena);
}

static void the_locale_does_not_matter(void **context) {
    if (!locale_with_comma())
        skip(); /* no such locale can be made here */
    what_a_run_writes_is_quick(context);
    setlocale(LC_ALL, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_run_writes_is_quick),     cmocka_unit_test(every_event_is_the_same),
        cmocka_unit_test(numbers_are_the_nearest_double), cmocka_unit_test(whole_numbers_are_the_same),
        cmocka_unit_test(odd_lines_are_the_same),         cmocka_unit_test(every_cut_is_the_same),
        cmocka_unit_test(damaged_lines_are_the_same),     cmocka_unit_test(a_line_has_a_limit),
        cmocka_unit_test(the_locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
