#include "datasets/content.h"

#include <stdlib.h>

#include "datasets/format.h"
#include "engine/base/hash.h"

/* Blocks are hashed apart, on threads, and their hashes hashed in order. */
enum { BLOCK = 4 << 20 };

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
    uint64_t hash = hash_step(hash_bytes(set->labels, (size_t)set->count), (uint64_t)set->count);
    for (size_t i = 0; i < blocks; i++)
        hash = hash_step(hash, h.hashes[i]);
    free(h.hashes);
    set->content = hash ? hash : 1;
}
