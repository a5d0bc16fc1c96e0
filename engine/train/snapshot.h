/* All of a run that a checkpoint holds: what it takes to go on with the same bytes. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_SNAPSHOT_H
#define TOWERSCOPE_ENGINE_TRAIN_SNAPSHOT_H

#include "datasets/loader.h"
#include "engine/model/model.h"
#include "engine/train/noise.h"
#include "engine/train/running.h"
#include "engine/train/schedule.h"
#include "engine/train/settings.h"

/* How far a run is. */
struct progress {
    int64_t steps, images;     /* updates done; images they used */
    struct loader_place place; /* of the next image */
};

struct snapshot {
    struct progress progress;
    struct schedule schedule;
    struct noise_scale noise;
    struct running running;
    struct settings settings; /* as they are now: after `set` and `towers` */
    const struct model *model;
    int64_t epoch_images;                 /* of the training set: a run goes on with the same */
    uint64_t train_content, test_content; /* hashes of the images; 0: not known */
    double precision;                     /* of an evaluation at this very step; NaN: there was none */
    const char *applied;                  /* name of a wrong rule in force (rules.h), or NULL */
    double best; /* the highest precision of an evaluation that was due; -1: there was none */
    /* Flat, model->flat_count floats each. velocity NULL: no momentum; average NULL: no moving average. */
    const float *parameters, *velocity, *average;
};

#endif
