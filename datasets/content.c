#include "datasets/content.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/format.h"

/* Blocks are hashed apart, on threads, and their hashes hashed in order. */
enum { BLOCK = 4 << 20, LANES = 8, STRIPE = LANES * 8 };

/* Odd, with bits all over; each step below can be undone, so that no difference of two blocks is lost on the
 * way. */
static const uint64_t FACTOR = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t step(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * FACTOR;
    return hash ^ hash >> 32;
}

static uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return le64toh(word);
}

/* Eight sums side by side: a processor works at them at once. */
static uint64_t hash_bytes(const uint8_t *bytes, size_t size) {
    uint64_t lanes[LANES], hash = size;
    uint8_t rest[STRIPE] = {0};
    size_t done = 0;
    for (int i = 0; i < LANES; i++)
        lanes[i] = (uint64_t)i + 1;
    for (; done + STRIPE <= size; done += STRIPE)
        for (int i = 0; i < LANES; i++)
            lanes[i] = step(lanes[i], word_at(bytes + done + 8 * i));
    if (size > done)
        memcpy(rest, bytes + done, size - done);
    for (int i = 0; i < LANES; i++)
        hash = step(hash, step(lanes[i], word_at(rest + 8 * i)));
    return hash;
}

struct hashing {
    const struct image_set *set;
    size_t bytes; /* of the pixels */
    uint64_t *hashes;
};

static enum status hash_block(void *context, int index) {
    const struct hashing *h = context;
    size_t first = (size_t)index * BLOCK, left = h->bytes - first;
    h->hashes[index] = hash_bytes(h->set->pixels + first, left < BLOCK ? left : BLOCK);
    return STATUS_OK;
}

void content_hash(struct image_set *set) {
    struct hashing h = {.set = set, .bytes = shape_size(set->shape) * (size_t)set->count};
    size_t blocks = (h.bytes + BLOCK - 1) / BLOCK;
    set->content = 0;
    h.hashes = calloc(blocks ? blocks : 1, sizeof *h.hashes);
    if (!h.hashes)
        return;
    (void)parallel_run((int)blocks, hash_block, &h);
    uint64_t hash = step(hash_bytes(set->labels, (size_t)set->count), (uint64_t)set->count);
    for (size_t i = 0; i < blocks; i++)
        hash = step(hash, h.hashes[i]);
    free(h.hashes);
    set->content = hash ? hash : 1;
}
