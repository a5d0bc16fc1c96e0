/* What towerscope bench prints. */
#ifndef TOWERSCOPE_CLI_BENCH_TABLES_H
#define TOWERSCOPE_CLI_BENCH_TABLES_H

#include "cli/bench_layers.h"
#include "cli/bench_others.h"
#include "cli/bench_ratios.h"
#include "cli/bench_runners.h"

/* What is measured, on what; before it is. */
enum status bench_print_machine(const struct bench_runners *runners);

/* Whether that was disturbed. taken: processors, of a machine's all that are measured on. */
void bench_print_others(struct bench_others taken);

void bench_print_peaks(struct bench_ratios *ratios); /* sorts them */
void bench_print_steps(const struct bench_runners *runners);
void bench_print_runs(struct bench_runners *runners); /* sorts what its turns came to */
void bench_print_ratios(struct bench_ratios *ratios); /* as well */
void bench_print_libraries(const struct bench_runners *runners);
void bench_print_layers_words(void); /* before the tables of layers */
void bench_print_layers(int threads, const struct bench_layer *layers, int count);

#endif
