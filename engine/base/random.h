/* Counter-based random numbers: a value is a pure function of (seed, stream, counter), so nothing has a state
 * to save, and an image looks the same whichever tower or thread asks for it.
 *
 * Philox4x32 with ten rounds: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. */
#ifndef TOWERSCOPE_ENGINE_BASE_RANDOM_H
#define TOWERSCOPE_ENGINE_BASE_RANDOM_H

#include <stdint.h>

/* What a stream of numbers is for: streams of different purposes never meet. */
enum random_purpose {
    RANDOM_INITIAL_WEIGHTS = 1, /* index: number of the parameter tensor */
    RANDOM_SHUFFLE = 2,         /* index: epoch */
    RANDOM_DISTORT = 3,         /* index: epoch and sample, see datasets */
    RANDOM_GENERATED_DATA = 4,  /* index: image */
    RANDOM_TEST = 99
};

struct random_key {
    uint32_t k[2]; /* Philox key: from the seed and the purpose */
    uint32_t index[2];
};

/* A stream. seed: the run's; index: which stream of that purpose. */
struct random_key random_key(uint64_t seed, enum random_purpose purpose, uint64_t index);

/* Four 32-bit numbers: block `counter` of the stream. */
void random_block(const struct random_key *key, uint64_t counter, uint32_t out[4]);

/* A sequential reader over a stream; copy it to remember a place. */
struct random {
    struct random_key key;
    uint64_t counter;
    uint32_t block[4];
    int left;
};

/* The stream from its first number on. */
struct random random_begin(uint64_t seed, enum random_purpose purpose, uint64_t index);

/* All 32 bits uniform. */
uint32_t random_u32(struct random *r);
/* Uniform in [0, 1): 24 bits as float, 53 as double. */
float random_float(struct random *r);
double random_double(struct random *r);
/* Uniform in [0, n), without bias; n > 0. */
uint32_t random_below(struct random *r, uint32_t n);
/* Standard normal (Box-Muller). */
double random_normal(struct random *r);
/* Normal with |z| >= 2 drawn again (TensorFlow's truncated normal; deviation 0.8796). */
double random_truncated_normal(struct random *r);

#endif
