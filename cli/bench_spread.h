/* What many measurements of one thing come to, for towerscope bench. */
#ifndef TOWERSCOPE_CLI_BENCH_SPREAD_H
#define TOWERSCOPE_CLI_BENCH_SPREAD_H

/* Median and quartiles; NaN of none. */
struct bench_spread {
    double low, middle, high;
};

/* Of `count` values, which are sorted. */
struct bench_spread bench_spread(double *values, int count);

#endif
