/* What disturbed towerscope bench: processor time that others took meanwhile. */
#ifndef TOWERSCOPE_CLI_BENCH_OTHERS_H
#define TOWERSCOPE_CLI_BENCH_OTHERS_H

#include <sys/types.h>

/* Processor seconds since the machine started: of other programs, and of those that a virtual machine's host
 * kept for itself; on the clock. */
struct bench_others {
    double programs, host, clock;
};

/* Now. own[count]: processes that are no others, beside this one; 0: none. */
struct bench_others bench_others_now(const pid_t *own, int count);

/* Between two moments: processors that were taken on average. */
struct bench_others bench_others_between(struct bench_others from, struct bench_others to);

#endif
