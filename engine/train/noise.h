/* The gradient noise scale: about the batch above which a larger one no longer pays.
 *
 * Estimator of McCandlish, Kaplan, Amodei et al., "An Empirical Model of Large-Batch Training" (2018),
 * appendix A.1. A gradient over B images has E|g_B|^2 = |G|^2 + S / B, with G the true gradient and S the
 * trace of the covariance of one image's gradient. From two batch sizes b < B:
 *
 *   |G|^2 = (B |g_B|^2 - b |g_b|^2) / (B - b)        S = (|g_b|^2 - |g_B|^2) / (1/b - 1/B)
 *
 * and the noise scale is S / |G|^2. Here B is the step's batch and the small ones are the towers' shards: the
 * mean of the towers' |g_k|^2, weighted by their share of the images, has b = B / (towers with images),
 * however uneven the shards are. Both estimates scatter; each is smoothed apart, and only then divided. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_NOISE_H
#define TOWERSCOPE_ENGINE_TRAIN_NOISE_H

#include <stdint.h>

struct noise_scale {          /* all zero: nothing seen yet */
    double gradient2, spread; /* smoothed |G|^2 and S; both start at 0, which cancels in the quotient */
};

/* One step: the weighted mean of the towers' squared norms, the squared norm of the average, the images, and
 * how many towers had some. Nothing is learned from one tower or from norms that are not finite. */
void noise_update(struct noise_scale *noise, double towers_norm2, double average_norm2, int64_t images,
                  int active_towers);

/* The noise scale in images; a negative number while it is not known: no step with two towers yet, or an
 * estimate of |G|^2 or S that is not positive. */
double noise_value(const struct noise_scale *noise);

#endif
