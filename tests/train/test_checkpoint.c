/* Checkpoints: what comes back, and what stays on the disk whatever happens while one is written. */
#include "engine/base/random.h"
#include "engine/train/checkpoint.h"
#include "tests/support/checkpoint_made.h"
#include "tests/support/cmocka.h"

#include <dirent.h>
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

static char folder[600], path[700];

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
        struct checkpoint_made m = checkpoint_make(1, slots & 1, slots & 2);
        uint64_t bytes;
        assert_int_equal(checkpoint_made_write(path, &m.snapshot, &bytes), STATUS_OK);
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
        assert_string_equal(about_it.model_text, checkpoint_model_text);
        assert_int_equal(about_it.step, 37);
        assert_true(about_it.precision == 0.8765);
        assert_int_equal(about_it.settings.towers, 3);
        checkpoint_about_free(&about_it);
        checkpoint_unmake(&m);
    }
}

/* The same state gives the same bytes: no time, no name of a place in it. */
static void test_same_bytes(void **state) {
    (void)state;
    char *contents[2];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        struct checkpoint_made m = checkpoint_make(2, true, true);
        m.snapshot.precision = NAN;
        assert_int_equal(checkpoint_made_write(path, &m.snapshot, NULL), STATUS_OK);
        FILE *file = fopen(path, "rb");
        contents[i] = calloc(1, 1 << 20);
        assert_true(file && contents[i]);
        sizes[i] = fread(contents[i], 1, 1 << 20, file);
        fclose(file);
        checkpoint_unmake(&m);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(contents[0], contents[1], sizes[0]);
    free(contents[0]);
    free(contents[1]);
}

static void test_no_such(void **state) {
    (void)state;
    struct checkpoint_made m = checkpoint_make(4, false, false);
    struct checkpoint back;
    assert_int_equal(checkpoint_read("/no/such.safetensors", m.model, &back), STATUS_NOT_FOUND);
    checkpoint_free(&back);
    struct checkpoint_about about;
    assert_int_equal(checkpoint_look("/no/such.safetensors", &about), STATUS_NOT_FOUND);
    checkpoint_about_free(&about);
    assert_int_equal(checkpoint_look("/dev/null", &about), STATUS_BAD_INPUT);
    checkpoint_about_free(&about);
    checkpoint_unmake(&m);
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
    struct checkpoint_made m = checkpoint_make(5, true, true);
    assert_int_equal(checkpoint_made_write(path, &m.snapshot, NULL), STATUS_OK);

    m.snapshot.progress.steps = 38; /* so that a write that went through would show */
    float kept = m.arrays[1][3];
    m.arrays[1][3] = NAN;
    assert_int_equal(checkpoint_made_write(path, &m.snapshot, NULL), STATUS_NON_FINITE);
    assert_non_null(strstr(status_text(), "value 3 of conv1/weights/momentum is NaN"));
    m.arrays[1][3] = kept;
    expect_good(m.model, 37);
    m.snapshot.noise.spread = INFINITY;
    assert_int_equal(checkpoint_made_write(path, &m.snapshot, NULL), STATUS_NON_FINITE);
    m.snapshot.noise.spread = 1;
    expect_good(m.model, 37);

    struct rlimit before, small = {2000, RLIM_INFINITY};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum status status = checkpoint_made_write(path, &m.snapshot, NULL);
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
    assert_int_equal(checkpoint_made_write(path, &m.snapshot, NULL), STATUS_OK);
    expect_good(m.model, 38);
    checkpoint_unmake(&m);
}

/* A writer killed at any moment leaves a whole file under the name. */
static void test_killed_writer(void **state) {
    (void)state;
    struct checkpoint_made m = checkpoint_make(6, true, true);
    assert_int_equal(checkpoint_made_write(path, &m.snapshot, NULL), STATUS_OK);
    struct random r = random_begin(6, RANDOM_TEST, 9);
    for (int round = 0; round < 25; round++) {
        int ready[2];
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (int64_t step = 37;; step++) {
                m.snapshot.progress.steps = step;
                if (checkpoint_made_write(path, &m.snapshot, NULL) != STATUS_OK ||
                    write(ready[1], "x", 1) != 1)
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
    checkpoint_unmake(&m);
}

/* ---- the folder */

static void save(struct checkpoint_folder *f, struct checkpoint_made *m, int64_t step, double precision) {
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
    struct checkpoint_made m = checkpoint_make(7, false, true);
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
    checkpoint_unmake(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_round_trip, setup),    cmocka_unit_test_setup(test_same_bytes, setup),
        cmocka_unit_test_setup(test_no_such, setup),       cmocka_unit_test_setup(test_failed_writes, setup),
        cmocka_unit_test_setup(test_killed_writer, setup), cmocka_unit_test_setup(test_folder, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
