/* A run in which one call fails (tests/faults/inject.c): start, five steps with a checkpoint each, a client
 * that attaches and sends commands, stop; and what must hold afterwards, whatever failed. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_FAULT_RUN_H
#define TOWERSCOPE_TESTS_SUPPORT_FAULT_RUN_H

#include <stdbool.h>
#include <stdint.h>

struct fault_place {
    char kind[16];
    unsigned long long place;
    long count; /* calls of a run without a fault */
};

/* Every place that a run comes by, in memory of the caller (free it), in the order of their numbers; *count
 * of them. What fails fails the test. */
struct fault_place *fault_places(int *count);

/* One run in which the number-th call from that place fails (onward: and all after it); place NULL: none
 * does. Whether all held: it ended by itself, without a crash or a leak, with a sentence when it did not do
 * what was asked; each checkpoint that it told of can be read, and the run can be resumed. Prints what did
 * not. */
bool fault_run(const struct fault_place *place, long number, bool onward);

/* A run without a fault in which each checkpoint gets its name only after the record was brought to the disk;
 * prints the order of the calls where one did not. */
bool fault_run_in_order(void);

/* Sweep: every stride-th place (from `first` on), its first call, and with `thorough` also its last one and
 * all from the first on. Prints a table of the kinds. Returns how many runs went wrong. */
int fault_sweep(int first, int stride, bool thorough);

#endif
