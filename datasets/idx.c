/* IDX, the format of MNIST and Fashion-MNIST: two bytes of 0, the element type, the number of dimensions,
 * each dimension as a big-endian 32-bit number, then the elements, the last dimension fastest. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/format.h"
#include "datasets/source.h"

enum {
    IMAGES_MAGIC = 2051, /* unsigned bytes, three dimensions */
    LABELS_MAGIC = 2049, /* unsigned bytes, one dimension */
    CLASSES = 10,        /* where no classes.txt says otherwise */
    SIDE_MOST = 4096,
};

static const char *const file_names[2][2][9] = {
    {{"train-images-idx3-ubyte", "train-images.idx3-ubyte", "train-images-idx3-ubyte.gz",
      "train-images.idx3-ubyte.gz"},
     {"train-labels-idx1-ubyte", "train-labels.idx1-ubyte", "train-labels-idx1-ubyte.gz",
      "train-labels.idx1-ubyte.gz"}},
    {{"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte", "t10k-images-idx3-ubyte.gz",
      "t10k-images.idx3-ubyte.gz", "test-images-idx3-ubyte", "test-images.idx3-ubyte",
      "test-images-idx3-ubyte.gz", "test-images.idx3-ubyte.gz"},
     {"t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte", "t10k-labels-idx1-ubyte.gz",
      "t10k-labels.idx1-ubyte.gz", "test-labels-idx1-ubyte", "test-labels.idx1-ubyte",
      "test-labels-idx1-ubyte.gz", "test-labels.idx1-ubyte.gz"}},
};

struct idx_file {
    char *path;
    struct source *source;
    uint32_t dimensions[3]; /* images: count, rows, columns; labels: count */
};

struct idx_set { /* [0]: train, [1]: test */
    struct idx_file images[2], labels[2];
    struct dataset *data;
};

static uint32_t big_endian(const unsigned char *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static const char *element_type(unsigned type) {
    switch (type) {
    case 0x08:
        return "unsigned byte";
    case 0x09:
        return "signed byte";
    case 0x0B:
        return "16-bit integer";
    case 0x0C:
        return "32-bit integer";
    case 0x0D:
        return "32-bit float";
    case 0x0E:
        return "64-bit float";
    default:
        return "unknown";
    }
}

/* Say in what way the first four bytes are not the wanted magic number. */
static enum status wrong_magic(const char *path, uint32_t found, uint32_t wanted, const unsigned char *bytes,
                               size_t size) {
    const char *what = wanted == IMAGES_MAGIC ? "images" : "labels";
    const char *other = wanted == IMAGES_MAGIC ? "labels" : "images";
    unsigned type = found >> 8 & 255, dimensions = found & 255;
    if (found == IMAGES_MAGIC || found == LABELS_MAGIC)
        return status_fail(STATUS_BAD_INPUT,
                           "%s has the magic number %" PRIu32 " of a file of %s; %" PRIu32
                           " (%s) is expected: are the two files swapped?",
                           path, found, other, wanted, what);
    if (__builtin_bswap32(found) == wanted)
        return status_fail(STATUS_BAD_INPUT,
                           "%s has its magic number in little-endian order (0x%08" PRIx32
                           "); IDX numbers are big-endian, 0x%08" PRIx32 " is expected",
                           path, found, wanted);
    if (found >> 16 == 0 && strcmp(element_type(type), "unknown") != 0)
        return status_fail(
            STATUS_BAD_INPUT,
            "%s is IDX with elements of type 0x%02X (%s) in %u dimensions; 0x08 (unsigned byte) in %u is "
            "expected for %s",
            path, type, element_type(type), dimensions, wanted & 255, what);
    return status_fail(STATUS_BAD_INPUT,
                       "%s is not IDX: it begins with 0x%08" PRIx32 ", 0x%08" PRIx32 " (%s) is expected%s",
                       path, found, wanted, what, source_looks_like(bytes, size));
}

/* Open a file and check every number of its header against the file's size. */
static enum status idx_header(struct idx_file *file, uint32_t magic) {
    STATUS_TRY(source_open(file->path, &file->source));
    int dimensions = (int)(magic & 255);
    size_t header = 4 + 4 * (size_t)dimensions, seen, got;
    const unsigned char *bytes = source_peek(file->source, &seen);
    uint32_t found = seen >= 4 ? big_endian(bytes) : 0;
    if (seen >= 4 && found != magic)
        return wrong_magic(file->path, found, magic, bytes, seen);
    if (seen < header)
        return status_fail(STATUS_BAD_INPUT, "%s ends after %zu bytes; an IDX header has %zu%s", file->path,
                           seen, header, source_looks_like(bytes, seen));
    unsigned char skipped[16];
    STATUS_TRY(source_read(file->source, skipped, header, &got));
    for (int i = 0; i < dimensions; i++)
        file->dimensions[i] = big_endian(skipped + 4 + 4 * i);
    uint32_t count = file->dimensions[0];
    if (count == 0 || (dimensions == 3 && (file->dimensions[1] == 0 || file->dimensions[2] == 0)))
        return status_fail(STATUS_BAD_INPUT, "%s says in its header that it holds nothing (a dimension of 0)",
                           file->path);
    uint64_t one = 1;
    if (dimensions == 3) {
        if (file->dimensions[1] > SIDE_MOST || file->dimensions[2] > SIDE_MOST)
            return status_fail(STATUS_BAD_INPUT,
                               "%s promises images of %" PRIu32 "x%" PRIu32 "; at most %dx%d can be read",
                               file->path, file->dimensions[1], file->dimensions[2], SIDE_MOST, SIDE_MOST);
        one = (uint64_t)file->dimensions[1] * file->dimensions[2];
    }
    uint64_t promised = one * count; /* at most 2^32 * 2^24 */
    uint64_t left = (uint64_t)source_at_most(file->source);
    if (promised <= left)
        return STATUS_OK;
    if (source_compressed(file->source))
        return status_fail(STATUS_BAD_INPUT,
                           "%s promises %" PRIu64 " bytes, more than a gz file of %" PRId64
                           " bytes can hold; get it again",
                           file->path, promised, source_file_size(file->source));
    return status_fail(
        STATUS_BAD_INPUT,
        "%s is cut short: it holds %" PRId64 " bytes, %" PRIu64 " are expected (a header of %zu and %" PRIu32
        " records of %" PRIu64 "); %" PRIu64 " whole records are there; get it again",
        file->path, source_file_size(file->source), promised + header, header, count, one, left / one);
}

/* Read `bytes` after the header and check that nothing follows. */
static enum status idx_body(struct idx_file *file, uint8_t *to, size_t bytes, size_t one) {
    size_t got;
    enum status status = source_read(file->source, to, bytes, &got);
    if (status == STATUS_BAD_INPUT && got < bytes) {
        char cause[1024];
        strncpy(cause, status_text(), sizeof cause - 1);
        cause[sizeof cause - 1] = 0;
        return status_fail(STATUS_BAD_INPUT,
                           "%s (%zu of %zu expected bytes could be read: %zu whole records)", cause, got,
                           bytes, got / one);
    }
    STATUS_TRY(status);
    if (got < bytes)
        return status_fail(
            STATUS_BAD_INPUT,
            "%s is cut short: %zu bytes follow its header, %zu are expected; %zu whole records are there; "
            "get it again",
            file->path, got, bytes, got / one);
    return source_finish(file->source);
}

/* Both headers of train or test, and that they belong together. */
static enum status pair_headers(struct idx_set *set, int which) {
    struct idx_file *images = &set->images[which], *labels = &set->labels[which];
    STATUS_TRY(idx_header(images, IMAGES_MAGIC));
    STATUS_TRY(idx_header(labels, LABELS_MAGIC));
    if (images->dimensions[0] != labels->dimensions[0])
        return status_fail(STATUS_BAD_INPUT,
                           "%s holds %" PRIu32 " images, but %s holds %" PRIu32
                           " labels: the two files do not belong together",
                           images->path, images->dimensions[0], labels->path, labels->dimensions[0]);
    return STATUS_OK;
}

static enum status pair_body(void *context, int which) {
    struct idx_set *set = context;
    struct image_set *to = which == 0 ? &set->data->train : &set->data->test;
    size_t one = shape_size(to->shape), count = (size_t)to->count;
    STATUS_TRY(idx_body(&set->labels[which], to->labels, count, 1));
    const char *hint = set->data->class_names
                           ? " (classes.txt gives the classes)"
                           : " (ten classes; a file classes.txt with a name a line would say otherwise)";
    STATUS_TRY(
        labels_check(set->labels[which].path, to->labels, to->count, set->data->classes, "label", hint));
    return idx_body(&set->images[which], to->pixels, count * one, one);
}

static enum status find_file(const char *folder, int which, int kind, char **path) {
    enum status status = folder_find(folder, file_names[which][kind], path);
    if (status == STATUS_NOT_FOUND) {
        const char *const *names = file_names[which][kind];
        char near[NEAR_SIZE];
        return status_fail(
            STATUS_NOT_FOUND, "%s holds no file of %s %s; tried %s, %s, %s, %s%s", folder,
            which == 0 ? "training" : "test", kind == 0 ? "images" : "labels", names[0], names[1], names[2],
            names[3],
            folder_near(folder, which == 0 ? "train" : "t10k", kind == 0 ? "image" : "label", near));
    }
    return status;
}

/* Of two files for the same thing one is read: say which. */
static void note_others(struct dataset *data, const char *folder, const char *used, int which, int kind) {
    for (const char *const *name = file_names[which][kind]; *name; name++) {
        char *other = folder_path(folder, *name);
        struct stat info;
        if (other && strcmp(other, used) != 0 && stat(other, &info) == 0)
            note_add(data, "%s is read; %s, which lies beside it, is not", used, other);
        free(other);
    }
}

/* Files of none of the spellings: note_others() tells of those. */
static void note_strangers(struct dataset *data, const char *folder) {
    enum { SPELLINGS = sizeof file_names / sizeof file_names[0][0][0] };
    const char *known[SPELLINGS + 1] = {NULL};
    int count = 0;
    for (int i = 0; i < 4; i++)
        for (const char *const *name = file_names[i / 2][i % 2]; *name; name++)
            known[count++] = *name;
    note_unused(data, folder, known);
}

static enum status read_set(const char *folder, struct idx_set *set) {
    struct dataset *data = set->data;
    for (int which = 0; which < 2; which++) {
        STATUS_TRY(find_file(folder, which, 0, &set->images[which].path));
        STATUS_TRY(find_file(folder, which, 1, &set->labels[which].path));
        note_others(data, folder, set->images[which].path, which, 0);
        note_others(data, folder, set->labels[which].path, which, 1);
    }
    note_strangers(data, folder);
    data->classes = CLASSES;
    char *names = NULL;
    enum status status = folder_find(folder, (const char *const[]){"classes.txt", NULL}, &names);
    if (status == STATUS_OK)
        status = names_read(data, names, 0);
    free(names);
    if (status != STATUS_NOT_FOUND)
        STATUS_TRY(status);
    STATUS_TRY(pair_headers(set, 0));
    STATUS_TRY(pair_headers(set, 1));
    const uint32_t *train = set->images[0].dimensions, *test = set->images[1].dimensions;
    if (train[1] != test[1] || train[2] != test[2])
        return status_fail(STATUS_BAD_INPUT,
                           "%s holds images of %" PRIu32 "x%" PRIu32 ", but those of %s are %" PRIu32
                           "x%" PRIu32 ": training and test images must have one size",
                           set->images[1].path, test[1], test[2], set->images[0].path, train[1], train[2]);
    struct shape shape = {(int)train[1], (int)train[2], 1};
    STATUS_TRY(images_allocate(&data->train, train[0], shape, set->images[0].path));
    STATUS_TRY(images_allocate(&data->test, test[0], shape, set->images[1].path));
    return parallel_run(2, pair_body, set);
}

enum status idx_present(const char *folder) {
    enum status found = STATUS_NOT_FOUND;
    for (int i = 0; i < 4 && found == STATUS_NOT_FOUND; i++) {
        char *path;
        found = folder_find(folder, file_names[i / 2][i % 2], &path);
        free(path);
    }
    return found;
}

enum status idx_read(const char *folder, struct dataset *data) {
    struct idx_set set = {.data = data};
    enum status status = read_set(folder, &set);
    for (int which = 0; which < 2; which++) {
        source_close(set.images[which].source);
        source_close(set.labels[which].source);
        free(set.images[which].path);
        free(set.labels[which].path);
    }
    return status;
}
