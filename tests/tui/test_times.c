/* The bars of two towers that take turns on one worker: they end together, and a step without times has none.
 */
#include "tests/support/cmocka.h"
#include "tui/times.h"

static void towers_that_take_turns_end_together(void **context) {
    (void)context;
    struct event_step step = event_new(EVENT_STEP).step;
    struct event_step_tower first = {.load_ms = 1, .forward_ms = 1, .backward_ms = 1, .wait_ms = 3};
    struct event_step_tower second = {
        .load_ms = 1, .forward_ms = 1, .backward_ms = 1, .wait_ms = wire_unknown()};
    static const int expected[2][TIMES_PARTS + 1] = {{0, 10, 20, 30, 60, 70, 80},
                                                     {30, 40, 50, 60, 60, 70, 80}};
    step.seconds = 0.008;
    step.average_ms = step.update_ms = 1;
    for (int k = 0; k < 2; k++) {
        double ms[TIMES_PARTS];
        int edges[TIMES_PARTS + 1];
        double whole = times_of(&step, k ? &second : &first, ms);
        assert_true(whole == 8);
        times_place(ms, whole, 80, edges);
        for (int p = 0; p <= TIMES_PARTS; p++)
            assert_int_equal(edges[p], expected[k][p]);
    }
}

static void without_times_there_is_no_bar(void **context) {
    (void)context;
    struct event_step step = event_new(EVENT_STEP).step;
    double u = wire_unknown(), ms[TIMES_PARTS];
    struct event_step_tower tower = {.load_ms = u, .forward_ms = u, .backward_ms = u, .wait_ms = u};
    int edges[TIMES_PARTS + 1];
    double whole = times_of(&step, &tower, ms);
    assert_true(whole == 0);
    times_place(ms, whole, 80, edges);
    for (int p = 0; p <= TIMES_PARTS; p++)
        assert_int_equal(edges[p], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(towers_that_take_turns_end_together),
        cmocka_unit_test(without_times_there_is_no_bar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
