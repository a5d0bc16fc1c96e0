/* A value that is not finite never stays in the parameters: back to the last good state, paused, said so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/train_run.h"

static void read_flat(struct train_run *run, const char *what, float *out) {
    assert_int_equal(trainer_read(run->trainer, what, out, run->model->flat_count), STATUS_OK);
}

static void blow_up(const char *device, const char *text) {
    const char *const words[] = {"towers=3", "batch=10", "momentum=0.5", "lr=1e20", NULL};
    struct train_run *run = train_run_open(device, text, 40, 20, words);
    size_t n = run->model->flat_count;
    float *before = calloc(n, sizeof *before), *after = calloc(n, sizeof *after);
    read_flat(run, "parameters", before);
    for (int i = 0; i < 4 && !trainer_paused(run->trainer); i++) {
        assert_int_equal(trainer_step(run->trainer), STATUS_OK);
        read_flat(run, "parameters", after);
        for (size_t j = 0; j < n; j++)
            assert_true(isfinite(after[j]));
    }
    assert_true(trainer_paused(run->trainer));
    assert_string_equal(run->state, "paused");
    assert_true(*trainer_fault(run->trainer) != 0);
    assert_int_equal(run->counts[EVENT_REWIND], 1);
    assert_int_equal(run->rewound_to, 0);
    assert_non_null(strstr(run->rewind_reason, "; paused: set lr, then resume"));
    assert_int_equal(trainer_steps(run->trainer), 0);
    assert_int_equal(run->alarm_step, run->steps + 1);
    assert_true(*run->alarm_tensor != 0);
    assert_non_null(strstr(run->alarm, "not finite"));
    read_flat(run, "parameters", after);
    assert_memory_equal(before, after, n * sizeof *after);
    read_flat(run, "average", after);
    assert_memory_equal(before, after, n * sizeof *after);
    read_flat(run, "velocity", after);
    for (size_t j = 0; j < n; j++)
        assert_true(after[j] == 0);

    /* resume after set lr: exactly the run that had this rate from the start */
    int first = run->steps;
    assert_true(train_run_command(run, "set lr 0.01"));
    assert_true(train_run_command(run, "resume"));
    assert_true(*trainer_fault(run->trainer) == 0);
    train_run_steps(run, 6);
    const char *const gentle[] = {"towers=3", "batch=10", "momentum=0.5", "lr=0.01", NULL};
    struct train_run *other = train_run_open(device, text, 40, 20, gentle);
    train_run_steps(other, 6);
    for (int i = 0; i < 6; i++) {
        const struct event_step *a = &run->kept[first + i].step, *b = &other->kept[i].step;
        assert_int_equal(a->step, b->step);
        assert_true(a->loss == b->loss && a->epoch == b->epoch && a->lr == b->lr &&
                    a->grad_norm == b->grad_norm);
    }
    read_flat(run, "parameters", before);
    read_flat(other, "parameters", after);
    assert_memory_equal(before, after, n * sizeof *after);
    free(before);
    free(after);
    train_run_close(run);
    train_run_close(other);
}

static void test_lr_too_large(void **state) {
    (void)state;
    blow_up("cpu", conv_text);
    blow_up("cpu", mlp_text);
    blow_up("ref", mlp_text);
}

/* Later in a run it goes back to the good state of step 100, in the middle of an epoch. */
static void test_later(void **state) {
    (void)state;
    const char *const words[] = {"towers=2", "batch=9", "lr=0.02", "seed=8", NULL};
    struct train_run *run = train_run_open("cpu", mlp_text, 70, 20, words);
    struct train_run *other = train_run_open("cpu", mlp_text, 70, 20, words);
    train_run_steps(run, 110);
    train_run_steps(other, 130);
    assert_true(train_run_command(run, "set lr 1e30"));
    assert_true(train_run_command(run, "towers 5"));
    assert_true(train_run_command(run, "set batch 11"));
    for (int i = 0; i < 5 && !trainer_paused(run->trainer); i++)
        assert_int_equal(trainer_step(run->trainer), STATUS_OK);
    assert_int_equal(run->rewound_to, 100);
    assert_int_equal(trainer_steps(run->trainer), 100);
    assert_true(train_run_command(run, "set lr 0.02"));
    assert_true(train_run_command(run, "towers 2"));
    assert_true(train_run_command(run, "set batch 9"));
    assert_true(train_run_command(run, "resume"));
    int first = run->steps;
    train_run_steps(run, 30);
    for (int i = 0; i < 30; i++) {
        const struct event_step *a = &run->kept[first + i].step, *b = &other->kept[100 + i].step;
        assert_int_equal(a->step, 101 + i);
        assert_true(a->loss == b->loss && a->epoch == b->epoch && a->images == b->images);
    }
    train_run_close(run);
    train_run_close(other);
}

/* What a tower's own gradient does is named with its tower. */
static void test_named(void **state) {
    (void)state;
    const char *const words[] = {"towers=2", "batch=8", "lr=1e30", NULL};
    struct train_run *run = train_run_open("ref", mlp_text, 40, 20, words);
    for (int i = 0; i < 3 && !trainer_paused(run->trainer); i++)
        assert_int_equal(trainer_step(run->trainer), STATUS_OK);
    assert_true(trainer_paused(run->trainer));
    assert_true(run->alarm_tower == 0 || run->alarm_tower == 1 || run->alarm_tower == WIRE_UNKNOWN_INT);
    if (!strchr(run->alarm_tensor, '/') && strcmp(run->alarm_tensor, "cross_entropy") != 0)
        fail_msg("tensor \"%s\"", run->alarm_tensor);
    train_run_close(run);
}

/* Under a wrong rule it is the rule that is to be taken back. */
static void test_wrong_rule(void **state) {
    (void)state;
    const char *const words[] = {"towers=2", "batch=8", "lr=1e30", NULL};
    struct train_run *run = train_run_open("cpu", mlp_text, 40, 20, words);
    assert_true(train_run_command(run, "why apply sum"));
    for (int i = 0; i < 3 && !trainer_paused(run->trainer); i++)
        assert_int_equal(trainer_step(run->trainer), STATUS_OK);
    assert_true(trainer_paused(run->trainer));
    assert_non_null(
        strstr(run->rewind_reason, "; paused: restore, which takes the wrong rule back, or set lr"));
    assert_true(train_run_command(run, "restore"));
    train_run_close(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lr_too_large),
        cmocka_unit_test(test_later),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_wrong_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
