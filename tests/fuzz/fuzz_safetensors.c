/* The reader of safetensors files. The first byte says whether the rest is a whole file or a header's text,
 * to which the length and as many bytes of data as the second byte says are added: a fuzzer seldom hits a
 * length. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/wire/safetensors.h"
#include "tests/fuzz/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 17 };

static size_t make_file(uint8_t *to, const uint8_t *header, size_t length, size_t values) {
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)((uint64_t)length >> 8 * i);
    memcpy(to + 8, header, length);
    memset(to + 8 + length, 0x3f, values);
    return 8 + length + values;
}

/* Bytes of a value, by the name of its type: the number in it is that of the bits. */
static uint64_t width(const char *words) {
    const char *bits = strpbrk(words, "0123456789 ");
    return *bits == ' ' ? 1 : strtoull(bits, NULL, 10) / 8; /* BOOL has none */
}

/* What the reader promises of a file that it takes. */
static void check(const struct safetensors *file) {
    static uint8_t values[MOST];
    uint64_t last = 0;
    for (int i = 0; i < file->tensor_count; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        char words[64];
        uint64_t count = 1;
        safetensors_describe(tensor, words, sizeof words);
        for (int d = 0; d < tensor->dim_count; d++)
            count *= (uint64_t)tensor->dims[d];
        if (tensor->dim_count > SAFETENSORS_DIMS_MAX || tensor->offset < last ||
            tensor->offset + tensor->bytes > file->file_bytes || tensor->bytes != count * width(words))
            abort();
        last = tensor->offset + tensor->bytes;
        if (!safetensors_find(file, tensor->name))
            abort();
        if (tensor->bytes <= sizeof values && safetensors_read(file, tensor, values) != STATUS_OK)
            abort();
    }
    if (file->tensor_count > 0 && last != file->file_bytes)
        abort();
    for (int i = 0; i < file->word_count; i++)
        if (!file->words[i].value || !safetensors_word(file, file->words[i].key))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t made[MOST];
    if (size < 2 || size > MOST / 2)
        return 0;
    fuzz_clear();
    if (data[0] & 1)
        fuzz_put("file", data + 2, size - 2);
    else
        fuzz_put("file", made, make_file(made, data + 2, size - 2, (size_t)4 * data[1]));
    struct safetensors file;
    enum status status = safetensors_open(fuzz_path("file"), &file);
    if (status == STATUS_OK)
        check(&file);
    else if (!*status_text())
        abort();
    safetensors_close(&file);
    return 0;
}
