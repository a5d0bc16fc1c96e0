/* D4: values that are not finite in what a run records. Every line stays JSON that a strict reader takes, the
 * place is told in words, and a plot keeps its scale. (D1, D3 and D5 are about files that are not written
 * yet.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tests/support/cmocka.h"
#include "tests/support/small_run.h"
#include "tests/support/stream.h"

static char folder[600];

static int set_up(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s/metrics", getenv("TEST_TMP"));
    setenv("METRICS", folder, 1);
    return shell("mkdir -p \"$METRICS\"/runs/told && cd \"$METRICS\" && \"$TOWERSCOPE\" data make few "
                 "--images 100 >/dev/null");
}

/* What is found in a record. */
struct found {
    int lines, nulls, errors;
};

static int count_nulls(json_t *value) {
    const char *key;
    json_t *member;
    size_t i;
    int sum = json_is_null(value);
    json_object_foreach(value, key, member) sum += count_nulls(member);
    json_array_foreach(value, i, member) sum += count_nulls(member);
    return sum;
}

/* Every line by a reader that is not ours, and that takes no NaN or Infinity. */
static struct found read_strictly(const char *run) {
    struct found found = {0, 0, 0};
    char path[800];
    static char line[70000];
    snprintf(path, sizeof path, "%s/runs/%s/events.jsonl", folder, run);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_error_t error;
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
        if (!object)
            fail_msg("line %d of %s: %s: %.200s", found.lines + 1, path, error.text, line);
        const char *level = json_string_value(json_object_get(object, "level"));
        found.lines++;
        found.nulls += count_nulls(object);
        found.errors += level && !strcmp(level, "error");
        json_decref(object);
    }
    fclose(file);
    return found;
}

/* Numbers of a screen that a person would read: none is "nan" or "inf". */
static int shows_none(const char *run, int at) {
    return shell("cd \"$METRICS\" && \"$TOWERSCOPE\" replay %s --at %d --svg screen.svg && "
                 "! grep -oE '>[^<]*<' screen.svg | grep -qiE '>[-+ ]*(nan|inf)'",
                 run, at);
}

static void a_run_that_leaves_the_numbers(void **state) {
    (void)state;
    assert_int_equal(
        shell(
            "cd \"$METRICS\" && \"$TOWERSCOPE\" train wild --data few --model mlp --batch 10 --steps 60 --lr "
            "1e12 --eval-every 0 >out 2>&1"),
        1);
    struct found found = read_strictly("wild");
    assert_true(found.lines > 3);
    assert_true(found.errors > 0); /* told, with the tensor */
    assert_int_equal(shell("cd \"$METRICS\" && grep -q 'not finite (' out && "
                           "! grep -qiE '[:,\\[] *-?(nan|inf)' runs/wild/events.jsonl"),
                     0);
    assert_int_equal(shows_none("wild", 0), 0);
    /* the control: with a rate for which there is no reason, it is the rate */
    assert_int_equal(
        shell(
            "cd \"$METRICS\" && \"$TOWERSCOPE\" train tame --data few --model mlp --batch 10 --steps 60 --lr "
            "0.01 --eval-every 0 >out 2>&1"),
        0);
    found = read_strictly("tame");
    assert_int_equal(found.errors, 0);
    assert_int_equal(found.nulls, 0);
}

static void a_record_that_has_them(void **state) {
    (void)state;
    char path[800];
    const struct stream_script script = {
        .run = "told", .towers = 3, .steps = 40, .nan_at = 20, .ended = true};
    snprintf(path, sizeof path, "%s/runs/told/events.jsonl", folder);
    assert_int_equal(stream_write(&script, path), STATUS_OK);
    struct found found = read_strictly("told");
    assert_true(found.nulls > 0);
    assert_int_equal(shows_none("told", 19), 0);
    assert_int_equal(shows_none("told", 21), 0);
    /* at the step itself it is marked and named, not 0; afterwards the scale is that of the rest */
    assert_int_equal(shell("cd \"$METRICS\" && \"$TOWERSCOPE\" replay told --at 20 --svg screen.svg && "
                           "grep -oE '>[^<]*<' screen.svg | tr -d '<>\\n' >words && "
                           "grep -q 'NaN.*tower2:itslossorgradientisnotfinite' words"),
                     0);
    assert_int_equal(shell("cd \"$METRICS\" && \"$TOWERSCOPE\" replay told --at 40 --svg screen.svg && "
                           "! grep -oE '>[^<]*<' screen.svg | grep -qE '[0-9]e\\+?[0-9]{2,}'"),
                     0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_leaves_the_numbers),
        cmocka_unit_test(a_record_that_has_them),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
