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

/* Plan and allocate for a batch of `images`. prepared_bytes: what the plans of the towers derive from the
 * parameters. STATUS_NO_MEMORY says the bytes; STATUS_UNSUPPORTED: the whole batch's plans would derive
 * something else. Nothing is left behind then. */
enum status proof_open(struct proof *proof, const struct model *model, struct machine *machine,
                       size_t prepared_bytes, int images);
void proof_close(struct proof *proof, struct machine *machine);

/* Forward, losses and backward of the whole batch at hand, with the shared parameters: fills
 * proof->memory.gradient (of the cross-entropy) and the mean cross-entropy. Touches nothing of the run. */
enum status proof_run(struct trainer *t, struct proof *proof, double *cross_entropy);

#endif
