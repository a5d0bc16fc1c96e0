/* The safetensors file format: eight bytes with the length of a JSON header (little-endian), the header, the
 * tensors' bytes one after the other. The header names each tensor with its type, shape and place;
 * "__metadata__" holds words. https://github.com/huggingface/safetensors#format
 *
 * Nothing of a file is believed: every number is checked against the file's size and against the others
 * before memory is asked for, places must cover the data without gaps or overlaps, and nothing may follow the
 * last tensor. */
#ifndef TOWERSCOPE_ENGINE_WIRE_SAFETENSORS_H
#define TOWERSCOPE_ENGINE_WIRE_SAFETENSORS_H

#include "engine/base/arena.h"
#include "kernels/status.h"

#include <stdint.h>

#define SAFETENSORS_HEADER_MAX (1024 * 1024) /* bytes; the reference library stops at 100 MB */
#define SAFETENSORS_DIMS_MAX   8

/* Types by their names in the header; the values of F64, F32 and I64 can be read and written here. */
enum safetensors_type {
    SAFETENSORS_F64,
    SAFETENSORS_F32,
    SAFETENSORS_I64,
    SAFETENSORS_F16,
    SAFETENSORS_BF16,
    SAFETENSORS_F8_E5M2,
    SAFETENSORS_F8_E4M3,
    SAFETENSORS_I32,
    SAFETENSORS_I16,
    SAFETENSORS_I8,
    SAFETENSORS_U64,
    SAFETENSORS_U32,
    SAFETENSORS_U16,
    SAFETENSORS_U8,
    SAFETENSORS_BOOL,
    SAFETENSORS_TYPES
};

struct safetensors_tensor {
    const char *name;
    enum safetensors_type type;
    int64_t dims[SAFETENSORS_DIMS_MAX]; /* the slowest index first */
    int dim_count;                      /* 0: a single value */
    const void *data;                   /* writing: its values; reading: NULL */
    uint64_t offset, bytes;             /* reading: of its values in the file */
};

struct safetensors_word {
    const char *key, *value;
};

/* ---- writing */

/* A text as a word of a file holds it: bytes that are not UTF-8 become U+FFFD. The caller's, by free(); NULL:
 * no memory. */
char *safetensors_clean(const char *text);

/* Write a whole file from where `fd` stands; `path` is for messages. The tensors' offset and bytes are not
 * read. Bytes of a word that are not UTF-8 become U+FFFD. *bytes (may be NULL): of the file.
 * STATUS_BAD_INPUT: the header would be longer than SAFETENSORS_HEADER_MAX; STATUS_IO, STATUS_NO_SPACE: what
 * the system said, with the bytes wanted. */
enum status safetensors_write(int fd, const char *path, const struct safetensors_word *words, int word_count,
                              const struct safetensors_tensor *tensors, int tensor_count, uint64_t *bytes);

/* ---- reading */

struct safetensors {
    char *path;
    int fd;
    struct arena arena;
    uint64_t file_bytes;
    struct safetensors_word *words; /* of "__metadata__" */
    int word_count;
    struct safetensors_tensor *tensors; /* in the order of their data */
    int tensor_count;
};

/* Open a file and check its header; the values stay in the file. STATUS_BAD_INPUT says what is wrong with
 * which tensor; STATUS_NOT_FOUND, STATUS_IO, STATUS_NO_MEMORY. Close with safetensors_close(), also after a
 * failure. */
enum status safetensors_open(const char *path, struct safetensors *out);

/* The same for a file called `name` in a folder that is held by its descriptor; `path` is for sentences. */
enum status safetensors_open_in(int folder, const char *name, const char *path, struct safetensors *out);
void safetensors_close(struct safetensors *file);

/* The tensor or word of that name, or NULL. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name);
const char *safetensors_word(const struct safetensors *file, const char *key);

/* The values of a tensor of the file into out[tensor->bytes]. */
enum status safetensors_read(const struct safetensors *file, const struct safetensors_tensor *tensor,
                             void *out);

/* "F32 [5, 5, 3, 64]" into text. */
void safetensors_describe(const struct safetensors_tensor *tensor, char *text, size_t size);

#endif
