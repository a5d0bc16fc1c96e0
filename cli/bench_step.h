/* A training step on a batch that stays the same, without loader and events: what towerscope bench measures.
 * The images of a GPU are in its memory already, and its step is queued as a run's is, as graphs. */
#ifndef TOWERSCOPE_CLI_BENCH_STEP_H
#define TOWERSCOPE_CLI_BENCH_STEP_H

#include "engine/model/net.h"

enum bench_phase {
    BENCH_PREPARE,
    BENCH_FORWARD,
    BENCH_LOSS,
    BENCH_BACKWARD,
    BENCH_AVERAGE,
    BENCH_UPDATE,
    BENCH_PHASES
};

struct bench_step;

/* Towers share the batch as in training. The device and the model must outlive it. */
enum status bench_step_open(const struct model *model, struct device_handle device, int towers, int batch,
                            struct bench_step **out);
void bench_step_close(struct bench_step *bench); /* NULL is fine */

/* Steps for at least `seconds`; images/s in *rate. */
enum status bench_step_run(struct bench_step *bench, double seconds, double *rate);

/* Seconds of a step's phases, mean over all steps since the last call; loading is part of
 * forward; forward, loss and backward are those of the slowest tower. */
void bench_step_phases(struct bench_step *bench, double seconds[BENCH_PHASES]);

/* Mean cross-entropy of the last step: training goes on from step to step, and must not have gone wrong. */
double bench_step_loss(const struct bench_step *bench);

#endif
