/* A call that fails, somewhere in a run: some of the places, one after the other (all of them: tests/long).
 * And the order of calls that a power cut would show. test-skip-under: thread (it has limits of time) */
#include <stdlib.h>

#include "tests/support/cmocka.h"
#include "tests/support/fault_run.h"

static void some_places(void **state) {
    (void)state;
    const char *stride = getenv("FAULT_STRIDE");
    assert_int_equal(fault_sweep(0, stride ? atoi(stride) : 40, false), 0);
}

static void no_checkpoint_is_ahead_of_its_record(void **state) {
    (void)state;
    assert_true(fault_run_in_order());
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_checkpoint_is_ahead_of_its_record),
                                       cmocka_unit_test(some_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
