/* From bytes to the network's input: crop, flip, brightness, contrast, standardise ("Numbers" in
 * ARCHITECTURE.md). What happens to an image is keyed by (seed, epoch, sample), never by tower or thread. */
#ifndef TOWERSCOPE_DATASETS_DISTORT_H
#define TOWERSCOPE_DATASETS_DISTORT_H

#include "datasets/dataset.h"

enum distortion { DISTORT_CROP = 1, DISTORT_FLIP = 2, DISTORT_BRIGHTNESS = 4, DISTORT_CONTRAST = 8 };

/* "on" (all four), "off" (0), or a comma list of crop, flip, brightness, contrast. STATUS_BAD_INPUT names the
 * word that is none of them. */
enum status distort_parse(const char *text, unsigned *distortions);
/* The same as text, into out[64]. */
void distort_format(unsigned distortions, char out[64]);

/* What all training images of a run have in common. */
struct distort_options {
    uint64_t seed;
    int size;             /* of the square that is cut out: <= both sides of the image */
    unsigned distortions; /* enum distortion, or-ed; without DISTORT_CROP the centre is cut out */
};

/* One training image, float32 [size][size][c], standardised. sample: its index in the set. */
void distort_training(const struct image_set *set, const struct distort_options *options, int64_t sample,
                      int64_t epoch, float *out);

/* One evaluation image: the central crop, standardised. */
void distort_evaluation(const struct image_set *set, int64_t sample, int size, float *out);

/* What distort_training drew for a sample, for logs and tests. */
struct distortion_draw {
    int top, left;
    bool flip;
    float brightness, contrast; /* added; factor. 0 and 1 when off */
};
struct distortion_draw distort_draw(const struct image_set *set, const struct distort_options *options,
                                    int64_t sample, int64_t epoch);

#endif
