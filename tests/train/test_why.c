/* The frozen step: phases, proof, wrong rules in force and taken back, and that looking changes nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/train_run.h"

static struct train_run *open_run(const char *towers) {
    const char *const words[] = {towers, "batch=26", "lr=0.05", "seed=5", "momentum=0.9", "ema=0.999", NULL};
    return train_run_open("cpu", conv_text, 100, 10, words);
}

static float *flat(const struct train_run *run, const char *what) {
    float *values = calloc(run->model->flat_count, sizeof *values);
    assert_non_null(values);
    assert_int_equal(trainer_read(run->trainer, what, values, run->model->flat_count), STATUS_OK);
    return values;
}

static void assert_same_bytes(const struct train_run *a, const struct train_run *b) {
    static const char *const parts[] = {"parameters", "average", "velocity"};
    for (int i = 0; i < 3; i++) {
        float *x = flat(a, parts[i]), *y = flat(b, parts[i]);
        assert_memory_equal(x, y, a->model->flat_count * sizeof *x);
        free(x);
        free(y);
    }
}

static void command(struct train_run *run, const char *text) {
    if (!train_run_command(run, text))
        fail_msg("%s was refused: %s", text, run->reason);
}

static void test_looking_changes_nothing(void **state) {
    (void)state;
    struct train_run *looked = open_run("towers=4"), *plain = open_run("towers=4");
    train_run_steps(looked, 2);
    command(looked, "why on");
    train_run_steps(looked, 1);
    command(looked, "images 1");
    command(looked, "phase next");
    command(looked, "images 3 2");
    command(looked, "phase next");
    command(looked, "phase next");
    command(looked, "images 0");
    command(looked, "why off");
    command(looked, "phase next");
    command(looked, "why on");
    command(looked, "phase run"); /* step 4; step 5 is the short end of the epoch */
    command(looked, "resume");
    train_run_steps(looked, 1);
    command(looked, "why off");
    train_run_steps(looked, 2);
    train_run_steps(plain, 7);
    assert_int_equal(trainer_steps(looked->trainer), 7);
    assert_same_bytes(looked, plain);
    for (int i = 0; i < 7; i++)
        assert_true(looked->kept[i].step.loss == plain->kept[i].step.loss &&
                    looked->kept[i].step.epoch == plain->kept[i].step.epoch);
    train_run_close(looked);
    train_run_close(plain);
}

static void test_phases(void **state) {
    (void)state;
    static const char *const names[] = {"load", "forward", "losses", "backward", "average", "update"};
    struct train_run *run = open_run("towers=3"), *plain = open_run("towers=3");
    command(run, "why on");
    for (int i = 0; i < 6; i++) {
        command(run, "phase next");
        assert_string_equal(run->phase, names[i]);
        assert_true(trainer_paused(run->trainer));
        assert_int_equal(trainer_steps(run->trainer), i == 5);
        assert_int_equal(run->counts[EVENT_WHY], (i >= 3) + (i >= 4));
        assert_int_equal(run->why.alternative_count > 0, i >= 4);
        assert_int_equal(run->counts[EVENT_LOSSES], i >= 2);
    }
    /* a change in mid-step: it begins again, with the same images and the new towers */
    command(run, "phase next");
    command(run, "phase next");
    command(run, "towers 2");
    for (int i = 0; i < 6; i++)
        command(run, "phase next");
    assert_int_equal(run->kept[1].step.tower_count, 2);
    command(run, "phase next");
    command(run, "set lr 0.01");
    assert_string_equal(run->phase, "start");
    command(run, "phase run");
    assert_near(run->kept[2].step.lr, 0.01, 1e-12);
    command(run, "phase next");
    command(run, "resume"); /* the frozen step is finished, then more come */
    train_run_steps(run, 1);
    train_run_steps(plain, 4);
    for (int i = 0; i < 4; i++)
        assert_true(run->kept[i].step.epoch == plain->kept[i].step.epoch &&
                    run->kept[i].step.images == plain->kept[i].step.images);
    assert_near(run->kept[2].step.loss, plain->kept[2].step.loss, 1e-4);
    train_run_close(run);
    train_run_close(plain);
}

/* What the update is made with goes with the step: also what was set a moment ago. */
static void test_update_told(void **state) {
    (void)state;
    struct train_run *run = open_run("towers=2");
    command(run, "why on");
    train_run_steps(run, 1);
    assert_near(run->why.momentum, trainer_settings(run->trainer)->momentum, 1e-12);
    assert_near(run->why.clip_norm, 0, 0);
    assert_near(run->why.ema, trainer_settings(run->trainer)->ema, 1e-12);
    command(run, "set momentum 0.5");
    command(run, "set clip-norm 0.25");
    train_run_steps(run, 1);
    assert_near(run->why.momentum, 0.5, 1e-12);
    assert_near(run->why.clip_norm, 0.25, 1e-12);
    train_run_close(run);
}

static void test_proof(void **state) {
    (void)state;
    static const char *const towers[] = {"towers=1", "towers=2", "towers=4", "towers=7"};
    for (int i = 0; i < 4; i++) {
        struct train_run *run = open_run(towers[i]);
        command(run, "why on");
        for (int s = 0; s < 4; s++) { /* 26, 26, 26 and 22 images */
            train_run_steps(run, 1);
            assert_int_equal(run->why.step, s + 1);
            assert_near(run->why.proof_loss, run->kept[s].step.loss, 1e-5);
            assert_near(run->why.proof_loss_difference, 0, 1e-5);
            assert_near(run->why.proof_gradient_difference, 0, 1e-4);
            assert_near(run->why.proof_parameter_difference, 0, 1e-4);
            assert_true(run->why.proof_bytes > 0);
        }
        train_run_close(run);
    }
}

/* A step that is looked into is told whole, in the record too, once, however it was walked. */
static void test_told_once(void **state) {
    (void)state;
    const char *const words[] = {"towers=3", "batch=26", "lr=0.05", "seed=5", "record-every=1000", NULL};
    struct train_run *run = train_run_open("cpu", conv_text, 100, 10, words);
    train_run_steps(run, 2);
    int before = run->counts[EVENT_LOSSES];
    assert_false(run->kept[1].recorded);
    command(run, "why on");
    train_run_steps(run, 2);
    command(run, "phase next");
    command(run, "phase run");
    for (int i = 0; i < 4; i++)
        command(run, "phase next");
    command(run, "phase run");
    for (int i = 2; i < 6; i++)
        assert_true(run->kept[i].recorded);
    assert_int_equal(run->counts[EVENT_WHY], 4 + 1); /* the gradients alone, where backward was walked */
    assert_int_equal(run->counts[EVENT_LOSSES], before + 4);
    command(run, "why off");
    command(run, "resume");
    train_run_steps(run, 2);
    assert_false(run->kept[7].recorded);
    train_run_close(run);
}

static void test_apply_and_go_back(void **state) {
    (void)state;
    struct train_run *run = open_run("towers=4"), *plain = open_run("towers=4");
    train_run_steps(run, 3);
    train_run_steps(plain, 3);
    assert_false(train_run_command(run, "restore"));
    assert_false(train_run_command(run, "why apply nonsense"));
    command(run, "why apply last");
    train_run_steps(run, 1);
    command(run, "why apply sum"); /* going back leads before both */
    train_run_steps(run, 4);
    assert_string_equal(run->kept[3].step.applied, "last");
    for (int i = 4; i < 8; i++) {
        const struct event_step *s = &run->kept[i].step;
        assert_string_equal(s->applied, "sum");
        double sum = 0;
        for (int k = 0; k < 4; k++)
            sum += s->towers[k].loss;
        assert_near(s->loss / sum, 1, 1e-6);
    }
    command(run, "why restore --rewind");
    assert_int_equal(run->rewound_to, 3);
    assert_int_equal(trainer_steps(run->trainer), 3);
    assert_true(trainer_paused(run->trainer));
    assert_same_bytes(run, plain);
    command(run, "resume");
    train_run_steps(run, 3);
    train_run_steps(plain, 3);
    assert_true(run->kept[8].step.applied == NULL);
    assert_same_bytes(run, plain);
    train_run_close(run);
    train_run_close(plain);
}

/* One step of towers on their own from the same parameters: their mean is where the average would have gone.
 */
static void test_no_average(void **state) {
    (void)state;
    const char *const words[] = {"towers=2", "batch=26", "lr=0.05", "seed=5", "ema=0.999", NULL};
    struct train_run *run = train_run_open("cpu", conv_text, 104, 10, words);
    struct train_run *plain = train_run_open("cpu", conv_text, 104, 10, words);
    command(run, "why apply no-average");
    train_run_steps(run, 1);
    train_run_steps(plain, 1);
    assert_true(run->kept[0].step.spread > 0);
    assert_near(run->kept[0].step.update_ratio / plain->kept[0].step.update_ratio, 1, 0.5);
    for (int i = 0; i < 2; i++) {
        const char *what = i ? "average" : "parameters";
        float *a = flat(run, what), *b = flat(plain, what);
        for (size_t j = 0; j < run->model->flat_count; j++)
            assert_near((double)a[j], (double)b[j], 1e-6);
        free(a);
        free(b);
    }
    train_run_steps(run, 4);
    for (int i = 1; i < 5; i++)
        assert_true(run->kept[i].step.spread > 0 && isfinite(run->kept[i].step.spread));
    assert_true(run->kept[4].step.spread > run->kept[0].step.spread);
    command(run, "towers 3"); /* they set out again, from their mean */
    train_run_steps(run, 1);
    assert_true(run->kept[5].step.spread < run->kept[4].step.spread);
    command(run, "set momentum 0.5");
    train_run_steps(run, 2);
    command(run, "why restore");
    train_run_steps(run, 1);
    assert_true(wire_is_unknown(run->kept[8].step.spread));
    train_run_close(run);
    train_run_close(plain);
}

static void test_images(void **state) {
    (void)state;
    struct train_run *run = open_run("towers=3");
    assert_false(train_run_command(run, "images 0")); /* no step yet */
    train_run_steps(run, 1);
    command(run, "images 1");
    assert_int_equal(run->image_count, 8);
    assert_true(run->image.prediction >= 0 && run->image.prediction < run->model->classes);
    assert_true(run->image.probability >= 1.0 / run->model->classes && run->image.probability <= 1);
    command(run, "images 2 7");
    assert_int_equal(run->image_count, 1);
    assert_false(train_run_command(run, "images 2 8"));
    assert_false(train_run_command(run, "images 3"));
    command(run, "phase next");
    command(run, "images 0");
    assert_int_equal(run->image.prediction, WIRE_UNKNOWN_INT);
    train_run_close(run);
}

static bool file_says(const char *path, const char *words) {
    static char bytes[65536];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return memmem(bytes, size, words, strlen(words)) != NULL;
}

/* A checkpoint made under a wrong rule says so, and its precision does not make it the best. */
static void test_checkpoint_of_a_wrong_rule(void **state) {
    (void)state;
    const char *tmp = getenv("TEST_TMP");
    char folder[512], path[600];
    snprintf(folder, sizeof folder, "%s/wrong", tmp ? tmp : ".");
    const char *const words[] = {"towers=2", "batch=26", "lr=0.05", "seed=5", NULL};
    struct train_run *run = train_run_resume("cpu", conv_text, 104, 10, words, folder, NULL);
    train_run_steps(run, 1);
    command(run, "eval");
    command(run, "save");
    snprintf(path, sizeof path, "%s/step-00000001.safetensors", folder);
    assert_false(file_says(path, "\"applied\""));
    assert_false(file_says(path, "\"precision\":\"\""));
    command(run, "why apply sum");
    train_run_steps(run, 1);
    command(run, "eval");
    command(run, "save");
    snprintf(path, sizeof path, "%s/step-00000002.safetensors", folder);
    assert_true(file_says(path, "\"applied\":\"sum\""));
    assert_true(file_says(path, "\"precision\":\"\""));
    train_run_close(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looking_changes_nothing),
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_update_told),
        cmocka_unit_test(test_proof),
        cmocka_unit_test(test_told_once),
        cmocka_unit_test(test_apply_and_go_back),
        cmocka_unit_test(test_no_average),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_checkpoint_of_a_wrong_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
