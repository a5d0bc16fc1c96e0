/* The step's one ordered collection of losses.
 *
 * Every tower adds its terms to the same collection, each under its own scope: tower_0/local3/weight_loss,
 * tower_0/local4/weight_loss, tower_0/cross_entropy, tower_1/... . What a tower minimises is the sum of the
 * terms that its scope selects: without the scope, tower k would sum the terms of every tower built before
 * it. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_COLLECTION_H
#define TOWERSCOPE_ENGINE_TRAIN_COLLECTION_H

#include "engine/model/model.h"

#define TERM_NAME_MAX (MODEL_NAME_MAX + 48)

struct term {
    char name[TERM_NAME_MAX]; /* with its scope */
    double value;
    int segment; /* the parameter of a decay term; -1: the cross-entropy */
    int tower;
};

struct collection {
    /* Tower by tower: decay terms first, in the order of the layers, then the cross-entropy. */
    struct term *terms;
    int count, per_tower;
};

/* The terms of `towers` towers of a model; every value 0. Free with collection_free (an empty one is fine).
 */
enum status collection_new(const struct model *model, int towers, struct collection *out);
void collection_free(struct collection *collection);

/* Put this step's values of one tower in: its decay terms are segments[i].weight_decay * norms2[i] / 2. */
void collection_fill(struct collection *collection, int tower, const struct segment *segments,
                     const double *norms2, double cross_entropy);

/* The terms whose names begin with `scope` ("tower_0/"; "" selects all): their indices into chosen[count of
 * the collection], in order. Returns how many. */
int collection_select(const struct collection *collection, const char *scope, int *chosen);

/* Sum of the chosen terms, in order. */
double collection_sum(const struct collection *collection, const int *chosen, int count);

#endif
