/* test-timeout: 240 */
/* The claim of the engine: the same global batch on any number of towers is the same training, to rounding.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/support/train_run.h"

static const int counts[] = {1, 2, 3, 4, 7};
enum { COUNTS = sizeof counts / sizeof *counts };

static struct train_run *open_with(const char *device, const char *text, int64_t train, int towers,
                                   const char *lr, const char *batch) {
    char towers_word[32];
    snprintf(towers_word, sizeof towers_word, "towers=%d", towers);
    const char *const words[] = {towers_word, lr, batch, "seed=1", NULL};
    return train_run_open(device, text, train, 10, words);
}

/* Losses of `steps` steps with 1, 2, 3, 4, 7 towers, within 1e-5 of those with one. */
static void compare(const char *device, const char *text, int64_t train, const char *lr, int steps) {
    struct train_run *one = NULL;
    for (int i = 0; i < COUNTS; i++) {
        struct train_run *run = open_with(device, text, train, counts[i], lr, "batch=84");
        train_run_steps(run, steps);
        for (int s = 0; one && s < steps; s++) {
            const struct event_step *a = &run->kept[s].step, *b = &one->kept[s].step;
            assert_near(a->loss / b->loss, 1, 1e-5);
            assert_near(a->grad_norm / b->grad_norm, 1, 1e-4);
            assert_true(a->lr == b->lr && a->images == b->images && a->epoch == b->epoch);
        }
        if (one)
            train_run_close(run);
        else
            one = run;
    }
    train_run_close(one);
}

static void test_equal_on_cpu(void **state) {
    (void)state;
    compare("cpu", conv_text, 84 * 7 + 30, "lr=0.1", 10);
    compare("cpu", conv_text, 84 * 7 + 30, "lr=0.01", 50);
}

static void test_equal_on_ref(void **state) {
    (void)state;
    compare("ref", conv_text, 84 * 3 + 5, "lr=0.1", 8);
}

static void test_towers_change_every_step(void **state) {
    (void)state;
    const int plan[] = {2, 5, 1, 64, 3, 3, 7, 2, 1, 4, 13, 2};
    struct train_run *changed = open_with("cpu", conv_text, 300, 2, "lr=0.05", "batch=84");
    struct train_run *steady = open_with("cpu", conv_text, 300, 2, "lr=0.05", "batch=84");
    for (int i = 0; i < 12; i++) {
        char text[32];
        snprintf(text, sizeof text, "towers %d", plan[i]);
        assert_true(train_run_command(changed, text));
        train_run_steps(changed, 1);
        train_run_steps(steady, 1);
        const struct event_step *a = &changed->kept[i].step, *b = &steady->kept[i].step;
        assert_int_equal(a->tower_count, plan[i]);
        assert_near(a->loss / b->loss, 1, 1e-5);
        int64_t images = 0;
        for (int k = 0; k < plan[i]; k++)
            images += a->towers[k].images;
        assert_int_equal(images, b->images);
        assert_true(a->epoch == b->epoch && a->images == b->images);
    }
    /* epochs of 84 + 84 + 84 + 48 */
    assert_near(changed->kept[11].step.epoch, 3, 1e-12);
    train_run_close(changed);
    train_run_close(steady);
}

static void test_same_bytes_twice(void **state) {
    (void)state;
    struct train_run *a = open_with("cpu", conv_text, 300, 3, "lr=0.1", "batch=50");
    struct train_run *b = open_with("cpu", conv_text, 300, 3, "lr=0.1", "batch=50");
    train_run_steps(a, 30);
    train_run_steps(b, 30);
    size_t n = a->model->flat_count;
    float *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y);
    static const char *const what[] = {"parameters", "average", "gradient"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(trainer_read(a->trainer, what[i], x, n), STATUS_OK);
        assert_int_equal(trainer_read(b->trainer, what[i], y, n), STATUS_OK);
        assert_memory_equal(x, y, n * sizeof *x);
    }
    for (int i = 0; i < 30; i++) {
        const struct event_step *s = &a->kept[i].step, *t = &b->kept[i].step;
        assert_true(s->loss == t->loss && s->grad_norm == t->grad_norm && s->update_ratio == t->update_ratio);
        for (int k = 0; k < 3; k++)
            assert_true(s->towers[k].cosine == t->towers[k].cosine && s->towers[k].loss == t->towers[k].loss);
    }
    free(x);
    free(y);
    train_run_close(a);
    train_run_close(b);
}

/* More towers than images: idle ones have no figures and no weight. */
static void test_idle_towers(void **state) {
    (void)state;
    struct train_run *run = open_with("ref64", mlp_text, 40, 5, "lr=0.1", "batch=3");
    train_run_steps(run, 1);
    const struct event_step *s = &run->kept[0].step;
    for (int k = 0; k < 5; k++) {
        assert_int_equal(s->towers[k].images, k < 3);
        assert_int_equal(wire_is_unknown(s->towers[k].loss), k >= 3);
        assert_int_equal(wire_is_unknown(s->towers[k].grad_norm), k >= 3);
        assert_int_equal(wire_is_unknown(s->towers[k].cosine), k >= 3);
    }
    assert_near(s->grad_norm_mean,
                (s->towers[0].grad_norm + s->towers[1].grad_norm + s->towers[2].grad_norm) / 3, 1e-12);
    /* their terms stand in the collection all the same, the cross-entropy without a value */
    assert_int_equal(run->terms, 20);
    assert_string_equal(run->term_name[19], "tower_4/cross_entropy");
    assert_true(wire_is_unknown(run->term[19]) && !wire_is_unknown(run->term[16]));
    train_run_close(run);
}

/* Of many towers that are being made it can be said how many there are, and they can be given up. */
static void test_given_up(void **state) {
    (void)state;
    struct train_run *run = open_with("cpu", mlp_text, 40, 2, "lr=0.1", "batch=20");
    assert_int_equal(run->made, 2);
    train_run_steps(run, 1);
    run->most_made = 7;
    assert_false(train_run_command(run, "towers 20"));
    assert_int_equal(run->made, 7);
    assert_non_null(strstr(run->reason, "given up when 7 of 20 towers had their memory"));
    train_run_steps(run, 1);
    assert_int_equal(run->kept[1].step.tower_count, 2);
    run->most_made = 0;
    assert_true(train_run_command(run, "towers 20"));
    assert_int_equal(run->made, 20);
    train_run_steps(run, 1);
    assert_int_equal(run->kept[2].step.tower_count, 20);
    train_run_close(run);
}

/* Every image of an epoch once, and one step's loss the same for any towers, whatever divides whatever. */
static void test_nothing_divides(void **state) {
    (void)state;
    const int64_t images[] = {1, 3, 9, 10, 63, 64, 65, 200}, batches[] = {1, 7, 64, 256};
    const int towers[] = {1, 2, 3, 4, 7};
    for (int n = 0; n < 8; n++)
        for (int b = 0; b < 4; b++) {
            double first_loss = 0;
            for (int t = 0; t < 5; t++) {
                char batch[32];
                snprintf(batch, sizeof batch, "batch=%lld", (long long)batches[b]);
                struct train_run *run = open_with("ref", mlp_text, images[n], towers[t], "lr=0.05", batch);
                int64_t steps = (images[n] + batches[b] - 1) / batches[b], seen = 0;
                for (int64_t i = 0; i < steps; i++) {
                    train_run_steps(run, 1);
                    const struct event_step *s = &run->kept[run->steps - 1].step;
                    int64_t sum = 0;
                    for (int k = 0; k < towers[t]; k++)
                        sum += s->towers[k].images;
                    assert_int_equal(sum, s->images);
                    seen += sum;
                    assert_true(isfinite(s->loss) && s->loss > 0);
                }
                assert_int_equal(seen, images[n]);
                assert_near(run->kept[run->steps - 1].step.epoch, 1, 1e-12);
                if (t == 0)
                    first_loss = run->kept[0].step.loss;
                assert_near(run->kept[0].step.loss / first_loss, 1, 1e-5);
                train_run_close(run);
            }
        }
}

/* Global batch 64, weight decay 0.1, 20 steps: nothing depends on the number of towers. */
static void test_constants(void **state) {
    (void)state;
    double loss[20] = {0}, lr[20] = {0};
    float *first = NULL;
    for (int towers = 1; towers <= 4; towers *= 2) {
        char word[32];
        snprintf(word, sizeof word, "towers=%d", towers);
        const char *const words[] = {word,     "batch=64",     "weight-decay=0.1", "distort=off",
                                     "lr=0.1", "lr-decay=0.5", "decay-epochs=1",   "steps=20",
                                     NULL};
        struct train_run *run = train_run_open("cpu", mlp_text, 200, 10, words);
        train_run_steps(run, 20);
        assert_true(trainer_finished(run->trainer)); /* the plan is used once */
        size_t n = run->model->flat_count;
        float *w = calloc(n, sizeof *w);
        assert_int_equal(trainer_read(run->trainer, "parameters", w, n), STATUS_OK);
        for (int i = 0; i < 20; i++) {
            const struct event_step *s = &run->kept[i].step;
            if (towers > 1) {
                assert_near(s->loss / loss[i], 1, 1e-5);
                assert_true(s->lr == lr[i]);
            }
            loss[i] = s->loss;
            lr[i] = s->lr;
        }
        assert_near(lr[19], 0.1 * pow(0.5, 4), 1e-12); /* 4 steps an epoch: the 20th is in the fifth */
        for (size_t i = 0; first && i < n; i++)
            assert_near((double)w[i], (double)first[i], 1e-4);
        if (first)
            free(w);
        else
            first = w;
        train_run_close(run);
    }
    free(first);
}

/* The tutorial's rule: more towers make the batch larger and the epoch shorter; the rate stays. */
static void test_batch_per_tower(void **state) {
    (void)state;
    const char *const words[] = {"batch-per-tower=10", "towers=2", "lr=0.01", NULL};
    struct train_run *run = train_run_open("cpu", mlp_text, 120, 10, words);
    train_run_steps(run, 3);
    assert_true(train_run_command(run, "towers 4"));
    if (!strstr(run->reason, "the batch is 40, an epoch 3 steps"))
        fail_msg("%s", run->reason);
    train_run_steps(run, 2);
    const int64_t images[] = {20, 20, 20, 40, 20};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(run->kept[i].step.images, images[i]);
        assert_true(run->kept[i].step.lr == 0.01);
    }
    assert_true(train_run_command(run, "set batch 5"));
    if (!strstr(run->reason, "the batch is 20"))
        fail_msg("%s", run->reason);
    train_run_close(run);
}

/* 180,000 parameters and little else. */
static const char wide[] = "[model]\nname = wide\ninput = 6\n"
                           "[wide]\ntype = dense\nunits = 4096\ndeviation = 0.1\nbias = 0\nrelu = yes\n"
                           "[out]\ntype = dense\nunits = classes\ndeviation = 0.1\nbias = 0\n";

/* Leave the process some bytes of address space more than it has now. */
static struct rlimit leave_room(size_t bytes) {
    struct rlimit was, now;
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
    now = was;
    now.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE) + bytes;
    assert_int_equal(setrlimit(RLIMIT_AS, &now), 0);
    return was;
}

/* A change that needs more memory than there is, is refused with the bytes and changes nothing. */
static void test_too_many_towers(void **state) {
    (void)state;
    const char *const words[] = {"towers=1", "batch=4", "lr=0.001", NULL};
    struct train_run *run = train_run_open("cpu", wide, 20, 10, words);
    train_run_steps(run, 1);
    struct rlimit was = leave_room(400 << 20);
    assert_false(train_run_command(run, "towers 1024")); /* 1,024 gradients of 0.7 MB */
    if (!strstr(run->reason, "1024 towers need ") || !strstr(run->reason, "MiB") ||
        !strstr(run->reason, "bytes"))
        fail_msg("%s", run->reason);
    assert_int_equal(run->counts[EVENT_TOWERS], 0);
    assert_true(train_run_command(run, "towers 4"));
    assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
    train_run_steps(run, 1);
    assert_int_equal(run->kept[1].step.tower_count, 4);
    train_run_close(run);
}

/* One wrong rule holds on when there is no memory for the next. */
static void test_too_little_for_a_rule(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* it ends a program that asks for more than there is */
#endif
    const char *const words[] = {"towers=64", "batch=64", "lr=0.001", NULL};
    struct train_run *run = train_run_open("cpu", wide, 200, 10, words);
    assert_true(train_run_command(run, "why apply sum"));
    train_run_steps(run, 1);
    struct rlimit was = leave_room(8 << 20);
    assert_false(train_run_command(run, "why apply no-average")); /* 64 times 0.7 MB */
    if (!strstr(run->reason, "parameters of their own need"))
        fail_msg("%s", run->reason);
    assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
    train_run_steps(run, 1);
    assert_true(run->kept[1].step.applied && !strcmp(run->kept[1].step.applied, "sum"));
    train_run_close(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_little_for_a_rule), /* first: what others free is memory that is there */
        cmocka_unit_test(test_equal_on_cpu),
        cmocka_unit_test(test_equal_on_ref),
        cmocka_unit_test(test_towers_change_every_step),
        cmocka_unit_test(test_same_bytes_twice),
        cmocka_unit_test(test_idle_towers),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_nothing_divides),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_batch_per_tower),
        cmocka_unit_test(test_too_many_towers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
