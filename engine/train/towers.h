/* The towers: memory and plans of each replica's shard. Made again when their number or the batch changes. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_TOWERS_H
#define TOWERSCOPE_ENGINE_TRAIN_TOWERS_H

#include "engine/train/collection.h"
#include "engine/train/nets.h"

/* Sizes that a step may have: full, the short end of this epoch, that of the epochs after it. */
#define TOWERS_BATCHES 3

struct tower {
    struct net_memory memory;
    int64_t first, images;                /* this step's shard; images 0: idle */
    struct net *net;                      /* the one for that shard; NULL when idle */
    double cross_entropy;                 /* mean over its images; NaN when idle */
    double total;                         /* sum of the terms its scope selects */
    double load, forward, backward, done; /* seconds; done: on the clock */
    double laps[3]; /* seconds by an asynchronous device's clock, of the last step that was timed: load,
                       forward with losses, backward; NaN: none was */
};

struct towers {
    struct device_handle device;
    int count;
    int workers;                                       /* that run them at once */
    int lanes;                                         /* of each tower's nets, at most */
    size_t arena_bytes, gradient_bytes, scratch_bytes; /* of one tower, one tower, one worker */
    size_t prepared_bytes; /* what their plans derive from the shared parameters */
    struct tower *tower;   /* [count] */
    struct span *scratch;  /* [workers] */
    struct collection collection;
    int *chosen;            /* [collection.count]: what each tower's scope selects, per_tower each */
    struct span *gradients; /* [count] the arguments and results of combine */
    double *weights, *norms2, *dots;
    double *losses;                     /* [count] total loss; of towers with images */
    double *rule_weights, *rule_norms2; /* [count] of a wrong rule: in force, or looked at */
    int64_t *zeros;  /* [count][layers]: zero activations, on steps where they are counted */
    int64_t *values; /* [count][layers]: of how many */
};

/* Sizes of towers that are planned and not yet there. */
struct towers_need {
    int count, workers, lanes;
    size_t arena_bytes, gradient_bytes, scratch_bytes;
    size_t bytes; /* of all of them */
    size_t prepared_bytes;
    int sizes[2 * TOWERS_BATCHES], size_count; /* shard sizes */
};

/* Plan the shards of `count` towers for steps of each of batches[batch_count] images (0: no such step).
 * Nothing is allocated but plans, which are the cache's. Errors are those of net_plan(). */
enum status towers_plan(struct nets *nets, int count, const int64_t *batches, int batch_count,
                        struct towers_need *need);

/* Whether towers that are there serve the need as they are. */
bool towers_serve(const struct towers *towers, const struct towers_need *need);

/* Told of each tower that is there; false: give it up. */
typedef bool towers_making(void *context, int made, int of);

/* Allocate, and touch all of it: nothing is allocated inside a step, so that many towers may take long.
 * making: NULL: nobody is told. STATUS_NO_MEMORY names the bytes, STATUS_INTERRUPTED: given up; nothing is
 * left behind then. Free with towers_free(); NULL is fine. */
enum status towers_new(const struct nets *nets, const struct towers_need *need, towers_making *making,
                       void *context, struct towers **out);
void towers_free(struct towers *towers);

/* Cut a step of `images` images into shards, whose plans are in the cache already (STATUS_INTERNAL: one is
 * not). Sets the weights too. */
enum status towers_shard(struct towers *towers, const struct nets *nets, int64_t images);

#endif
