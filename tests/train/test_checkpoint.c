/* Checkpoints: what comes back, what is refused and by which name, what stays on the disk. */
#include "engine/base/random.h"
#include "engine/train/checkpoint.h"
#include "tests/support/checkpoint_edit.h"
#include "tests/support/cmocka.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char MODEL[] = "[model]\nname=small\ninput=6\nlr=0.5\n"
                            "[conv1]\ntype=conv\nkernel=3\nchannels=5\ndeviation=0.3\nrelu=yes\n"
                            "[out]\ntype=dense\nunits=classes\ndeviation=0.3\nweight_decay=0.01\n";

static char folder[600], path[700];

static struct model *parse(const char *text, int classes) {
    struct model *model;
    if (model_parse("small.ini", text, (struct model_ends){8, 8, 2, classes}, NAN, &model) != STATUS_OK)
        fail_msg("%s", status_text());
    return model;
}

/* A snapshot with something different in every place. */
struct made {
    struct snapshot snapshot;
    struct model *model;
    float *arrays[3];
};

static struct made make(uint64_t seed, bool velocity, bool average) {
    struct made m = {.model = parse(MODEL, 4)};
    for (int i = 0; i < 3; i++) {
        m.arrays[i] = calloc(m.model->flat_count, sizeof(float));
        assert_non_null(m.arrays[i]);
        struct random r = random_begin(seed, RANDOM_TEST, (uint64_t)i);
        for (int p = 0; p < m.model->parameter_count; p++)
            for (size_t k = 0; k < m.model->parameters[p].count; k++)
                m.arrays[i][m.model->parameters[p].offset + k] = (float)random_normal(&r);
    }
    m.snapshot = (struct snapshot){
        .progress = {.steps = 37, .images = 37 * 20 - 3, .place = {.epoch = 2, .position = 117}},
        .schedule = {.base = 0.1, .decay = 0.3, .period_images = 12345.5, .start = 3},
        .noise = {.gradient2 = 1.0 / 3, .spread = -2.5},
        .running = {.steps = 36,
                    .loss = 2.302585092994046,
                    .any = true,
                    .loss_min = 1.5,
                    .loss_max = 7,
                    .grad_norm_max = 9},
        .model = m.model,
        .epoch_images = 310,
        .best = -1,
        .train_content = UINT64_C(0x0123456789abcdef),
        .test_content = 0xfe,
        .applied = "sum",
        .precision = 0.8765,
        .parameters = m.arrays[0],
        .velocity = velocity ? m.arrays[1] : NULL,
        .average = average ? m.arrays[2] : NULL};
    settings_clear(&m.snapshot.settings);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "seed", "77"), STATUS_OK);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "towers", "3"), STATUS_OK);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "lr", "0.1234567890123456"), STATUS_OK);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "data", "/some place/data"), STATUS_OK);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "momentum", velocity ? "0.9" : "0"),
                     STATUS_OK);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "ema", average ? "0.99" : "0"), STATUS_OK);
    settings_complete(&m.snapshot.settings, &m.model->defaults);
    return m;
}

static void unmake(struct made *m) {
    model_free(m->model);
    for (int i = 0; i < 3; i++)
        free(m->arrays[i]);
}

static void clear_folder(void) {
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        char name[1000];
        snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(name);
    }
    closedir(dir);
}

static int setup(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s/checkpoints", getenv("TEST_TMP"));
    snprintf(path, sizeof path, "%s/step-00000037.safetensors", folder);
    (void)mkdir(folder, 0777);
    clear_folder();
    return 0;
}

/* ---- there and back */

static void test_round_trip(void **state) {
    (void)state;
    for (int slots = 0; slots < 4; slots++) {
        struct made m = make(1, slots & 1, slots & 2);
        uint64_t bytes;
        assert_int_equal(checkpoint_write(path, &m.snapshot, &bytes), STATUS_OK);
        struct stat about;
        assert_int_equal(stat(path, &about), 0);
        assert_int_equal(about.st_size, bytes);
        struct checkpoint back;
        if (checkpoint_read(path, m.model, &back) != STATUS_OK)
            fail_msg("%s", status_text());
        const struct snapshot *a = &m.snapshot, *b = &back.snapshot;
        assert_memory_equal(&a->progress, &b->progress, sizeof a->progress);
        assert_memory_equal(&a->schedule, &b->schedule, sizeof a->schedule);
        assert_memory_equal(&a->noise, &b->noise, sizeof a->noise);
        assert_int_equal(a->running.steps, b->running.steps);
        assert_true(a->running.loss == b->running.loss && a->running.any == b->running.any);
        assert_true(a->running.loss_min == b->running.loss_min && a->running.loss_max == b->running.loss_max);
        assert_true(a->running.grad_norm_max == b->running.grad_norm_max && b->precision == 0.8765);
        assert_true(b->train_content == a->train_content && b->test_content == 0xfe);
        assert_string_equal(b->applied, "sum");
        assert_int_equal(b->settings.seed, 77);
        assert_int_equal(b->settings.towers, 3);
        assert_true(b->settings.lr == 0.1234567890123456);
        assert_string_equal(b->settings.data, "/some place/data");
        size_t size = m.model->flat_count * sizeof(float);
        assert_memory_equal(a->parameters, b->parameters, size);
        assert_int_equal(a->velocity != NULL, b->velocity != NULL);
        assert_int_equal(a->average != NULL, b->average != NULL);
        if (a->velocity)
            assert_memory_equal(a->velocity, b->velocity, size);
        if (a->average)
            assert_memory_equal(a->average, b->average, size);
        checkpoint_free(&back);

        struct checkpoint_about about_it;
        assert_int_equal(checkpoint_look(path, &about_it), STATUS_OK);
        assert_string_equal(about_it.model, "small");
        assert_string_equal(about_it.model_text, MODEL);
        assert_int_equal(about_it.step, 37);
        assert_true(about_it.precision == 0.8765);
        assert_int_equal(about_it.settings.towers, 3);
        checkpoint_about_free(&about_it);
        unmake(&m);
    }
}

/* The same state gives the same bytes: no time, no name of a place in it. */
static void test_same_bytes(void **state) {
    (void)state;
    char *contents[2];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        struct made m = make(2, true, true);
        m.snapshot.precision = NAN;
        assert_int_equal(checkpoint_write(path, &m.snapshot, NULL), STATUS_OK);
        FILE *file = fopen(path, "rb");
        contents[i] = calloc(1, 1 << 20);
        assert_true(file && contents[i]);
        sizes[i] = fread(contents[i], 1, 1 << 20, file);
        fclose(file);
        unmake(&m);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(contents[0], contents[1], sizes[0]);
    free(contents[0]);
    free(contents[1]);
}

/* ---- files that are not what the model needs */

static void expect(const struct model *model, enum status expected, const char *says) {
    struct checkpoint back;
    enum status status = checkpoint_read(path, model, &back);
    checkpoint_free(&back);
    if (status != expected || !strstr(status_text(), says) || strncmp(status_text(), path, strlen(path)) != 0)
        fail_msg("got %s \"%s\", expected \"%s\"", status_name(status),
                 status == STATUS_OK ? "" : status_text(), says);
}

static void drop_momentum(struct checkpoint_edit *e) {
    edit_drop(e, "conv1/biases/momentum");
}
static void drop_average(struct checkpoint_edit *e) {
    edit_drop(e, "out/weights/average");
}
static void drop_counter(struct checkpoint_edit *e) {
    edit_drop(e, "counters/position");
}
static void rename_weights(struct checkpoint_edit *e) {
    edit_rename(e, "out/weights", "out/kernel");
}
static void add_stranger(struct checkpoint_edit *e) {
    static const float one = 1;
    edit_add(
        e, (struct safetensors_tensor){
               .name = "conv9/weights", .type = SAFETENSORS_F32, .dims = {1}, .dim_count = 1, .data = &one});
}
static void reshape(struct checkpoint_edit *e) {
    struct safetensors_tensor *t = edit_tensor(e, "conv1/weights");
    t->dims[2] = 5;
    t->dims[3] = 2;
}
static void flatten(struct checkpoint_edit *e) {
    struct safetensors_tensor *t = edit_tensor(e, "out/weights");
    t->dims[0] *= t->dims[1];
    t->dim_count = 1;
}
static void other_type(struct checkpoint_edit *e) {
    edit_tensor(e, "conv1/biases")->type = SAFETENSORS_I32;
}
static void put_nan(struct checkpoint_edit *e) {
    ((float *)edit_values(e, "out/weights/average"))[7] = NAN;
}
static void put_infinity(struct checkpoint_edit *e) {
    ((float *)edit_values(e, "conv1/weights"))[0] = -INFINITY;
}
static void negative_step(struct checkpoint_edit *e) {
    *(int64_t *)edit_values(e, "counters/step") = -1;
}
static void nan_schedule(struct checkpoint_edit *e) {
    *(double *)edit_values(e, "schedule/base") = NAN;
}
static void other_format(struct checkpoint_edit *e) {
    edit_word(e, "format", "pt");
}
static void no_format(struct checkpoint_edit *e) {
    edit_word(e, "format", NULL);
}
static void no_config(struct checkpoint_edit *e) {
    edit_word(e, "config", NULL);
}
static void bad_config(struct checkpoint_edit *e) {
    edit_word(e, "config", "towers = many\n");
}
static void unknown_slot(struct checkpoint_edit *e) {
    edit_word(e, "slots", "values speed");
}
static void fewer_slots(struct checkpoint_edit *e) {
    edit_word(e, "slots", "values average");
}
static void no_values(struct checkpoint_edit *e) {
    edit_word(e, "slots", "momentum average");
}
/* Numbers that are good ones and do not agree with the others. */
static void whole(struct checkpoint_edit *e, const char *name, int64_t value) {
    *(int64_t *)edit_values(e, name) = value;
}
static void real(struct checkpoint_edit *e, const char *name, double value) {
    *(double *)edit_values(e, name) = value;
}
static void best_too_good(struct checkpoint_edit *e) {
    real(e, "counters/best_precision", 1.5);
}
static void best_too_bad(struct checkpoint_edit *e) {
    real(e, "counters/best_precision", -0.5);
}
static void precision_too_good(struct checkpoint_edit *e) {
    edit_word(e, "precision", "87.65");
}
static void more_images(struct checkpoint_edit *e) {
    whole(e, "counters/images", 738);
}
static void other_epoch(struct checkpoint_edit *e) {
    whole(e, "counters/epoch", 3);
}
static void endless_epochs(struct checkpoint_edit *e) {
    whole(e, "counters/epoch", INT64_C(1) << 53);
    whole(e, "counters/epoch_images", INT64_C(1) << 53);
}
static void beyond_the_epoch(struct checkpoint_edit *e) {
    whole(e, "counters/position", 310);
}
static void empty_epoch(struct checkpoint_edit *e) {
    whole(e, "counters/epoch_images", 0);
}
static void more_steps(struct checkpoint_edit *e) {
    whole(e, "counters/step", 738);
    edit_word(e, "step", "738");
}
static void no_steps(struct checkpoint_edit *e) {
    whole(e, "counters/step", 0);
    edit_word(e, "step", "0");
}
static void two_steps(struct checkpoint_edit *e) {
    whole(e, "counters/step", 36);
}
static void two_seeds(struct checkpoint_edit *e) {
    edit_word(e, "seed", "78");
}
static void rising_rate(struct checkpoint_edit *e) {
    real(e, "schedule/decay", 1.5);
}
static void huge_rate(struct checkpoint_edit *e) {
    real(e, "schedule/base", 1e31);
}
static void no_period(struct checkpoint_edit *e) {
    real(e, "schedule/period_images", 1e-9);
}
static void more_seen(struct checkpoint_edit *e) {
    whole(e, "running/steps", 38);
}
static void crossed_losses(struct checkpoint_edit *e) {
    real(e, "running/loss_min", 8);
}
static void no_velocities(struct checkpoint_edit *e) {
    edit_word(e, "slots", "values average");
    edit_drop(e, "conv1/weights/momentum");
    edit_drop(e, "conv1/biases/momentum");
    edit_drop(e, "out/weights/momentum");
    edit_drop(e, "out/biases/momentum");
}
static void no_averages(struct checkpoint_edit *e) {
    edit_word(e, "slots", "values momentum");
    edit_drop(e, "conv1/weights/average");
    edit_drop(e, "conv1/biases/average");
    edit_drop(e, "out/weights/average");
    edit_drop(e, "out/biases/average");
}
static void momentum_of_two(struct checkpoint_edit *e) {
    edit_word(e, "config", "momentum = 2\n");
}
static void ema_of_one(struct checkpoint_edit *e) {
    edit_word(e, "config", "ema = 1\n");
}
static void many_towers(struct checkpoint_edit *e) {
    edit_word(e, "config", "towers = 5000\n");
}
static void no_batch(struct checkpoint_edit *e) {
    edit_word(e, "config", "batch = 0\n");
}
static void short_content(struct checkpoint_edit *e) {
    edit_word(e, "content", "0123456789abcdef");
}
static void unknown_rule(struct checkpoint_edit *e) {
    edit_word(e, "applied", "guess");
}
static void no_towers(struct checkpoint_edit *e) {
    edit_word(e, "config", "seed = 77\nbatch = 8\nlr = 0.1\nmomentum = 0.9\nema = 0.9\n");
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        void (*edit)(struct checkpoint_edit *e);
        enum status status;
        const char *says;
    } cases[] = {
        {drop_momentum, STATUS_BAD_INPUT, "the tensor conv1/biases/momentum, F32 [5], is missing"},
        {drop_average, STATUS_BAD_INPUT, "out/weights/average, F32 [180, 4], is missing"},
        {drop_counter, STATUS_BAD_INPUT, "counters/position, I64 [1], is missing"},
        {rename_weights, STATUS_BAD_INPUT, "out/weights, F32 [180, 4], is missing"},
        {add_stranger, STATUS_BAD_INPUT, "conv9/weights belongs to no parameter of the model small"},
        {reshape, STATUS_BAD_INPUT,
         "conv1/weights is F32 [3, 3, 5, 2]; the model small needs F32 [3, 3, 2, 5]"},
        {flatten, STATUS_BAD_INPUT, "out/weights is F32 [720]; the model small needs F32 [180, 4]"},
        {other_type, STATUS_BAD_INPUT, "conv1/biases is I32 [5]; the model small needs F32 [5]"},
        {put_nan, STATUS_NON_FINITE, "value 7 of out/weights/average is NaN"},
        {put_infinity, STATUS_NON_FINITE, "value 0 of conv1/weights is infinite"},
        {negative_step, STATUS_BAD_INPUT, "counters/step is -1"},
        {nan_schedule, STATUS_BAD_INPUT, "schedule/base is nan"},
        {other_format, STATUS_BAD_INPUT, "its format is \"pt\""},
        {no_format, STATUS_BAD_INPUT, "no checkpoint of towerscope"},
        {no_config, STATUS_BAD_INPUT, "no \"config\""},
        {bad_config, STATUS_BAD_INPUT, "many"},
        {unknown_slot, STATUS_BAD_INPUT, "only values, momentum and average are known"},
        {fewer_slots, STATUS_BAD_INPUT, "/momentum belongs to no parameter"},
        {no_values, STATUS_BAD_INPUT, "without values"},
        {best_too_good, STATUS_BAD_INPUT, "counters/best_precision is 1.5; a number from 0 to 1"},
        {best_too_bad, STATUS_BAD_INPUT, "counters/best_precision is -0.5; a number from 0 to 1"},
        {precision_too_good, STATUS_BAD_INPUT, "its precision is \"87.65\"; a number from 0 to 1"},
        {more_images, STATUS_BAD_INPUT, "counters/images is 738; 2 epochs of 310 and 117 more is expected"},
        {other_epoch, STATUS_BAD_INPUT, "counters/images is 737; 3 epochs of 310 and 117 more is expected"},
        {endless_epochs, STATUS_BAD_INPUT, "counters/images is 737; 9007199254740992 epochs"},
        {beyond_the_epoch, STATUS_BAD_INPUT, "counters/position is 310; a place in an epoch of 310 images"},
        {empty_epoch, STATUS_BAD_INPUT, "counters/epoch_images is 0; at least 1"},
        {more_steps, STATUS_BAD_INPUT, "counters/step is 738; a number of steps that used 737 images"},
        {no_steps, STATUS_BAD_INPUT, "counters/step is 0; a number of steps that used 737 images"},
        {two_steps, STATUS_BAD_INPUT, "its step is \"37\" in the metadata and 36 in counters/step"},
        {two_seeds, STATUS_BAD_INPUT, "its seed is \"78\" in the metadata and 77 in config, seed"},
        {rising_rate, STATUS_BAD_INPUT, "schedule/decay is 1.5; more than 0 and at most 1"},
        {huge_rate, STATUS_BAD_INPUT, "schedule/base is 1e+31; a learning rate"},
        {no_period, STATUS_BAD_INPUT, "schedule/period_images is 1e-09; at least 0.001 images"},
        {more_seen, STATUS_BAD_INPUT, "running/steps is 38; no more than counters/step"},
        {crossed_losses, STATUS_BAD_INPUT, "running/loss_min is 8; at most running/loss_max"},
        {no_velocities, STATUS_BAD_INPUT, "its momentum is 0.9 and \"momentum\" is not among its slots"},
        {no_averages, STATUS_BAD_INPUT, "its ema is 0.99 and \"average\" is not among its slots"},
        {momentum_of_two, STATUS_BAD_INPUT, "momentum is 2, which is out of its range"},
        {ema_of_one, STATUS_BAD_INPUT, "ema is 1, which is out of its range"},
        {many_towers, STATUS_BAD_INPUT, "towers is 5000, which is out of its range"},
        {no_batch, STATUS_BAD_INPUT, "batch is 0, which is out of its range"},
        {no_towers, STATUS_BAD_INPUT, "config: towers is missing"},
        {short_content, STATUS_BAD_INPUT,
         "its content is \"0123456789abcdef\"; two numbers of 16 hexadecimal"},
        {unknown_rule, STATUS_BAD_INPUT,
         "saved under the wrong rule \"guess\", which is none of those known"},
    };
    struct made m = make(3, true, true);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(checkpoint_write(path, &m.snapshot, NULL), STATUS_OK);
        struct checkpoint_edit e;
        edit_open(&e, path);
        edit_write(&e, path);
        struct checkpoint back; /* the editing itself harms nothing */
        assert_int_equal(checkpoint_read(path, m.model, &back), STATUS_OK);
        checkpoint_free(&back);
        cases[i].edit(&e);
        edit_write(&e, path);
        expect(m.model, cases[i].status, cases[i].says);
        edit_close(&e);
    }
    unmake(&m);
}

static void test_other_classes(void **state) {
    (void)state;
    struct made m = make(4, false, true);
    assert_int_equal(checkpoint_write(path, &m.snapshot, NULL), STATUS_OK);
    struct model *wide = parse(MODEL, 100);
    expect(wide, STATUS_BAD_INPUT, "out/weights is F32 [180, 4]; the model small needs F32 [180, 100]");
    model_free(wide);
    unmake(&m);
}

static void test_no_such(void **state) {
    (void)state;
    struct made m = make(4, false, false);
    struct checkpoint back;
    assert_int_equal(checkpoint_read("/no/such.safetensors", m.model, &back), STATUS_NOT_FOUND);
    checkpoint_free(&back);
    struct checkpoint_about about;
    assert_int_equal(checkpoint_look("/no/such.safetensors", &about), STATUS_NOT_FOUND);
    checkpoint_about_free(&about);
    assert_int_equal(checkpoint_look("/dev/null", &about), STATUS_BAD_INPUT);
    checkpoint_about_free(&about);
    unmake(&m);
}

/* ---- writing that fails */

static int files_in_folder(void) {
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir)))
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void expect_good(const struct model *model, int64_t step) {
    struct checkpoint back;
    if (checkpoint_read(path, model, &back) != STATUS_OK)
        fail_msg("%s", status_text());
    assert_int_equal(back.snapshot.progress.steps, step);
    checkpoint_free(&back);
}

static void test_failed_writes(void **state) {
    (void)state;
    struct made m = make(5, true, true);
    assert_int_equal(checkpoint_write(path, &m.snapshot, NULL), STATUS_OK);

    m.snapshot.progress.steps = 38; /* so that a write that went through would show */
    float kept = m.arrays[1][3];
    m.arrays[1][3] = NAN;
    assert_int_equal(checkpoint_write(path, &m.snapshot, NULL), STATUS_NON_FINITE);
    assert_non_null(strstr(status_text(), "value 3 of conv1/weights/momentum is NaN"));
    m.arrays[1][3] = kept;
    expect_good(m.model, 37);
    m.snapshot.noise.spread = INFINITY;
    assert_int_equal(checkpoint_write(path, &m.snapshot, NULL), STATUS_NON_FINITE);
    m.snapshot.noise.spread = 1;
    expect_good(m.model, 37);

    struct rlimit before, small = {2000, RLIM_INFINITY};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum status status = checkpoint_write(path, &m.snapshot, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(status_text(), path));
    assert_non_null(strstr(status_text(), " bytes: File too large"));
    assert_int_equal(files_in_folder(), 1);
    expect_good(m.model, 37);

    struct checkpoint_folder nowhere = {0};
    snprintf(nowhere.path, sizeof nowhere.path, "%s/gone/checkpoints", folder);
    struct event_checkpoint event;
    assert_int_equal(checkpoint_save(&nowhere, &m.snapshot, &event), STATUS_IO);
    assert_int_equal(checkpoint_write("/dev/full/x", &m.snapshot, NULL), STATUS_IO);
    assert_int_equal(checkpoint_write(path, &m.snapshot, NULL), STATUS_OK);
    expect_good(m.model, 38);
    unmake(&m);
}

/* A writer killed at any moment leaves a whole file under the name. */
static void test_killed_writer(void **state) {
    (void)state;
    struct made m = make(6, true, true);
    assert_int_equal(checkpoint_write(path, &m.snapshot, NULL), STATUS_OK);
    struct random r = random_begin(6, RANDOM_TEST, 9);
    for (int round = 0; round < 25; round++) {
        int ready[2];
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (int64_t step = 37;; step++) {
                m.snapshot.progress.steps = step;
                if (checkpoint_write(path, &m.snapshot, NULL) != STATUS_OK || write(ready[1], "x", 1) != 1)
                    _exit(1);
            }
        }
        close(ready[1]);
        char byte;
        for (uint32_t writes = 1 + random_below(&r, 8); writes > 0; writes--)
            assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]); /* the next write ends it, if the kill does not */
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        struct checkpoint back;
        if (checkpoint_read(path, m.model, &back) != STATUS_OK)
            fail_msg("round %d: %s", round, status_text());
        checkpoint_free(&back);
    }
    unmake(&m);
}

/* ---- the folder */

static void save(struct checkpoint_folder *f, struct made *m, int64_t step, double precision) {
    struct event_checkpoint event = {0};
    m->snapshot.progress =
        (struct progress){.steps = step, .images = step * 310, .place = {.epoch = step, .position = 0}};
    m->snapshot.precision = precision;
    if (checkpoint_save(f, &m->snapshot, &event) != STATUS_OK)
        fail_msg("%s", status_text());
    char expected[4200];
    snprintf(expected, sizeof expected, "%s/step-%08lld.safetensors", f->path, (long long)step);
    assert_string_equal(event.path, expected);
    struct stat about;
    assert_int_equal(stat(event.path, &about), 0);
    assert_int_equal(event.bytes, about.st_size);
    assert_true(event.seconds >= 0 && event.seconds < 60);
}

static bool there(const char *name) {
    char full[1000];
    snprintf(full, sizeof full, "%s/%s", folder, name);
    return access(full, F_OK) == 0;
}

static void touch(const char *name) {
    char full[1000];
    snprintf(full, sizeof full, "%s/%s", folder, name);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fclose(file);
}

static void test_folder(void **state) {
    (void)state;
    struct made m = make(7, false, true);
    struct checkpoint_folder f = {0};
    snprintf(f.path, sizeof f.path, "%s", folder);
    char newest[1100];
    assert_int_equal(checkpoint_newest("/no/such", newest, sizeof newest), STATUS_NOT_FOUND);
    assert_int_equal(checkpoint_newest(folder, newest, sizeof newest), STATUS_NOT_FOUND);
    touch("notes.txt");
    touch("step-.safetensors");
    touch("step-9x.safetensors");
    touch("step-00000005.safetensors.tmp");
    assert_int_equal(checkpoint_newest(folder, newest, sizeof newest), STATUS_NOT_FOUND);
    m.snapshot.settings.keep = 2;
    save(&f, &m, 10, 0.5);
    save(&f, &m, 20, 0.7);
    save(&f, &m, 30, NAN);
    save(&f, &m, 40, 0.7 - 1e-4);
    assert_true(there("step-00000020.safetensors")); /* the best */
    assert_true(there("step-00000030.safetensors") && there("step-00000040.safetensors"));
    assert_false(there("step-00000010.safetensors"));
    assert_false(there("step-00000005.safetensors.tmp"));
    assert_true(there("notes.txt") && there("step-.safetensors") && there("step-9x.safetensors"));
    save(&f, &m, 50, 0.7); /* as good and newer */
    save(&f, &m, 60, NAN);
    save(&f, &m, 70, NAN);
    assert_false(there("step-00000020.safetensors"));
    assert_true(there("step-00000050.safetensors"));
    assert_int_equal(checkpoint_newest(folder, newest, sizeof newest), STATUS_OK);
    assert_non_null(strstr(newest, "/step-00000070.safetensors"));
    /* a larger number of digits is newer, not the later name */
    save(&f, &m, 1000000000, NAN);
    assert_int_equal(checkpoint_newest(folder, newest, sizeof newest), STATUS_OK);
    assert_non_null(strstr(newest, "/step-1000000000.safetensors"));
    /* the run went back: what lies ahead of it is no longer the newest, and is not lost */
    save(&f, &m, 65, NAN);
    assert_int_equal(checkpoint_newest(folder, newest, sizeof newest), STATUS_OK);
    assert_non_null(strstr(newest, "/step-00000065.safetensors"));
    assert_true(there("step-00000070.rewound.safetensors") && there("step-1000000000.rewound.safetensors"));
    save(&f, &m, 80, NAN);
    assert_true(there("step-00000070.rewound.safetensors") && there("step-00000050.safetensors"));
    unmake(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_round_trip, setup),    cmocka_unit_test_setup(test_same_bytes, setup),
        cmocka_unit_test_setup(test_refusals, setup),      cmocka_unit_test_setup(test_other_classes, setup),
        cmocka_unit_test_setup(test_no_such, setup),       cmocka_unit_test_setup(test_failed_writes, setup),
        cmocka_unit_test_setup(test_killed_writer, setup), cmocka_unit_test_setup(test_folder, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
