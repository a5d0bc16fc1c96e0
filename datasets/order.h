/* The order of an epoch: a permutation keyed by (seed, epoch), the same on every machine. */
#ifndef TOWERSCOPE_DATASETS_ORDER_H
#define TOWERSCOPE_DATASETS_ORDER_H

#include <stdint.h>

/* Fill order[0..count-1] with the permutation of 0..count-1 of this epoch (Fisher-Yates over a keyed stream).
 */
void order_epoch(uint64_t seed, int64_t epoch, int64_t count, uint32_t *order);

/* Shard k of n towers of a batch of `images`: contiguous, the first (images mod n) shards hold one more.
 * Returns its size (may be 0) and its first image in *first. */
int64_t order_shard(int64_t images, int towers, int tower, int64_t *first);

#endif
