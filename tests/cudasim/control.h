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
    int fail_collective; /* NCCL reports an error from this collective on, which all GPUs but the last have
                            begun; -1: none */
    int hasty_nccl;      /* not 0: NCCL says that it has queued a sum before it has */
    int uncapturable;    /* cuBLAS and cuDNN spoil a capture, and 1: say so, 2: don't; 0: they don't spoil it */
};

#pragma GCC visibility push(default) /* the plugin hides everything else */

/* Take the settings from now on; the counts below begin again. Before a device is opened for `gpus`. */
void cudasim_set(const struct cudasim_settings *settings);

/* Waits for events between different streams that were asked for so far, and pieces of work that ran. */
int cudasim_waits(void);
long cudasim_pieces(void);

/* Launches of graphs so far, and captures that were spoiled. */
long cudasim_graphs(void);
long cudasim_spoiled(void);

/* Convolutions by an engine that may give other bytes each time, ever. */
long cudasim_odd_engines(void);

/* Nothing is allocated, no stream, event, graph or communicator is there, and nobody is waited for to begin
 * one. */
int cudasim_clean(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
