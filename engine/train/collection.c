#include "engine/train/collection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int terms_of_a_tower(const struct model *model) {
    int count = 1;
    for (int i = 0; i < model->parameter_count; i++)
        count += model->parameters[i].has_decay;
    return count;
}

enum status collection_new(const struct model *model, int towers, struct collection *out) {
    int per_tower = terms_of_a_tower(model);
    struct term *terms = calloc((size_t)towers * (size_t)per_tower, sizeof *terms);
    if (!terms)
        return status_fail(STATUS_NO_MEMORY, "no memory for the loss terms of %d towers", towers);
    struct term *t = terms;
    for (int k = 0; k < towers; k++) {
        for (int i = 0; i < model->parameter_count; i++) {
            const struct model_parameter *p = &model->parameters[i];
            if (!p->has_decay)
                continue;
            snprintf(t->name, sizeof t->name, "tower_%d/%s/weight_loss", k, model->layers[p->layer].name);
            t->segment = i;
            t->tower = k;
            t++;
        }
        snprintf(t->name, sizeof t->name, "tower_%d/cross_entropy", k);
        t->segment = -1;
        t->tower = k;
        t++;
    }
    *out = (struct collection){terms, towers * per_tower, per_tower};
    return STATUS_OK;
}

void collection_free(struct collection *collection) {
    free(collection->terms);
    *collection = (struct collection){0};
}

void collection_fill(struct collection *collection, int tower, const struct segment *segments,
                     const double *norms2, double cross_entropy) {
    struct term *terms = collection->terms + (size_t)tower * (size_t)collection->per_tower;
    for (int i = 0; i < collection->per_tower; i++) {
        int s = terms[i].segment;
        terms[i].value = s < 0 ? cross_entropy : segments[s].weight_decay * norms2[s] / 2;
    }
}

int collection_select(const struct collection *collection, const char *scope, int *chosen) {
    size_t length = strlen(scope);
    int count = 0;
    for (int i = 0; i < collection->count; i++)
        if (!strncmp(collection->terms[i].name, scope, length))
            chosen[count++] = i;
    return count;
}

double collection_sum(const struct collection *collection, const int *chosen, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += collection->terms[chosen[i]].value;
    return sum;
}
