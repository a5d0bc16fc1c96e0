/* Runs a fuzz target over files, without a fuzzer: fuzz_NAME FILE... Each file is tried whole, cut at several
 * places, and with single bytes changed, so that a seed corpus is worth more than its files. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20, CHANGES = 64, CUTS = 32 };

static void try_around(uint8_t *data, size_t size) {
    LLVMFuzzerTestOneInput(data, size);
    for (size_t i = 0; i < CUTS; i++)
        LLVMFuzzerTestOneInput(data, size * i / CUTS);
    uint32_t state = 12345;
    for (int i = 0; size > 0 && i < CHANGES; i++) {
        state = state * 1664525u + 1013904223u;
        /* half of them in the first bytes, where headers are */
        size_t at = (state >> 8) % (i % 2 && size > 64 ? 64 : size);
        uint8_t before = data[at];
        data[at] = i % 3 == 0 ? 0xff : (uint8_t)(state >> 24);
        LLVMFuzzerTestOneInput(data, size);
        data[at] = before;
    }
}

int main(int argc, char **argv) {
    uint8_t *data = malloc(MOST);
    if (!data)
        return 1;
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            free(data);
            return 1;
        }
        size_t size = fread(data, 1, MOST, file);
        fclose(file);
        fprintf(stderr, "%s: %zu bytes\n", argv[i], size); /* the last line names what brought it down */
        /* In memory of its own size, so that a read beyond the end is seen. */
        uint8_t *exact = malloc(size ? size : 1);
        if (exact) {
            memcpy(exact, data, size);
            try_around(exact, size);
        }
        free(exact);
    }
    free(data);
    return 0;
}
