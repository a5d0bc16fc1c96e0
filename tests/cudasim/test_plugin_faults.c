/* What the plugin does when something is wrong, on simulated GPUs: an order that is not kept is found by some
 * seed, a GPU is lost in mid-step, memory runs out, NCCL fails or never answers.
 * test-timeout: 300; test-skip-under: thread (threads of kernels are contexts that it does not follow) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/registry.h"
#include "tests/cudasim/sim.h"
#include "tests/support/cmocka.h"
#include "tests/support/train_run.h"

enum { STEPS = 4 };
static const char *const words[] = {"towers=3", "batch=9", "lr=0.05", "momentum=0.9", "clip-norm=0.5", NULL};

/* Some steps, of which the last two are run by the settings (the first one tells of the layers, for which all
 * waits for all); what they left behind, as one number that no two different runs share by chance. */
static bool some_steps(struct cudasim_settings settings, const char *model, double *mark) {
    sim_set(sim_healthy(settings.gpus, settings.seed));
    struct train_run *run = train_run_open(sim_names(settings.gpus), model, 96, 20, words);
    size_t count = run->model->flat_count;
    float *parameters = calloc(count, sizeof *parameters);
    assert_non_null(parameters);
    bool whole = true;
    for (int i = 0; i < STEPS && whole; i++) {
        if (i == STEPS - 2)
            sim_set(settings);
        whole = trainer_step(run->trainer) == STATUS_OK;
    }
    whole = whole && trainer_settle(run->trainer) == STATUS_OK && run->steps == STEPS &&
            trainer_read(run->trainer, "parameters", parameters, count) == STATUS_OK;
    *mark = 0;
    for (size_t i = 0; i < count; i++)
        *mark += (double)parameters[i] * (double)(i % 101 + 1);
    for (int i = 0; i < run->steps; i++)
        *mark += run->kept[i].step.loss + run->kept[i].step.grad_norm + run->kept[i].step.update_ratio;
    free(parameters);
    train_run_close(run);
    return whole;
}

/* ---- order */

/* Each wait for an event in the last steps is left out in turn: some order of execution must then give
 * something else. A wait that nobody can miss would be one too many. Those inside of a tower's work are made
 * by its graph whenever it is launched, or where it cannot be captured (`eager`) with the work. */
static void every_wait_is_needed_by(const char *model, const char *name, bool eager, int steps) {
    enum { SEEDS = 16 };
    double right, mark;
    int missed = 0;
    struct cudasim_settings settings = sim_healthy(2, 1);
    settings.uncapturable = eager;
    assert_true(some_steps(settings, model, &right));
    int waits = sim_waits();
    assert_true(waits >= 6); /* the sum over three towers, twice */
    int tried = waits / 2 * steps;
    for (int drop = waits - tried; drop < waits; drop++) {
        bool caught = false;
        for (unsigned seed = 1; seed <= SEEDS && !caught; seed++) {
            settings.seed = seed;
            settings.drop_wait = drop;
            caught = !some_steps(settings, model, &mark) || !(mark == right);
        }
        if (!caught) {
            printf("nobody misses wait %d of %d\n", drop, waits);
            missed++;
        }
    }
    printf("cuda-sim: %s: %d of %d removed waits were found out by one of %d orders\n", name, tried - missed,
           tried, SEEDS);
    assert_true(missed == 0);
}

static void every_wait_is_needed(void **state) {
    (void)state;
    if (!SIM_THOROUGH)
        skip();
    every_wait_is_needed_by(mlp_text, "dense layers", false, 2);
    every_wait_is_needed_by(convs_text, "convolutions", false, 1);
    every_wait_is_needed_by(convs_text, "convolutions without graphs", true, 1);
}

static void order_changes_nothing(void **state) {
    (void)state;
    const char *const models[] = {mlp_text, convs_text};
    double right, mark;
    for (unsigned m = 0; m < 2; m++) {
        assert_true(some_steps(sim_healthy(3, 1), models[m], &right));
        for (unsigned seed = 2; seed <= (SIM_THOROUGH ? 20U / (m + 1) : 4); seed++) {
            assert_true(some_steps(sim_healthy(3, seed), models[m], &mark));
            assert_true(mark == right);
        }
    }
}

/* NCCL queues a sum in a thread of its own, and says when it has: what is queued before that overtakes it. */
static void nccl_is_waited_for(void **state) {
    (void)state;
    double right, mark;
    int caught = 0;
    assert_true(some_steps(sim_healthy(2, 1), mlp_text, &right));
    for (unsigned seed = 1; seed <= 4; seed++) {
        struct cudasim_settings settings = sim_healthy(2, seed);
        settings.hasty_nccl = 1;
        caught += !some_steps(settings, mlp_text, &mark) || !(mark == right);
        assert_true(sim_clean());
    }
    assert_true(caught > 0);
}

/* A library that can't be captured: the tower's work is queued kernel by kernel, and all is as it was. */
static void what_cannot_be_captured_is_not(void **state) {
    (void)state;
    double right, mark;
    assert_true(some_steps(sim_healthy(2, 1), convs_text, &right));
    assert_int_equal(sim_spoiled(), 0);
    long graphs = sim_graphs();
    for (int how = 1; how <= 2; how++) {
        struct cudasim_settings settings = sim_healthy(2, 3);
        settings.uncapturable = how;
        assert_true(some_steps(settings, convs_text, &mark));
        assert_true(mark == right);
        assert_int_equal(sim_spoiled(), 3);          /* of three towers; not tried again */
        assert_true(sim_graphs() == graphs - 2 * 3); /* in two steps */
        assert_true(sim_clean());
    }
}

/* ---- streams and marks */

static void settle(struct device_handle device, enum status expected) {
    enum status status;
    for (int i = 0; (status = device.ops->poll(device.device)) == STATUS_BUSY; i++)
        assert_true(i < 10000);
    assert_int_equal(status, expected);
}

struct reading {
    struct device_handle device;
    struct span values, shared;
    float *to;
    size_t count;
};

static enum status write_and_read(void *context, int item, int worker, struct stream *stream) {
    const struct reading *r = context;
    float values[64];
    (void)worker;
    for (size_t i = 0; i < r->count; i++)
        values[i] = (float)item + 0.5f;
    STATUS_TRY(r->device.ops->write(r->device.device, stream, r->values, values, r->count));
    return r->device.ops->read(r->device.device, stream, r->to, r->values, r->count);
}

static enum status copy_and_read(void *context, int item, int worker, struct stream *stream) {
    const struct reading *r = context;
    (void)item;
    (void)worker;
    STATUS_TRY(r->device.ops->copy(r->device.device, stream, r->values, r->shared));
    return r->device.ops->read(r->device.device, stream, r->to, r->values, r->count);
}

/* What is written to a shared buffer goes before what workers queue behind it, and after what they queued. */
static void a_write_and_the_workers_wait(void **state) {
    (void)state;
    float to[64], one[64], two[64];
    for (int i = 0; i < 64; i++) {
        one[i] = 1;
        two[i] = 2;
    }
    for (unsigned seed = 1; seed <= 16; seed++) {
        struct reading r = {.to = to, .count = sizeof to / sizeof *to};
        sim_set(sim_healthy(1, seed));
        assert_int_equal(device_open("sim:0", 0, NULL, &r.device), STATUS_OK);
        const struct device_ops *ops = r.device.ops;
        struct device *device = r.device.device;
        assert_int_equal(ops->buffer_new(device, sizeof to, 0, &r.values), STATUS_OK);
        assert_int_equal(ops->buffer_new(device, sizeof to, PLACE_SHARED, &r.shared), STATUS_OK);
        assert_int_equal(ops->each(device, 1, copy_and_read, &r), STATUS_OK); /* makes the worker's stream */
        settle(r.device, STATUS_OK);
        assert_int_equal(ops->write(device, NULL, r.shared, one, r.count), STATUS_OK);
        assert_int_equal(ops->each(device, 1, copy_and_read, &r), STATUS_OK);
        assert_int_equal(ops->write(device, NULL, r.shared, two, r.count), STATUS_OK);
        settle(r.device, STATUS_OK);
        assert_memory_equal(to, one, sizeof to);
        ops->buffer_free(device, r.values);
        ops->buffer_free(device, r.shared);
        device_close(&r.device);
    }
    assert_true(sim_clean());
}

/* A mark is behind what a worker has queued, also where nothing between them has waited for that. */
static void a_mark_is_behind_the_workers(void **state) {
    (void)state;
    float to[64];
    for (unsigned seed = 1; seed <= 8; seed++) {
        struct reading r = {.to = to, .count = sizeof to / sizeof *to};
        enum status status;
        sim_set(sim_healthy(1, seed));
        assert_int_equal(device_open("sim:0", 0, NULL, &r.device), STATUS_OK);
        const struct device_ops *ops = r.device.ops;
        assert_int_equal(ops->buffer_new(r.device.device, sizeof to, 0, &r.values), STATUS_OK);
        assert_int_equal(ops->each(r.device.device, 1, write_and_read, &r), STATUS_OK);
        memset(to, 0, sizeof to);
        assert_int_equal(ops->mark(r.device.device), STATUS_OK);
        for (int i = 0; (status = ops->reached(r.device.device)) == STATUS_BUSY; i++)
            assert_true(i < 10000);
        assert_int_equal(status, STATUS_OK);
        for (size_t i = 0; i < r.count; i++)
            assert_true(to[i] == 0.5f);
        ops->buffer_free(r.device.device, r.values);
        device_close(&r.device);
    }
    assert_true(sim_clean());
}

/* ---- failures */

static void lose(int gpu, int after) {
    struct cudasim_settings settings = sim_healthy(2, (unsigned)after);
    char name[16], path[512];
    snprintf(name, sizeof name, "sim:%d", gpu);
    snprintf(path, sizeof path, "%s/lost-%d-%d", getenv("TEST_TMP"), gpu, after);
    sim_set(settings);
    struct train_run *run = train_run_resume("sim:0,sim:1", mlp_text, 96, 20, words, path, NULL);
    size_t count = run->model->flat_count;
    float *before = calloc(count, sizeof *before), *saved = calloc(count, sizeof *saved);
    assert_true(before && saved);
    assert_int_equal(trainer_read(run->trainer, "parameters", before, count), STATUS_OK);
    settings.lose_gpu = gpu;
    settings.lose_after = after;
    sim_set(settings);
    for (int i = 0; i < 50 && !trainer_paused(run->trainer); i++)
        assert_int_equal(trainer_step(run->trainer), STATUS_OK);
    assert_int_equal(trainer_settle(run->trainer), STATUS_OK);
    assert_true(trainer_paused(run->trainer));
    if (!strstr(run->alarm, name))
        fail_msg("%s is lost after %d pieces of work, and the alarm is: %s", name, after, run->alarm);
    assert_int_equal(trainer_steps(run->trainer), 0); /* the last good state: that of the start */
    for (int i = 0; i < 2; i++) {
        assert_false(train_run_command(run, i ? "step 3" : "resume"));
        assert_non_null(strstr(run->reason, "the device is lost"));
    }
    assert_int_equal(trainer_save(run->trainer), STATUS_OK);
    train_run_close(run);
    char file[600];
    snprintf(file, sizeof file, "%s/step-00000000.safetensors", path);
    sim_set(sim_healthy(2, 1));
    run = train_run_resume("sim:0,sim:1", mlp_text, 96, 20, words, path, file);
    assert_int_equal(trainer_read(run->trainer, "parameters", saved, count), STATUS_OK);
    assert_memory_equal(before, saved, count * sizeof *saved);
    train_run_steps(run, 1);
    train_run_close(run);
    free(before);
    free(saved);
}

static void a_gpu_is_lost(void **state) {
    (void)state;
    for (int after = 1; after < 150; after += SIM_THOROUGH ? 29 : 75)
        for (int gpu = 0; gpu < 2; gpu++)
            lose(gpu, after);
}

/* What lies on both GPUs is read from the one that is left, by page-locked memory that is made for it. */
static void what_is_shared_outlives_a_gpu(void **state) {
    (void)state;
    enum { COUNT = 700000 }; /* more than is at hand */
    float *values = calloc(2 * COUNT, sizeof *values), *back = values + COUNT;
    assert_non_null(values);
    for (int lost = 0; lost < 2; lost++) {
        struct cudasim_settings settings = sim_healthy(2, 1);
        struct device_handle device;
        struct span shared;
        sim_set(settings);
        assert_int_equal(device_open("sim:0,sim:1", 0, NULL, &device), STATUS_OK);
        assert_int_equal(device.ops->buffer_new(device.device, COUNT * sizeof *values, PLACE_SHARED, &shared),
                         STATUS_OK);
        for (int i = 0; i < COUNT; i++)
            values[i] = (float)(i % 1000) + (float)lost;
        assert_int_equal(device.ops->write(device.device, NULL, shared, values, COUNT), STATUS_OK);
        settle(device, STATUS_OK);
        settings.lose_gpu = lost;
        sim_set(settings);
        assert_int_equal(device.ops->write(device.device, NULL, shared, values, 8), STATUS_OK);
        settle(device, STATUS_DEVICE);
        assert_non_null(strstr(status_text(), lost ? "sim:1" : "sim:0"));
        for (int twice = 0; twice < 3; twice++) {
            memset(back, 0, COUNT * sizeof *back);
            assert_int_equal(device.ops->read(device.device, NULL, back, shared, COUNT), STATUS_OK);
            assert_memory_equal(back, values, COUNT * sizeof *back);
        }
        device.ops->buffer_free(device.device, shared);
        device_close(&device);
        assert_true(sim_clean());
    }
    free(values);
}

static void memory_runs_out(void **state) {
    (void)state;
    struct cudasim_settings settings = sim_healthy(2, 1);
    int refused = 0;
    for (size_t bytes = 32 << 10; bytes < (512 << 10); bytes += 40 << 10) {
        settings.memory_bytes = bytes;
        sim_set(settings);
        struct device_handle device;
        if (train_run_refusal("sim:0,sim:1", mlp_text, 96, 20, words, NULL) == STATUS_OK)
            break;
        refused++;
        assert_true(strstr(status_text(), "memory") != NULL);
        assert_true(sim_clean());
        (void)device;
    }
    assert_true(refused > 0);
    sim_set(settings);
    struct train_run *run = train_run_open("sim:0,sim:1", mlp_text, 96, 20, words);
    train_run_steps(run, 1);
    settings.memory_bytes = 1; /* full: nothing more is to be had */
    sim_set(settings);
    assert_false(train_run_command(run, "towers 16"));
    train_run_steps(run, 2); /* goes on as it was */
    assert_int_equal(run->steps, 3);
    train_run_close(run);
    assert_true(sim_clean());
}

static void nccl_fails(void **state) {
    (void)state;
    struct cudasim_settings settings = sim_healthy(2, 1);
    sim_set(settings);
    struct train_run *run = train_run_open("sim:0,sim:1", mlp_text, 96, 20, words);
    train_run_steps(run, 1);
    settings.fail_collective = 1;
    sim_set(settings);
    assert_int_equal(trainer_step(run->trainer), STATUS_OK);
    assert_int_equal(trainer_settle(run->trainer), STATUS_OK);
    assert_true(trainer_paused(run->trainer));
    assert_non_null(strstr(run->alarm, "NCCL"));
    train_run_close(run);
    assert_true(sim_clean());
}

static void nccl_never_answers(void **state) {
    (void)state;
    struct cudasim_settings settings = sim_healthy(2, 1);
    setenv("TOWERSCOPE_GPU_DEADLINE", "2", 1); /* of what is healthy, too, on a loaded machine */
    sim_set(settings);
    struct train_run *run = train_run_open("sim:0,sim:1", mlp_text, 96, 20, words);
    settings.hang_collective = 0;
    sim_set(settings);
    assert_int_equal(trainer_step(run->trainer), STATUS_OK);
    assert_int_equal(trainer_settle(run->trainer), STATUS_OK);
    assert_true(trainer_paused(run->trainer));
    assert_non_null(strstr(run->alarm, "within 2 seconds"));
    train_run_close(run);
    unsetenv("TOWERSCOPE_GPU_DEADLINE");
}

static void one_gpu_twice(void **state) {
    (void)state;
    struct device_handle device;
    sim_set(sim_healthy(2, 1));
    assert_int_equal(device_open("sim:0,sim:0", 0, NULL, &device), STATUS_BAD_INPUT);
    assert_int_equal(device_open("sim:0,cpu", 0, NULL, &device), STATUS_BAD_INPUT);
    assert_int_equal(device_open("sim:2", 0, NULL, &device), STATUS_NOT_FOUND);
    assert_non_null(strstr(status_text(), "sim:2"));
    assert_true(sim_clean());
}

int main(void) {
    if (!sim_begin()) {
        printf("this build has no simulated GPU: it takes a C++ compiler and the headers of CUDA and NCCL\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_changes_nothing),
        cmocka_unit_test(every_wait_is_needed),
        cmocka_unit_test(nccl_is_waited_for),
        cmocka_unit_test(what_cannot_be_captured_is_not),
        cmocka_unit_test(a_write_and_the_workers_wait),
        cmocka_unit_test(a_mark_is_behind_the_workers),
        cmocka_unit_test(a_gpu_is_lost),
        cmocka_unit_test(what_is_shared_outlives_a_gpu),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(nccl_fails),
        cmocka_unit_test(nccl_never_answers),
        cmocka_unit_test(one_gpu_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
