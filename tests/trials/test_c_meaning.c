/* What training means must not depend on how it is divided: batches, towers and data that do not divide;
 * constants that grow with the towers; random streams that towers share; test images that count twice. Each
 * is tried on the program itself, and so is a control: a wrong rule in force, or other random numbers, that
 * the same comparison has to notice.
 *
 * ALL=1 tries every combination (tests/long/test_c_meaning_all.sh).
 * test-timeout: 240 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "engine/base/random.h"
#include "engine/train/checkpoint.h"
#include "engine/wire/record.h"
#include "tests/support/cmocka.h"

enum { STEPS_MAX = 512, TOWERS_MAX = 8, SIDE = 28, TEST_IMAGES = 40 };

static char said[60000];

/* `towerscope ARGUMENTS` in $TEST_TMP; its exit code. What it wrote to stdout is in `said`, else what it
 * wrote to stderr. */
static int towerscope(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int towerscope(const char *format, ...) {
    char arguments[1200], command[2000], file[600];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    snprintf(command, sizeof command, "cd '%s' && exec '%s' %s >out 2>err </dev/null", getenv("TEST_TMP"),
             getenv("TOWERSCOPE"), arguments);
    int status = system(command);
    assert_true(WIFEXITED(status));
    snprintf(file, sizeof file, "%s/%s", getenv("TEST_TMP"), WEXITSTATUS(status) ? "err" : "out");
    FILE *stream = fopen(file, "rb");
    assert_non_null(stream);
    said[fread(said, 1, sizeof said - 1, stream)] = 0;
    fclose(stream);
    return WEXITSTATUS(status);
}

static void need(int code) {
    if (code != 0)
        fail_msg("exit %d: %s", code, said);
}

/* ---- data */

static void put(const char *folder, const char *name, const void *bytes, size_t size) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s/%s", getenv("TEST_TMP"), folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void put_number(uint8_t *to, uint32_t number) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(number >> (24 - 8 * i));
}

static void put_set(const char *folder, const char *name, uint64_t which, uint32_t count) {
    size_t size = (size_t)count * SIDE * SIDE;
    uint8_t *images = malloc(16 + size), *labels = malloc(8 + (size_t)count);
    char file[80];
    assert_true(images && labels);
    struct random r = random_begin(which, RANDOM_TEST, count);
    const uint32_t header[] = {2051, count, SIDE, SIDE};
    for (int i = 0; i < 4; i++)
        put_number(images + 4 * i, header[i]);
    put_number(labels, 2049);
    put_number(labels + 4, count);
    for (size_t i = 0; i < size; i++)
        images[16 + i] = (uint8_t)random_below(&r, 256);
    for (size_t i = 0; i < count; i++)
        labels[8 + i] = (uint8_t)random_below(&r, 10);
    snprintf(file, sizeof file, "%s-images-idx3-ubyte", name);
    put(folder, file, images, 16 + size);
    snprintf(file, sizeof file, "%s-labels-idx1-ubyte", name);
    put(folder, file, labels, 8 + (size_t)count);
    free(images);
    free(labels);
}

/* A folder of IDX with that many training images; its name. */
static const char *data_of(int images) {
    static char name[40];
    char path[700];
    snprintf(name, sizeof name, "images%d", images);
    snprintf(path, sizeof path, "%s/%s", getenv("TEST_TMP"), name);
    if (mkdir(path, 0755) == 0) {
        put_set(name, "train", 1, (uint32_t)images);
        put_set(name, "t10k", 2, TEST_IMAGES);
    }
    return name;
}

/* ---- what a run recorded */

struct told {
    int steps, evals;
    struct event_step step[STEPS_MAX]; /* its pointers are not to be followed */
    struct event_step_tower tower[STEPS_MAX][TOWERS_MAX];
    struct event_eval eval[4];
};

static void read_record(const char *run, struct told *out) {
    char path[700];
    struct record_reader *reader;
    struct arena arena = {0};
    struct event event;
    snprintf(path, sizeof path, "%s/runs/%s", getenv("TEST_TMP"), run);
    memset(out, 0, sizeof *out);
    if (record_reader_open(path, 0, &reader) != STATUS_OK)
        fail_msg("%s", status_text());
    while (record_next(reader, -1, &arena, &event) == STATUS_OK) {
        if (event.kind == EVENT_STEP) {
            assert_true(out->steps < STEPS_MAX && event.step.tower_count <= TOWERS_MAX);
            out->step[out->steps] = event.step;
            memcpy(out->tower[out->steps++], event.step.towers,
                   (size_t)event.step.tower_count * sizeof *event.step.towers);
        }
        if (event.kind == EVENT_EVAL && out->evals < 4)
            out->eval[out->evals++] = event.eval;
        arena_reset(&arena);
    }
    assert_int_equal(record_reader_damaged(reader), 0);
    arena_free(&arena);
    record_reader_close(reader);
}

static double off(double a, double b) {
    return fabs(a - b) / fmax(1, fabs(b));
}

/* The largest difference of the losses of two runs of as many steps. */
static double loss_difference(const struct told *a, const struct told *b) {
    double most = 0;
    assert_int_equal(a->steps, b->steps);
    for (int i = 0; i < a->steps; i++) {
        double d = off(a->step[i].loss, b->step[i].loss);
        if (!(d <= most))
            most = d;
    }
    return most;
}

/* ---- C1 */

/* Shares of a step: the first (images mod towers) towers have one image more; an idle one has weight 0. */
static void check_step(const struct told *told, int i, int64_t images, int towers, const char *what) {
    const struct event_step *step = &told->step[i];
    int64_t sum = 0;
    double loss = 0;
    if (step->images != images || step->tower_count != towers)
        fail_msg("%s: step %d has %lld images on %lld towers, expected %lld on %d", what, i + 1,
                 (long long)step->images, (long long)step->tower_count, (long long)images, towers);
    for (int k = 0; k < towers; k++) {
        const struct event_step_tower *tower = &told->tower[i][k];
        int64_t share = images / towers + (k < images % towers);
        if (tower->images != share)
            fail_msg("%s: step %d, tower %d has %lld images, expected %lld", what, i + 1, k,
                     (long long)tower->images, (long long)share);
        sum += tower->images;
        if (share > 0) {
            assert_true(isfinite(tower->loss));
            loss += tower->loss * (double)share / (double)images;
        }
    }
    assert_int_equal(sum, images);
    if (!(off(loss, step->loss) <= 1e-6))
        fail_msg("%s: step %d: the loss is %.9g, the towers' by their images give %.9g", what, i + 1,
                 step->loss, loss);
}

/* Without ALL: one above, one below, none over. */
static bool is_tried(int images, int batch) {
    static const int tried[][2] = {{1, 7},   {1, 64},  {3, 1},   {9, 7},    {10, 256},
                                   {63, 64}, {64, 64}, {65, 64}, {200, 64}, {200, 7}};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        if (tried[i][0] == images && tried[i][1] == batch)
            return true;
    return false;
}

static void nothing_divides(void **state) {
    (void)state;
    static const int images[] = {1, 3, 9, 10, 63, 64, 65, 200}, batches[] = {7, 64, 256, 1},
                     some[] = {1, 2, 7}, all_towers[] = {1, 2, 3, 4, 7};
    bool all = getenv("ALL") != NULL;
    const int *towers = all ? all_towers : some;
    static struct told one, other;
    int run = 0;
    for (int n = 0; n < 8; n++)
        for (int b = 0; b < 4; b++)
            for (int k = 0; k < (all ? 5 : 3); k++) {
                int batch = batches[b], per_epoch = (images[n] + batch - 1) / batch;
                if (!all && !is_tried(images[n], batch))
                    continue;
                char name[20], what[80];
                struct told *told = k == 0 ? &one : &other;
                snprintf(name, sizeof name, "c1-%d", run++);
                snprintf(what, sizeof what, "%d images, batch %d, %d towers", images[n], batch, towers[k]);
                need(towerscope(
                    "train %s --data %s --model softmax --batch %d --towers %d --epochs 2 --eval-every 0 "
                    "--distort off --checkpoint-every 0",
                    name, data_of(images[n]), batch, towers[k]));
                read_record(name, told);
                assert_int_equal(told->steps, 2 * per_epoch);
                for (int i = 0; i < told->steps; i++) {
                    int64_t left = images[n] - (int64_t)(i % per_epoch) * batch;
                    check_step(told, i, left < batch ? left : batch, towers[k], what);
                }
                if (k > 0 && !(loss_difference(told, &one) <= 1e-5))
                    fail_msg("%s: the losses differ from one tower's by %g", what,
                             loss_difference(told, &one));
            }
    /* control: towers that are added, or averaged without regard to their images */
    static const char *const rules[] = {"sum", "plain-mean"};
    need(towerscope(
        "train right --data %s --model softmax --lr 0.1 --batch 10 --towers 1 --steps 12 --eval-every 0 "
        "--distort off",
        data_of(65)));
    read_record("right", &one);
    for (int i = 0; i < 2; i++) {
        char script[80];
        snprintf(script, sizeof script, "@0 why apply %s\n", rules[i]);
        put(".", "script", script, strlen(script));
        need(towerscope(
            "train %s --data %s --model softmax --lr 0.1 --batch 10 --towers 4 --steps 12 --eval-every 0 "
            "--distort off --script script",
            rules[i], data_of(65)));
        read_record(rules[i], &other);
        if (!(loss_difference(&other, &one) > 1e-5))
            fail_msg("%s is not noticed", rules[i]);
    }
}

/* ---- C3 */

/* Norms of the tensors of a run's newest checkpoint into norms[]; how many. */
static int norms_of(const char *run, double norms[32]) {
    char folder[700], path[900];
    struct checkpoint_about about;
    struct checkpoint back;
    struct model *model;
    snprintf(folder, sizeof folder, "%s/runs/%s/checkpoints", getenv("TEST_TMP"), run);
    assert_int_equal(checkpoint_newest(folder, path, sizeof path), STATUS_OK);
    assert_int_equal(checkpoint_look(path, &about), STATUS_OK);
    assert_int_equal(
        model_parse("model", about.model_text, (struct model_ends){SIDE, SIDE, 1, 10}, NAN, &model),
        STATUS_OK);
    if (checkpoint_read(path, model, &back) != STATUS_OK)
        fail_msg("%s", status_text());
    int count = 0;
    const float *slots[] = {back.snapshot.parameters, back.snapshot.velocity, back.snapshot.average};
    for (int s = 0; s < 3; s++)
        for (int p = 0; slots[s] && p < model->parameter_count; p++) {
            double sum = 0;
            for (size_t i = 0; i < model->parameters[p].count; i++) {
                double x = slots[s][model->parameters[p].offset + i];
                sum += x * x;
            }
            assert_true(count < 32);
            norms[count++] = sqrt(sum);
        }
    checkpoint_free(&back);
    checkpoint_about_free(&about);
    model_free(model);
    return count;
}

static void constants_stay(void **state) {
    (void)state;
    static struct told one, other;
    static const int towers[] = {1, 2, 4};
    double norms[3][32];
    int count = 0;
    for (int k = 0; k < 3; k++) {
        char name[20];
        snprintf(name, sizeof name, "c3-%d", towers[k]);
        /* the rate falls four times on the way: the whole plan is used, once */
        need(towerscope(
            "train %s --data %s --model mlp --weight-decay 0.1 --momentum 0.9 --lr 0.02 --lr-decay 0.5 "
            "--decay-epochs 1 --batch 64 --towers %d --epochs 5 --distort off --eval-every 0",
            name, data_of(200), towers[k]));
        read_record(name, k == 0 ? &one : &other);
        count = norms_of(name, norms[k]);
        if (k == 0)
            continue;
        for (int i = 0; i < other.steps; i++) {
            assert_true(other.step[i].lr == one.step[i].lr);
            assert_true(off(other.step[i].weight_decay, one.step[i].weight_decay) <= 1e-5);
        }
        if (!(loss_difference(&other, &one) <= 1e-5))
            fail_msg("%d towers: the losses differ by %g", towers[k], loss_difference(&other, &one));
        for (int i = 0; i < count; i++)
            if (!(fabs(norms[k][i] - norms[0][i]) <= 1e-4 * norms[0][i]))
                fail_msg("%d towers: the norm of tensor %d is %.9g, with one %.9g", towers[k], i, norms[k][i],
                         norms[0][i]);
    }
    assert_int_equal(one.steps, 20);
    assert_true(one.step[0].lr == 0.02 && off(one.step[19].lr, 0.02 / 16) <= 1e-12);
    /* a batch for each tower: fewer and larger steps, the same plan by images */
    need(towerscope(
        "train c3-each --data %s --model mlp --weight-decay 0.1 --lr 0.02 --lr-decay 0.5 --decay-epochs 1 "
        "--batch-per-tower 32 --towers 4 --epochs 5 --distort off --eval-every 0",
        data_of(200)));
    read_record("c3-each", &other);
    assert_int_equal(other.steps, 10);
    assert_true(other.step[0].lr == 0.02 && off(other.step[9].lr, 0.02 / 16) <= 1e-12);
    /* control: the decay once for each tower */
    put(".", "script", "@0 why apply decay-per-tower\n", 29);
    need(towerscope(
        "train c3-wrong --data %s --model mlp --weight-decay 0.1 --momentum 0.9 --lr 0.02 --lr-decay 0.5 "
        "--decay-epochs 1 --batch 64 --towers 4 --epochs 5 --distort off --eval-every 0 --script script",
        data_of(200)));
    read_record("c3-wrong", &other);
    double wrong[32], most = 0;
    count = norms_of("c3-wrong", wrong);
    for (int i = 0; i < count; i++)
        most = fmax(most, fabs(wrong[i] - norms[0][i]) / norms[0][i]);
    if (!(loss_difference(&other, &one) > 1e-5 && most > 1e-4))
        fail_msg("a decay once for each tower is not noticed: %g, %g", loss_difference(&other, &one), most);
}

/* ---- C5 */

enum { LISTED = 32, EPOCHS = 2, LISTS = 4 };

/* What is said of each image, by epoch and tower, without the words "epoch E tower T". */
static void lists(uint64_t seed, char list[EPOCHS][LISTS][LISTED * 100]) {
    need(towerscope("data order %s --towers %d --batch 64 --epochs %d --images %d --seed %llu", data_of(200),
                    LISTS, EPOCHS, LISTED, (unsigned long long)seed));
    memset(list, 0, EPOCHS * LISTS * sizeof list[0][0]);
    for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n")) {
        int epoch, tower, end = 0;
        assert_true(sscanf(line, "epoch %d tower %d %n", &epoch, &tower, &end) == 2 && end > 0);
        assert_true(epoch < EPOCHS && tower < LISTS);
        char *to = list[epoch][tower];
        snprintf(to + strlen(to), sizeof list[0][0] - strlen(to), "%s\n", line + end);
    }
}

static void streams_differ(void **state) {
    (void)state;
    static char first[EPOCHS][LISTS][LISTED * 100], again[EPOCHS][LISTS][LISTED * 100],
        other[EPOCHS][LISTS][LISTED * 100];
    lists(1, first);
    lists(1, again);
    lists(2, other);
    assert_memory_equal(first, again, sizeof first);
    for (int e = 0; e < EPOCHS; e++)
        for (int t = 0; t < LISTS; t++) {
            int lines = 0;
            for (const char *c = first[e][t]; *c; c++)
                lines += *c == '\n';
            assert_int_equal(lines, LISTED);
            assert_string_not_equal(first[e][t], other[e][t]);
            for (int u = 0; u < t; u++)
                assert_string_not_equal(first[e][t], first[e][u]);
        }
    for (int t = 0; t < LISTS; t++)
        assert_string_not_equal(first[0][t], first[1][t]);
    /* and so it is in training, whatever the threads do */
    static const char *const how[][2] = {
        {"c5-a", "--seed 5 --threads 1"}, {"c5-b", "--seed 5 --threads 4"}, {"c5-c", "--seed 6 --threads 4"}};
    static struct told told[3];
    for (int i = 0; i < 3; i++) {
        need(towerscope(
            "train %s --data %s --model softmax --towers 4 --batch 64 --epochs 3 --eval-every 0 %s",
            how[i][0], data_of(200), how[i][1]));
        read_record(how[i][0], &told[i]);
    }
    assert_true(loss_difference(&told[0], &told[1]) == 0);
    assert_true(loss_difference(&told[2], &told[0]) > 1e-5);
}

/* ---- C6 */

static void each_test_image_counts_once(void **state) {
    (void)state;
    static const int batches[] = {1, 32, 1000}, all_towers[] = {1, 2, 3, 4, 5, 6, 7}, some[] = {1, 3, 7};
    bool all = getenv("ALL") != NULL;
    const int *towers = all ? all_towers : some;
    static struct told told;
    struct event_eval first = {0};
    need(towerscope("train c6 --data %s --model softmax --lr 0.05 --batch 20 --steps 30 --eval-every 0",
                    data_of(200)));
    need(towerscope("eval c6"));
    char as_eval[80];
    put(".", "script", "@30 eval\n@30 stop\n", 18);
    for (int b = 0; b < 3; b++)
        for (int k = 0; k < (all ? 7 : 3); k++) {
            char name[20];
            snprintf(name, sizeof name, "c6-%d-%d", batches[b], towers[k]);
            char command[700];
            snprintf(command, sizeof command, "cp -r '%s/runs/c6' '%s/runs/%s'", getenv("TEST_TMP"),
                     getenv("TEST_TMP"), name);
            assert_int_equal(system(command), 0);
            need(towerscope("train %s --resume --steps 31 --batch %d --towers %d --script script", name,
                            batches[b], towers[k]));
            read_record(name, &told);
            assert_int_equal(told.evals, 1);
            const struct event_eval *e = &told.eval[0];
            if (b == 0 && k == 0)
                first = *e;
            assert_int_equal(e->images, TEST_IMAGES);
            assert_true(off(e->precision, (double)e->correct / TEST_IMAGES) <= 1e-9);
            if (e->correct != first.correct || e->loss != first.loss)
                fail_msg("%s: %lld right, loss %.9g; with one tower %lld, %.9g", name, (long long)e->correct,
                         e->loss, (long long)first.correct, first.loss);
        }
    need(towerscope("eval c6"));
    snprintf(as_eval, sizeof as_eval, "(%lld of %d test images)", (long long)first.correct, TEST_IMAGES);
    assert_non_null(strstr(said, as_eval));
    /* control: other parameters have another loss */
    need(towerscope(
        "train c6-other --data %s --model softmax --lr 0.05 --batch 20 --steps 30 --eval-every 30 --seed 2",
        data_of(200)));
    read_record("c6-other", &told);
    assert_true(told.evals >= 1 && told.eval[0].loss != first.loss);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_divides),
        cmocka_unit_test(constants_stay),
        cmocka_unit_test(streams_differ),
        cmocka_unit_test(each_test_image_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
