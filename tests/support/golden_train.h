/* Training with given batches through what the trainer uses: a net per tower, the step's collection of
 * losses, combine, update. What the trainer adds (loading, events, commands) is left out. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_GOLDEN_TRAIN_H
#define TOWERSCOPE_TESTS_SUPPORT_GOLDEN_TRAIN_H

#include "engine/train/collection.h"
#include "tests/support/net_run.h"

enum { GOLDEN_TOWERS = 3 };

struct golden_settings {
    double lr, momentum, clip, ema;
    const char *force; /* an implementation, or NULL */
};

struct golden_train {
    struct device_handle device;
    const struct model *model;
    struct golden_settings settings;
    int towers, images[GOLDEN_TOWERS]; /* the shards */
    struct net_run run[GOLDEN_TOWERS];
    struct span parameters, average, velocity, shadow;
    double *values; /* the parameters of the step, on the host */
    int64_t steps;

    struct collection collection; /* the last step's */
    double totals[GOLDEN_TOWERS], norms[GOLDEN_TOWERS], loss, norm;
    double *parameter_norms2;
};

/* Whether the device does every operation of the model; ref must. Says so when not. */
bool golden_device_does(struct device_handle device, const struct model *model);

/* shards: images of each tower, 0 ends them early. Fails the test on any error. */
void golden_train_open(struct golden_train *train, struct device_handle device, const struct model *model,
                       struct golden_settings settings, const int shards[GOLDEN_TOWERS],
                       const double *parameters);
void golden_train_close(struct golden_train *train);
void golden_train_step(struct golden_train *train, const double *pixels, const int32_t *labels);

/* A flat buffer of the device as doubles, into out[model->flat_count]. */
void golden_train_read(const struct golden_train *train, struct span flat, double *out);

#endif
