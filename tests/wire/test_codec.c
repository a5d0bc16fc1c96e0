/* Every event comes back from its line as it was, and nothing that is no event does harm. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/wire/codec.h"
#include "engine/wire/fields.h"
#include "tests/support/cmocka.h"
#include "tests/support/events.h"
#include "tests/support/locale.h"

static void round_trip(const struct event *event) {
    struct arena arena = {0};
    char *line;
    size_t length;
    struct event back;
    assert_int_equal(event_encode(event, &arena, &line, &length), STATUS_OK);
    assert_true(line[length - 1] == '\n' && !memchr(line, '\n', length - 1));
    assert_int_equal(event_decode(line, length, &arena, &back), STATUS_OK);
    const char *field;
    if (!events_equal(event, &back, &field))
        fail_msg("%s: field %s differs: %s", event_kind_name(event->kind), field, line);
    struct event copy;
    assert_int_equal(event_copy(event, &arena, &copy), STATUS_OK);
    assert_true(events_equal(event, &copy, &field));
    arena_free(&arena);
}

static void every_event_round_trips(void **context) {
    (void)context;
    struct random random = random_begin(1, RANDOM_TEST, 0);
    for (int kind = EVENT_NONE + 1; kind < EVENT_KINDS; kind++)
        for (int i = 0; i < 100; i++) {
            struct arena arena = {0};
            struct event event = events_fill((enum event_kind)kind, &random, i % 3 * 0.3, &arena);
            round_trip(&event);
            arena_free(&arena);
        }
}

static void an_empty_event_is_all_unknown(void **context) {
    (void)context;
    for (int kind = EVENT_NONE + 1; kind < EVENT_KINDS; kind++) {
        struct event event = event_new((enum event_kind)kind);
        round_trip(&event);
        assert_int_equal(event_kind_find(event_kind_name(event.kind)), kind);
    }
    struct event step = event_new(EVENT_STEP);
    assert_true(wire_is_unknown(step.step.loss) && step.step.step == WIRE_UNKNOWN_INT && !step.step.applied);
    assert_false(wire_is_unknown((double)NAN));
    assert_null(event_kind_name(EVENT_NONE));
    assert_null(event_kind_name(EVENT_KINDS));
}

static const char *encode(const struct event *event, struct arena *arena) {
    char *line;
    size_t length;
    assert_int_equal(event_encode(event, arena, &line, &length), STATUS_OK);
    return line;
}

static void values_are_written_as_promised(void **context) {
    (void)context;
    struct arena arena = {0};
    struct event event = event_new(EVENT_STEP);
    event.seq = 7;
    event.time = 1700000000.25;
    event.step.step = 3;
    event.step.loss = (double)4.676f;
    event.step.lr = 0.1;
    event.step.grad_norm = HUGE_VAL;
    event.step.noise_scale = -(double)NAN;
    assert_string_equal(encode(&event, &arena),
                        "{\"event\":\"step\",\"seq\":7,\"time\":1700000000.25,\"step\":3,\"lr\":0.1,"
                        "\"loss\":4.67600012,\"grad_norm\":null,\"noise_scale\":null}\n");
    /* Each of these float32 values is told apart from its neighbours. */
    struct random random = random_begin(2, RANDOM_TEST, 0);
    for (int i = 0; i < 20000; i++) {
        float value = ldexpf((float)random_double(&random) + 1e-3f, (int)random_below(&random, 250) - 125);
        event.step.loss = (double)value;
        const char *line = encode(&event, &arena);
        struct event back;
        assert_int_equal(event_decode(line, strlen(line), &arena, &back), STATUS_OK);
        assert_true((float)back.step.loss == value);
        char digits[40]; /* no more digits than promised */
        snprintf(digits, sizeof digits, "%.8e", (double)value);
        if (!(fabs(back.step.loss - strtod(digits, NULL)) <= fabs(back.step.loss) * 1e-8))
            fail_msg("%.17g was written as %.17g", (double)value, back.step.loss);
        snprintf(digits, sizeof digits, "%.8e", back.step.loss);
        assert_true(strtod(digits, NULL) == back.step.loss);
        arena_reset(&arena);
    }
    /* Bytes that are no UTF-8 (a file's name) don't make the line invalid. */
    struct event note = event_new(EVENT_NOTE);
    note.note.text = "a\xff\xc3y\xe2\x82";
    assert_string_equal(encode(&note, &arena), "{\"event\":\"note\",\"text\":\"a??y??\"}\n");
    arena_free(&arena);
}

static void numbers_have_a_dot_in_every_locale(void **context) {
    (void)context;
    if (!locale_with_comma())
        skip(); /* no such locale can be made here */
    struct random random = random_begin(3, RANDOM_TEST, 0);
    struct arena arena = {0};
    struct event event = events_step(1, 1, 2, &arena);
    assert_null(strstr(encode(&event, &arena), ",5"));
    event = events_fill(EVENT_STEP, &random, 0, &arena);
    round_trip(&event);
    arena_free(&arena);
    setlocale(LC_ALL, "C");
}

static void a_line_has_a_limit(void **context) {
    (void)context;
    struct arena arena = {0};
    struct event note = event_new(EVENT_NOTE);
    char *text = arena_alloc(&arena, WIRE_LINE_MAX + 10), *line;
    size_t length;
    memset(text, 'x', WIRE_LINE_MAX);
    note.note.text = text;
    assert_int_equal(event_encode(&note, &arena, &line, &length), STATUS_BAD_INPUT);
    size_t room = WIRE_LINE_MAX - strlen("{'event':'note','text':''}\n");
    text[room] = 0;
    assert_int_equal(event_encode(&note, &arena, &line, &length), STATUS_OK);
    assert_int_equal(length, WIRE_LINE_MAX);
    struct event back;
    assert_int_equal(event_decode(line, length, &arena, &back), STATUS_OK);
    assert_int_equal(event_decode(line, length + 1, &arena, &back), STATUS_BAD_INPUT);
    /* 64 towers and all they have fit in a line */
    struct event step = events_step(1, 123456789, 64, &arena);
    assert_int_equal(event_encode(&step, &arena, &line, &length), STATUS_OK);
    arena_free(&arena);
}

static enum status decode(const char *line, struct event *out, struct arena *arena) {
    return event_decode(line, strlen(line), arena, out);
}

static void unknown_things_are_skipped_and_wrong_ones_refused(void **context) {
    (void)context;
    struct arena arena = {0};
    struct event event;
    assert_int_equal(decode("{\"event\":\"later\",\"seq\":9,\"x\":[1,{}]}", &event, &arena), STATUS_OK);
    assert_true(event.kind == EVENT_NONE && event.seq == 9);
    assert_int_equal(decode("{\"event\":\"note\",\"text\":\"a\",\"colour\":3}\n", &event, &arena), STATUS_OK);
    assert_string_equal(event.note.text, "a");
    assert_int_equal(decode("{\"event\":\"step\",\"loss\":null,\"step\":null,\"lr\":1}", &event, &arena),
                     STATUS_OK);
    assert_true(isnan(event.step.loss) && !wire_is_unknown(event.step.loss));
    assert_true(event.step.step == WIRE_UNKNOWN_INT && event.step.lr == 1);
    assert_int_equal(
        decode("{\"event\":\"note\",\"seq\":9007199254740992,\"step\":-9007199254740992}", &event, &arena),
        STATUS_OK);
    assert_true(event.seq == WIRE_INT_MAX && event.note.step == -WIRE_INT_MAX);
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "3",
                                      "null",
                                      "{}",
                                      "{\"event\":3}",
                                      "{\"event\":\"note\",\"seq\":0}",
                                      "{\"event\":\"note\",\"seq\":-1}",
                                      "{\"event\":\"note\",\"seq\":9007199254740993}",
                                      "{\"event\":\"note\",\"seq\":9223372036854775807}",
                                      "{\"event\":\"note\",\"seq\":1.5}",
                                      "{\"event\":\"note\",\"time\":\"x\"}",
                                      "{\"event\":\"note\",\"text\":3}",
                                      "{\"event\":\"step\",\"step\":1.5}",
                                      "{\"event\":\"step\",\"loss\":\"1\"}",
                                      "{\"event\":\"step\",\"towers\":{}}",
                                      "{\"event\":\"step\",\"towers\":[1]}",
                                      "{\"event\":\"step\",\"towers\":[{\"tower\":\"x\"}]}",
                                      "{\"event\":\"run_start\",\"data\":[]}",
                                      "{\"event\":\"run_start\",\"data\":{\"shape\":[1,2]}}",
                                      "{\"event\":\"run_start\",\"data\":{\"shape\":[1,2,\"\"]}}",
                                      "{\"event\":\"eval\",\"confusion\":[1,2.5]}",
                                      "{\"event\":\"eval\",\"averaged\":1}",
                                      "{\"event\":\"note\",\"text\":\"\\u0000\"}",
                                      "{\"event\":\"note\",\"text\":\"\xff\"}",
                                      "{\"event\":\"step\",\"step\":99999999999999999999}",
                                      "{\"event\":\"step\",\"step\":9007199254740993}",
                                      "{\"event\":\"step\",\"step\":-9007199254740993}",
                                      "{\"event\":\"step\",\"step\":-9223372036854775808}",
                                      "{\"event\":\"step\",\"towers\":[{\"tower\":9007199254740993}]}",
                                      "{\"event\":\"eval\",\"confusion\":[1,9007199254740993]}",
                                      "{\"event\":\"run_start\",\"data\":{\"shape\":[1,2,9007199254740993]}}",
                                      "{\"event\":\"note\"} x",
                                      "{\"event\":\"step\",\"loss\":NaN}",
                                      "{\"event\":\"step\",\"loss\":1e999}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (decode(bad[i], &event, &arena) != STATUS_BAD_INPUT)
            fail_msg("accepted: %s", bad[i]);
    arena_free(&arena);
}

static void damaged_lines_do_no_harm(void **context) {
    (void)context;
    struct random random = random_begin(4, RANDOM_TEST, 0);
    for (int i = 0; i < 20000; i++) {
        struct arena arena = {0};
        struct event event =
            events_fill((enum event_kind)(1 + random_below(&random, EVENT_KINDS - 1)), &random, 0.2, &arena);
        char *line;
        size_t length;
        assert_int_equal(event_encode(&event, &arena, &line, &length), STATUS_OK);
        int changes = 1 + (int)random_below(&random, 4);
        static const char marks[] = "{}[]\",:0-9eE.\\ntf\x80\xff ";
        for (int c = 0; c < changes; c++)
            line[random_below(&random, (uint32_t)length)] =
                random_below(&random, 2) ? marks[random_below(&random, sizeof marks - 1)]
                                         : (char)random_u32(&random);
        /* exactly as long as it says, so that the address sanitizer sees a byte too many */
        size_t cut = random_below(&random, 3) ? length : random_below(&random, (uint32_t)length + 1);
        char *exact = malloc(cut ? cut : 1);
        memcpy(exact, line, cut);
        struct event back;
        enum status status = event_decode(exact, cut, &arena, &back);
        assert_true(status == STATUS_OK || status == STATUS_BAD_INPUT);
        free(exact);
        arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_round_trips),
        cmocka_unit_test(an_empty_event_is_all_unknown),
        cmocka_unit_test(values_are_written_as_promised),
        cmocka_unit_test(numbers_have_a_dot_in_every_locale),
        cmocka_unit_test(a_line_has_a_limit),
        cmocka_unit_test(unknown_things_are_skipped_and_wrong_ones_refused),
        cmocka_unit_test(damaged_lines_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
