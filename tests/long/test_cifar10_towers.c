/* test-timeout: 600 */
/* At a rate of 0.01 the tutorial's network is the same training on any number of towers through step 50. */
#include "tests/support/cifar10_run.h"
#include "tests/support/cmocka.h"

static void test_towers(void **state) {
    (void)state;
    compare_cifar10("lr=0.01", 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_towers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
