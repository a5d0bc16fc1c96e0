/* A snapshot that was never trained: something different in every place, of a small model. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_CHECKPOINT_MADE_H
#define TOWERSCOPE_TESTS_SUPPORT_CHECKPOINT_MADE_H

#include "engine/train/checkpoint.h"

enum { CHECKPOINT_MADE_STEP = 37 };

struct checkpoint_made {
    struct snapshot snapshot;
    struct model *model;
    float *arrays[3];
};

/* The model "small", and it for images of 8 x 8 x 2; to be freed. */
extern const char checkpoint_model_text[];
struct model *checkpoint_model(int classes);

/* With or without momentum and a moving average. */
struct checkpoint_made checkpoint_make(uint64_t seed, bool velocity, bool average);
void checkpoint_unmake(struct checkpoint_made *made);

/* Write a snapshot to the file `path`, as checkpoint_save() writes its files; *bytes (may be NULL) of it. */
enum status checkpoint_made_write(const char *path, const struct snapshot *snapshot, uint64_t *bytes);

#endif
