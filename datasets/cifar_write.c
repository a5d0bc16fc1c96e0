#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datasets/format.h"
#include "datasets/source.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, RECORD = 1 + 3 * PLANE, BATCHES = 5, CLASSES = 10, AT_ONCE = 64 };

/* STATUS_REFUSED unless the folder is empty. */
static enum status must_be_empty(const char *folder) {
    DIR *listing = opendir(folder);
    if (!listing)
        return source_system_failure("read", folder, errno);
    enum status status = STATUS_OK;
    for (struct dirent *entry; status == STATUS_OK && (entry = readdir(listing));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = status_fail(
                STATUS_REFUSED,
                "%s is not empty (it holds %s); give a new or an empty folder, nothing was written", folder,
                entry->d_name);
    closedir(listing);
    return status;
}

static enum status write_bytes(int file, const char *path, const void *bytes, size_t size) {
    const char *from = bytes;
    while (size != 0) {
        ssize_t n = write(file, from, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return status_fail(STATUS_IO, "cannot write %s (%zu bytes were left): %s", path, size,
                               strerror(errno));
        from += n;
        size -= (size_t)n;
    }
    return STATUS_OK;
}

static void make_record(const struct image_set *set, int64_t index, uint8_t *record) {
    const uint8_t *pixels = set->pixels + (size_t)index * 3 * PLANE;
    record[0] = set->labels[index];
    for (int i = 0; i < PLANE; i++)
        for (int c = 0; c < 3; c++)
            record[1 + c * PLANE + i] = pixels[3 * i + c];
}

static enum status write_records(int file, const char *path, const struct image_set *set, int64_t first,
                                 int64_t end) {
    uint8_t *records = malloc((size_t)AT_ONCE * RECORD);
    if (!records)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to write it", path);
    enum status status = STATUS_OK;
    for (int64_t at = first; status == STATUS_OK && at < end; at += AT_ONCE) {
        int64_t now = end - at < AT_ONCE ? end - at : AT_ONCE;
        for (int64_t i = 0; i < now; i++)
            make_record(set, at + i, records + i * RECORD);
        status = write_bytes(file, path, records, (size_t)now * RECORD);
    }
    free(records);
    return status;
}

static enum status write_names(int file, const char *path, const struct dataset *data) {
    for (int i = 0; i < CLASSES; i++) {
        char line[300];
        if (data->class_names)
            snprintf(line, sizeof line, "%s\n", data->class_names[i]);
        else
            snprintf(line, sizeof line, "class %d\n", i);
        STATUS_TRY(write_bytes(file, path, line, strlen(line)));
    }
    return STATUS_OK;
}

static const char *file_name(int index, char name[32]) {
    if (index < BATCHES)
        snprintf(name, 32, "data_batch_%d.bin", index + 1);
    else
        snprintf(name, 32, "%s", index == BATCHES ? "batches.meta.txt" : "test_batch.bin");
    return name;
}

/* File `index` of seven: the training batches as even as can be, the names, the test batch. */
static enum status fill_file(const struct dataset *data, int file, const char *path, int index) {
    int64_t train = data->train.count;
    if (index < BATCHES)
        return write_records(file, path, &data->train, train * index / BATCHES,
                             train * (index + 1) / BATCHES);
    return index == BATCHES ? write_names(file, path, data)
                            : write_records(file, path, &data->test, 0, data->test.count);
}

/* Under another name until it is whole: a set that was cut short by a signal lacks a file, and is refused,
 * where a piece of a file might pass for a smaller one. */
static enum status write_file(const struct dataset *data, const char *path, int index) {
    char *part;
    if (asprintf(&part, "%s.part", path) < 0)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to write it", path);
    int file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    enum status status = file >= 0 ? fill_file(data, file, path, index)
                                   : status_fail(STATUS_IO, "cannot make %s: %s", part, strerror(errno));
    if (file >= 0 && close(file) != 0 && status == STATUS_OK)
        status = status_fail(STATUS_IO, "cannot write %s: %s", path, strerror(errno));
    if (status == STATUS_OK && rename(part, path) != 0)
        status = status_fail(STATUS_IO, "cannot make %s: %s", path, strerror(errno));
    if (status != STATUS_OK && file >= 0)
        unlink(part);
    free(part);
    return status;
}

enum status dataset_write_cifar10(const struct dataset *data, const char *folder) {
    struct shape shape = data->train.shape;
    if (shape.h != SIDE || shape.w != SIDE || shape.c != 3 || data->classes != CLASSES)
        return status_fail(
            STATUS_BAD_INPUT,
            "%s has images of %dx%dx%d in %d classes; CIFAR-10 binary form holds 32x32x3 in 10", data->name,
            shape.h, shape.w, shape.c, data->classes);
    if (data->train.count < BATCHES || data->test.count < 1)
        return status_fail(
            STATUS_BAD_INPUT,
            "%lld training and %lld test images can't be written as CIFAR-10, which has five files of "
            "the first and one of the second; at least 5 and 1 are expected",
            (long long)data->train.count, (long long)data->test.count);
    bool made = mkdir(folder, 0777) == 0;
    if (!made && errno != EEXIST)
        return status_fail(STATUS_IO, "cannot make the folder %s: %s", folder, strerror(errno));
    if (!made)
        STATUS_TRY(must_be_empty(folder));
    enum status status = STATUS_OK;
    int index = 0;
    char name[32];
    for (; status == STATUS_OK && index < BATCHES + 2; index++) {
        char *path = folder_path(folder, file_name(index, name));
        status = path ? write_file(data, path, index)
                      : status_fail(STATUS_NO_MEMORY, "no memory to write %s", folder);
        free(path);
    }
    if (status != STATUS_OK) { /* leave the folder as it was found; the last file is gone already */
        for (index -= 2; index >= 0; index--) {
            char *path = folder_path(folder, file_name(index, name));
            if (path)
                unlink(path);
            free(path);
        }
        if (made)
            rmdir(folder);
    }
    return status;
}
