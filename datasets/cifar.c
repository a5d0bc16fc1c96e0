/* CIFAR's binary edition: records of labels and 3,072 bytes, three planes (red, green, blue) of 32 rows
 * of 32. CIFAR-10 has one label byte; CIFAR-100 a coarse and a fine one, of which the fine is the class. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/format.h"
#include "datasets/source.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, IMAGE = 3 * PLANE, MOST_FILES = 6, RECORDS_AT_ONCE = 32 };

static const struct shape cifar_shape = {SIDE, SIDE, 3};

struct edition {
    const char *name;
    const char *files[MOST_FILES]; /* the training files, then the test file */
    int training_files, label_bytes, classes, coarse_classes;
    int official[2];                /* records of a training file and of the test file, as published */
    const char *names_file, *again; /* where the files come from, as an end of a sentence */
};

static const struct edition cifar10 = {
    "CIFAR-10",
    {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
     "test_batch.bin"},
    5,
    1,
    10,
    0,
    {10000, 10000},
    "batches.meta.txt",
    "; get it again from cifar-10-binary.tar.gz, or by `towerscope data make`"};
static const struct edition cifar100 = {"CIFAR-100",
                                        {"train.bin", "test.bin"},
                                        1,
                                        2,
                                        100,
                                        20,
                                        {50000, 10000},
                                        "fine_label_names.txt",
                                        "; get it again from cifar-100-binary.tar.gz"};

struct part {
    char *path;
    struct source *source;
    int64_t records;
    struct image_set *set;
    int64_t first; /* its place in the set */
};

struct reading {
    const struct edition *edition;
    struct part parts[MOST_FILES];
    int count;
};

/* Find and open a file and see that its size is whole records. */
static enum status open_part(const char *folder, const struct edition *edition, int index,
                             struct part *part) {
    const char *name = edition->files[index];
    int64_t official = edition->official[index < edition->training_files ? 0 : 1];
    enum status status = folder_find(folder, (const char *const[]){name, NULL}, &part->path);
    if (status == STATUS_NOT_FOUND) {
        char stem[32], near[NEAR_SIZE];
        snprintf(stem, sizeof stem, "%.*s", (int)strcspn(name, "."), name);
        bool unready = *folder_unready(folder, stem, near);
        return status_fail(
            STATUS_NOT_FOUND, "%s holds no %s, which %s in binary form needs (%s, each one)%s%s", folder,
            name, edition->name, edition == &cifar10 ? CIFAR10_NAMES : CIFAR100_NAMES,
            unready ? "" : edition->again, unready ? near : folder_near(folder, stem, "", near));
    }
    STATUS_TRY(status);
    STATUS_TRY(source_open(part->path, &part->source));
    size_t seen;
    const unsigned char *bytes = source_peek(part->source, &seen);
    int64_t size = source_file_size(part->source), record = edition->label_bytes + IMAGE;
    /* Whole records of which the first has a label are records, however their pixels look: a 9 (a tab) and a
     * pixel of 60 ('<') begin no web page. */
    bool records = size % record == 0 &&
                   bytes[0] < (edition->coarse_classes ? edition->coarse_classes : edition->classes);
    const char *looks = records ? "" : source_looks_like(bytes, seen);
    if (*looks)
        return status_fail(STATUS_BAD_INPUT, "%s is not %s in binary form%s", part->path, edition->name,
                           looks);
    if (source_compressed(part->source))
        return status_fail(STATUS_BAD_INPUT,
                           "%s is packed with gzip: name it %s.gz, and unpack it with gunzip", part->path,
                           name);
    int64_t other = edition == &cifar10 ? IMAGE + 2 : IMAGE + 1;
    part->records = size / record;
    if (size % record != 0 && size % other == 0)
        return status_fail(
            STATUS_BAD_INPUT,
            "%s holds %" PRId64 " bytes, which are whole records of %" PRId64 " bytes (%s), not of "
            "%" PRId64 " (%s): it is the other edition under this one's name",
            part->path, size, other, edition == &cifar10 ? "CIFAR-100" : "CIFAR-10", record, edition->name);
    if (size % record != 0)
        return status_fail(STATUS_BAD_INPUT,
                           "%s holds %" PRId64 " bytes: %" PRId64 " whole records of %" PRId64 " and %" PRId64
                           " bytes over; %" PRId64 " or %" PRId64
                           " bytes are expected (the official file has %" PRId64 "); get it again",
                           part->path, size, part->records, record, size % record, part->records * record,
                           (part->records + 1) * record, record * official);
    return STATUS_OK;
}

/* Planes to pixels: [c][h][w] to [h][w][c]. */
static void interleave(const uint8_t *restrict planes, uint8_t *restrict pixels) {
    for (int i = 0; i < PLANE; i++) {
        pixels[3 * i] = planes[i];
        pixels[3 * i + 1] = planes[PLANE + i];
        pixels[3 * i + 2] = planes[2 * PLANE + i];
    }
}

/* Read the records of one file into their places of the set, then check every label. */
static enum status read_part(void *context, int index) {
    struct reading *reading = context;
    const struct edition *edition = reading->edition;
    struct part *part = &reading->parts[index];
    size_t record = (size_t)edition->label_bytes + IMAGE;
    uint8_t *records = malloc(record * RECORDS_AT_ONCE);
    uint8_t *coarse = malloc((size_t)part->records);
    enum status status =
        records && coarse ? STATUS_OK : status_fail(STATUS_NO_MEMORY, "%s: no memory to read it", part->path);
    uint8_t *labels = part->set->labels + part->first;
    for (int64_t done = 0; status == STATUS_OK && done < part->records; done += RECORDS_AT_ONCE) {
        size_t now =
                   part->records - done < RECORDS_AT_ONCE ? (size_t)(part->records - done) : RECORDS_AT_ONCE,
               got;
        status = source_read(part->source, records, now * record, &got);
        if (status == STATUS_OK && got < now * record)
            status = status_fail(STATUS_IO, "%s became shorter while it was read", part->path);
        for (size_t i = 0; status == STATUS_OK && i < now; i++) {
            const uint8_t *from = records + i * record;
            coarse[done + (int64_t)i] = from[0];
            labels[done + (int64_t)i] = from[edition->label_bytes - 1];
            interleave(from + edition->label_bytes,
                       part->set->pixels + (size_t)(part->first + done + (int64_t)i) * IMAGE);
        }
    }
    if (status == STATUS_OK && edition->coarse_classes)
        status = labels_check(part->path, coarse, part->records, edition->coarse_classes, "coarse label", "");
    if (status == STATUS_OK)
        status = labels_check(part->path, labels, part->records, edition->classes,
                              edition->coarse_classes ? "fine label" : "label", "");
    if (status == STATUS_OK)
        status = source_finish(part->source);
    free(records);
    free(coarse);
    return status;
}

static enum status read_names(const char *folder, const struct edition *edition, struct dataset *data) {
    char *path;
    enum status status = folder_find(folder, (const char *const[]){edition->names_file, NULL}, &path);
    if (status == STATUS_NOT_FOUND) {
        note_add(data, "%s has no %s: the classes have no names", folder, edition->names_file);
        return STATUS_OK;
    }
    STATUS_TRY(status);
    status = names_read(data, path, edition->classes);
    free(path);
    return status;
}

/* Two training files with the same images: a copy stands in another one's place. */
static void compare_parts(const struct reading *reading, struct dataset *data) {
    for (int i = 1; i < reading->edition->training_files; i++)
        for (int k = 0; k < i; k++) {
            const struct part *a = &reading->parts[k], *b = &reading->parts[i];
            const uint8_t *pixels = data->train.pixels;
            if (a->records == b->records &&
                !memcmp(pixels + a->first * IMAGE, pixels + b->first * IMAGE, (size_t)a->records * IMAGE))
                note_add(data, "%s and %s hold the same images: is one a copy in another file's place?",
                         a->path, b->path);
        }
}

static enum status read_all(const char *folder, struct reading *reading, struct dataset *data) {
    const struct edition *edition = reading->edition;
    int64_t counts[2] = {0, 0};
    data->classes = edition->classes;
    for (int i = 0; i < reading->count; i++) {
        struct part *part = &reading->parts[i];
        STATUS_TRY(open_part(folder, edition, i, part));
        int which = i < edition->training_files ? 0 : 1;
        part->set = which == 0 ? &data->train : &data->test;
        part->first = counts[which];
        counts[which] += part->records;
        if (which == 0 && llabs(part->records - reading->parts[0].records) > 1)
            note_add(data, "%s holds %lld records, %s %lld: is one of them cut short?", part->path,
                     (long long)part->records, reading->parts[0].path, (long long)reading->parts[0].records);
    }
    STATUS_TRY(read_names(folder, edition, data));
    STATUS_TRY(images_allocate(&data->train, counts[0], cifar_shape, folder));
    STATUS_TRY(images_allocate(&data->test, counts[1], cifar_shape, folder));
    STATUS_TRY(parallel_run(reading->count, read_part, reading));
    compare_parts(reading, data);
    const char *known[MOST_FILES + 1] = {NULL};
    memcpy(known, edition->files, sizeof edition->files);
    note_unused(data, folder, known);
    return STATUS_OK;
}

static enum status read_edition(const char *folder, const struct edition *edition, struct dataset *data) {
    struct reading reading = {.edition = edition, .count = edition->training_files + 1};
    enum status status = read_all(folder, &reading, data);
    for (int i = 0; i < reading.count; i++) {
        source_close(reading.parts[i].source);
        free(reading.parts[i].path);
    }
    return status;
}

static enum status edition_present(const char *folder, const struct edition *edition) {
    const char *names[MOST_FILES + 1] = {NULL};
    memcpy(names, edition->files, sizeof edition->files);
    char *path;
    enum status status = folder_find(folder, names, &path);
    free(path);
    return status;
}

enum status cifar10_present(const char *folder) {
    return edition_present(folder, &cifar10);
}

enum status cifar10_read(const char *folder, struct dataset *data) {
    return read_edition(folder, &cifar10, data);
}

enum status cifar100_present(const char *folder) {
    return edition_present(folder, &cifar100);
}

enum status cifar100_read(const char *folder, struct dataset *data) {
    return read_edition(folder, &cifar100, data);
}
