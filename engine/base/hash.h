/* A hash of 64 bits that shows whether bytes are those of before. It is no secret and keeps nobody from
 * forging. */
#ifndef TOWERSCOPE_ENGINE_BASE_HASH_H
#define TOWERSCOPE_ENGINE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Of `size` bytes; the same on every machine. */
uint64_t hash_bytes(const void *bytes, size_t size);

/* A hash that goes on with one more word. */
uint64_t hash_step(uint64_t hash, uint64_t word);

#endif
