#include "engine/train/noise.h"

#include <math.h>

static const double keep = 0.99;

void noise_update(struct noise_scale *noise, double towers_norm2, double average_norm2, int64_t images,
                  int active_towers) {
    if (active_towers < 2 || !isfinite(towers_norm2) || !isfinite(average_norm2))
        return;
    double large = (double)images, small = large / active_towers;
    double gradient2 = (large * average_norm2 - small * towers_norm2) / (large - small);
    double spread = (towers_norm2 - average_norm2) / (1 / small - 1 / large);
    noise->gradient2 = keep * noise->gradient2 + (1 - keep) * gradient2;
    noise->spread = keep * noise->spread + (1 - keep) * spread;
}

double noise_value(const struct noise_scale *noise) {
    if (!(noise->gradient2 > 0) || !(noise->spread > 0))
        return -1;
    return noise->spread / noise->gradient2;
}
