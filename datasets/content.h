/* A hash of what a data set holds, to tell whether a run goes on with the images it began with. Inside
 * datasets/ only; the value is in struct image_set. */
#ifndef TOWERSCOPE_DATASETS_CONTENT_H
#define TOWERSCOPE_DATASETS_CONTENT_H

#include "datasets/dataset.h"

/* Set set->content from its pixels and labels, on threads where there are processors for them. 0 when there
 * is no memory for it. It is the same on every machine. */
void content_hash(struct image_set *set);

#endif
