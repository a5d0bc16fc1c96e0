/* The real training loop on the plugin's real host code, over simulated GPUs: groups of 1 to 8 with 1 to 16
 * towers, in orders of execution by many seeds, against the CPU. It proves order and arithmetic, not a GPU.
 * test-timeout: 300; test-skip-under: thread (threads of kernels are contexts that it does not follow) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cudasim/sim.h"
#include "tests/support/cmocka.h"
#include "tests/support/train_run.h"

/* What a run of some steps came to. */
struct outcome {
    struct kept_step steps[KEPT_STEPS];
    int count;
    float *parameters;
    size_t size;
};

struct plan_of_run {
    const char *model;
    const char *words[12];
    int steps;
    const char *commands[4]; /* one before each of the first steps; NULL: none */
};

static void outcome_free(struct outcome *o) {
    free(o->parameters);
    free(o);
}

static struct outcome *outcome_of(const char *device, const struct plan_of_run *plan) {
    struct outcome *o = calloc(1, sizeof *o);
    assert_non_null(o);
    struct train_run *run = train_run_open(device, plan->model, 96, 20, plan->words);
    for (int i = 0; i < plan->steps; i++) {
        if (i < 4 && plan->commands[i] && !train_run_command(run, plan->commands[i]))
            fail_msg("%s: %s", plan->commands[i], run->reason);
        assert_int_equal(trainer_step(run->trainer), STATUS_OK);
    }
    assert_int_equal(trainer_settle(run->trainer), STATUS_OK);
    o->count = run->steps;
    memcpy(o->steps, run->kept, sizeof o->steps);
    o->size = run->model->flat_count;
    o->parameters = calloc(o->size, sizeof *o->parameters);
    assert_non_null(o->parameters);
    assert_int_equal(trainer_read(run->trainer, "parameters", o->parameters, o->size), STATUS_OK);
    train_run_close(run);
    return o;
}

/* The largest difference of any figure or parameter, relative; infinite when one is not a number. */
static double distance(const struct outcome *a, const struct outcome *b) {
    double largest = a->count == b->count ? 0 : INFINITY;
    for (int i = 0; i < a->count && i < b->count; i++) {
        const struct kept_step *x = &a->steps[i], *y = &b->steps[i];
        const double pairs[][2] = {{x->step.loss, y->step.loss},
                                   {x->step.grad_norm, y->step.grad_norm},
                                   {x->step.grad_norm_mean, y->step.grad_norm_mean},
                                   {x->step.update_ratio, y->step.update_ratio}};
        for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
            largest = fmax(largest, fabs(pairs[p][0] - pairs[p][1]) / fmax(1, fabs(pairs[p][1])));
        for (int64_t k = 0; k < x->step.tower_count && k < KEPT_TOWERS; k++) {
            double difference = fabs(x->towers[k].loss - y->towers[k].loss);
            double turn = fabs(x->towers[k].cosine - y->towers[k].cosine);
            largest = fmax(largest, isnan(y->towers[k].loss) ? 0 : difference);
            largest = fmax(largest, isnan(y->towers[k].cosine) ? 0 : turn);
            if (isnan(x->towers[k].loss) != isnan(y->towers[k].loss))
                largest = INFINITY;
        }
        if (isnan(x->step.loss))
            largest = INFINITY;
    }
    for (size_t i = 0; i < a->size; i++) {
        double difference = fabs((double)a->parameters[i] - (double)b->parameters[i]);
        largest = isnan(difference) ? INFINITY : fmax(largest, difference);
    }
    return largest;
}

static struct outcome *on_sim(struct cudasim_settings settings, const struct plan_of_run *plan) {
    sim_set(settings);
    struct outcome *o = outcome_of(sim_names(settings.gpus), plan);
    assert_true(sim_clean());
    return o;
}

/* ---- what must come out */

static void losses_are_the_cpus(void **state) {
    (void)state;
    const struct plan_of_run plan = {.model = conv_text,
                                     .words = {"towers=4", "batch=16", "lr=0.01", "momentum=0.9"},
                                     .steps = SIM_THOROUGH ? 20 : 5};
    struct outcome *cpu = outcome_of("cpu", &plan), *sim = on_sim(sim_healthy(2, 1), &plan);
    double largest = 0;
    for (int i = 0; i < plan.steps; i++)
        largest = fmax(largest, fabs(cpu->steps[i].step.loss - sim->steps[i].step.loss));
    /* A tower's step is a graph from the second on that is like it, and so is what each GPU does at the end.
     * Step 1 tells of the layers, for which the first GPU has more to do. Steps 5 and 15 are timed: in other
     * parts, which are graphs from the second such step on. */
    assert_int_equal(sim_graphs(), plan.steps == 20 ? (4 + 1) * 16 + 17 + 2 * 4 : (4 + 1) * 2 + 3);
    printf("cuda-sim: 4 towers on sim:0,sim:1, %d steps: losses within %.1e of the CPU's\n", plan.steps,
           largest);
    assert_true(largest <= 1e-4);
    assert_true(distance(sim, cpu) <= 1e-4);
    outcome_free(cpu);
    outcome_free(sim);
}

static void any_group_and_towers(void **state) {
    (void)state;
    for (int towers = 1; towers <= (SIM_THOROUGH ? 16 : 3); towers = towers < 3 ? towers + 1 : towers + 13) {
        char word[32];
        snprintf(word, sizeof word, "towers=%d", towers);
        const struct plan_of_run plan = {
            .model = mlp_text,
            .words = {word, "batch=14", "lr=0.05", "momentum=0.9", "clip-norm=0.5"},
            .steps = 3};
        struct outcome *cpu = outcome_of("cpu", &plan);
        for (int gpus = 1; gpus <= 8; gpus = gpus < 2 ? 2 : gpus + 6)
            for (unsigned seed = 1; seed <= (SIM_THOROUGH ? 2 : 1); seed++) {
                struct outcome *sim = on_sim(sim_healthy(gpus, seed), &plan);
                double d = distance(sim, cpu);
                if (!(d <= 2e-5))
                    fail_msg("%d towers on %d GPUs, seed %u: %g from the CPU", towers, gpus, seed, d);
                outcome_free(sim);
            }
        outcome_free(cpu);
    }
}

static void towers_may_change(void **state) {
    (void)state;
    const struct plan_of_run plan = {
        .model = mlp_text,
        .words = {"towers=2", "batch=20", "lr=0.05"},
        .steps = 8,
        .commands = {NULL, "towers 7", "towers 1", "towers 16"},
    };
    struct outcome *cpu = outcome_of("cpu", &plan);
    for (unsigned seed = 1; seed <= (SIM_THOROUGH ? 3 : 1); seed++) {
        struct outcome *sim = on_sim(sim_healthy(3, seed), &plan);
        assert_true(distance(sim, cpu) <= 2e-5);
        outcome_free(sim);
    }
    outcome_free(cpu);
}

static void other_rules(void **state) {
    (void)state;
    const struct plan_of_run plan = {
        .model = mlp_text,
        .words = {"towers=3", "batch=12", "lr=0.05", "momentum=0.9"},
        .steps = 8,
        .commands = {"why on", "why apply unscoped", "why off", "why apply no-average"},
    };
    struct outcome *cpu = outcome_of("cpu", &plan), *sim = on_sim(sim_healthy(2, 1), &plan);
    assert_true(distance(sim, cpu) <= 1e-4);
    outcome_free(cpu);
    outcome_free(sim);
}

/* ---- a step's figures are read while the next one runs */

static void a_step_is_told_while_the_next_runs(void **state) {
    (void)state;
    const char *const words[] = {"towers=2", "batch=8", "lr=0.05", "momentum=0.9", NULL};
    sim_set(sim_healthy(2, 1));
    struct train_run *cpu = train_run_open("cpu", mlp_text, 30, 20, words), /* every fourth step is short */
        *sim = train_run_open(sim_names(2), mlp_text, 30, 20, words);
    for (int i = 1; i <= 9; i++) {
        assert_int_equal(trainer_step(cpu->trainer), STATUS_OK);
        assert_int_equal(trainer_step(sim->trainer), STATUS_OK);
        assert_int_equal(trainer_steps(sim->trainer), i);
        assert_int_equal(sim->steps, i == 1 ? 1 : i - 1); /* the first tells of the layers, at once */
    }
    assert_true(train_run_command(sim, "set lr 0.01")); /* between steps 9 and 10 */
    assert_int_equal(sim->steps, 9);
    assert_true(train_run_command(cpu, "set lr 0.01") && train_run_command(cpu, "step 2"));
    assert_true(train_run_command(sim, "step 2"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(trainer_step(cpu->trainer), STATUS_OK);
        assert_int_equal(trainer_step(sim->trainer), STATUS_OK);
    }
    assert_true(trainer_paused(sim->trainer)); /* at once */
    assert_int_equal(sim->steps, 11);
    for (int i = 0; i < 11; i++) {
        const struct event_step *a = &sim->kept[i].step, *b = &cpu->kept[i].step;
        assert_int_equal(a->step, i + 1);
        assert_int_equal(a->images, b->images);
        assert_true(a->lr == b->lr && a->epoch == b->epoch);
        assert_int_equal(sim->kept[i].recorded, cpu->kept[i].recorded);
        assert_near(a->loss, b->loss, 1e-5);
        assert_near(a->grad_norm, b->grad_norm, 1e-5);
        assert_near(a->update_ratio, b->update_ratio, 1e-5);
        assert_near(a->weight_decay, b->weight_decay, 1e-5);
        /* the first step that the device timed is the fifth; what each took is told until the next */
        const struct event_step_tower *tower = &sim->kept[i].towers[1];
        const double times[] = {tower->load_ms, tower->forward_ms, tower->backward_ms, a->average_ms,
                                a->update_ms};
        for (size_t p = 0; p < sizeof times / sizeof *times; p++)
            assert_true(i < 4 ? wire_is_unknown(times[p]) : times[p] > 0);
        assert_true(wire_is_unknown(tower->wait_ms));
    }
    train_run_close(cpu);
    train_run_close(sim);
    assert_true(sim_clean());
}

/* ---- what the device is asked about its values */

/* Step 100, which tells of the layers, by a run that goes on from the CPU's checkpoint of step 99. */
static void layers_are_the_cpus(void **state) {
    (void)state;
    const char *const words[] = {"towers=3", "batch=8", "lr=0.01", "record-every=1", NULL};
    char folder[512], file[600];
    snprintf(folder, sizeof folder, "%s/layers", getenv("TEST_TMP"));
    snprintf(file, sizeof file, "%s/step-00000099.safetensors", folder);
    struct train_run *cpu = train_run_resume("cpu", mlp_text, 96, 20, words, folder, NULL);
    train_run_steps(cpu, 99);
    assert_true(train_run_command(cpu, "save"));
    train_run_steps(cpu, 1);
    sim_set(sim_healthy(2, 1));
    struct train_run *sim = train_run_resume(sim_names(2), mlp_text, 96, 20, words, folder, file);
    train_run_steps(sim, 1);
    assert_true(sim->layer_count >= 2);
    assert_int_equal(sim->layer_count, cpu->layer_count);
    bool counted = false;
    for (int64_t i = 0; i < sim->layer_count; i++) {
        const struct event_layer *a = &sim->layers[i], *b = &cpu->layers[i];
        assert_near(a->grad_norm, b->grad_norm, 1e-4);
        assert_near(a->param_norm, b->param_norm, 1e-5);
        if (wire_is_unknown(a->zeros) || wire_is_unknown(b->zeros))
            continue; /* which layers keep their activations is each device's choice */
        counted = counted || b->zeros > 0;
        assert_near(a->zeros, b->zeros, 1e-3);
    }
    assert_true(counted);
    train_run_close(sim);
    train_run_close(cpu);
}

/* A rate that is too high: the same step, tower and tensor are named, and the run is where it was. */
static void faults_are_named(void **state) {
    (void)state;
    const char *const words[] = {"towers=2", "batch=8", "lr=1e20", NULL};
    sim_set(sim_healthy(2, 1));
    struct train_run *cpu = train_run_open("cpu", mlp_text, 96, 20, words),
                     *sim = train_run_open(sim_names(2), mlp_text, 96, 20, words);
    struct train_run *const both[] = {cpu, sim};
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 20 && !trainer_paused(both[r]->trainer); i++)
            assert_int_equal(trainer_step(both[r]->trainer), STATUS_OK);
    assert_true(trainer_paused(cpu->trainer) && trainer_paused(sim->trainer));
    assert_string_equal(sim->alarm, cpu->alarm);
    assert_string_equal(sim->alarm_tensor, cpu->alarm_tensor);
    assert_int_equal(sim->alarm_step, cpu->alarm_step);
    assert_int_equal(sim->alarm_tower, cpu->alarm_tower);
    assert_int_equal(sim->steps, cpu->steps);
    assert_int_equal(trainer_steps(sim->trainer), 0);
    printf("%s\n", sim->alarm);
    train_run_close(sim);
    train_run_close(cpu);
}

int main(void) {
    if (!sim_begin()) {
        printf("this build has no simulated GPU: it takes a C++ compiler and the headers of CUDA and NCCL\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_the_cpus),
        cmocka_unit_test(any_group_and_towers),
        cmocka_unit_test(towers_may_change),
        cmocka_unit_test(other_rules),
        cmocka_unit_test(a_step_is_told_while_the_next_runs),
        cmocka_unit_test(layers_are_the_cpus),
        cmocka_unit_test(faults_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
