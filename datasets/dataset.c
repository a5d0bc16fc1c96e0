#include "datasets/dataset.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "datasets/content.h"
#include "datasets/format.h"
#include "datasets/source.h"
#include "engine/base/printable.h"

#define FASHION_FOLDER "/usr/share/datasets/fashion-mnist" /* Debian's package dataset-fashion-mnist */

static const char *const fashion_names[10] = {"t-shirt/top", "trouser", "pullover", "dress", "coat",
                                              "sandal",      "shirt",   "sneaker",  "bag",   "ankle boot"};

static const struct {
    const char *format;
    enum status (*present)(const char *folder);
    enum status (*read)(const char *folder, struct dataset *data);
} formats[] = {
    {"idx", idx_present, idx_read},
    {"cifar-10 binary", cifar10_present, cifar10_read},
    {"cifar-100 binary", cifar100_present, cifar100_read},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* The last part of a folder's real path, at most 63 bytes, without bytes that a terminal would obey. */
static void name_of_folder(const char *folder, char out[64]) {
    char *real = realpath(folder, NULL);
    const char *path = real ? real : folder;
    const char *slash = strrchr(path, '/');
    text_printable(out, 64, slash && slash[1] ? slash + 1 : path);
    free(real);
}

/* Say what was found in a folder that holds no data set. */
static enum status nothing_here(const char *folder) {
    static const char *const pickled[] = {"data_batch_1", "test_batch", "train", "test", NULL};
    static const char *const inner[] = {
        "cifar-10-batches-bin", "cifar-100-binary", "raw", "MNIST/raw", "FashionMNIST/raw", NULL};
    char *path = NULL;
    if (folder_find(folder, pickled, &path) == STATUS_OK) {
        struct source *source = NULL;
        size_t size;
        if (source_open(path, &source) == STATUS_OK) {
            const unsigned char *bytes = source_peek(source, &size);
            const char *hint = source_looks_like(bytes, size);
            if (strstr(hint, "Python")) {
                status_fail(STATUS_BAD_INPUT,
                            "%s holds the Python edition of CIFAR (%s is a pickle); the binary edition "
                            "is wanted: cifar-10-binary.tar.gz or cifar-100-binary.tar.gz, with the "
                            "files " CIFAR10_NAMES " or " CIFAR100_NAMES,
                            folder, path);
                source_close(source);
                free(path);
                return STATUS_BAD_INPUT;
            }
        }
        source_close(source);
    }
    free(path);
    if (folder_find(folder, inner, &path) == STATUS_OK) {
        status_fail(STATUS_NOT_FOUND, "%s holds no data set itself, but there is the folder %s: give that",
                    folder, path);
        free(path);
        return STATUS_NOT_FOUND;
    }
    int entries = 0;
    char seen[256] = "", unready[NEAR_SIZE];
    DIR *listing = opendir(folder);
    if (!listing)
        return source_system_failure("read", folder, errno);
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        size_t used = strlen(seen);
        if (entries++ < 3 && used < sizeof seen - 1)
            snprintf(seen + used, sizeof seen - used, "%s%.60s", entries == 1 ? "" : ", ", entry->d_name);
    }
    closedir(listing);
    if (entries == 0)
        return status_fail(STATUS_NOT_FOUND,
                           "%s is an empty folder; tried " IDX_NAMES "; " CIFAR10_NAMES "; " CIFAR100_NAMES,
                           folder);
    return status_fail(STATUS_NOT_FOUND,
                       "%s holds no data set that is known (it has %s%s)%s; tried " IDX_NAMES
                       "; " CIFAR10_NAMES "; " CIFAR100_NAMES,
                       folder, seen, entries > 3 ? ", ..." : "", folder_unready(folder, "", unready));
}

/* A path that is a file: say what it is and what would be right. */
static enum status only_a_file(const char *path) {
    struct source *source;
    size_t size;
    STATUS_TRY(source_open(path, &source));
    const unsigned char *bytes = source_peek(source, &size);
    const char *looks = source_looks_like(bytes, size);
    if (!*looks && size >= 4 && bytes[0] == 0 && bytes[1] == 0 && bytes[2] == 8)
        looks = bytes[3] == 3 ? " (IDX images: give the folder that it lies in)" : " (IDX: give its folder)";
    else if (!*looks && source_file_size(source) % 3073 == 0)
        looks = " (its size fits CIFAR-10 records: give the folder that it lies in)";
    status_fail(STATUS_BAD_INPUT,
                "%s is a file%s; a folder is expected, with training and test images and their labels", path,
                looks);
    source_close(source);
    return STATUS_BAD_INPUT;
}

static enum status no_such(const char *name) {
    struct stat info;
    if (lstat(name, &info) == 0)
        return source_system_failure("open", name, ENOENT); /* a broken link */
    return status_fail(STATUS_NOT_FOUND,
                       "no data set or folder \"%s\"; known names: fashion-mnist, generated; else give the "
                       "folder that holds IDX or CIFAR binary files",
                       name);
}

static enum status open_folder(const char *folder, struct dataset *data) {
    struct stat info;
    if (stat(folder, &info) != 0)
        return errno == ENOENT ? no_such(folder) : source_system_failure("open", folder, errno);
    if (!S_ISDIR(info.st_mode))
        return only_a_file(folder);
    int found = -1;
    for (int i = 0; i < FORMATS; i++) {
        enum status status = formats[i].present(folder);
        if (status == STATUS_NOT_FOUND)
            continue;
        STATUS_TRY(status);
        if (found >= 0)
            return status_fail(STATUS_BAD_INPUT,
                               "%s holds files of two formats, %s and %s; keep each data set in a folder of "
                               "its own",
                               folder, formats[found].format, formats[i].format);
        found = i;
    }
    if (found < 0)
        return nothing_here(folder);
    name_of_folder(folder, data->name);
    snprintf(data->format, sizeof data->format, "%s", formats[found].format);
    return formats[found].read(folder, data);
}

/* Is the test set a copy of a piece of the training set, or are its labels? */
static void compare_sets(struct dataset *data) {
    const struct image_set *train = &data->train, *test = &data->test;
    size_t one = shape_size(test->shape), bytes = one * (size_t)test->count;
    for (int64_t first = 0; first + test->count <= train->count; first += test->count)
        if (!memcmp(train->pixels + (size_t)first * one, test->pixels, bytes)) {
            note_add(
                data,
                "the %lld test images are byte for byte the training images %lld to %lld: what is measured "
                "on them says nothing about new images",
                (long long)test->count, (long long)first, (long long)(first + test->count - 1));
            return;
        }
    if (train->count == test->count && !memcmp(train->labels, test->labels, (size_t)test->count))
        note_add(
            data,
            "the %lld test labels are byte for byte the training labels, though the images differ: was one "
            "file put in the other's place?",
            (long long)test->count);
}

/* Classes without a training image, where there are so many images that none is left out by chance: the
 * labels may be another set's, or the end of a file that was sorted by them was left out. */
static void look_for_classes(struct dataset *data) {
    enum { OF_EACH = 20 }; /* images that a class would have at least */
    const struct image_set *train = &data->train;
    int64_t counts[UINT8_MAX + 1] = {0};
    int first = -1, missing = 0;
    if (train->count / OF_EACH < data->classes)
        return;
    for (int64_t i = 0; i < train->count; i++)
        counts[train->labels[i]]++;
    for (int class = 0; class < data->classes; class++) {
        if (counts[class])
            continue;
        first = first < 0 ? class : first;
        missing++;
    }
    if (missing)
        note_add(data, "%d of the %d classes, the first of them %d%s%.60s, have no training image", missing,
                 data->classes, first, data->class_names ? " " : "",
                 data->class_names ? data->class_names[first] : "");
}

static bool fashion_found(void) {
    struct stat info;
    return stat(FASHION_FOLDER, &info) == 0;
}

static enum status open_named(const char *name, const struct dataset_options *options, struct dataset *data) {
    if (!name)
        name = fashion_found() ? "fashion-mnist" : "generated";
    if (!strcmp(name, "generated")) {
        snprintf(data->name, sizeof data->name, "generated");
        snprintf(data->format, sizeof data->format, "generated");
        return generated_make(options, data);
    }
    if (!strcmp(name, "fashion-mnist")) {
        if (!fashion_found())
            return status_fail(
                STATUS_NOT_FOUND,
                "fashion-mnist is not installed (%s does not exist); on Debian and Ubuntu: apt "
                "install dataset-fashion-mnist; or use generated",
                FASHION_FOLDER);
        STATUS_TRY(open_folder(FASHION_FOLDER, data));
        return data->classes == 10 && !data->class_names ? names_copy(data, fashion_names, 10) : STATUS_OK;
    }
    if (!*name)
        return status_fail(STATUS_BAD_INPUT,
                           "the data set's name is empty; give fashion-mnist, generated or a folder");
    return open_folder(name, data);
}

enum status dataset_open(const char *name, const struct dataset_options *options, struct dataset **out) {
    *out = NULL;
    struct dataset *data = calloc(1, sizeof *data);
    if (!data)
        return status_fail(STATUS_NO_MEMORY, "no memory for a data set");
    enum status status = open_named(name, options, data);
    if (status == STATUS_OK) {
        content_hash(&data->train);
        content_hash(&data->test);
        if (strcmp(data->format, "generated") != 0) {
            compare_sets(data);
            look_for_classes(data);
        }
        if (!data->notes && !(data->notes = strdup("")))
            status = status_fail(STATUS_NO_MEMORY, "no memory for a data set");
    }
    if (status != STATUS_OK) {
        dataset_close(data);
        return status;
    }
    *out = data;
    return STATUS_OK;
}

void dataset_close(struct dataset *data) {
    if (!data)
        return;
    for (int i = 0; data->class_names && i < data->classes; i++)
        free(data->class_names[i]);
    free(data->class_names);
    free(data->train.pixels);
    free(data->train.labels);
    free(data->test.pixels);
    free(data->test.labels);
    free(data->notes);
    free(data);
}

void dataset_visit(void (*visit)(void *context, const char *name, bool found, const char *where),
                   void *context) {
    visit(context, "fashion-mnist", fashion_found(), FASHION_FOLDER);
    visit(context, "generated", true, "drawn by the program, no files");
}
