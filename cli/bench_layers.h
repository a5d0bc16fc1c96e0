/* The layers of a network one by one: who computes them, and how fast. */
#ifndef TOWERSCOPE_CLI_BENCH_LAYERS_H
#define TOWERSCOPE_CLI_BENCH_LAYERS_H

#include "engine/model/net.h"
#include "kernels/cpu/isa/peak.h"

/* Seconds for a shard on the device's threads, the median of several; flops: of all its images, forward. The
 * shares are of the peak, which is measured beside every single one of them. */
struct bench_layer {
    char name[64];
    char implementation[64];
    double flops, forward, backward, forward_share, backward_share;
    bool input_gradient; /* backward computes that too: two thirds more work */
};

enum { BENCH_LAYER_ROUNDS = 15 }; /* at most */

/* What is measured: each group of the network's plan for `images` images on a CPU device, `rounds` times. */
struct bench_layers_work {
    const struct model *model;
    struct device_handle device;
    const struct peak_kernels *kernels; /* of the peak */
    int images, rounds;
};

/* Fills layers[room], returns their number in *count. */
enum status bench_layers(const struct bench_layers_work *work, struct bench_layer *layers, int room,
                         int *count);

#endif
