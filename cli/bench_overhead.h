/* What a training run costs beyond its bare steps, for towerscope bench: both measured in turns of a fraction
 * of a second, each turn of the one beside a turn of the other, so that what else the machine does disturbs
 * both alike. */
#ifndef TOWERSCOPE_CLI_BENCH_OVERHEAD_H
#define TOWERSCOPE_CLI_BENCH_OVERHEAD_H

#include "cli/bench_loader.h"
#include "cli/bench_step.h"

enum { BENCH_PAIRS = 4, BENCH_MOST_PAIRS = 200 }; /* turns of each in one call; that are kept */

struct bench_overhead {
    int count;
    double time[BENCH_MOST_PAIRS];      /* share of the bare step that the run takes longer: 0.02 is 2 % */
    double processor[BENCH_MOST_PAIRS]; /* the same of this process's processor time */
};

/* Let both run for about `seconds` each; images/s of each in rates[2], step first. */
enum status bench_overhead_run(struct bench_overhead *overhead, struct bench_step *step,
                               struct bench_loader *loader, double seconds, double rates[2]);

/* Median and quartiles of `count` values, which are sorted. */
struct bench_spread {
    double low, middle, high;
};
struct bench_spread bench_spread(double *values, int count);

#endif
