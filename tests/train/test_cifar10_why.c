/* test-timeout: 300, test-skip-under: thread (it takes too long) */
/* Every wrong way of combining the towers, as the view of a step of the tutorial's network tells it, beside a
 * step that was really trained that way: even and uneven shards, with and without clipping in force. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/rules.h"
#include "tests/support/cifar10_run.h"
#include "tests/support/cmocka.h"

enum { BEFORE = 2 };

struct kind { /* of a run */
    const char *batch, *clip;
    int64_t first, last; /* images of the first and of the last tower */
    bool uneven, clipped;
};

static struct train_run *open_kind(const struct dataset *data, const struct kind *kind) {
    const char *const words[] = {"towers=4", "lr=0.1", "seed=4", kind->batch, kind->clip, NULL};
    struct train_run *run = train_run_on("cpu", data, "cifar10", words);
    train_run_steps(run, BEFORE);
    return run;
}

static float *read_flat(const struct train_run *run, const char *what) {
    float *values = malloc(run->model->flat_count * sizeof *values);
    assert_non_null(values);
    assert_int_equal(trainer_read(run->trainer, what, values, run->model->flat_count), STATUS_OK);
    return values;
}

/* A step as it was made: its gradient, and how it moved the parameters. */
struct made {
    float *gradient, *moved;
};

static struct made make_step(struct train_run *run) {
    struct made made = {.moved = read_flat(run, "parameters")};
    train_run_steps(run, 1);
    float *after = read_flat(run, "parameters");
    for (size_t i = 0; i < run->model->flat_count; i++)
        made.moved[i] -= after[i];
    free(after);
    made.gradient = read_flat(run, "gradient");
    return made;
}

static void forget(struct made *made) {
    free(made->gradient);
    free(made->moved);
}

static double product(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static const struct event_alternative *told(const struct train_run *view, const char *name) {
    for (int i = 0; i < view->why.alternative_count; i++)
        if (!strcmp(view->alternatives[i].name, name))
            return &view->alternatives[i];
    fail_msg("nothing is told of %s", name);
    return NULL;
}

static void check_rule(struct train_run *run, enum rule rule, const struct train_run *view,
                       const struct made *right) {
    const struct event_alternative *a = told(view, rule_name(rule));
    size_t n = run->model->flat_count;
    char text[64];
    snprintf(text, sizeof text, "why apply %s", a->name);
    assert_true(train_run_command(run, text));
    int at = run->steps;
    struct made wrong = make_step(run);
    double norm = sqrt(product(wrong.gradient, wrong.gradient, n));
    double right_norm = sqrt(product(right->gradient, right->gradient, n));
    double moved = sqrt(product(wrong.moved, wrong.moved, n));
    double right_moved = sqrt(product(right->moved, right->moved, n));
    assert_string_equal(run->kept[at].step.applied, a->name);
    assert_near(a->printed_loss / run->kept[at].step.loss, 1, 1e-5);
    assert_near(a->grad_norm / run->kept[at].step.grad_norm, 1, 1e-5);
    assert_near(a->grad_norm / norm, 1, 1e-5);
    assert_near(a->cosine, product(wrong.gradient, right->gradient, n) / (norm * right_norm), 1e-5);
    assert_near(a->step_size / (moved / right_moved), 1, 1e-5);
    if (a->identical)
        assert_memory_equal(wrong.moved, right->moved, n * sizeof *wrong.moved);
    forget(&wrong);
    assert_true(train_run_command(run, "why restore --rewind"));
    assert_int_equal(trainer_steps(run->trainer), BEFORE);
    assert_true(train_run_command(run, "resume"));
}

static void check_kind(const struct dataset *data, const struct kind *kind) {
    struct train_run *view = open_kind(data, kind), *run = open_kind(data, kind);
    assert_true(train_run_command(view, "why on"));
    struct made right = make_step(view);
    const struct event_step *step = &view->kept[BEFORE].step;
    assert_int_equal(view->why.step, BEFORE + 1);
    assert_int_equal(view->kept[BEFORE].towers[0].images, kind->first);
    assert_int_equal(view->kept[BEFORE].towers[3].images, kind->last);
    assert_near(view->why.proof_loss_difference, 0, 1e-5);
    assert_near(view->why.proof_gradient_difference, 0, 1e-4);
    for (enum rule rule = RULE_UNSCOPED; rule < RULE_NO_AVERAGE; rule++)
        check_rule(run, rule, view, &right);
    /* what this kind of run is there for */
    assert_int_equal(!told(view, "plain-mean")->identical, kind->uneven);
    assert_int_equal(!told(view, "clip-before")->identical, kind->clipped);
    double mean = 0;
    for (int k = 0; k < 4; k++)
        mean += view->kept[BEFORE].towers[k].loss / 4;
    assert_near(told(view, "plain-mean")->printed_loss / mean, 1, 1e-6);
    assert_int_equal(fabs(mean / step->loss - 1) > 1e-6, kind->uneven);
    forget(&right);
    train_run_close(view);
    train_run_close(run);
}

static void test_every_rule(void **state) {
    (void)state;
    static const struct kind kinds[] = {
        {"batch=8", "clip-norm=1.5", 2, 2, false, true},
        {"batch=10", "clip-norm=0", 3, 2, true, false},
    };
    struct dataset *data = open_generated();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        check_kind(data, &kinds[i]);
    dataset_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
