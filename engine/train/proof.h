/* The same batch on one tower: what the towers' average has to be, worked out another way. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_PROOF_H
#define TOWERSCOPE_ENGINE_TRAIN_PROOF_H

#include "engine/train/internal.h"

struct proof {
    int images; /* of the batch it is planned for; 0: not there */
    struct net *net;
    struct net_memory memory;
    struct span scratch;
    float *losses; /* [images] */
    size_t bytes;
};

/* Plan and allocate for a batch. STATUS_NO_MEMORY says the bytes; nothing is left behind then. */
enum status proof_open(struct trainer *t, int images, struct proof *out);
void proof_close(struct trainer *t, struct proof *proof);

/* Forward, losses and backward of the whole batch at hand, with the shared parameters: fills
 * proof->memory.gradient (of the cross-entropy) and the mean cross-entropy. Touches nothing of the run. */
enum status proof_run(struct trainer *t, struct proof *proof, double *cross_entropy);

#endif
