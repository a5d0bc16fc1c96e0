/* What depends on how far a run is: learning rate, decay of the moving average, which steps are recorded.
 * All are functions of counts, never of time. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_SCHEDULE_H
#define TOWERSCOPE_ENGINE_TRAIN_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* rate = base * decay ^ (periods passed - periods passed when base was set). A period is a number of images
 * (decay_epochs * images of an epoch), not of steps: the batch and the towers leave the schedule where it is.
 * In a run that went back, fewer periods may have passed than when base was set: then the rate is base. */
struct schedule {
    double base, decay;
    double period_images;
    int64_t start; /* periods that had passed when base was set */
};

/* A period of that many epochs of `images`, in whole images and at least one: 1.1 * 50,000 is more than
 * 55,000 by a rounding error, and the rate would fall a step late. */
double schedule_period(double epochs, int64_t images);

/* Learning rate of the step before which `images` images were used. */
double schedule_rate(const struct schedule *schedule, int64_t images);

/* From now on (images used so far) the rate is `rate`; it falls at the moments it would have fallen at. */
void schedule_set(struct schedule *schedule, double rate, int64_t images);

/* Images that are used until the rate falls next. */
double schedule_until_fall(const struct schedule *schedule, int64_t images);

/* Decay of the moving average at the update before which `updates` were done:
 * min(limit, (1 + updates) / (10 + updates)). */
double average_decay(double limit, int64_t updates);

/* Whether step `step` is one that is recorded by count alone: each up to 1,000, then every k-th,
 * k = ceil(planned / 20,000); planned < 0: no end is planned, k = 50. every > 0: each `every`-th instead. */
bool recorded_by_count(int64_t step, int64_t planned, int64_t every);

/* Whether the layers are told with step `step` by count alone: with the first, and then each LAYERS_EVERY-th.
 */
bool layers_by_count(int64_t step);

#endif
