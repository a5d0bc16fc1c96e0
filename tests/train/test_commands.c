/* Commands at a step boundary: applied or refused with a reason, and what is refused changes nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/train_run.h"

static struct train_run *open_run(void) {
    const char *const words[] = {"towers=2", "batch=8", "lr=0.05", "seed=3", NULL};
    return train_run_open("cpu", mlp_text, 40, 20, words);
}

static void expect_words(const struct train_run *run, const char *words) {
    if (!strstr(run->reason, words))
        fail_msg("\"%s\" lacks \"%s\"", run->reason, words);
}

/* After these the run goes on as if nothing had been said. */
static void test_refused(void **state) {
    (void)state;
    static const char *const impossible[] = {
        "towers 0",
        "towers x",
        "towers -1",
        "towers 1025",
        "set lr -1",
        "set lr x",
        "set lr",
        "set momentum 1",
        "set momentum -0.1",
        "set weight-decay -1",
        "set batch 0",
        "set batch 2.5",
        "set batch -3",
        "set clip-norm -1",
        "set eval-every 0.5",
        "set seed 4",
        "set checkpoint-every -1",
        "step 0",
        "stepp",
        "towers",
        "pause now",
        "note",
        "save",
        "restore",
        "set batch 99999999",
    };
    struct train_run *run = open_run(), *undisturbed = open_run();
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        if (train_run_command(run, impossible[i]))
            fail_msg("%s was applied", impossible[i]);
        if (!*run->reason)
            fail_msg("%s was refused without a reason", impossible[i]);
        train_run_steps(run, 1);
        train_run_steps(undisturbed, 1);
        const struct event_step *a = &run->kept[i].step, *b = &undisturbed->kept[i].step;
        assert_true(a->loss == b->loss && a->lr == b->lr && a->tower_count == 2 && a->images == b->images);
    }
    assert_int_equal(run->counts[EVENT_TOWERS], 0);
    assert_false(trainer_paused(run->trainer));
    train_run_close(run);
    train_run_close(undisturbed);
}

static void test_pause_and_step(void **state) {
    (void)state;
    struct train_run *run = open_run();
    assert_string_equal(run->state, "starting");
    train_run_steps(run, 1);
    assert_string_equal(run->state, "training");
    assert_int_equal(run->counts[EVENT_STATE], 2);
    train_run_steps(run, 1);
    assert_int_equal(run->counts[EVENT_STATE], 2);
    assert_true(train_run_command(run, "pause"));
    assert_true(trainer_paused(run->trainer));
    assert_string_equal(run->state, "paused");
    int states = run->counts[EVENT_STATE];
    assert_true(train_run_command(run, "pause"));
    expect_words(run, "already");
    assert_int_equal(run->counts[EVENT_STATE], states);
    assert_true(train_run_command(run, "step 3"));
    expect_words(run, "step 5");
    for (int i = 0; i < 3; i++) {
        assert_false(trainer_paused(run->trainer));
        train_run_steps(run, 1);
    }
    assert_true(trainer_paused(run->trainer));
    assert_int_equal(trainer_steps(run->trainer), 5);
    assert_true(train_run_command(run, "resume"));
    assert_false(trainer_paused(run->trainer));
    assert_string_equal(run->state, "training");
    assert_true(train_run_command(run, "step"));
    train_run_steps(run, 1);
    assert_true(trainer_paused(run->trainer));
    assert_true(train_run_command(run, "stop"));
    assert_true(trainer_finished(run->trainer) && trainer_stopped(run->trainer));
    assert_false(train_run_command(run, "step"));
    train_run_close(run);
}

/* The step that a run stands at is told, once, whatever its number; not after its towers are others. */
static void test_pause_records_where_it_stands(void **state) {
    (void)state;
    const char *const words[] = {"towers=2", "batch=8", "lr=0.05", "seed=3", "record-every=100", NULL};
    struct train_run *run = train_run_open("cpu", mlp_text, 40, 20, words);
    train_run_steps(run, 3);
    int told = run->steps;
    assert_int_equal(told, 3);
    assert_false(run->kept[2].recorded);
    assert_true(train_run_command(run, "pause"));
    assert_int_equal(run->steps, 4);
    assert_true(run->kept[3].recorded && run->kept[3].step.step == 3);
    assert_true(run->kept[3].step.loss == run->kept[2].step.loss);
    assert_true(train_run_command(run, "resume"));
    assert_true(train_run_command(run, "pause")); /* no step since */
    assert_int_equal(run->steps, 4);
    assert_true(train_run_command(run, "resume"));
    train_run_steps(run, 2); /* the first of them is recorded: a command took effect */
    assert_true(run->kept[4].recorded && !run->kept[5].recorded);
    assert_true(train_run_command(run, "towers 4"));
    assert_true(train_run_command(run, "pause"));
    assert_int_equal(run->steps, 6);
    train_run_close(run);
}

static void test_set(void **state) {
    (void)state;
    struct train_run *run = open_run();
    train_run_steps(run, 1);
    assert_int_equal(run->counts[EVENT_LOSSES], 1);
    double decay = run->kept[0].step.weight_decay;
    assert_true(train_run_command(run, "set lr 0.5"));
    assert_true(run->set_lr == 0.5 && run->set_batch == WIRE_UNKNOWN_INT);
    expect_words(run, "0.5 from step 2 and falls to 0.05 after 13992 more images");
    assert_true(train_run_command(run, "set momentum 0.5"));
    assert_true(train_run_command(run, "set clip-norm 0.001"));
    assert_true(train_run_command(run, "set eval-every 4"));
    train_run_steps(run, 1);
    const struct event_step *s = &run->kept[1].step;
    assert_true(s->lr == 0.5);
    /* the first step with momentum: velocity is the clipped gradient */
    size_t n = run->model->flat_count;
    float *v = calloc(n, sizeof *v);
    assert_int_equal(trainer_read(run->trainer, "velocity", v, n), STATUS_OK);
    double norm2 = 0;
    for (size_t i = 0; i < n; i++)
        norm2 += (double)v[i] * (double)v[i];
    free(v);
    assert_near(sqrt(norm2), 0.001, 1e-8);
    assert_true(s->grad_norm > 0.001); /* the event tells the norm before it was cut */
    assert_int_equal(run->counts[EVENT_LOSSES], 1);
    /* decay: the layers that have one, ten times as much */
    assert_true(train_run_command(run, "set weight-decay 0.1"));
    train_run_steps(run, 1);
    assert_int_equal(run->counts[EVENT_LOSSES], 2);
    assert_true(run->term[1] == 0); /* a decay of 0 in the model stays 0 */
    assert_true(run->kept[2].step.weight_decay > 9 * decay);
    assert_int_equal(run->counts[EVENT_EVAL], 0);
    train_run_steps(run, 1);
    assert_int_equal(run->counts[EVENT_EVAL], 1);
    assert_true(train_run_command(run, "set eval-every 0"));
    assert_true(train_run_command(run, "set batch 16"));
    train_run_steps(run, 1);
    assert_int_equal(run->kept[4].step.images, 8); /* what 4 x 8 of 40 images left */
    train_run_steps(run, 1);
    assert_int_equal(run->kept[5].step.images, 16);
    train_run_close(run);
}

static void test_others(void **state) {
    (void)state;
    struct train_run *run = open_run();
    train_run_steps(run, 1);
    assert_true(train_run_command(run, "note   what a   loss"));
    assert_int_equal(run->counts[EVENT_NOTE], 1);
    assert_true(train_run_command(run, "eval"));
    assert_int_equal(run->counts[EVENT_EVAL], 1);
    assert_int_equal(run->eval.images, 20);
    assert_true(run->eval.averaged);
    assert_true(train_run_command(run, "status"));
    expect_words(run, "training at step 1, epoch 0, 2 towers, batch 8, lr 0.05, loss ");
    assert_true(train_run_command(run, "towers 2"));
    assert_int_equal(run->counts[EVENT_TOWERS], 0); /* nothing changed */
    assert_true(train_run_command(run, "towers 11"));
    expect_words(run, "3 of the 11 towers have no images, and no weight in the average: the batch is 8");
    assert_true(train_run_command(run, "towers 9"));
    expect_words(run, "1 of the 9 towers has no images, and no weight in the average: the batch is 8");
    assert_true(train_run_command(run, "towers 3"));
    assert_int_equal(run->counts[EVENT_TOWERS], 3);
    train_run_steps(run, 1);
    assert_int_equal(run->counts[EVENT_LOSSES], 2);
    assert_int_equal(run->terms, 12);
    train_run_close(run);
}

/* Recorded: each step up to 1,000, later every k-th, and those at which a command took effect. */
static void test_recorded_steps(void **state) {
    (void)state;
    const char *const words[] = {"towers=2", "batch=8", "record-every=10", NULL};
    struct train_run *run = train_run_open("cpu", mlp_text, 40, 20, words);
    train_run_steps(run, 12);
    assert_true(train_run_command(run, "status")); /* a question records nothing */
    train_run_steps(run, 1);
    assert_true(train_run_command(run, "set lr 0.02"));
    train_run_steps(run, 2);
    assert_true(train_run_command(run, "step 2"));
    train_run_steps(run, 2);
    assert_true(train_run_command(run, "resume"));
    train_run_steps(run, 2);
    double low = INFINITY;
    for (int i = 0; i < 19; i++) {
        int step = i + 1;
        bool expected = step == 10 || step == 14 || step == 16 || step == 17 || step == 18;
        assert_int_equal(run->kept[i].recorded, expected);
        for (int k = 0; k < 2; k++) /* cosines are worked out on recorded steps only */
            assert_int_equal(wire_is_unknown(run->kept[i].towers[k].cosine), !expected);
        low = fmin(low, run->kept[i].step.loss);
        assert_true(run->kept[i].step.loss_min == low);
        if (expected)
            low = INFINITY;
    }
    train_run_close(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_pause_and_step),
        cmocka_unit_test(test_pause_records_where_it_stands),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_recorded_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
