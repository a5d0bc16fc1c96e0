/* Every test image counts exactly once, with the averaged parameters, the same for any towers and threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/distort.h"
#include "tests/support/cmocka.h"
#include "tests/support/train_run.h"

enum { INPUT = 36, CLASSES = 5, WIDEST = 36 };

/* Scores of one image by the small mlp with these parameters, in double. */
static void scores(const struct model *model, const float *w, const float *pixels, double out[WIDEST]) {
    double x[WIDEST];
    for (int i = 0; i < INPUT; i++)
        x[i] = (double)pixels[i];
    for (int p = 0; p < model->parameter_count; p += 2) {
        const struct model_parameter *weights = &model->parameters[p], *biases = weights + 1;
        int in = weights->dims[0], units = weights->dims[1];
        for (int o = 0; o < units; o++) {
            out[o] = (double)w[biases->offset + (size_t)o];
            for (int i = 0; i < in; i++)
                out[o] += x[i] * (double)w[weights->offset + (size_t)(i * units + o)];
            if (p + 2 < model->parameter_count && out[o] < 0)
                out[o] = 0;
        }
        memcpy(x, out, sizeof x);
    }
}

static void compare(const char *device, int64_t test, const char *towers) {
    const char *const words[] = {towers, "batch=16", "lr=0.1", NULL};
    struct train_run *run = train_run_open(device, mlp_text, 64, test, words);
    train_run_steps(run, 25);
    assert_int_equal(trainer_evaluate(run->trainer, true), STATUS_OK);
    assert_int_equal(run->eval.images, test);
    assert_int_equal(run->eval.classes, CLASSES);
    float *w = calloc(run->model->flat_count, sizeof *w), pixels[INPUT];
    assert_int_equal(trainer_read(run->trainer, "average", w, run->model->flat_count), STATUS_OK);
    int64_t correct = 0, confusion[CLASSES * CLASSES] = {0};
    double loss = 0;
    for (int64_t i = 0; i < test; i++) {
        double s[WIDEST], sum = 0;
        distort_evaluation(&run->data.test, i, 6, pixels);
        scores(run->model, w, pixels, s);
        int best = 0, label = run->data.test.labels[i];
        for (int c = 0; c < CLASSES; c++) {
            sum += exp(s[c]);
            best = s[c] > s[best] ? c : best;
        }
        loss += log(sum) - s[label];
        correct += best == label;
        confusion[label * CLASSES + best]++;
    }
    assert_int_equal(run->eval.correct, correct);
    assert_near(run->eval.precision, (double)correct / (double)test, 1e-15);
    assert_near(run->eval.loss, loss / (double)test, 2e-6);
    for (int i = 0; i < CLASSES * CLASSES; i++)
        assert_int_equal(run->eval.confusion[i], confusion[i]);
    free(w);
    train_run_close(run);
}

static void test_against_plain(void **state) {
    (void)state;
    const int64_t counts[] = {1, 2, 40, 99, 100, 101, 333};
    for (int i = 0; i < 7; i++) {
        compare("cpu", counts[i], "towers=2");
        compare("ref", counts[i], "towers=3");
    }
}

/* One set of parameters, any number of towers: the same figures to the last bit. */
static void test_any_towers(void **state) {
    (void)state;
    struct event_eval first = {0};
    const char *const words[] = {"towers=1", "batch=16", NULL};
    struct train_run *run = train_run_open("cpu", conv_text, 64, 333, words);
    train_run_steps(run, 10);
    static const char *const change[] = {"towers 1", "towers 2", "towers 3", "towers 4",
                                         "towers 5", "towers 6", "towers 7", "towers 64"};
    for (int i = 0; i < 8; i++) {
        assert_true(train_run_command(run, change[i]));
        assert_true(train_run_command(run, "eval"));
        if (i == 0)
            first = run->eval;
        assert_int_equal(run->eval.correct, first.correct);
        assert_true(run->eval.loss == first.loss);
    }
    train_run_close(run);
}

/* A score that is not finite is wrong, never right: one step at this rate leaves finite parameters of some
 * 1e29, whose products are not. */
static void test_not_finite_is_wrong(void **state) {
    (void)state;
    const char *const words[] = {"ema=0", "lr=1e30", "batch=8", NULL};
    struct train_run *run = train_run_open("ref", mlp_text, 8, 50, words);
    assert_int_equal(trainer_evaluate(run->trainer, false), STATUS_OK);
    assert_false(run->eval.averaged);
    assert_true(run->eval.correct > 0 && isfinite(run->eval.loss));
    train_run_steps(run, 1);
    assert_false(trainer_paused(run->trainer));
    assert_int_equal(trainer_evaluate(run->trainer, true), STATUS_OK);
    assert_int_equal(run->eval.correct, 0);
    assert_false(isfinite(run->eval.loss));
    if (!strstr(run->alarm, "50 test images"))
        fail_msg("alarm \"%s\"", run->alarm);
    for (int i = 0; i < CLASSES * CLASSES; i++)
        assert_int_equal(run->eval.confusion[i], 0);
    train_run_close(run);
}

static void test_interrupted(void **state) {
    (void)state;
    const char *const words[] = {"batch=16", NULL};
    struct train_run *run = train_run_open("cpu", mlp_text, 64, 1000, words);
    run->interrupt = true;
    assert_int_equal(trainer_evaluate(run->trainer, false), STATUS_INTERRUPTED);
    assert_int_equal(run->counts[EVENT_EVAL], 0);
    assert_string_equal(run->state, "training");
    run->interrupt = false;
    assert_int_equal(trainer_evaluate(run->trainer, false), STATUS_OK);
    assert_int_equal(run->eval.images, 1000);
    train_run_close(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_plain),
        cmocka_unit_test(test_any_towers),
        cmocka_unit_test(test_not_finite_is_wrong),
        cmocka_unit_test(test_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
