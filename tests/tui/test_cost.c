/* The console's reckoning of itself: medians and 99 of 100 over the frames of the last minute, rates of a
 * second. */
#include <math.h>

#include "engine/wire/event.h"
#include "tests/support/cmocka.h"
#include "tui/cost.h"

static void expect_near(double found, double wanted) {
    if (!(fabs(found - wanted) <= 1e-4))
        fail_msg("found %g, expected %g", found, wanted);
}

static void shares(void **state) {
    (void)state;
    struct cost cost = {.reckoned_at = 5};
    cost_reckon(&cost, 6, 0, 0, -1);
    expect_near(cost.budget.wall.median, 0); /* no frame yet */
    cost_frame(&cost, 0.003, 0.002);
    cost_reckon(&cost, 7, 0, 0, -1);
    expect_near(cost.budget.wall.median, 3);
    expect_near(cost.budget.wall.most, 3);
    expect_near(cost.budget.cpu.most, 2);
    for (int i = 0; i < 99; i++) /* with the first: 1 of 3 ms, 98 of 1 ms, 1 of 50 ms */
        cost_frame(&cost, i == 40 ? 0.05 : 0.001, 0.001);
    cost_reckon(&cost, 8, 0, 0, -1);
    expect_near(cost.budget.wall.median, 1);
    expect_near(cost.budget.wall.most, 3); /* 99 of 100 took no longer, one did */
    for (int i = 0; i < COST_FRAMES; i++)  /* what is longer ago is forgotten */
        cost_frame(&cost, 0.002, 0.001);
    cost_reckon(&cost, 9, 0, 0, -1);
    expect_near(cost.budget.wall.most, 2);
}

static void rates(void **state) {
    (void)state;
    struct cost cost = {.reckoned_at = 10, .bytes = 1000, .events = 50};
    assert_false(cost_due(&cost, 10.9));
    assert_true(cost_due(&cost, 11));
    cost_reckon(&cost, 12, 5000, 90, 300);
    expect_near(cost.budget.bytes_per_second, 2000);
    expect_near(cost.budget.events_per_second, 20);
    expect_near(cost.budget.queue, 300);
    assert_false(cost_due(&cost, 12.5));
    cost_reckon(&cost, 14, -1, 10, -1); /* the system tells no bytes; a record that was gone back in */
    assert_true(wire_is_unknown(cost.budget.bytes_per_second));
    assert_true(wire_is_unknown(cost.budget.queue));
    expect_near(cost.budget.events_per_second, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shares), cmocka_unit_test(rates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
