/* Labelled images, held in memory as bytes, and the way they become a step's input.
 *
 * A data set is recognised by its content, never by its file's name; every label is checked when it is read.
 */
#ifndef TOWERSCOPE_DATASETS_DATASET_H
#define TOWERSCOPE_DATASETS_DATASET_H

#include <stdint.h>

#include "kernels/status.h"
#include "kernels/tensor.h"

struct image_set {
    int64_t count;
    struct shape shape; /* 32x32x3, 28x28x1, ... */
    uint8_t *pixels;    /* [count][h][w][c] */
    uint8_t *labels;    /* [count] */
    uint64_t content;   /* hash of both; 0: not known */
};

struct dataset {
    char name[64];   /* "fashion-mnist", "generated", or the folder's name */
    char format[32]; /* "cifar-10 binary", "cifar-100 binary", "idx", "generated" */
    int classes;
    char **class_names; /* [classes], or NULL */
    struct image_set train, test;
    char *notes; /* what reading warns of: lines that begin with "warning: ", or "" */
};

struct dataset_options {
    uint64_t seed;                           /* of the generated set */
    int64_t generated_train, generated_test; /* 0: 10,000 and 2,000 */
};

/* Open `name`: "generated", "fashion-mnist" (where Debian's package puts it), or a folder or file. NULL: the
 * best there is (fashion-mnist, else generated). options may be NULL. Everything is checked: sizes, magic
 * numbers, counts, label ranges, that train and test fit together. STATUS_NOT_FOUND, STATUS_BAD_INPUT,
 * STATUS_IO, STATUS_NO_MEMORY. Close with dataset_close (NULL is fine). */
enum status dataset_open(const char *name, const struct dataset_options *options, struct dataset **out);
void dataset_close(struct dataset *data);

/* Call visit for each named data set the program knows, found or not. */
void dataset_visit(void (*visit)(void *context, const char *name, bool found, const char *where),
                   void *context);

/* Write the images as CIFAR-10 binary files (data_batch_1..5.bin, test_batch.bin, batches.meta.txt) into a
 * new or empty folder. Needs 32x32x3 and at most 256 classes. */
enum status dataset_write_cifar10(const struct dataset *data, const char *folder);

#endif
