/* One of the four IDX files, or classes.txt, is what the fuzzer says (the first byte chooses), the others are
 * whole. */
#include <stdint.h>
#include <stdlib.h>

#include "datasets/dataset.h"
#include "tests/fuzz/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[5] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                     "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", "classes.txt"};
static const uint8_t images[16 + 3 * 4] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3};
static const uint8_t labels[8 + 3] = {0, 0, 8, 1, 0, 0, 0, 3, 0, 1, 9};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    int chosen = data[0] % 5;
    fuzz_clear();
    for (int i = 0; i < 4; i++)
        fuzz_put(names[i], i % 2 ? labels : images, i % 2 ? sizeof labels : sizeof images);
    fuzz_put(names[chosen], data + 1, size - 1);
    struct dataset *set;
    if (dataset_open(fuzz_folder(), NULL, &set) != STATUS_OK)
        return *status_text() ? 0 : (abort(), 0); /* a refusal has a sentence */
    for (int64_t i = 0; i < set->train.count; i++)
        if (set->train.labels[i] >= set->classes)
            abort();
    if (set->train.shape.h != set->test.shape.h || set->train.shape.w != set->test.shape.w)
        abort();
    dataset_close(set);
    return 0;
}
