#include "engine/wire/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char METADATA[] = "__metadata__";

enum { LENGTH_BYTES = 8 };

static const struct {
    const char *name;
    int width;
} types[SAFETENSORS_TYPES] = {
    [SAFETENSORS_F64] = {"F64", 8},         [SAFETENSORS_F32] = {"F32", 4},
    [SAFETENSORS_I64] = {"I64", 8},         [SAFETENSORS_F16] = {"F16", 2},
    [SAFETENSORS_BF16] = {"BF16", 2},       [SAFETENSORS_F8_E5M2] = {"F8_E5M2", 1},
    [SAFETENSORS_F8_E4M3] = {"F8_E4M3", 1}, [SAFETENSORS_I32] = {"I32", 4},
    [SAFETENSORS_I16] = {"I16", 2},         [SAFETENSORS_I8] = {"I8", 1},
    [SAFETENSORS_U64] = {"U64", 8},         [SAFETENSORS_U32] = {"U32", 4},
    [SAFETENSORS_U16] = {"U16", 2},         [SAFETENSORS_U8] = {"U8", 1},
    [SAFETENSORS_BOOL] = {"BOOL", 1},
};

void safetensors_describe(const struct safetensors_tensor *tensor, char *text, size_t size) {
    snprintf(text, size, "%s [", types[tensor->type].name);
    for (int i = 0; i < tensor->dim_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%" PRId64, i ? ", " : "", tensor->dims[i]);
    }
    size_t used = strlen(text);
    snprintf(text + used, size - used, "]");
}

/* ---- writing */

static enum status no_memory(const char *path) {
    return status_fail(STATUS_NO_MEMORY, "%s: no memory for its header", path);
}

/* Length of the UTF-8 character at s, 0 when it is not one. */
static size_t utf8_length(const unsigned char *s) {
    uint32_t code;
    size_t length = s[0] < 0x80                   ? 1
                    : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                    : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
                    : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                                  : 0;
    if (length < 2)
        return length;
    code = s[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80) /* also the end of the text */
            return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    bool shortest = length == 2 || code >= (length == 3 ? 0x800u : 0x10000u);
    return shortest && code <= 0x10FFFF && !(code >= 0xD800 && code < 0xE000) ? length : 0;
}

char *safetensors_clean(const char *text) {
    static const char replacement[] = "\xEF\xBF\xBD";
    char *clean = malloc(3 * strlen(text) + 1), *to = clean;
    if (!clean)
        return NULL;
    for (const char *from = text; *from;) {
        size_t length = utf8_length((const unsigned char *)from);
        const char *piece = length ? from : replacement;
        size_t size = length ? length : sizeof replacement - 1;
        memcpy(to, piece, size);
        to += size;
        from += length ? length : 1;
    }
    *to = 0;
    return clean;
}

static json_t *json_words(const char *text) {
    char *clean = safetensors_clean(text);
    json_t *json = clean ? json_string(clean) : NULL;
    free(clean);
    return json;
}

static uint64_t value_bytes(const struct safetensors_tensor *tensor) {
    uint64_t bytes = (uint64_t)types[tensor->type].width;
    for (int i = 0; i < tensor->dim_count; i++)
        bytes *= (uint64_t)tensor->dims[i];
    return bytes;
}

static json_t *tensor_entry(const struct safetensors_tensor *tensor, uint64_t begin, uint64_t end) {
    json_t *shape = json_array();
    for (int i = 0; shape && i < tensor->dim_count; i++)
        if (json_array_append_new(shape, json_integer(tensor->dims[i])) != 0) {
            json_decref(shape);
            shape = NULL;
        }
    return shape ? json_pack("{s:s, s:o, s:[I, I]}", "dtype", types[tensor->type].name, "shape", shape,
                             "data_offsets", (json_int_t)begin, (json_int_t)end)
                 : NULL;
}

/* The header as text, padded so that the data begins at a multiple of eight; NULL: no memory. */
static char *header_text(const struct safetensors_word *words, int word_count,
                         const struct safetensors_tensor *tensors, int tensor_count, uint64_t *data_bytes) {
    json_t *root = json_object(), *metadata = json_object();
    bool good = json_object_set_new(root, METADATA, metadata) == 0; /* takes it even when there is no root */
    for (int i = 0; good && i < word_count; i++)
        good = json_object_set_new(metadata, words[i].key, json_words(words[i].value)) == 0;
    uint64_t at = 0;
    for (int i = 0; good && i < tensor_count; i++) {
        uint64_t end = at + value_bytes(&tensors[i]);
        good = json_object_set_new(root, tensors[i].name, tensor_entry(&tensors[i], at, end)) == 0;
        at = end;
    }
    *data_bytes = at;
    char *plain = good ? json_dumps(root, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(root);
    if (!plain)
        return NULL;
    size_t length = strlen(plain), padded = (length + 7) / 8 * 8;
    char *text = malloc(padded + 1);
    if (text) {
        memset(text, ' ', padded);
        memcpy(text, plain, length);
        text[padded] = 0;
    }
    free(plain);
    return text;
}

static bool write_all(int fd, const void *data, size_t bytes) {
    const char *from = data;
    while (bytes > 0) {
        ssize_t wrote = write(fd, from, bytes);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            if (wrote == 0)
                errno = ENOSPC;
            return false;
        }
        from += wrote;
        bytes -= (size_t)wrote;
    }
    return true;
}

static enum status cannot_write(const char *path, uint64_t bytes) {
    return status_fail(status_of_write(errno), "%s: can't write its %" PRIu64 " bytes: %s", path, bytes,
                       strerror(errno));
}

enum status safetensors_write(int fd, const char *path, const struct safetensors_word *words, int word_count,
                              const struct safetensors_tensor *tensors, int tensor_count, uint64_t *bytes) {
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are written as they lie in memory");
    uint64_t data_bytes;
    char *header = header_text(words, word_count, tensors, tensor_count, &data_bytes);
    if (!header)
        return no_memory(path);
    uint64_t length = strlen(header), total = LENGTH_BYTES + length + data_bytes;
    enum status status = STATUS_OK;
    if (length > SAFETENSORS_HEADER_MAX)
        status = status_fail(STATUS_BAD_INPUT,
                             "%s: its header would have %" PRIu64 " bytes; at most %d are read back", path,
                             length, SAFETENSORS_HEADER_MAX);
    else if (!write_all(fd, &length, sizeof length) || !write_all(fd, header, length))
        status = cannot_write(path, total);
    for (int i = 0; status == STATUS_OK && i < tensor_count; i++)
        if (!write_all(fd, tensors[i].data, value_bytes(&tensors[i])))
            status = cannot_write(path, total);
    free(header);
    if (bytes)
        *bytes = total;
    return status;
}

/* ---- reading */

static enum status bad(const struct safetensors *file, const char *tensor, const char *what) {
    return status_fail(STATUS_BAD_INPUT, "%s: the tensor \"%.200s\" %s", file->path, tensor, what);
}

static enum status read_metadata(struct safetensors *file, json_t *json) {
    if (!json_is_object(json))
        return status_fail(STATUS_BAD_INPUT, "%s: %s is no JSON object", file->path, METADATA);
    file->words = arena_array(&file->arena, json_object_size(json), sizeof *file->words);
    if (!file->words)
        return no_memory(file->path);
    const char *key;
    json_t *value;
    json_object_foreach(json, key, value) {
        if (!json_is_string(value))
            return status_fail(STATUS_BAD_INPUT, "%s: %s of %s is no text", file->path, key, METADATA);
        struct safetensors_word *word = &file->words[file->word_count++];
        word->key = arena_string(&file->arena, key);
        word->value = arena_string(&file->arena, json_string_value(value));
        if (!word->key || !word->value)
            return no_memory(file->path);
    }
    return STATUS_OK;
}

static bool not_negative(json_t *json, int64_t *out) {
    if (!json_is_integer(json) || json_integer_value(json) < 0)
        return false;
    *out = json_integer_value(json);
    return true;
}

/* Type and shape of a tensor, and the bytes that follow from them. */
static enum status read_shape(const struct safetensors *file, json_t *json,
                              struct safetensors_tensor *tensor) {
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    json_t *shape = json_object_get(json, "shape");
    if (!dtype)
        return bad(file, tensor->name, "has no dtype");
    int type = 0;
    while (type < SAFETENSORS_TYPES && strcmp(dtype, types[type].name) != 0)
        type++;
    if (type == SAFETENSORS_TYPES)
        return status_fail(STATUS_BAD_INPUT,
                           "%s: the tensor \"%.200s\" has the type \"%.32s\", which is not known", file->path,
                           tensor->name, dtype);
    tensor->type = (enum safetensors_type)type;
    if (!json_is_array(shape) || json_array_size(shape) > SAFETENSORS_DIMS_MAX)
        return bad(file, tensor->name, "has no shape of up to 8 numbers");
    tensor->dim_count = (int)json_array_size(shape);
    tensor->bytes = (uint64_t)types[type].width;
    for (int i = 0; i < tensor->dim_count; i++) {
        if (!not_negative(json_array_get(shape, (size_t)i), &tensor->dims[i]))
            return bad(file, tensor->name, "has a shape that is not of whole numbers from 0 up");
        if (__builtin_mul_overflow(tensor->bytes, (uint64_t)tensor->dims[i], &tensor->bytes))
            return bad(file, tensor->name, "has a shape of more bytes than can be counted");
    }
    return STATUS_OK;
}

static enum status read_tensor(const struct safetensors *file, json_t *json, uint64_t data_begin,
                               struct safetensors_tensor *tensor) {
    if (!json_is_object(json) || json_object_size(json) != 3)
        return bad(file, tensor->name, "is not described by dtype, shape and data_offsets alone");
    STATUS_TRY(read_shape(file, json, tensor));
    json_t *offsets = json_object_get(json, "data_offsets");
    int64_t begin, end;
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !not_negative(json_array_get(offsets, 0), &begin) || !not_negative(json_array_get(offsets, 1), &end))
        return bad(file, tensor->name, "has no data_offsets of two whole numbers from 0 up");
    uint64_t available = file->file_bytes - data_begin;
    char shape[256];
    safetensors_describe(tensor, shape, sizeof shape);
    if (begin > end || (uint64_t)end > available)
        return status_fail(STATUS_BAD_INPUT,
                           "%s: the tensor \"%.200s\" lies at %" PRId64 " to %" PRId64 " of %" PRIu64
                           " bytes of data: the file is damaged or cut short",
                           file->path, tensor->name, begin, end, available);
    if ((uint64_t)(end - begin) != tensor->bytes)
        return status_fail(STATUS_BAD_INPUT,
                           "%s: the tensor \"%.200s\" has %" PRId64 " bytes, %s needs %" PRIu64, file->path,
                           tensor->name, end - begin, shape, tensor->bytes);
    tensor->offset = data_begin + (uint64_t)begin;
    return STATUS_OK;
}

static int by_offset(const void *a, const void *b) {
    const struct safetensors_tensor *p = a, *q = b;
    if (p->offset != q->offset)
        return p->offset < q->offset ? -1 : 1;
    return p->bytes < q->bytes ? -1 : p->bytes > q->bytes; /* empty ones first */
}

static enum status check_cover(const struct safetensors *file, uint64_t data_begin) {
    uint64_t at = data_begin;
    for (int i = 0; i < file->tensor_count; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        if (tensor->offset < at)
            return bad(file, tensor->name, "overlaps the one before it");
        if (tensor->offset > at)
            return bad(file, tensor->name, "leaves a gap before it");
        at += tensor->bytes;
    }
    if (at != file->file_bytes)
        return status_fail(STATUS_BAD_INPUT,
                           "%s: %" PRIu64 " bytes follow the last tensor; none are expected", file->path,
                           file->file_bytes - at);
    return STATUS_OK;
}

static enum status read_entries(struct safetensors *file, json_t *root, uint64_t data_begin) {
    if (!json_is_object(root))
        return status_fail(STATUS_BAD_INPUT, "%s: its header is no JSON object", file->path);
    file->tensors = arena_array(&file->arena, json_object_size(root), sizeof *file->tensors);
    if (!file->tensors)
        return no_memory(file->path);
    const char *name;
    json_t *entry;
    json_object_foreach(root, name, entry) {
        if (strcmp(name, METADATA) == 0) {
            STATUS_TRY(read_metadata(file, entry));
            continue;
        }
        struct safetensors_tensor *tensor = &file->tensors[file->tensor_count];
        tensor->name = arena_string(&file->arena, name);
        if (!tensor->name)
            return no_memory(file->path);
        STATUS_TRY(read_tensor(file, entry, data_begin, tensor));
        file->tensor_count++;
    }
    if (file->tensor_count > 0)
        qsort(file->tensors, (size_t)file->tensor_count, sizeof *file->tensors, by_offset);
    return check_cover(file, data_begin);
}

static enum status read_at(const struct safetensors *file, uint64_t offset, void *out, uint64_t bytes) {
    char *to = out;
    while (bytes > 0) {
        ssize_t got = pread(file->fd, to, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return status_fail(STATUS_IO, "%s: %s", file->path, strerror(errno));
        if (got == 0)
            return status_fail(STATUS_BAD_INPUT, "%s: it became shorter while it was read", file->path);
        to += got;
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return STATUS_OK;
}

static enum status read_header(struct safetensors *file, uint64_t *length, char **text) {
    unsigned char bytes[LENGTH_BYTES];
    if (file->file_bytes < LENGTH_BYTES)
        return status_fail(STATUS_BAD_INPUT, "%s: %" PRIu64 " bytes are no safetensors file", file->path,
                           file->file_bytes);
    STATUS_TRY(read_at(file, 0, bytes, LENGTH_BYTES));
    *length = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        *length = *length << 8 | bytes[i];
    if (*length > SAFETENSORS_HEADER_MAX)
        return status_fail(STATUS_BAD_INPUT,
                           "%s: a header of %" PRIu64
                           " bytes; at most %d are read: is it a safetensors file?",
                           file->path, *length, SAFETENSORS_HEADER_MAX);
    if (*length > file->file_bytes - LENGTH_BYTES)
        return status_fail(STATUS_BAD_INPUT,
                           "%s: a header of %" PRIu64 " bytes in a file of %" PRIu64
                           ": it is damaged or cut short",
                           file->path, *length, file->file_bytes);
    *text = malloc(*length + 1);
    if (!*text)
        return no_memory(file->path);
    (*text)[*length] = 0;
    return read_at(file, LENGTH_BYTES, *text, *length);
}

static enum status open_file(int folder, const char *name, struct safetensors *file) {
    file->fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block */
    struct stat about;
    if (file->fd < 0 || fstat(file->fd, &about) != 0)
        return status_fail(errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s",
                           file->path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return status_fail(STATUS_BAD_INPUT, "%s: not a file", file->path);
    file->file_bytes = (uint64_t)about.st_size;
    return STATUS_OK;
}

enum status safetensors_open(const char *path, struct safetensors *out) {
    return safetensors_open_in(AT_FDCWD, path, path, out);
}

enum status safetensors_open_in(int folder, const char *name, const char *path, struct safetensors *out) {
    *out = (struct safetensors){.fd = -1, .path = strdup(path)};
    if (!out->path)
        return no_memory(path);
    STATUS_TRY(open_file(folder, name, out));
    uint64_t length = 0;
    char *text = NULL;
    enum status status = read_header(out, &length, &text);
    json_t *root = NULL;
    if (status == STATUS_OK) {
        json_error_t error;
        root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
        status = root ? read_entries(out, root, LENGTH_BYTES + length)
                      : status_fail(STATUS_BAD_INPUT, "%s: its header is no JSON: %.200s", path, error.text);
    }
    json_decref(root);
    free(text);
    return status;
}

void safetensors_close(struct safetensors *file) {
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    arena_free(&file->arena);
    *file = (struct safetensors){.fd = -1};
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name) {
    for (int i = 0; i < file->tensor_count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

const char *safetensors_word(const struct safetensors *file, const char *key) {
    for (int i = 0; i < file->word_count; i++)
        if (strcmp(file->words[i].key, key) == 0)
            return file->words[i].value;
    return NULL;
}

enum status safetensors_read(const struct safetensors *file, const struct safetensors_tensor *tensor,
                             void *out) {
    return read_at(file, tensor->offset, out, tensor->bytes);
}
