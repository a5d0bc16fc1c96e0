/* How many times as fast one is as the other: bare steps with more threads, or more towers, than others, each
 * in a short turn beside a turn of the other, so that a host whose speed wanders does not decide; and beside
 * the threads' turns the peak of multiplying and adding, to see what the machine had to give. */
#ifndef TOWERSCOPE_CLI_BENCH_RATIOS_H
#define TOWERSCOPE_CLI_BENCH_RATIOS_H

#include "cli/bench_runners.h"
#include "kernels/cpu/isa/peak.h"

enum { BENCH_RATIOS = 2 * BENCH_LIST * BENCH_LIST, BENCH_PAIRS = 4 * BENCH_ROUNDS };

struct bench_ratio {
    const struct bench_runner *over, *under;
    double ratio[BENCH_PAIRS]; /* images/s of `over` to those of `under` */
    double peak[BENCH_PAIRS];  /* the same of the peaks; only where they have different threads */
};

struct bench_ratios {
    const struct bench_runners *runners;
    const struct peak_kernels *kernels;
    int pairs;   /* turns of each */
    int threads; /* ratios that compare threads: every number with the first one listed, for each number of
                    towers. They come first; the others compare towers */
    int count;
    struct bench_ratio ratio[BENCH_RATIOS];
    double peak[BENCH_LIST][BENCH_PAIRS]; /* GFLOP/s of each number of threads */
};

/* Which ratios there are. */
void bench_ratios_open(const struct bench_runners *runners, struct bench_ratios *out);

/* Seconds that they are meant to take, and all of them. */
double bench_ratios_planned(const struct bench_ratios *ratios);
enum status bench_ratios_run(struct bench_ratios *ratios, struct bench_progress *progress);

#endif
