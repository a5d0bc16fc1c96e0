#include "engine/base/random.h"

#include <math.h>

static void philox_round(uint32_t x[4], const uint32_t k[2]) {
    uint64_t a = (uint64_t)0xD2511F53u * x[0];
    uint64_t b = (uint64_t)0xCD9E8D57u * x[2];
    uint32_t y[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ k[1],
                     (uint32_t)a};
    for (int i = 0; i < 4; i++)
        x[i] = y[i];
}

struct random_key random_key(uint64_t seed, enum random_purpose purpose, uint64_t index) {
    /* The purpose is mixed into the key, so that equal seeds give unrelated streams for each purpose. */
    uint64_t mixed = seed + 0x9E3779B97F4A7C15u * (uint64_t)purpose;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    mixed ^= mixed >> 31;
    return (struct random_key){{(uint32_t)mixed, (uint32_t)(mixed >> 32)},
                               {(uint32_t)index, (uint32_t)(index >> 32)}};
}

void random_block(const struct random_key *key, uint64_t counter, uint32_t out[4]) {
    uint32_t k[2] = {key->k[0], key->k[1]};
    out[0] = (uint32_t)counter;
    out[1] = (uint32_t)(counter >> 32);
    out[2] = key->index[0];
    out[3] = key->index[1];
    for (int round = 0; round < 10; round++) {
        philox_round(out, k);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
}

struct random random_begin(uint64_t seed, enum random_purpose purpose, uint64_t index) {
    return (struct random){.key = random_key(seed, purpose, index)};
}

uint32_t random_u32(struct random *r) {
    if (r->left == 0) {
        random_block(&r->key, r->counter++, r->block);
        r->left = 4;
    }
    return r->block[4 - r->left--];
}

float random_float(struct random *r) {
    return (float)(random_u32(r) >> 8) * 0x1p-24f;
}

double random_double(struct random *r) {
    uint64_t high = random_u32(r) >> 5, low = random_u32(r) >> 6;
    return (double)(high << 26 | low) * 0x1p-53;
}

uint32_t random_below(struct random *r, uint32_t n) {
    uint32_t threshold = (uint32_t)-n % n; /* numbers below it would make the small results more likely */
    for (;;) {
        uint64_t product = (uint64_t)random_u32(r) * n;
        if ((uint32_t)product >= threshold)
            return (uint32_t)(product >> 32);
    }
}

double random_normal(struct random *r) {
    double u = 1.0 - random_double(r); /* (0, 1]: its logarithm is finite */
    double v = random_double(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586477 * v);
}

double random_truncated_normal(struct random *r) {
    for (;;) {
        double z = random_normal(r);
        if (fabs(z) < 2.0)
            return z;
    }
}
