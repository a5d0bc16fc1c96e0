#include "cli/bench_runners.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/registry.h"

/* ---- opening */

static enum status open_devices(struct bench_runners *r) {
    r->threads = r->options->threads;
    if (r->threads.count == 0) {
        struct device_handle all;
        struct device_info info;
        STATUS_TRY(device_open("cpu", 0, r->options->isa, &all));
        enum status status = all.ops->describe(all.device, &info);
        device_close(&all);
        STATUS_TRY(status);
        r->threads = (struct bench_list){info.threads > 1 ? 2 : 1, {1, info.threads}};
    }
    for (int i = 0; i < r->threads.count; i++)
        STATUS_TRY(device_open("cpu", r->threads.values[i], r->options->isa, &r->devices[i]));
    STATUS_TRY(isa_choose(r->options->isa, &r->isa));
    struct model_ends ends = {32, 32, 3, 10};
    return model_read(BENCH_MODEL, ends, strtod("nan", NULL), &r->model);
}

static enum status add_pair(struct bench_runners *r, int device, int towers) {
    const struct bench_options *o = r->options;
    struct bench_runner *step = &r->runner[r->count], *run = step + 1;
    *step = (struct bench_runner){.kind = BENCH_STEP, .threads = r->threads.values[device], .towers = towers};
    *run = *step;
    run->kind = BENCH_RUN;
    STATUS_TRY(bench_step_open(r->model, r->devices[device], towers, o->batch, &step->step));
    r->count++;
    STATUS_TRY(
        bench_loader_open(BENCH_MODEL, r->devices[device], towers, o->batch, r->folder.path, &run->loader));
    r->count++;
    return STATUS_OK;
}

static enum status add_library(struct bench_runners *r, int threads, enum bench_library_setting setting) {
    const struct bench_options *o = r->options;
    struct bench_runner *one = &r->runner[r->count];
    *one = (struct bench_runner){.kind = BENCH_LIBRARY, .threads = threads, .towers = 1, .setting = setting};
    struct bench_library_request request = {.setting = setting,
                                            .python = setting == TENSORFLOW_BEST ? o->tensorflow : o->python,
                                            .scripts = o->scripts,
                                            .isa = o->isa,
                                            .threads = threads,
                                            .batch = o->batch};
    STATUS_TRY(bench_library_open(&request, &one->peer));
    r->count++;
    return STATUS_OK;
}

static void add_libraries(struct bench_runners *r) {
    for (int setting = 0; setting < LIBRARY_SETTINGS; setting++)
        for (int i = 0; i < r->threads.count; i++)
            if (add_library(r, r->threads.values[i], (enum bench_library_setting)setting) != STATUS_OK) {
                snprintf(r->without[setting], sizeof r->without[setting], "%s", status_text());
                break;
            }
}

enum status bench_runners_open(const struct bench_options *options, struct bench_runners *r) {
    r->options = options;
    STATUS_TRY(bench_folder_make(&r->folder));
    STATUS_TRY(open_devices(r));
    for (int i = 0; i < r->threads.count; i++)
        for (int k = 0; k < options->towers.count; k++)
            STATUS_TRY(add_pair(r, i, options->towers.values[k]));
    if (*options->scripts)
        add_libraries(r);
    return STATUS_OK;
}

void bench_runners_close(struct bench_runners *r) {
    for (int i = 0; i < r->count; i++) {
        bench_step_close(r->runner[i].step);
        bench_loader_close(r->runner[i].loader);
        bench_library_close(&r->runner[i].peer);
    }
    model_free(r->model);
    for (int i = 0; i < BENCH_LIST; i++)
        device_close(&r->devices[i]);
    bench_folder_remove(&r->folder);
}

/* ---- the rounds */

static enum status run_turn(struct bench_runner *step, struct bench_runner *run, double seconds,
                            bool run_first, double rates[2]) {
    struct bench_rest rest;
    if (!run_first)
        STATUS_TRY(bench_step_run(step->step, seconds, &rates[0]));
    STATUS_TRY(bench_loader_run(run->loader, seconds, &rates[1], &rest));
    if (run_first)
        STATUS_TRY(bench_step_run(step->step, seconds, &rates[0]));
    double sum = 0;
    for (int part = 0; part < BENCH_PARTS; part++) {
        run->rest.part[part] += rest.part[part];
        sum += rest.part[part];
    }
    run->rest.steps += rest.steps;
    run->rest.seconds += rest.seconds;
    run->ratios[run->turns] = rates[1] / rates[0];
    run->shares[run->turns++] = sum / rest.seconds;
    return STATUS_OK;
}

/* A step and its run, in turns of a fraction of the time. */
static enum status run_pair(struct bench_runner *step, struct bench_runner *run, int round, double seconds) {
    double sums[2] = {0}; /* seconds for an image */
    const int turns = seconds > 0 ? BENCH_TURNS : 1;
    for (int i = 0; i < turns; i++) {
        double rates[2];
        STATUS_TRY(run_turn(step, run, seconds / turns, i % 2, rates));
        sums[0] += 1 / rates[0];
        sums[1] += 1 / rates[1];
    }
    step->rates[round] = turns / sums[0];
    run->rates[round] = turns / sums[1];
    return STATUS_OK;
}

static enum status run_round(struct bench_runners *r, int round, double seconds,
                             struct bench_progress *progress, const char *words) {
    for (struct bench_runner *one = r->runner; one < r->runner + r->count; one++) {
        STATUS_TRY(bench_progress_tell(progress, 0, words));
        if (one->kind == BENCH_LIBRARY) {
            STATUS_TRY(bench_library_run(&one->peer, seconds, &one->rates[round]));
        } else {
            STATUS_TRY(run_pair(one, one + 1, round, seconds));
            one++;
            STATUS_TRY(bench_progress_tell(progress, seconds, words));
        }
        STATUS_TRY(bench_progress_tell(progress, seconds, words));
    }
    return STATUS_OK;
}

static void add_cosines(struct bench_runner *run) {
    double seconds = bench_loader_cosines(run->loader) * run->rest.steps;
    run->rest.part[BENCH_COSINES] = seconds;
    for (int i = 0; i < run->turns; i++)
        run->shares[i] += seconds / run->rest.seconds;
}

/* Of the round that gets everything warm: what it measured is dropped. */
static double warm_seconds(const struct bench_runners *r) {
    return r->options->seconds / 6;
}

double bench_rounds_planned(const struct bench_runners *r) {
    return r->count * (warm_seconds(r) + r->options->rounds * r->options->seconds);
}

enum status bench_rounds_run(struct bench_runners *r, struct bench_progress *progress) {
    STATUS_TRY(run_round(r, 0, warm_seconds(r), progress, "getting warm"));
    for (struct bench_runner *one = r->runner; one < r->runner + r->count; one++) {
        one->turns = 0;
        one->rest = (struct bench_rest){0};
        if (one->step)
            bench_step_phases(one->step, one->phases);
    }
    for (int round = 0; round < r->options->rounds; round++) {
        char words[48];
        snprintf(words, sizeof words, "round %d of %d", round + 1, r->options->rounds);
        STATUS_TRY(run_round(r, round, r->options->seconds, progress, words));
    }
    for (struct bench_runner *one = r->runner; one < r->runner + r->count; one++) {
        if (one->step)
            bench_step_phases(one->step, one->phases);
        if (one->loader)
            add_cosines(one);
    }
    return STATUS_OK;
}

/* ---- who is who */

const struct bench_runner *bench_find_step(const struct bench_runners *r, int threads, int towers) {
    for (int i = 0; i < r->count; i++)
        if (r->runner[i].kind == BENCH_STEP && r->runner[i].threads == threads &&
            r->runner[i].towers == towers)
            return &r->runner[i];
    return NULL;
}

const struct bench_runner *bench_find_library(const struct bench_runners *r, int threads,
                                              enum bench_library_setting setting) {
    for (int i = 0; i < r->count; i++)
        if (r->runner[i].kind == BENCH_LIBRARY && r->runner[i].threads == threads &&
            r->runner[i].setting == setting)
            return &r->runner[i];
    return NULL;
}
