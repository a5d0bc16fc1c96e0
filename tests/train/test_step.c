/* A run of the trainer against a plain reimplementation of the same training in this file: one loop over the
 * whole batch, no towers, all in double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/train_run.h"

#include "datasets/distort.h"
#include "datasets/order.h"

enum { INPUT = 36, LAYERS = 3, WIDEST = 36, CLASSES = 5, IMAGES = 50 };

struct plain {
    const struct model *model;
    const struct dataset *data;
    double *w, *velocity, *shadow, *gradient;
    double momentum, clip, ema, lr;
    int64_t steps, epoch, position;
    /* of the last step */
    double cross_entropy, decay, grad_norm, lr_used, update2, parameter2;
    int64_t images;
};

static int width(const struct plain *p, int layer) { /* of the values that enter a layer */
    return layer == 0 ? INPUT : p->model->parameters[2 * (layer - 1)].dims[1];
}

static void plain_open(struct plain *p, const struct train_run *run, uint64_t seed) {
    size_t n = run->model->flat_count;
    float *initial = calloc(n, sizeof *initial);
    *p = (struct plain){.model = run->model, .data = &run->data, .lr = 0.1, .ema = 0.9999};
    p->w = calloc(n, sizeof *p->w);
    p->velocity = calloc(n, sizeof *p->velocity);
    p->shadow = calloc(n, sizeof *p->shadow);
    p->gradient = calloc(n, sizeof *p->gradient);
    model_initialise(run->model, seed, initial);
    for (size_t i = 0; i < n; i++)
        p->w[i] = p->shadow[i] = (double)initial[i];
    free(initial);
}

static void plain_close(struct plain *p) {
    free(p->w);
    free(p->velocity);
    free(p->shadow);
    free(p->gradient);
}

/* Loss of one image; adds its share to the gradient. */
static double one_image(struct plain *p, const float *pixels, int label, double share) {
    double x[LAYERS + 1][WIDEST], d[WIDEST], below[WIDEST];
    for (int i = 0; i < INPUT; i++)
        x[0][i] = (double)pixels[i];
    for (int l = 0; l < LAYERS; l++) {
        const struct model_parameter *w = &p->model->parameters[2 * l], *b = w + 1;
        for (int o = 0; o < width(p, l + 1); o++) {
            double sum = p->w[b->offset + (size_t)o];
            for (int i = 0; i < width(p, l); i++)
                sum += x[l][i] * p->w[w->offset + (size_t)(i * width(p, l + 1) + o)];
            x[l + 1][o] = l < LAYERS - 1 && sum < 0 ? 0 : sum;
        }
    }
    double sum = 0;
    for (int c = 0; c < CLASSES; c++)
        sum += exp(x[LAYERS][c]);
    for (int c = 0; c < CLASSES; c++)
        d[c] = (exp(x[LAYERS][c]) / sum - (c == label)) * share;
    for (int l = LAYERS - 1; l >= 0; l--) {
        const struct model_parameter *w = &p->model->parameters[2 * l], *b = w + 1;
        int out = width(p, l + 1);
        for (int i = 0; i < width(p, l); i++) {
            below[i] = 0;
            for (int o = 0; o < out; o++) {
                p->gradient[w->offset + (size_t)(i * out + o)] += x[l][i] * d[o];
                below[i] += p->w[w->offset + (size_t)(i * out + o)] * d[o];
            }
        }
        for (int o = 0; o < out; o++)
            p->gradient[b->offset + (size_t)o] += d[o];
        for (int i = 0; l > 0 && i < width(p, l); i++)
            d[i] = x[l][i] > 0 ? below[i] : 0;
    }
    return log(sum) - x[LAYERS][label];
}

static void plain_losses(struct plain *p, int64_t batch, uint64_t seed) {
    const struct image_set *set = &p->data->train;
    static uint32_t order[4096];
    float pixels[INPUT];
    order_epoch(seed, p->epoch, set->count, order);
    int64_t left = set->count - p->position;
    p->images = batch < left ? batch : left;
    memset(p->gradient, 0, p->model->flat_count * sizeof *p->gradient);
    p->cross_entropy = p->decay = 0;
    const struct distort_options options = {.seed = seed,
                                            .size = 6,
                                            .distortions = DISTORT_CROP | DISTORT_FLIP | DISTORT_BRIGHTNESS |
                                                           DISTORT_CONTRAST};
    for (int64_t i = 0; i < p->images; i++) {
        uint32_t sample = order[p->position + i];
        distort_training(set, &options, sample, p->epoch, pixels);
        p->cross_entropy +=
            one_image(p, pixels, set->labels[sample], 1.0 / (double)p->images) / (double)p->images;
    }
    const double decay[LAYERS] = {0.004, 0, 0.01};
    for (int l = 0; l < LAYERS; l++) {
        const struct model_parameter *w = &p->model->parameters[2 * l];
        for (size_t i = w->offset; i < w->offset + w->count; i++) {
            p->decay += decay[l] * p->w[i] * p->w[i] / 2;
            p->gradient[i] += decay[l] * p->w[i];
        }
    }
    p->position += p->images;
    if (p->position == set->count) {
        p->position = 0;
        p->epoch++;
    }
}

static void plain_update(struct plain *p) {
    double norm2 = 0;
    for (size_t i = 0; i < p->model->flat_count; i++)
        norm2 += p->gradient[i] * p->gradient[i];
    p->grad_norm = sqrt(norm2);
    double scale = p->clip > 0 && p->grad_norm > p->clip ? p->clip / p->grad_norm : 1;
    double t = (double)p->steps, d = fmin(p->ema, (1 + t) / (10 + t));
    p->update2 = p->parameter2 = 0;
    for (size_t i = 0; i < p->model->flat_count; i++) {
        p->velocity[i] = p->momentum * p->velocity[i] + scale * p->gradient[i];
        p->w[i] -= p->lr * p->velocity[i];
        p->shadow[i] -= (1 - d) * (p->shadow[i] - p->w[i]);
        p->update2 += p->lr * p->velocity[i] * p->lr * p->velocity[i];
        p->parameter2 += p->w[i] * p->w[i];
    }
    p->lr_used = p->lr;
    p->steps++;
}

static void compare_flat(struct train_run *run, const char *what, const double *expected, double tolerance) {
    size_t n = run->model->flat_count;
    float *found = calloc(n, sizeof *found);
    assert_int_equal(trainer_read(run->trainer, what, found, n), STATUS_OK);
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)found[i] - expected[i]) <= tolerance))
            fail_msg("%s[%zu] is %.9g, not %.9g", what, i, (double)found[i], expected[i]);
    free(found);
}

struct rules {
    double momentum, clip;
    int change_at, change_to; /* towers */
};

static void compare_run(const char *device, const char *towers, struct rules rules, double tolerance) {
    char momentum[40], clip[40];
    snprintf(momentum, sizeof momentum, "momentum=%g", rules.momentum);
    snprintf(clip, sizeof clip, "clip-norm=%g", rules.clip);
    const char *const words[] = {"batch=12", "seed=4", "lr=0.1", momentum, clip, towers, NULL};
    struct train_run *run = train_run_open(device, mlp_text, IMAGES, 20, words);
    struct plain plain;
    plain_open(&plain, run, 4);
    plain.momentum = rules.momentum;
    plain.clip = rules.clip;
    for (int step = 0; step < 12; step++) { /* two epochs of 12, 12, 12, 12, 2 and a bit */
        if (step == rules.change_at && rules.change_to) {
            char text[40];
            snprintf(text, sizeof text, "towers %d", rules.change_to);
            assert_true(train_run_command(run, text));
        }
        train_run_steps(run, 1);
        plain_losses(&plain, 12, 4);
        plain_update(&plain);
        const struct event_step *s = &run->kept[step].step;
        assert_int_equal(s->step, step + 1);
        assert_int_equal(s->images, plain.images);
        assert_near(s->epoch, (double)plain.epoch + (double)plain.position / IMAGES, 1e-12);
        assert_near(s->lr, plain.lr_used, 0);
        assert_near(s->cross_entropy, plain.cross_entropy, tolerance);
        assert_near(s->weight_decay, plain.decay, tolerance);
        assert_near(s->loss, plain.cross_entropy + plain.decay, tolerance);
        assert_near(s->grad_norm, plain.grad_norm, tolerance);
        assert_near(s->update_ratio, sqrt(plain.update2 / plain.parameter2), tolerance);
    }
    compare_flat(run, "parameters", plain.w, tolerance);
    compare_flat(run, "average", plain.shadow, tolerance);
    compare_flat(run, "gradient", plain.gradient, tolerance);
    if (rules.momentum > 0)
        compare_flat(run, "velocity", plain.velocity, tolerance);
    plain_close(&plain);
    train_run_close(run);
}

static void test_plain(void **state) {
    (void)state;
    const char *const towers[] = {"towers=1", "towers=2", "towers=3", "towers=5", "towers=13"};
    for (int i = 0; i < 5; i++) {
        /* parameters are read as floats: half a unit in the last place of values below 2 */
        compare_run("ref64", towers[i], (struct rules){0}, 1.3e-7);
        compare_run("ref", towers[i], (struct rules){0}, 3e-6);
        compare_run("cpu", towers[i], (struct rules){0}, 3e-6);
    }
}

static void test_momentum_and_clipping(void **state) {
    (void)state;
    compare_run("ref64", "towers=2", (struct rules){.momentum = 0.9}, 1.3e-7);
    compare_run("ref64", "towers=3", (struct rules){.clip = 0.2}, 1.3e-7);
    compare_run("cpu", "towers=3", (struct rules){.momentum = 0.5, .clip = 0.3}, 3e-6);
}

static void test_change_of_towers(void **state) {
    (void)state;
    for (int at = 0; at < 11; at += 3) { /* also where the next step is the short one */
        compare_run("ref64", "towers=2", (struct rules){.change_at = at, .change_to = 5}, 1.3e-7);
        compare_run("ref64", "towers=7", (struct rules){.change_at = at, .change_to = 1}, 1.3e-7);
    }
    compare_run("cpu", "towers=2", (struct rules){.momentum = 0.9, .change_at = 4, .change_to = 64}, 3e-6);
}

/* The figures of each tower, and of the whole from them. */
static void test_tower_figures(void **state) {
    (void)state;
    const char *const words[] = {"batch=16", "towers=3", "seed=4", NULL};
    struct train_run *run = train_run_open("ref64", mlp_text, 40, 20, words);
    train_run_steps(run, 2);
    assert_int_equal(run->counts[EVENT_LOSSES], 1);
    const struct event_step *s = &run->kept[0].step;
    assert_int_equal(s->tower_count, 3);
    const int64_t images[] = {6, 5, 5};
    double ce = 0, decay = 0, loss = 0, norms = 0;
    for (int k = 0; k < 3; k++) {
        const struct event_step_tower *tower = &s->towers[k];
        assert_int_equal(tower->tower, k);
        assert_string_equal(tower->device, "ref64");
        assert_int_equal(tower->images, images[k]);
        ce += tower->cross_entropy * (double)images[k] / 16;
        decay += tower->weight_decay * (double)images[k] / 16;
        loss += tower->loss * (double)images[k] / 16;
        norms += tower->grad_norm / 3;
        assert_near(tower->loss, tower->cross_entropy + tower->weight_decay, 1e-12);
        assert_true(tower->cosine > 0 && tower->cosine <= 1);
        assert_true(tower->load_ms >= 0 && tower->forward_ms > 0 && tower->backward_ms > 0 &&
                    tower->wait_ms >= 0);
        /* the collection in its order: three decay terms, then the cross-entropy */
        char name[64];
        snprintf(name, sizeof name, "tower_%d/cross_entropy", k);
        assert_string_equal(run->term_name[4 * k + 3], name);
        assert_near(run->term[4 * k + 3], tower->cross_entropy, 0);
        assert_near(run->term[4 * k] + run->term[4 * k + 1] + run->term[4 * k + 2], tower->weight_decay,
                    1e-12);
        assert_true(run->term[4 * k + 1] == 0 && run->term[4 * k] > 0);
    }
    assert_int_equal(run->terms, 12);
    assert_near(s->cross_entropy, ce, 1e-12);
    assert_near(s->weight_decay, decay, 1e-12);
    assert_near(s->loss, loss, 1e-12);
    assert_near(s->grad_norm_mean, norms, 1e-12);
    assert_true(s->grad_norm <= s->grad_norm_mean);
    train_run_close(run);
}

static void test_layers(void **state) {
    (void)state;
    const char *const words[] = {"batch=8", "towers=2", "lr=0.01", NULL};
    struct train_run *run = train_run_open("ref64", mlp_text, 40, 20, words);
    train_run_steps(run, 1);
    assert_int_equal(run->counts[EVENT_LAYERS], 1);
    train_run_steps(run, 98);
    assert_int_equal(run->counts[EVENT_LAYERS], 1);
    train_run_steps(run, 1);
    assert_int_equal(run->counts[EVENT_LAYERS], 2);
    assert_int_equal(run->layer_count, 3);
    assert_string_equal(run->layers[1].name, "two");
    size_t n = run->model->flat_count;
    float *w = calloc(n, sizeof *w), *g = calloc(n, sizeof *g);
    assert_int_equal(trainer_read(run->trainer, "parameters", w, n), STATUS_OK);
    assert_int_equal(trainer_read(run->trainer, "gradient", g, n), STATUS_OK);
    double gradient2 = 0;
    for (int l = 0; l < 3; l++) {
        double w2 = 0, g2 = 0;
        int64_t count = 0;
        for (int p = 2 * l; p < 2 * l + 2; p++)
            for (size_t i = 0; i < run->model->parameters[p].count; i++, count++) {
                w2 += pow((double)w[run->model->parameters[p].offset + i], 2);
                g2 += pow((double)g[run->model->parameters[p].offset + i], 2);
            }
        gradient2 += g2;
        assert_int_equal(run->layers[l].parameters, count);
        assert_near(run->layers[l].param_norm, sqrt(w2), 1e-6);
        assert_near(run->layers[l].grad_norm, sqrt(g2), 1e-6);
        assert_near(run->layers[l].update_ratio, 0.01 * sqrt(g2) / sqrt(w2), 1e-6);
    }
    assert_near(run->kept[99].step.grad_norm, sqrt(gradient2), 1e-6);
    double zeros = run->layers[0].zeros; /* of a layer with ReLU, when its values are still there */
    assert_true(wire_is_unknown(zeros) || (zeros >= 0 && zeros < 1));
    assert_true(wire_is_unknown(run->layers[2].zeros)); /* no ReLU */
    free(w);
    free(g);
    train_run_close(run);
}

/* The rate falls after decay_epochs epochs of images, whatever the batch does meanwhile. */
static void test_schedule_in_images(void **state) {
    (void)state;
    const char *const words[] = {"batch=10", "towers=2", "lr=0.1", "decay-epochs=2", NULL};
    struct train_run *run = train_run_open("ref64", mlp_text, 40, 20, words);
    train_run_steps(run, 6); /* 60 images */
    assert_true(train_run_command(run, "set batch 5"));
    train_run_steps(run, 5); /* the last of them begins at image 80, the third epoch */
    for (int i = 0; i < 11; i++)
        assert_near(run->kept[i].step.lr, i < 10 ? 0.1 : 0.01, 1e-15);
    assert_near(run->kept[9].step.epoch, 2, 1e-12);
    assert_true(train_run_command(run, "set lr 0.5"));
    assert_true(train_run_command(run, "towers 3"));
    assert_true(train_run_command(run, "set batch 20"));
    train_run_steps(run, 5); /* 85, 105 (short: 15), 120, 140, 160 */
    const int64_t images[] = {20, 15, 20, 20, 20};
    const double rates[] = {0.5, 0.5, 0.5, 0.5, 0.05};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(run->kept[11 + i].step.images, images[i]);
        assert_near(run->kept[11 + i].step.lr, rates[i], 1e-15);
    }
    train_run_close(run);
}

/* An end in epochs is reached when the last image of the last one was used. */
static void test_epochs(void **state) {
    (void)state;
    const char *const words[] = {"batch=16", "towers=2", "epochs=2", NULL};
    struct train_run *run = train_run_open("ref", mlp_text, 40, 20, words);
    int steps = 0;
    while (!trainer_finished(run->trainer) && steps < 100) {
        if (++steps == 4)
            assert_true(
                train_run_command(run, "set batch 7")); /* 3 steps of 16, 16, 8; then 6 of 7, 7, 7, 7, 7, 5 */
        train_run_steps(run, 1);
    }
    assert_int_equal(steps, 9);
    assert_near(run->kept[8].step.epoch, 2, 1e-12);
    train_run_close(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_momentum_and_clipping),
        cmocka_unit_test(test_change_of_towers),
        cmocka_unit_test(test_tower_figures),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_schedule_in_images),
        cmocka_unit_test(test_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
