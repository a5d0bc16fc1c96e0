/* test-timeout: 240 */
/* The tutorial's network as a run: its first loss, and the same training on any number of towers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/registry.h"
#include "tests/support/cmocka.h"
#include "tests/support/train_run.h"

enum { TRAIN = 420, BATCH = 84 };

static struct train_run *open_cifar10(const struct dataset *data, const char *model, int towers,
                                      const char *lr) {
    char text[32];
    snprintf(text, sizeof text, "towers=%d", towers);
    const char *const words[] = {text, lr, "batch=84", "seed=4", NULL};
    return train_run_on("cpu", data, model, words);
}

static struct dataset *open_generated(void) {
    struct dataset_options options = {.seed = 4, .generated_train = TRAIN, .generated_test = 10};
    struct dataset *data;
    if (dataset_open("generated", &options, &data) != STATUS_OK)
        fail_msg("%s", status_text());
    return data;
}

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

/* In float32 an arg-max or a ReLU that hangs on the last bit may flip, and at a rate of 0.1 that grows
 * tenfold in three steps. Of eight seeds tried one had such a flip by step 5 and was 1.2e-5 off at step 10;
 * this seed has none, and stays within 1e-6. */
static void compare(const int *towers, int count, const char *lr, int steps) {
    struct dataset *data = open_generated();
    struct train_run *one = open_cifar10(data, "cifar10", 1, lr);
    train_run_steps(one, steps);
    for (int i = 0; i < count; i++) {
        struct train_run *run = open_cifar10(data, "cifar10", towers[i], lr);
        train_run_steps(run, steps);
        for (int s = 0; s < steps; s++)
            assert_near(run->kept[s].step.loss / one->kept[s].step.loss, 1, 1e-5);
        train_run_close(run);
    }
    train_run_close(one);
    dataset_close(data);
}

static void test_towers(void **state) {
    (void)state;
    const int towers[] = {2, 3, 4, 7};
    compare(towers, 4, "lr=0.1", 10);
}

static void test_towers_for_longer(void **state) {
    (void)state;
    const int towers[] = {3, 7};
    compare(towers, 2, "lr=0.01", 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_loss),
        cmocka_unit_test(test_towers),
        cmocka_unit_test(test_towers_for_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
