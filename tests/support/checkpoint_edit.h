/* A safetensors file taken apart, to be put together otherwise. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_CHECKPOINT_EDIT_H
#define TOWERSCOPE_TESTS_SUPPORT_CHECKPOINT_EDIT_H

#include "engine/wire/safetensors.h"

enum { EDIT_TENSORS = 256, EDIT_WORDS = 16 };

struct checkpoint_edit {
    struct safetensors file;
    struct safetensors_tensor tensors[EDIT_TENSORS];
    struct safetensors_word words[EDIT_WORDS];
    void *values[EDIT_TENSORS]; /* all that were read, to be freed */
    int tensor_count, word_count, value_count;
};

/* Read all of a good file; fails the test when it can't. */
void edit_open(struct checkpoint_edit *edit, const char *path);
void edit_close(struct checkpoint_edit *edit);

/* The tensor of that name, and its values to be changed; fails the test when there is none. */
struct safetensors_tensor *edit_tensor(struct checkpoint_edit *edit, const char *name);
void *edit_values(struct checkpoint_edit *edit, const char *name);

void edit_drop(struct checkpoint_edit *edit, const char *name);
void edit_rename(struct checkpoint_edit *edit, const char *name, const char *now);
void edit_add(struct checkpoint_edit *edit, struct safetensors_tensor tensor);

/* Change a word of the metadata; NULL: take it out. */
void edit_word(struct checkpoint_edit *edit, const char *key, const char *value);

/* Write what there is now over a file. */
void edit_write(const struct checkpoint_edit *edit, const char *path);

#endif
