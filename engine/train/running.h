/* Statistics of a run so far, and since the step that was recorded last. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_RUNNING_H
#define TOWERSCOPE_ENGINE_TRAIN_RUNNING_H

#include <stdbool.h>
#include <stdint.h>

struct running { /* all zero: nothing seen yet */
    int64_t steps;
    double loss;                              /* smoothed over some 100 steps; the plain mean at first */
    bool any;                                 /* the three below hold something */
    double loss_min, loss_max, grad_norm_max; /* since running_recorded() */
};

/* A step's averaged loss and the norm of its averaged gradient. */
void running_update(struct running *running, double loss, double grad_norm);

/* The step was recorded: minimum and maximum begin anew. */
void running_recorded(struct running *running);

/* Whether a state with this loss is worth going back to: finite and below ten times the running average. */
bool running_good(const struct running *running, double loss);

#endif
