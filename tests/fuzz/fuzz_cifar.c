/* A CIFAR folder. The first byte chooses the file and how the rest is used: as the file's bytes, or as the
 * label bytes of whole records, which a fuzzer would seldom hit by itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/dataset.h"
#include "tests/fuzz/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORD = 3074, RECORDS = 40 };

static const char *const cifar10[7] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                       "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin",
                                       "batches.meta.txt"};
static const char *const cifar100[3] = {"train.bin", "test.bin", "fine_label_names.txt"};

/* Records with these label bytes, `label_bytes` a record. */
static size_t make_records(uint8_t *to, const uint8_t *labels, size_t count, size_t label_bytes) {
    size_t records = count / label_bytes < RECORDS ? count / label_bytes : RECORDS, size = label_bytes + 3072;
    for (size_t i = 0; i < records; i++) {
        memset(to + i * size, (int)i, size);
        memcpy(to + i * size, labels + i * label_bytes, label_bytes);
    }
    return records * size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t whole[RECORD * 2], records[RECORD * RECORDS];
    if (size == 0)
        return 0;
    int hundred = data[0] & 1, as_labels = data[0] & 2, chosen = data[0] >> 2;
    const char *const *names = hundred ? cifar100 : cifar10;
    int files = hundred ? 2 : 6;
    fuzz_clear();
    for (int i = 0; i < files; i++)
        fuzz_put(names[i], whole, hundred ? 3074 : 3073);
    size_t made = as_labels ? make_records(records, data + 1, size - 1, hundred ? 2 : 1) : 0;
    fuzz_put(names[chosen % (files + 1)], as_labels ? records : data + 1, as_labels ? made : size - 1);
    struct dataset *set;
    if (dataset_open(fuzz_folder(), NULL, &set) != STATUS_OK)
        return *status_text() ? 0 : (abort(), 0);
    for (int64_t i = 0; i < set->train.count; i++)
        if (set->train.labels[i] >= set->classes)
            abort();
    for (int i = 0; set->class_names && i < set->classes; i++)
        if (strpbrk(set->class_names[i], "\033\n\r"))
            abort();
    dataset_close(set);
    return 0;
}
