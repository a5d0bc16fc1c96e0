/* What a test may ask of the simulated GPUs. The functions are exported by backend_sim.so. */
#ifndef TOWERSCOPE_TESTS_CUDASIM_CONTROL_H
#define TOWERSCOPE_TESTS_CUDASIM_CONTROL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cudasim_settings {
    int gpus;            /* how many there are: 1 to 16 */
    unsigned seed;       /* of the order in which the streams' work runs */
    size_t memory_bytes; /* of each GPU; 0: the default, 2 GiB */
    int drop_wait;       /* the wait for an event with this number (from 0) is left out; -1: none */
    int lose_gpu;        /* this GPU is lost ... -1: none */
    int lose_after;      /* ... when it has done so many pieces of work from now on */
    int hang_collective; /* the collective with this number (from 0) never ends; -1: none */
    int fail_collective; /* NCCL reports an error from this collective on; -1: none */
};

#pragma GCC visibility push(default) /* the plugin hides everything else */

/* Take the settings from now on; the counts below begin again. Before a device is opened for `gpus`. */
void cudasim_set(const struct cudasim_settings *settings);

/* Waits for events between different streams that were asked for so far, and pieces of work that ran. */
int cudasim_waits(void);
long cudasim_pieces(void);

/* Launches of graphs so far. */
long cudasim_graphs(void);

/* Nothing is allocated and no stream, event or graph is there. */
int cudasim_clean(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
