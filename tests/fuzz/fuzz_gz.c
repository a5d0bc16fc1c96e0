/* The reader of plain and gz files: in pieces of a size that the first byte sets, it gives what it gives at
 * once. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/source.h"
#include "tests/fuzz/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20 };

/* Read all, `piece` bytes at a time; returns how it ended. */
static enum status read_all(const char *path, size_t piece, uint8_t *to, size_t *total) {
    struct source *source;
    *total = 0;
    enum status status = source_open(path, &source);
    if (status != STATUS_OK)
        return status;
    int64_t limit = source_at_most(source);
    size_t got = 1;
    while (status == STATUS_OK && got > 0 && *total + piece <= MOST) {
        status = source_read(source, to + *total, piece, &got);
        *total += got;
        if (got > piece || (int64_t)*total > limit)
            abort();
    }
    if (status == STATUS_OK && got == 0)
        status = source_finish(source);
    source_close(source);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t at_once[MOST], in_pieces[MOST];
    if (size == 0)
        return 0;
    fuzz_clear();
    fuzz_put("file", data + 1, size - 1);
    const char *path = fuzz_path("file");
    size_t all, pieces;
    enum status first = read_all(path, MOST / 2, at_once, &all);
    enum status second = read_all(path, 1 + data[0] * (size_t)37, in_pieces, &pieces);
    size_t common = all < pieces ? all : pieces;
    if (memcmp(at_once, in_pieces, common) != 0)
        abort();
    /* Of damaged data zlib may give a byte more or less before it sees the damage. */
    if (all < MOST / 2 && (first != second || (first == STATUS_OK && all != pieces)))
        abort();
    if (size >= 4 && data[1] != 0x1f && size - 1 < MOST / 2 &&
        (all != size - 1 || memcmp(at_once, data + 1, all) != 0))
        abort(); /* a plain file comes as it is */
    return 0;
}
