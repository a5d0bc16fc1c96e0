/* A run that was stopped and resumed is the same run: the same bytes of its checkpoint as without the stop.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/support/train_run.h"

enum { STEPS = 20, TRAIN = 70, TEST = 12 }; /* batches of 16: an epoch is 5 steps, the last of 6 images */

struct file {
    char *bytes;
    size_t size;
};

static char folder[2][600];

static int make_folders(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(folder[i], sizeof folder[i], "%s/%d", getenv("TEST_TMP"), i);
        (void)mkdir(folder[i], 0777);
    }
    return 0;
}

static struct file load(const char *path) {
    struct file file = {malloc(1 << 22), 0};
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    assert_non_null(file.bytes);
    file.size = fread(file.bytes, 1, 1 << 22, stream);
    fclose(stream);
    return file;
}

/* What one of a scenario's runs is asked to do: commands at step boundaries. */
struct scenario {
    const char *device, *model;
    const char *words[12];
    int stop; /* after so many steps the second run ends and another goes on */
    struct {
        int step;
        const char *command;
    } at[4];
    const char *last; /* a command to the run that is about to stop only */
};

static void run_from(const struct scenario *s, struct train_run *run, int from, int to) {
    for (int step = from; step < to; step++) {
        for (int i = 0; i < 4; i++)
            if (s->at[i].command && s->at[i].step == step && !train_run_command(run, s->at[i].command))
                fail_msg("%s: %s", s->at[i].command, run->reason);
        train_run_steps(run, 1);
    }
}

static void check(const struct scenario *s) {
    const char *const *words = s->words;
    struct train_run *whole = train_run_resume(s->device, s->model, TRAIN, TEST, words, folder[0], NULL);
    run_from(s, whole, 0, STEPS);
    assert_int_equal(trainer_save(whole->trainer), STATUS_OK);

    struct train_run *first = train_run_resume(s->device, s->model, TRAIN, TEST, words, folder[1], NULL);
    run_from(s, first, 0, s->stop);
    if (s->last && !train_run_command(first, s->last))
        fail_msg("%s: %s", s->last, first->reason);
    assert_int_equal(trainer_save(first->trainer), STATUS_OK);
    char path[4200];
    snprintf(path, sizeof path, "%s", first->store.last);
    train_run_close(first);

    struct train_run *second = train_run_resume(s->device, s->model, TRAIN, TEST, NULL, folder[1], path);
    assert_int_equal(trainer_steps(second->trainer), s->stop);
    assert_false(trainer_paused(second->trainer));
    assert_non_null(strstr(second->info, "no setting changed"));
    run_from(s, second, s->stop, STEPS);
    assert_int_equal(trainer_save(second->trainer), STATUS_OK);
    for (int step = s->stop; step < STEPS; step++) {
        const struct event_step *a = &whole->kept[step].step, *b = &second->kept[step - s->stop].step;
        assert_int_equal(a->step, b->step);
        assert_int_equal(a->images, b->images);
        assert_true(a->lr == b->lr && a->loss == b->loss && a->grad_norm == b->grad_norm);
        assert_true(a->epoch == b->epoch && a->loss_min == b->loss_min);
        assert_true(a->noise_scale == b->noise_scale || (isnan(a->noise_scale) && isnan(b->noise_scale)));
    }
    struct file one = load(whole->store.last), two = load(second->store.last);
    assert_string_equal(strrchr(whole->store.last, '/'), strrchr(second->store.last, '/'));
    assert_int_equal(one.size, two.size);
    if (memcmp(one.bytes, two.bytes, one.size) != 0)
        fail_msg("%s, stopped after %d: the checkpoints differ", s->device, s->stop);
    free(one.bytes);
    free(two.bytes);
    train_run_close(whole);
    train_run_close(second);
}

static const char *const DEVICES[] = {"ref", "cpu"};

#define PLAIN "batch=16", "lr=0.05", "ema=0.99"
#define FULL  PLAIN, "momentum=0.9", "clip-norm=1.5", "lr-decay=0.5", "decay-epochs=1.5", "weight-decay=0.01"

static void test_towers(void **state) {
    (void)state;
    static const char *const towers[] = {"towers=1", "towers=2", "towers=3"};
    for (int d = 0; d < 2; d++)
        for (int k = 0; k < 3; k++)
            for (int conv = 0; conv < 2; conv++) {
                struct scenario mid = {
                    DEVICES[d], conv ? conv_text : mlp_text, {towers[k], FULL}, .stop = 11};
                check(&mid);
            }
}

/* After each step of an epoch, on its border too. */
static void test_places(void **state) {
    (void)state;
    for (int stop = 1; stop <= 10; stop++) {
        struct scenario s = {"cpu", mlp_text, {"towers=2", FULL}, .stop = stop};
        check(&s);
    }
    struct scenario plain = {"cpu", mlp_text, {"towers=2", "ema=0", "batch=16"}, .stop = 10};
    check(&plain);
    struct scenario uneven = {
        "cpu", conv_text, {"towers=3", "batch-per-tower=5", "momentum=0.9"}, .stop = 13};
    check(&uneven);
    struct scenario idle = {"cpu", mlp_text, {"towers=5", "batch=3", "momentum=0.9"}, .stop = 7};
    check(&idle);
}

static void test_after_commands(void **state) {
    (void)state;
    const struct scenario cases[] = {
        {"cpu", conv_text, {"towers=1", FULL}, 10, {{4, "towers 3"}}, NULL},
        {"cpu", mlp_text, {"towers=4", FULL}, 10, {{4, "towers 2"}, {14, "towers 3"}}, "pause"},
        {"cpu",
         mlp_text,
         {"towers=2", PLAIN},
         9,
         {{3, "set lr 0.2"}, {5, "set momentum 0.5"}, {6, "set batch 24"}},
         NULL},
        {"cpu", mlp_text, {"towers=2", FULL}, 9, {{3, "set momentum 0"}, {15, "set momentum 0.9"}}, NULL},
        {"cpu",
         mlp_text,
         {"towers=2", FULL},
         9,
         {{2, "set weight-decay 0.02"}, {6, "set clip-norm 0.5"}},
         "pause"},
        {"cpu", mlp_text, {"towers=2", FULL}, 12, {{7, "eval"}, {12, "eval"}}, NULL},
        {"cpu", mlp_text, {"towers=2", FULL, "eval-every=4"}, 9, {{0}}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

/* Stop after 10 steps on two towers; the path of the checkpoint. */
static const char *stopped(const char *const *words) {
    static char path[4200];
    struct train_run *run = train_run_resume("cpu", mlp_text, TRAIN, TEST, words, folder[0], NULL);
    train_run_steps(run, 10);
    assert_int_equal(trainer_save(run->trainer), STATUS_OK);
    snprintf(path, sizeof path, "%s", run->store.last);
    train_run_close(run);
    return path;
}

/* Other towers: the same mathematics. */
static void test_other_towers(void **state) {
    (void)state;
    const char *const words[] = {"towers=2", FULL, NULL};
    const char *path = stopped(words);
    struct train_run *same = train_run_resume("cpu", mlp_text, TRAIN, TEST, NULL, NULL, path);
    const char *const more[] = {"towers=5", NULL};
    struct train_run *other = train_run_resume("cpu", mlp_text, TRAIN, TEST, more, NULL, path);
    assert_non_null(strstr(other->info, "goes on after step 10"));
    assert_non_null(strstr(other->info, "changed: towers from 2 to 5"));
    assert_non_null(strstr(other->info, "one update with 16 images over all towers"));
    train_run_steps(same, 10);
    train_run_steps(other, 10);
    for (int i = 0; i < 10; i++) {
        const struct event_step *a = &same->kept[i].step, *b = &other->kept[i].step;
        assert_int_equal(a->images, b->images);
        assert_true(a->step == b->step && a->lr == b->lr && b->tower_count == 5);
        assert_near(b->loss, a->loss, 1e-5);
    }
    train_run_close(same);
    train_run_close(other);
}

static void test_changed_settings(void **state) {
    (void)state;
    const char *const words[] = {"towers=2",       "batch=16",  "lr=0.1", "lr-decay=0.5",
                                 "decay-epochs=1", "steps=100", NULL};
    const char *path = stopped(words); /* two epochs are over: the rate is 0.1 * 0.5^2 */
    const char *const rate[] = {"lr=0.3", "steps=200", NULL};
    struct train_run *run = train_run_resume("cpu", mlp_text, TRAIN, TEST, rate, NULL, path);
    assert_non_null(strstr(run->info, "steps from 100 to 200"));
    assert_non_null(strstr(run->info, "lr from 0.1 to 0.3"));
    assert_non_null(strstr(run->info, "the learning rate of step 11 is 0.3 (it would have been 0.025)"));
    train_run_steps(run, 6);
    assert_true(run->kept[0].step.lr == 0.3 && run->kept[5].step.lr == 0.15);
    train_run_close(run);

    const char *const plan[] = {"decay-epochs=4",
                                NULL}; /* the rate stays, and falls when four epochs are over */
    run = train_run_resume("cpu", mlp_text, TRAIN, TEST, plan, NULL, path);
    assert_non_null(strstr(run->info, "decay-epochs from 1 to 4"));
    train_run_steps(run, 11);
    assert_near(run->kept[9].step.lr, 0.025, 1e-15);
    assert_near(run->kept[10].step.lr, 0.0125, 1e-15);
    train_run_close(run);

    const char *const slots[] = {"momentum=0.5", "ema=0", NULL};
    run = train_run_resume("cpu", mlp_text, TRAIN, TEST, slots, NULL, path);
    assert_non_null(strstr(run->info, "momentum from 0 to 0.5"));
    assert_non_null(strstr(run->info, "ema from 0.9999 to 0"));
    train_run_steps(run, 2);
    train_run_close(run);
}

static void test_refusals(void **state) {
    (void)state;
    const char *const words[] = {"towers=2", FULL, NULL};
    const char *path = stopped(words);
    const char *const seed[] = {"seed=2", NULL};
    assert_int_equal(train_run_refusal("cpu", mlp_text, TRAIN, TEST, seed, path), STATUS_REFUSED);
    assert_non_null(strstr(status_text(), "the seed 1 can't become 2"));
    assert_int_equal(train_run_refusal("cpu", mlp_text, TRAIN + 1, TEST, NULL, path), STATUS_REFUSED);
    assert_non_null(strstr(status_text(), "has 71 training images and the run has 70"));
    assert_int_equal(train_run_refusal("cpu", conv_text, TRAIN, TEST, NULL, path), STATUS_BAD_INPUT);
    assert_non_null(strstr(status_text(), "conv/weights"));
}

static void test_finished(void **state) {
    (void)state;
    const char *const words[] = {"towers=2", FULL, "steps=10", NULL};
    const char *path = stopped(words);
    struct train_run *run = train_run_resume("cpu", mlp_text, TRAIN, TEST, NULL, NULL, path);
    assert_true(trainer_finished(run->trainer));
    train_run_close(run);
    const char *const more[] = {"steps=11", NULL};
    run = train_run_resume("cpu", mlp_text, TRAIN, TEST, more, NULL, path);
    assert_false(trainer_finished(run->trainer));
    train_run_steps(run, 1);
    assert_true(trainer_finished(run->trainer));
    train_run_close(run);
    const char *const epochs[] = {"epochs=2", NULL};
    run = train_run_resume("cpu", mlp_text, TRAIN, TEST, epochs, NULL, path);
    assert_true(trainer_finished(run->trainer));
    train_run_close(run);
}

/* Each checkpoint of a run that went wrong is finite, and a state that is the best so far is saved. */
static void test_what_is_saved(void **state) {
    (void)state;
    const char *const wild[] = {"towers=2", "batch=16", "lr=1e20", "checkpoint-every=1", "keep=50", NULL};
    struct train_run *run = train_run_resume("cpu", mlp_text, TRAIN, TEST, wild, folder[1], NULL);
    for (int i = 0; i < 20 && !trainer_paused(run->trainer); i++)
        assert_int_equal(trainer_step(run->trainer), STATUS_OK);
    assert_true(trainer_paused(run->trainer));
    char newest[1100];
    struct checkpoint back;
    if (checkpoint_newest(folder[1], newest, sizeof newest) == STATUS_OK) {
        assert_int_equal(checkpoint_read(newest, run->model, &back), STATUS_OK);
        checkpoint_free(&back);
    }
    train_run_close(run);

    const char *const tame[] = {"towers=2",           "batch=16", "lr=0.05", "eval-every=1",
                                "checkpoint-every=7", "keep=1",   NULL};
    run = train_run_resume("cpu", mlp_text, TRAIN, TEST, tame, folder[0], NULL);
    double best = -1;
    for (int i = 0; i < 40; i++) {
        train_run_steps(run, 1);
        if (run->eval.precision > best)
            best = run->eval.precision;
    }
    assert_true(best > 0);
    double stored = -1;
    DIR *dir = opendir(folder[0]);
    const struct dirent *entry;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        char path[1500];
        struct checkpoint_about about;
        snprintf(path, sizeof path, "%s/%s", folder[0], entry->d_name);
        if (entry->d_name[0] == '.' || strstr(entry->d_name, "rewound"))
            continue;
        assert_int_equal(checkpoint_look(path, &about), STATUS_OK);
        if (about.precision > stored)
            stored = about.precision;
        checkpoint_about_free(&about);
    }
    closedir(dir);
    assert_near(stored, best, 1e-6);
    train_run_close(run);
}

static int empty_folders(void **state) {
    make_folders(state);
    for (int i = 0; i < 2; i++) {
        DIR *dir = opendir(folder[i]);
        const struct dirent *entry;
        while (dir && (entry = readdir(dir))) {
            char path[1500];
            snprintf(path, sizeof path, "%s/%s", folder[i], entry->d_name);
            if (entry->d_name[0] != '.')
                unlink(path);
        }
        closedir(dir);
    }
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_towers, make_folders),
        cmocka_unit_test_setup(test_places, make_folders),
        cmocka_unit_test_setup(test_after_commands, make_folders),
        cmocka_unit_test_setup(test_other_towers, make_folders),
        cmocka_unit_test_setup(test_changed_settings, make_folders),
        cmocka_unit_test_setup(test_refusals, make_folders),
        cmocka_unit_test_setup(test_finished, make_folders),
        cmocka_unit_test_setup(test_what_is_saved, empty_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
