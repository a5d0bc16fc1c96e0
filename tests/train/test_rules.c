/* The wrong rules and the view of a step, against numerical gradients of what each rule really minimises. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/train_run.h"

#include "datasets/distort.h"
#include "datasets/order.h"
#include "engine/train/rules.h"

enum { TRAIN = 40, BATCH = 13, TOWERS = 4, SIDE = 6, VALUES = 36, CLASSES = 5, BEFORE = 2, MOST = 512 };

/* ---- the network of mlp_text, written out */

struct plain {
    const struct train_run *run;
    double w[MOST];
    float pixels[BATCH][VALUES];
    int labels[BATCH];
    double decay_factor;
};

static double image_loss(const struct plain *p, int image) {
    double x[VALUES], y[VALUES];
    int in = VALUES;
    for (int i = 0; i < in; i++)
        x[i] = (double)p->pixels[image][i];
    for (int l = 0; l < 3; l++) {
        const struct model_parameter *w = &p->run->model->parameters[2 * l], *b = w + 1;
        int out = w->dims[1];
        for (int o = 0; o < out; o++) {
            y[o] = p->w[b->offset + (size_t)o];
            for (int i = 0; i < in; i++)
                y[o] += x[i] * p->w[w->offset + (size_t)(i * out + o)];
            if (l < 2 && y[o] < 0)
                y[o] = 0;
        }
        memcpy(x, y, sizeof x);
        in = out;
    }
    double sum = 0;
    for (int c = 0; c < CLASSES; c++)
        sum += exp(x[c]);
    return log(sum) - x[p->labels[image]];
}

static double decay_terms(const struct plain *p) {
    const double decay[3] = {0.004, 0, 0.01};
    double sum = 0;
    for (int l = 0; l < 3; l++) {
        const struct model_parameter *w = &p->run->model->parameters[2 * l];
        for (size_t i = w->offset; i < w->offset + w->count; i++)
            sum += decay[l] * p->w[i] * p->w[i] / 2;
    }
    return sum;
}

/* Total loss of tower k: mean cross-entropy of its images and the decay terms. */
static double tower_total(const struct plain *p, int k) {
    int64_t first, images = order_shard(BATCH, TOWERS, k, &first);
    double sum = 0;
    for (int64_t i = 0; i < images; i++)
        sum += image_loss(p, (int)(first + i));
    return sum / (double)images + decay_terms(p);
}

/* ---- what each rule minimises */

static double share(int k) {
    int64_t first;
    return (double)order_shard(BATCH, TOWERS, k, &first) / BATCH;
}

static double objective(const struct plain *p, enum rule rule) {
    double total[TOWERS], right = 0, sum = 0, built = 0, unscoped = 0;
    for (int k = 0; k < TOWERS; k++) {
        total[k] = tower_total(p, k);
        right += share(k) * total[k];
        sum += total[k];
        built += total[k]; /* the collection when tower k adds it up, without a scope */
        unscoped += built / TOWERS;
    }
    switch (rule) {
    case RULE_UNSCOPED:
        return unscoped;
    case RULE_SUM:
        return sum;
    case RULE_LAST:
        return total[TOWERS - 1];
    case RULE_PLAIN_MEAN:
        return sum / TOWERS;
    case RULE_DECAY_PER_TOWER:
        return right + (TOWERS - 1) * decay_terms(p);
    default:
        return right;
    }
}

static double printed(const struct plain *p, enum rule rule) {
    switch (rule) {
    case RULE_UNSCOPED:
        return objective(p, RULE_SUM);
    case RULE_PRINT_LAST:
        return tower_total(p, TOWERS - 1);
    default:
        return objective(p, rule);
    }
}

typedef double function(const struct plain *p, int which);

static double rule_function(const struct plain *p, int rule) {
    return objective(p, (enum rule)rule);
}

static void gradient_of(struct plain *p, function *f, int which, double *out) {
    const double h = 1e-5;
    for (size_t i = 0; i < p->run->model->flat_count; i++) {
        double w = p->w[i];
        p->w[i] = w + h;
        double above = f(p, which);
        p->w[i] = w - h;
        double below = f(p, which);
        p->w[i] = w;
        out[i] = (above - below) / (2 * h);
    }
}

static double norm_of(const double *g, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += g[i] * g[i];
    return sqrt(sum);
}

/* What a rule's step moves along, clipping included, worked out from the losses alone. */
static void expected_gradient(struct plain *p, enum rule rule, double clip, double *out) {
    size_t n = p->run->model->flat_count;
    if (rule != RULE_CLIP_BEFORE) {
        gradient_of(p, rule_function, rule, out);
        return;
    }
    static double g[MOST];
    memset(out, 0, n * sizeof *out);
    for (int k = 0; k < TOWERS; k++) {
        gradient_of(p, tower_total, k, g);
        double norm = norm_of(g, n), scale = clip > 0 && norm > clip ? clip / norm : 1;
        for (size_t i = 0; i < n; i++)
            out[i] += share(k) * scale * g[i];
    }
}

/* ---- runs */

static struct train_run *open_run(const char *clip) {
    const char *const words[] = {"towers=4", "batch=13", "lr=0.05", "seed=3", "ema=0.99", clip, NULL};
    return train_run_open("ref64", mlp_text, TRAIN, 10, words);
}

static void read_flat(const struct train_run *run, const char *what, float *out) {
    assert_int_equal(trainer_read(run->trainer, what, out, run->model->flat_count), STATUS_OK);
}

static void plain_of(const struct train_run *run, struct plain *p) {
    static float w[MOST];
    static uint32_t order[TRAIN];
    *p = (struct plain){.run = run};
    read_flat(run, "parameters", w);
    for (size_t i = 0; i < run->model->flat_count; i++)
        p->w[i] = (double)w[i];
    order_epoch(3, 0, TRAIN, order);
    const struct distort_options options = {.seed = 3,
                                            .size = SIDE,
                                            .distortions = DISTORT_CROP | DISTORT_FLIP | DISTORT_BRIGHTNESS |
                                                           DISTORT_CONTRAST};
    for (int i = 0; i < BATCH; i++) {
        uint32_t sample = order[BEFORE * BATCH + i];
        distort_training(&run->data.train, &options, sample, 0, p->pixels[i]);
        p->labels[i] = run->data.train.labels[sample];
    }
}

static void check_rule(enum rule rule, const char *clip_word, double clip) {
    static double expected[MOST];
    static float right[MOST], applied[MOST], before[MOST], after[MOST];
    struct train_run *view = open_run(clip_word), *wrong = open_run(clip_word);
    size_t n = view->model->flat_count;
    assert_true(n <= MOST);
    train_run_steps(view, BEFORE);
    train_run_steps(wrong, BEFORE);
    struct plain p;
    plain_of(view, &p);

    assert_true(train_run_command(view, "why on"));
    train_run_steps(view, 1);
    read_flat(view, "gradient", right);
    char command[64];
    snprintf(command, sizeof command, "why apply %s", rule_name(rule));
    assert_true(train_run_command(wrong, command));
    read_flat(wrong, "parameters", before);
    train_run_steps(wrong, 1);
    read_flat(wrong, "gradient", applied);
    read_flat(wrong, "parameters", after);

    /* what was applied is the gradient of what the rule minimises */
    expected_gradient(&p, rule, clip, expected);
    double norm = norm_of(expected, n), difference2 = 0, dot = 0, right2 = 0, moved2 = 0;
    bool clips = clip > 0 && rule != RULE_CLIP_BEFORE;
    double scale = clips && norm > clip ? clip / norm : 1;
    for (size_t i = 0; i < n; i++) {
        double d = expected[i] - (double)applied[i];
        difference2 += d * d;
        dot += expected[i] * (double)right[i];
        right2 += (double)right[i] * (double)right[i];
        double m = (double)before[i] - (double)after[i] - 0.05 * scale * expected[i];
        moved2 += m * m;
    }
    assert_near(sqrt(difference2) / norm, 0, 1e-5);
    assert_near(sqrt(moved2) / (0.05 * scale * norm), 0, 2e-5);

    /* and the view says the same of it */
    const struct event_alternative *a = NULL;
    for (int i = 0; i < view->why.alternative_count; i++)
        if (!strcmp(view->alternatives[i].name, rule_name(rule)))
            a = &view->alternatives[i];
    assert_non_null(a);
    double right_norm = sqrt(right2), right_scale = clip > 0 && right_norm > clip ? clip / right_norm : 1;
    assert_near(a->grad_norm / norm, 1, 1e-5);
    assert_near(a->cosine, dot / (norm * right_norm), 1e-5);
    assert_near(a->step_size, scale * norm / (right_scale * right_norm), 1e-5);
    assert_near(a->printed_loss, printed(&p, rule), 1e-6);
    assert_near(wrong->kept[BEFORE].step.loss, printed(&p, rule), 1e-6);
    assert_near(view->kept[BEFORE].step.loss, objective(&p, RULE_RIGHT), 1e-6);
    assert_false(a->identical && rule != RULE_CLIP_BEFORE);
    if (rule == RULE_CLIP_BEFORE)
        assert_true(a->identical == (clip == 0));
    train_run_close(view);
    train_run_close(wrong);
}

static void test_each_rule_is_what_it_says(void **state) {
    (void)state;
    for (enum rule rule = RULE_UNSCOPED; rule < RULE_NO_AVERAGE; rule++) {
        check_rule(rule, "clip-norm=0", 0);
        check_rule(rule, "clip-norm=0.5", 0.5);
    }
}

static void test_identical_where_it_is(void **state) {
    (void)state;
    const char *const words[] = {"towers=1", "batch=13", "lr=0.05", "seed=3", NULL};
    struct train_run *run = train_run_open("ref64", mlp_text, TRAIN, 10, words);
    assert_true(train_run_command(run, "why on"));
    train_run_steps(run, 1);
    assert_int_equal(run->why.alternative_count, RULE_NO_AVERAGE - 1);
    for (int i = 0; i < run->why.alternative_count; i++) {
        if (!run->alternatives[i].identical)
            fail_msg("%s is not identical on one tower", run->alternatives[i].name);
        assert_near(run->alternatives[i].cosine, 1, 1e-12);
    }
    train_run_close(run);

    /* even shards: the plain mean is the weighted one */
    const char *const even[] = {"towers=4", "batch=12", "lr=0.05", "seed=3", NULL};
    run = train_run_open("ref64", mlp_text, TRAIN, 10, even);
    assert_true(train_run_command(run, "why on"));
    train_run_steps(run, 1);
    for (int i = 0; i < run->why.alternative_count; i++) {
        enum rule rule = rule_find(run->alternatives[i].name);
        assert_true(run->alternatives[i].identical == (rule == RULE_PLAIN_MEAN || rule == RULE_CLIP_BEFORE));
    }
    train_run_close(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_rule_is_what_it_says),
        cmocka_unit_test(test_identical_where_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
