#include "engine/base/hash.h"

#include <endian.h>
#include <string.h>

enum { LANES = 8, STRIPE = LANES * 8 };

/* Odd, with bits all over; each step below can be undone, so that no difference of two blocks is lost on the
 * way. */
static const uint64_t FACTOR = UINT64_C(0x9e3779b97f4a7c15);

uint64_t hash_step(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * FACTOR;
    return hash ^ hash >> 32;
}

static uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return le64toh(word);
}

/* Eight sums side by side: a processor works at them at once. */
uint64_t hash_bytes(const void *from, size_t size) {
    const uint8_t *bytes = from;
    uint64_t lanes[LANES], hash = size;
    uint8_t rest[STRIPE] = {0};
    size_t done = 0;
    for (int i = 0; i < LANES; i++)
        lanes[i] = (uint64_t)i + 1;
    for (; done + STRIPE <= size; done += STRIPE)
        for (int i = 0; i < LANES; i++)
            lanes[i] = hash_step(lanes[i], word_at(bytes + done + 8 * i));
    if (size > done)
        memcpy(rest, bytes + done, size - done);
    for (int i = 0; i < LANES; i++)
        hash = hash_step(hash, hash_step(lanes[i], word_at(rest + 8 * i)));
    return hash;
}
