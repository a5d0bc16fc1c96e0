/* A training library beside us: a child process that runs the same step (tests/bench/torch_step.py,
 * tensorflow_step.py) and is asked for rounds. */
#ifndef TOWERSCOPE_CLI_BENCH_LIBRARY_H
#define TOWERSCOPE_CLI_BENCH_LIBRARY_H

#include "kernels/status.h"

#include <sys/types.h>

/* What is compared with. TORCH_ORDINARY: PyTorch as one writes it, images as NCHW, its own LRN, but without
 * the two handicaps of the distribution's build: one BLAS thread a worker, an allocator that keeps its
 * memory. TORCH_BEST: the fastest way to write it that was found: channels last, LRN as a banded convolution,
 * OpenBLAS on OpenMP. TENSORFLOW_BEST: likewise, a graph made by tf.function, the same banded convolution. */
enum bench_library_setting { TORCH_ORDINARY, TORCH_BEST, TENSORFLOW_BEST, LIBRARY_SETTINGS };

/* "PyTorch", "TensorFlow" */
const char *bench_library_name(enum bench_library_setting setting);
/* "S2", "S4", "TF": heads of columns */
const char *bench_library_short(enum bench_library_setting setting);
/* "channels last, ..." */
const char *bench_library_words(enum bench_library_setting setting);

struct bench_library {
    pid_t process; /* 0: not running */
    int to, from;  /* pipes */
    char version[32];
};

struct bench_library_request {
    enum bench_library_setting setting;
    const char *python, *scripts; /* the interpreter that has it; the folder of what it runs */
    const char *isa;              /* to restrict it to, as far as it lets itself be; NULL: nothing */
    int threads, batch;
};

/* Start it and wait until it is ready. STATUS_UNSUPPORTED: `python` hasn't the library, or the script is not
 * where it should be. */
enum status bench_library_open(const struct bench_library_request *request, struct bench_library *out);
enum status bench_library_run(struct bench_library *library, double seconds, double *rate); /* images/s */
void bench_library_close(struct bench_library *library); /* a zeroed one is fine */

#endif
