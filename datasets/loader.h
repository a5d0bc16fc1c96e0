/* Batches in order: who makes their pictures is a choice. On a device with processors of its own, threads of
 * the loader distort the next steps' images while the towers compute. Where the towers compute on the same
 * processors a thread more would only take one away from a worker in mid-operation, while all others wait for
 * that worker: there the loader has no thread, and the caller's workers make the pictures of a step before
 * it.
 *
 * Batches come in order: batch i of the epoch holds the images order[position .. position+images). An epoch
 * ends with a short batch, so that every image is used once. */
#ifndef TOWERSCOPE_DATASETS_LOADER_H
#define TOWERSCOPE_DATASETS_LOADER_H

#include "datasets/dataset.h"

struct loader;

struct loader_options {
    uint64_t seed;
    int size; /* side of the square the network sees */
    unsigned distortions;
    int threads; /* 0: none, the caller makes the pictures by loader_make */
    int ahead;   /* batches that threads keep ready, at least 1 */
};

/* Where the next batch begins. */
struct loader_place {
    int64_t epoch;    /* from 0 */
    int64_t position; /* images of the epoch already used: 0 <= position < set's count */
};

struct batch {
    struct loader_place place; /* of its first image */
    int64_t images;
    float *pixels;    /* [images][size][size][c]; 64-byte aligned; see loader_make */
    int32_t *labels;  /* [images] */
    int64_t *samples; /* [images] index in the set */
};

/* The set must outlive the loader. batch: images of a full batch (>= 1). */
enum status loader_open(const struct image_set *set, const struct loader_options *options,
                        struct loader_place place, int64_t batch, struct loader **out);
void loader_close(struct loader *loader);

/* The next batch; valid until the next call of loader_next or loader_close. No allocation. Waits only when
 * the threads are behind: seconds waited in *waited (may be NULL). */
enum status loader_next(struct loader *loader, const struct batch **out, double *waited);

/* Make the pictures first .. first + images - 1 of the batch that loader_next gave. Needed for each picture
 * that is looked at where the loader has no threads; to be called from any thread, and by many at once for
 * different pictures. What a picture shows depends on seed, epoch and sample alone. */
void loader_make(const struct loader *loader, const struct batch *batch, int64_t first, int64_t images);

/* One of these pictures into memory of the caller's, [size][size][c]. */
void loader_picture(const struct loader *loader, const struct batch *batch, int64_t image, float *out);

/* Go on from another place or with another batch size; what was made ahead and does not fit is dropped.
 * Allocates when the batch grows. */
enum status loader_seek(struct loader *loader, struct loader_place place, int64_t batch);

/* The place after a batch. */
struct loader_place loader_after(const struct image_set *set, const struct batch *batch);

#endif
