/* PyTorch beside us: a child process that runs the same step (tests/bench/torch_step.py) and is asked for
 * rounds. */
#ifndef TOWERSCOPE_CLI_BENCH_TORCH_H
#define TOWERSCOPE_CLI_BENCH_TORCH_H

#include "kernels/status.h"

#include <sys/types.h>

/* The two settings it is compared in. ORDINARY: as one writes it, images as NCHW, torch's own LRN, but
 * without the two handicaps of the distribution's build: one BLAS thread a worker, an allocator that keeps
 * its memory. BEST: the fastest way to write it that was found: channels last, LRN as a banded convolution,
 * OpenBLAS on OpenMP. */
enum bench_torch_setting { TORCH_ORDINARY, TORCH_BEST, TORCH_SETTINGS };

const char *
bench_torch_name(enum bench_torch_setting setting); /* "S2", "S4": as in the notes of the experiment */

struct bench_torch {
    pid_t process; /* 0: not running */
    int to, from;  /* pipes */
    char version[32];
};

/* Start it and wait until it is ready. isa: instruction set to restrict it to, as far as it lets itself be,
 * or NULL. STATUS_UNSUPPORTED: there is no PyTorch for `python`, or the script is not where it should be. */
enum status bench_torch_open(const char *python, const char *script, enum bench_torch_setting setting,
                             int threads, int batch, const char *isa, struct bench_torch *out);
enum status bench_torch_run(struct bench_torch *torch, double seconds, double *rate);
void bench_torch_close(struct bench_torch *torch); /* a zeroed one is fine */

#endif
