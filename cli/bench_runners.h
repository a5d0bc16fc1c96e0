/* All that towerscope bench measures by rounds: the bare step and the run with its loader, for each number of
 * threads and towers, and PyTorch and TensorFlow. */
#ifndef TOWERSCOPE_CLI_BENCH_RUNNERS_H
#define TOWERSCOPE_CLI_BENCH_RUNNERS_H

#include "cli/bench_folder.h"
#include "cli/bench_library.h"
#include "cli/bench_loader.h"
#include "cli/bench_options.h"
#include "cli/bench_progress.h"
#include "cli/bench_step.h"
#include "kernels/cpu/isa.h"

enum { BENCH_RUNNERS = 2 * BENCH_LIST * BENCH_LIST + LIBRARY_SETTINGS * BENCH_LIST };
enum { BENCH_TURNS = 4 }; /* of a step, and of its run, in a round */

enum bench_kind { BENCH_STEP, BENCH_RUN, BENCH_LIBRARY };

/* Something that is measured once a round. A run follows the bare step of the same threads and towers: those
 * two take turns within a round. */
struct bench_runner {
    enum bench_kind kind;
    int threads, towers;
    double rates[BENCH_ROUNDS]; /* images/s */

    struct bench_step *step;
    double phases[BENCH_PHASES];

    struct bench_loader *loader;
    struct bench_rest rest; /* of all its steps */
    int turns;
    /* What the rest had of the steps of each turn, and its images/s to the bare step's in the turn beside. */
    double shares[BENCH_TURNS * BENCH_ROUNDS], ratios[BENCH_TURNS * BENCH_ROUNDS];

    struct bench_library peer; /* the library beside us */
    enum bench_library_setting setting;
};

struct bench_runners {
    const struct bench_options *options;
    struct bench_folder folder;
    struct bench_list threads; /* what is measured: `options` may leave it open */
    struct model *model;
    struct device_handle devices[BENCH_LIST]; /* of each number of threads */
    enum cpu_isa isa;
    /* why a library is not there, which is no failure; "": it is, or nobody wants it */
    char without[LIBRARY_SETTINGS][600];
    int count;
    struct bench_runner runner[BENCH_RUNNERS];
};

/* `r` is zeroed; close it also after a failure. */
enum status bench_runners_open(const struct bench_options *options, struct bench_runners *r);
void bench_runners_close(struct bench_runners *r);

/* Seconds that the rounds are meant to take, and all of them. */
double bench_rounds_planned(const struct bench_runners *r);
enum status bench_rounds_run(struct bench_runners *r, struct bench_progress *progress);

/* NULL: there is none. */
const struct bench_runner *bench_find_step(const struct bench_runners *r, int threads, int towers);
const struct bench_runner *bench_find_library(const struct bench_runners *r, int threads,
                                              enum bench_library_setting setting);

#endif
