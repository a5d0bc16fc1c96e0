#include "cli/bench_tables.h"

#include <stdio.h>
#include <string.h>

#include "cli/bench_spread.h"

static const char *plural(int count) {
    return count == 1 ? "" : "s";
}

enum status bench_print_machine(const struct bench_runners *r) {
    const struct bench_options *o = r->options;
    struct device_info info;
    STATUS_TRY(r->devices[0].ops->describe(r->devices[0].device, &info));
    double flops = 0;
    for (int i = 0; i < r->model->op_count; i++)
        flops += op_flops(&r->model->ops[i]);
    printf("processor  %s, %s\n"
           "network    %s, %.1f MFLOP an image forward, batch %d; %d round%s of %.1f s\n",
           info.description, info.isa, r->model->name, flops * 1e-6, o->batch, o->rounds, plural(o->rounds),
           o->seconds);
    for (int i = 0; i < LIBRARY_SETTINGS; i++) {
        const char *name = bench_library_name((enum bench_library_setting)i);
        if (*r->without[i] &&
            (i == 0 || strcmp(name, bench_library_name((enum bench_library_setting)(i - 1)))))
            printf("compared   no %s beside it: %s\n", name, r->without[i]);
    }
    fflush(stdout);
    return STATUS_OK;
}

void bench_print_peaks(struct bench_ratios *r) {
    const struct bench_list *threads = &r->runners->threads;
    printf("peak       multiplying and adding, median (quartiles):");
    for (int i = 0; i < threads->count; i++) {
        struct bench_spread spread = bench_spread(r->peak[i], r->pairs);
        printf("%s %.0f (%.0f-%.0f) GFLOP/s on %d thread%s", i ? "," : "", spread.middle, spread.low,
               spread.high, threads->values[i], plural(threads->values[i]));
    }
    printf("\n");
}

void bench_print_others(struct bench_others taken) {
    const double noticed = 0.06;
    if (taken.programs > noticed || taken.host > noticed)
        printf("disturbed  Other programs used %.0f %% of a processor meanwhile, a virtual machine's host "
               "%.0f %%: "
               "rates are too low.\n"
               "           Ratios and shares suffer less, as what they compare was measured side by side.\n",
               100 * taken.programs, 100 * taken.host);
}

/* ---- rates */

/* Median over the rounds of a's rate to b's. */
static double ratio(const struct bench_runner *a, const struct bench_runner *b, int rounds) {
    double ratios[BENCH_ROUNDS];
    for (int i = 0; i < rounds; i++)
        ratios[i] = a->rates[i] / b->rates[i];
    return bench_spread(ratios, rounds).middle;
}

static void print_rate(const struct bench_runners *r, const struct bench_runner *one) {
    int rounds = r->options->rounds;
    double sorted[BENCH_ROUNDS];
    memcpy(sorted, one->rates, sizeof sorted);
    double middle = bench_spread(sorted, rounds).middle;
    char range[32];
    snprintf(range, sizeof range, "(%.0f-%.0f)", sorted[0], sorted[rounds - 1]);
    printf("%7d %6d %9.0f  %-13s", one->threads, one->towers, middle, range);
    for (int setting = 0; setting < LIBRARY_SETTINGS && one->kind != BENCH_LIBRARY; setting++) {
        const struct bench_runner *library =
            bench_find_library(r, one->threads, (enum bench_library_setting)setting);
        if (library)
            printf("%6.2f", ratio(one, library, rounds));
    }
}

/* What both tables begin with, and a column for each library that is there. */
static void print_heads(const struct bench_runners *r) {
    printf("threads towers  images/s  (least-most) ");
    for (int setting = 0; setting < LIBRARY_SETTINGS; setting++)
        if (bench_find_library(r, r->threads.values[0], (enum bench_library_setting)setting))
            printf("  x %s", bench_library_short((enum bench_library_setting)setting));
}

void bench_print_steps(const struct bench_runners *r) {
    printf("\nA step on a batch that stays the same; milliseconds of its phases\n");
    print_heads(r);
    printf("   prepare forward    loss backward average  update\n");
    for (int i = 0; i < r->count; i++) {
        if (r->runner[i].kind != BENCH_STEP)
            continue;
        print_rate(r, &r->runner[i]);
        for (int phase = 0; phase < BENCH_PHASES; phase++)
            printf(" %8.2f", r->runner[i].phases[phase] * 1e3);
        printf("\n");
    }
}

void bench_print_runs(struct bench_runners *r) {
    printf("\nA run: generated images, every distortion, every second step recorded. Its images/s, also to "
           "those of the\n"
           "bare step in turns. The rest is what a recorded step does beside the network's own work, in "
           "percent of it\n"
           "(quartiles of the turns): pictures made (by the towers' threads: no step waits for them), events "
           "made, the\n"
           "record written, cosines worked out\n");
    print_heads(r);
    printf("  / step    rest             = pictures  events  record cosines\n");
    for (int i = 0; i < r->count; i++) {
        struct bench_runner *run = &r->runner[i];
        if (run->kind != BENCH_RUN)
            continue;
        print_rate(r, run);
        struct bench_spread shares = bench_spread(run->shares, run->turns);
        double percent[BENCH_PARTS], sum = 0;
        for (int part = 0; part < BENCH_PARTS; part++)
            sum += percent[part] = 100 * run->rest.part[part] / run->rest.seconds;
        char quartiles[32];
        snprintf(quartiles, sizeof quartiles, "(%.1f-%.1f)", 100 * shares.low, 100 * shares.high);
        printf("%8.3f %8.1f %% %-12s =", bench_spread(run->ratios, run->turns).middle, sum, quartiles);
        for (int part = 0; part < BENCH_PARTS; part++)
            printf(" %7.2f", percent[part]);
        printf("\n");
    }
}

void bench_print_libraries(const struct bench_runners *r) {
    bool head = false;
    for (int i = 0; i < r->count; i++) {
        const struct bench_runner *one = &r->runner[i];
        if (one->kind != BENCH_LIBRARY)
            continue;
        if (!head)
            printf("\nOther libraries on the same step\nthreads         images/s  (least-most)\n");
        head = true;
        print_rate(r, one);
        printf("  %s: %s %s, %s\n", bench_library_short(one->setting), bench_library_name(one->setting),
               one->peer.version, bench_library_words(one->setting));
    }
}

/* ---- ratios */

static void print_spread(double *values, int count) {
    struct bench_spread spread = bench_spread(values, count);
    char quartiles[32];
    snprintf(quartiles, sizeof quartiles, "(%.2f-%.2f)", spread.low, spread.high);
    printf("%6.2f %13s", spread.middle, quartiles);
}

static void ratio_words(const struct bench_ratio *one, bool threads, char words[64]) {
    const struct bench_runner *over = one->over, *under = one->under;
    if (threads)
        snprintf(words, 64, "%d threads against %d, %d tower%s", over->threads, under->threads, over->towers,
                 plural(over->towers));
    else
        snprintf(words, 64, "%d towers against %d, %d thread%s", over->towers, under->towers, over->threads,
                 plural(over->threads));
}

void bench_print_ratios(struct bench_ratios *r) {
    if (r->count == 0)
        return;
    printf("\nThe bare step in %d pair%s of turns of %.2f s: median (quartiles) of their ratios\n", r->pairs,
           plural(r->pairs), r->runners->options->seconds / 6);
    if (r->threads)
        printf("%-34s%20s%28s\n", "", "images/s", "peak beside it");
    for (int i = 0; i < r->count; i++) {
        struct bench_ratio *one = &r->ratio[i];
        char words[64];
        ratio_words(one, i < r->threads, words);
        printf("%-34s", words);
        print_spread(one->ratio, r->pairs);
        if (i < r->threads) {
            printf("%8s", "");
            print_spread(one->peak, r->pairs);
        }
        printf("\n");
    }
}

/* ---- layers */

void bench_print_layers_words(void) {
    printf(
        "\nLayers, the batch in one tower: milliseconds, GFLOP/s, share of the peak of as many threads "
        "beside it.\n"
        "Counted is what the plain way multiplies and adds, padding too. Winograd, which conv-pool-lrn uses\n"
        "as well, does it in fewer: its share may be above 100 %%\n");
}

void bench_print_layers(int threads, const struct bench_layer *layers, int count) {
    char head[32];
    snprintf(head, sizeof head, "on %d thread%s", threads, plural(threads));
    printf("%-28s %-26s %-22s %s\n", head, "computed by", "forward", "backward");
    for (int i = 0; i < count; i++) {
        const struct bench_layer *l = &layers[i];
        double forward = l->flops / l->forward * 1e-9;
        double backward = l->flops * (l->input_gradient ? 2 : 1) / l->backward * 1e-9;
        printf("%-28s %-26s %6.2f %6.0f %4.0f %%   %6.2f %6.0f %4.0f %%\n", l->name, l->implementation,
               l->forward * 1e3, forward, 100 * l->forward_share, l->backward * 1e3, backward,
               100 * l->backward_share);
    }
}
