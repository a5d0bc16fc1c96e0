/* The tutorial's network as a run: its first loss, and the same training on any number of towers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/cifar10_run.h"

/* About 2.3026 + 2.1906 + 0.1825, the collection of each tower in the order of the original. */
static void test_first_loss(void **state) {
    (void)state;
    struct dataset *data = open_generated();
    struct train_run *run = open_cifar10(data, "cifar10", 2, "lr=0.1");
    assert_int_equal(run->model->parameter_total, 1068298);
    train_run_steps(run, 1);
    const struct event_step *s = &run->kept[0].step;
    assert_true(fabs(s->loss - 4.676) <= 0.02);
    assert_int_equal(run->terms, 6);
    assert_string_equal(run->term_name[3], "tower_1/local3/weight_loss");
    assert_string_equal(run->term_name[4], "tower_1/local4/weight_loss");
    assert_string_equal(run->term_name[5], "tower_1/cross_entropy");
    assert_true(fabs(run->term[3] / 2.1906 - 1) <= 0.01);
    assert_true(fabs(run->term[4] / 0.1825 - 1) <= 0.01);
    assert_true(run->term[3] == run->term[0] && run->term[4] == run->term[1]);
    train_run_close(run);

    run = open_cifar10(data, "cifar10-2017", 1, "lr=0.1"); /* a term of 0 for conv1, conv2, softmax_linear */
    train_run_steps(run, 1);
    assert_int_equal(run->terms, 6);
    assert_string_equal(run->term_name[0], "tower_0/conv1/weight_loss");
    assert_string_equal(run->term_name[4], "tower_0/softmax_linear/weight_loss");
    assert_true(run->term[0] == 0 && run->term[1] == 0 && run->term[4] == 0);
    train_run_close(run);
    dataset_close(data);
}

/* What towers do together is seen in two steps; the sanitizers take minutes for ten. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STEPS = 2 };
#else
enum { STEPS = 10 };
#endif

static void test_towers(void **state) {
    (void)state;
    compare_cifar10("lr=0.1", STEPS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_loss),
        cmocka_unit_test(test_towers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
