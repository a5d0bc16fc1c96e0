/* Every place of a run at which a call can fail: its first call, its last one, and all of them.
 * test-timeout: 7200 */
#include "tests/support/cmocka.h"
#include "tests/support/fault_run.h"

static void every_place(void **state) {
    (void)state;
    assert_int_equal(fault_sweep(0, 1, true), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
