/* What towerscope bench is told to measure. */
#ifndef TOWERSCOPE_CLI_BENCH_OPTIONS_H
#define TOWERSCOPE_CLI_BENCH_OPTIONS_H

#define BENCH_MODEL "cifar10"

enum { BENCH_LIST = 8, BENCH_ROUNDS = 50 }; /* numbers in a list, rounds: at most */

struct bench_list {
    int count, values[BENCH_LIST];
};

struct bench_options {
    int rounds, batch;
    double seconds;
    struct bench_list threads, towers; /* no threads: 1 and all */
    const char *isa;
    const char *python, *tensorflow; /* interpreters that have PyTorch and TensorFlow */
    const char *scripts;             /* folder of what those run; "": neither is wanted */
};

/* -1: go on; else the exit code, and what is wrong was said. */
int bench_options_read(int argc, char **argv, struct bench_options *out);

#endif
