/* What the readers of the formats share. Inside datasets/ only. */
#ifndef TOWERSCOPE_DATASETS_FORMAT_H
#define TOWERSCOPE_DATASETS_FORMAT_H

#include "datasets/dataset.h"

/* Look in `folder` for the first of `names` (ends with NULL) that is there; its path in *path, to be freed.
 * STATUS_NOT_FOUND: none is. STATUS_IO with the true cause: one is there but is a broken link, or may not be
 * seen. */
enum status folder_find(const char *folder, const char *const *names, char **path);

/* For the sentence about a file that is not there: an entry of `folder` whose name holds both words, in any
 * case, as "; there is ..."; "" when there is none. Returns out. */
enum { NEAR_SIZE = 256 };
const char *folder_near(const char *folder, const char *word, const char *other, char out[NEAR_SIZE]);

/* The same for an entry that can be made into such a file: one that begins with `stem` and is packed, is a
 * picture, or was left by a writer that was ended. */
const char *folder_unready(const char *folder, const char *stem, char out[NEAR_SIZE]);

/* folder/name, to be freed; NULL when there is no memory. */
char *folder_path(const char *folder, const char *name);

/* Memory for `count` images: STATUS_NO_MEMORY says how much was asked for. */
enum status images_allocate(struct image_set *set, int64_t count, struct shape shape, const char *where);

/* Refuse a label that is not below `classes`: the file, the record (from 0), the value, the range. `whose`:
 * "label", "fine label". `hint` ends the sentence, "" for none. */
enum status labels_check(const char *path, const uint8_t *labels, int64_t count, int classes,
                         const char *whose, const char *hint);

/* Read class names, a line each; blank lines and CR are ignored. `expected` names are required, or any number
 * from 2 to 256 when it is 0. Sets classes and class_names. */
enum status names_read(struct dataset *data, const char *path, int expected);

/* Copy `count` names. */
enum status names_copy(struct dataset *data, const char *const *names, int count);

/* Add "warning: ..." to the notes; a note that finds no memory is lost. */
void note_add(struct dataset *data, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Warn of the files in `folder` that look like images or labels by their names and are none of `known` (ends
 * with NULL), the names that the format reads or has told of: a sixth batch would lie there unused, unseen.
 */
void note_unused(struct dataset *data, const char *folder, const char *const *known);

/* Run work(context, 0..count-1), on threads where there are processors for them. All are run; when some fail,
 * the status and sentence are those of the lowest. */
enum status parallel_run(int count, enum status (*work)(void *context, int index), void *context);

/* The formats. `present` looks for any file of the format (STATUS_OK, STATUS_NOT_FOUND, STATUS_IO); `read`
 * fills an empty data set. */
enum status idx_present(const char *folder);
enum status idx_read(const char *folder, struct dataset *data);
enum status cifar10_present(const char *folder);
enum status cifar10_read(const char *folder, struct dataset *data);
enum status cifar100_present(const char *folder);
enum status cifar100_read(const char *folder, struct dataset *data);
enum status generated_make(const struct dataset_options *options, struct dataset *data);

/* The names each format tries, for the message when none is there. */
#define IDX_NAMES                                                                                            \
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, "                             \
    "t10k-labels-idx1-ubyte (also with .idx, also with .gz, also test- for t10k-)"
#define CIFAR10_NAMES  "data_batch_1.bin to data_batch_5.bin, test_batch.bin"
#define CIFAR100_NAMES "train.bin, test.bin"

#endif
