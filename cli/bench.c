/* towerscope bench: images per second by threads and towers, phases of a step, what a run does beside the
 * network's work, what threads and towers gain, layers against the processor's peak, and PyTorch and
 * TensorFlow beside it. What is compared is measured in turns, so that what disturbs the machine disturbs all
 * alike; what is printed are medians, and for comparisons the median of the turns' ratios. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/bench_tables.h"
#include "cli/cli.h"
#include "cli/signals.h"

enum { MAX_LAYERS = 32 };

/* Everything is static in size: that is what makes these large. */
struct bench {
    struct bench_options options;
    struct bench_runners runners;
    struct bench_ratios ratios;
    struct bench_layer layers[2][MAX_LAYERS]; /* see layer_tables() */
    int layer_count;
    struct bench_progress progress;
};

/* Processor time that others have taken so far. */
static struct bench_others others(const struct bench_runners *r) {
    pid_t own[BENCH_RUNNERS];
    for (int i = 0; i < r->count; i++)
        own[i] = r->runner[i].peer.process;
    return bench_others_now(own, r->count);
}

/* With the first number of threads that is measured, and with the last one where that is another. */
static int layer_tables(const struct bench *b) {
    return b->runners.threads.count > 1 ? 2 : 1;
}

static enum status measure(struct bench *b, struct bench_others *taken) {
    struct bench_runners *r = &b->runners;
    bench_ratios_open(r, &b->ratios);
    bench_progress_begin(&b->progress, bench_rounds_planned(r) + bench_ratios_planned(&b->ratios));
    struct bench_others before = others(r);
    STATUS_TRY(bench_rounds_run(r, &b->progress));
    STATUS_TRY(bench_ratios_run(&b->ratios, &b->progress));
    struct bench_layers_work work = {.model = r->model,
                                     .kernels = b->ratios.kernels,
                                     .images = b->options.batch,
                                     .rounds = b->options.seconds > 0 ? BENCH_LAYER_ROUNDS : 1};
    for (int i = 0; i < layer_tables(b); i++) {
        STATUS_TRY(bench_progress_tell(&b->progress, 0, "layers"));
        work.device = r->devices[i ? r->threads.count - 1 : 0];
        STATUS_TRY(bench_layers(&work, b->layers[i], MAX_LAYERS, &b->layer_count));
    }
    *taken = bench_others_between(before, others(r));
    return STATUS_OK;
}

static enum status run(struct bench *b) {
    struct bench_others taken;
    bench_progress_begin(&b->progress, 0);
    enum status status = bench_progress_tell(&b->progress, 0, "opening all that is to be measured");
    if (status == STATUS_OK)
        status = bench_runners_open(&b->options, &b->runners);
    bench_progress_end(&b->progress);
    STATUS_TRY(status);
    STATUS_TRY(bench_print_machine(&b->runners));
    status = measure(b, &taken);
    bench_progress_end(&b->progress);
    STATUS_TRY(status);
    bench_print_peaks(&b->ratios);
    bench_print_others(taken);
    bench_print_steps(&b->runners);
    bench_print_runs(&b->runners);
    bench_print_libraries(&b->runners);
    bench_print_ratios(&b->ratios);
    bench_print_layers_words();
    for (int i = 0; i < layer_tables(b); i++)
        bench_print_layers(b->runners.threads.values[i ? b->runners.threads.count - 1 : 0], b->layers[i],
                           b->layer_count);
    return STATUS_OK;
}

int command_bench(int argc, char **argv) {
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        return cli_fail(status_fail(STATUS_NO_MEMORY, "no memory for a benchmark"));
    int code = bench_options_read(argc, argv, &b->options);
    if (code < 0) {
        signals_catch(false); /* an end that is asked for takes the folder of the records away, too */
        enum status status = run(b);
        if (status != STATUS_OK && signals_asked()) /* the libraries have heard it, too */
            status = bench_progress_tell(&b->progress, 0, "");
        code = status == STATUS_OK ? EXIT_DONE : cli_fail(status);
        bench_runners_close(&b->runners);
    }
    free(b);
    return code;
}
