/* Data sets are read value for value; what is wrong with a file is the business of
 * tests/trials/test_a_datasets.sh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "datasets/content.h"
#include "datasets/dataset.h"
#include "datasets/shapes.h"
#include "engine/base/random.h"
#include "tests/support/cmocka.h"

static char folder[600];

/* A new folder below $TEST_TMP; its path in `folder`. */
static void new_folder(const char *name) {
    const char *tmp = getenv("TEST_TMP");
    snprintf(folder, sizeof folder, "%.500s/%s", tmp ? tmp : "/tmp", name);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void put(const char *name, const uint8_t *bytes, size_t size, bool gz) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (gz) {
        gzFile file = gzopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(gzwrite(file, bytes, (unsigned)size), (int)size);
        assert_int_equal(gzclose(file), Z_OK);
        return;
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static uint8_t value(uint64_t which, size_t i) {
    struct random_key key = random_key(which, RANDOM_TEST, i / 16);
    uint32_t block[4];
    random_block(&key, 0, block);
    return (uint8_t)(block[i / 4 % 4] >> (i % 4 * 8));
}

static void put_big_endian(uint8_t *to, uint32_t number) {
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(number >> (24 - 8 * i));
}

static void put_idx(const char *images_name, const char *labels_name, uint64_t which, uint32_t count,
                    uint32_t rows, uint32_t columns, bool gz) {
    size_t size = (size_t)count * rows * columns;
    uint8_t *images = malloc(16 + size), *labels = malloc(8 + count);
    assert_true(images && labels);
    put_big_endian(images, 2051);
    put_big_endian(images + 4, count);
    put_big_endian(images + 8, rows);
    put_big_endian(images + 12, columns);
    put_big_endian(labels, 2049);
    put_big_endian(labels + 4, count);
    for (size_t i = 0; i < size; i++)
        images[16 + i] = value(which, i);
    for (uint32_t i = 0; i < count; i++)
        labels[8 + i] = (uint8_t)(i * 7 % 10);
    put(images_name, images, 16 + size, gz);
    put(labels_name, labels, 8 + (size_t)count, gz);
    free(images);
    free(labels);
}

static void check_idx(const struct image_set *set, uint64_t which, int64_t count, int rows, int columns) {
    assert_int_equal(set->count, count);
    assert_int_equal(set->shape.h, rows);
    assert_int_equal(set->shape.w, columns);
    assert_int_equal(set->shape.c, 1);
    for (size_t i = 0; i < (size_t)count * (size_t)rows * (size_t)columns; i++)
        assert_int_equal(set->pixels[i], value(which, i));
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(set->labels[i], i * 7 % 10);
}

/* Larger than the reader's pieces, rows unlike columns, one pair gz and the other plain, either way of
 * spelling. */
static void idx(void **state) {
    (void)state;
    new_folder("idx");
    put_idx("train-images.idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", 1, 700, 31, 17, true);
    put_idx("test-images-idx3-ubyte", "t10k-labels.idx1-ubyte", 2, 13, 31, 17, false);
    struct dataset *data;
    assert_int_equal(dataset_open(folder, NULL, &data), STATUS_OK);
    assert_string_equal(data->name, "idx");
    assert_string_equal(data->format, "idx");
    assert_int_equal(data->classes, 10);
    assert_null(data->class_names);
    assert_string_equal(data->notes, "");
    check_idx(&data->train, 1, 700, 31, 17);
    check_idx(&data->test, 2, 13, 31, 17);
    dataset_close(data);
}

static void classes_file(void **state) {
    (void)state;
    new_folder("classes");
    put_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 1, 20, 5, 5, false);
    put_idx("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 2, 10, 5, 5, false);
    static const char names[] = "a\r\n\r\n  b b \r\nc\nd\ne\nf\ng\nh\ni\nj\nk\033k\n\n\n";
    put("classes.txt", (const uint8_t *)names, sizeof names - 1, false);
    struct dataset *data;
    assert_int_equal(dataset_open(folder, NULL, &data), STATUS_OK);
    assert_int_equal(data->classes, 11);
    assert_string_equal(data->class_names[0], "a");
    assert_string_equal(data->class_names[1], "b b");
    assert_string_equal(data->class_names[10], "k?k"); /* an escape is not handed to a terminal */
    dataset_close(data);
}

/* `records` of CIFAR: label bytes, then planes whose values name their place. */
static void put_cifar(const char *name, uint64_t which, size_t records, size_t label_bytes, int classes) {
    size_t one = label_bytes + 3072;
    uint8_t *bytes = malloc(records * one);
    assert_non_null(bytes);
    for (size_t i = 0; i < records; i++) {
        if (label_bytes == 2)
            bytes[i * one] = (uint8_t)(i % 20);
        bytes[i * one + label_bytes - 1] = (uint8_t)(i * 3 % (size_t)classes);
        for (size_t k = 0; k < 3072; k++)
            bytes[i * one + label_bytes + k] = value(which, i * 3072 + k);
    }
    put(name, bytes, records * one, false);
    free(bytes);
}

static void check_cifar(const struct image_set *set, int64_t first, uint64_t which, int64_t records,
                        int classes) {
    for (int64_t i = 0; i < records; i++) {
        assert_int_equal(set->labels[first + i], i * 3 % classes);
        for (int y = 0; y < 32; y++)
            for (int x = 0; x < 32; x++)
                for (int c = 0; c < 3; c++)
                    assert_int_equal(set->pixels[(((first + i) * 32 + y) * 32 + x) * 3 + c],
                                     value(which, (size_t)(i * 3072 + c * 1024 + y * 32 + x)));
    }
}

static void cifar10(void **state) {
    (void)state;
    new_folder("cifar10");
    for (unsigned i = 1; i <= 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "data_batch_%u.bin", i);
        put_cifar(name, i, 40, 1, 10);
    }
    put_cifar("test_batch.bin", 6, 35, 1, 10);
    struct dataset *data;
    assert_int_equal(dataset_open(folder, NULL, &data), STATUS_OK);
    assert_string_equal(data->format, "cifar-10 binary");
    assert_int_equal(data->train.count, 200);
    assert_int_equal(data->test.count, 35);
    assert_int_equal(data->train.shape.c, 3);
    for (unsigned i = 1; i <= 5; i++)
        check_cifar(&data->train, (i - 1) * 40, i, 40, 10);
    check_cifar(&data->test, 0, 6, 35, 10);
    dataset_close(data);
}

static void cifar100(void **state) {
    (void)state;
    new_folder("cifar100");
    put_cifar("train.bin", 1, 120, 2, 100);
    put_cifar("test.bin", 2, 33, 2, 100);
    struct dataset *data;
    assert_int_equal(dataset_open(folder, NULL, &data), STATUS_OK);
    assert_string_equal(data->format, "cifar-100 binary");
    assert_int_equal(data->classes, 100);
    assert_int_equal(data->train.count, 120);
    check_cifar(&data->train, 0, 1, 120, 100);
    check_cifar(&data->test, 0, 2, 33, 100);
    dataset_close(data);
}

/* Each picture is that of its place alone, however many there are and whichever thread draws it. */
static void generated(void **state) {
    (void)state;
    struct dataset_options options = {.seed = 4, .generated_train = 533, .generated_test = 41};
    struct dataset *data, *more;
    assert_int_equal(dataset_open("generated", &options, &data), STATUS_OK);
    assert_int_equal(data->train.count, 533);
    assert_int_equal(data->test.count, 41);
    assert_int_equal(data->classes, 10);
    assert_string_equal(data->class_names[6], "star");
    uint8_t picture[3072];
    int wrong = 0;
    for (int64_t i = 0; i < 41; i++)
        assert_int_equal(data->test.labels[i], i % 10);
    for (int64_t i = 0; i < 533; i++) {
        assert_in_range(data->train.labels[i], 0, 9);
        wrong += data->train.labels[i] != i % 10;
        shape_draw((enum shape_kind)(i % 10), 4, (uint64_t)i, picture);
        assert_memory_equal(data->train.pixels + i * 3072, picture, sizeof picture);
    }
    assert_in_range(wrong, 12, 42); /* one in twenty, within three deviations */
    options.generated_train = 10;
    options.generated_test = 100;
    assert_int_equal(dataset_open("generated", &options, &more), STATUS_OK);
    assert_memory_equal(data->train.pixels, more->train.pixels, 10 * 3072);
    assert_memory_equal(data->test.pixels, more->test.pixels, 41 * 3072);
    assert_memory_not_equal(data->test.pixels, data->train.pixels, 3072);
    dataset_close(more);
    options.seed = 5;
    assert_int_equal(dataset_open("generated", &options, &more), STATUS_OK);
    assert_memory_not_equal(data->train.pixels, more->train.pixels, 3072);
    dataset_close(more);
    dataset_close(data);
    options.generated_train = -1;
    assert_int_equal(dataset_open("generated", &options, &more), STATUS_BAD_INPUT);
}

/* The shape is lighter than its ground by enough to be seen, and never so large that it fills the picture. */
static void shapes_are_visible(void **state) {
    (void)state;
    for (int kind = 0; kind < SHAPE_KINDS; kind++)
        for (uint64_t i = 0; i < 200; i++) {
            uint8_t p[3072];
            shape_draw((enum shape_kind)kind, 1, i, p);
            int light[1024], edge = 0, over = 0;
            for (int k = 0; k < 1024; k++) {
                light[k] = p[3 * k] + p[3 * k + 1] + p[3 * k + 2];
                int x = k % 32, y = k / 32;
                edge += x == 0 || x == 31 || y == 0 || y == 31 ? light[k] : 0;
            }
            for (int k = 0; k < 1024; k++)
                over += light[k] > edge / 124 + 120;
            assert_in_range(over, 30, 450);
        }
}

static void written_and_read_again(void **state) {
    (void)state;
    struct dataset_options options = {.seed = 9, .generated_train = 103, .generated_test = 17};
    struct dataset *data, *again;
    assert_int_equal(dataset_open("generated", &options, &data), STATUS_OK);
    new_folder("written");
    assert_int_equal(dataset_write_cifar10(data, folder), STATUS_OK);
    assert_int_equal(dataset_open(folder, NULL, &again), STATUS_OK);
    assert_string_equal(again->notes, "");
    assert_int_equal(again->train.count, 103);
    assert_memory_equal(again->train.pixels, data->train.pixels, 103 * 3072);
    assert_memory_equal(again->train.labels, data->train.labels, 103);
    assert_memory_equal(again->test.pixels, data->test.pixels, 17 * 3072);
    for (int i = 0; i < 10; i++)
        assert_string_equal(again->class_names[i], data->class_names[i]);
    dataset_close(again);
    assert_int_equal(dataset_write_cifar10(data, folder), STATUS_REFUSED);
    dataset_close(data);
    options.generated_train = 4;
    assert_int_equal(dataset_open("generated", &options, &data), STATUS_OK);
    new_folder("few");
    assert_int_equal(dataset_write_cifar10(data, folder), STATUS_BAD_INPUT);
    assert_int_equal(rmdir(folder), 0); /* still empty */
    dataset_close(data);
}

static void seen(void *context, const char *name, bool found, const char *where) {
    int *bits = context;
    assert_true(where && *where);
    if (!strcmp(name, "generated"))
        *bits |= found ? 1 : 16;
    if (!strcmp(name, "fashion-mnist"))
        *bits |= 2;
}

static void known_names(void **state) {
    (void)state;
    int bits = 0;
    dataset_visit(seen, &bits);
    assert_int_equal(bits, 3);
    struct dataset *data;
    assert_int_equal(dataset_open("no such set", NULL, &data), STATUS_NOT_FOUND);
    assert_null(data);
    assert_non_null(strstr(status_text(), "no such set"));
    assert_non_null(strstr(status_text(), "fashion-mnist"));
    dataset_close(NULL);
}

/* The real one, where its package is installed: counts, and sums that were computed apart from this program.
 */
static void fashion_mnist(void **state) {
    (void)state;
    if (access("/usr/share/datasets/fashion-mnist", R_OK) != 0)
        skip();
    struct dataset *data;
    assert_int_equal(dataset_open(NULL, NULL, &data), STATUS_OK);
    assert_string_equal(data->name, "fashion-mnist");
    assert_int_equal(data->train.count, 60000);
    assert_int_equal(data->test.count, 10000);
    assert_string_equal(data->class_names[9], "ankle boot");
    uint64_t sum[2] = {0, 0}, labels[2] = {0, 0};
    const struct image_set *sets[2] = {&data->train, &data->test};
    for (int which = 0; which < 2; which++)
        for (int64_t i = 0; i < sets[which]->count; i++) {
            labels[which] += (uint64_t)i * sets[which]->labels[i];
            for (int k = 0; k < 784; k++)
                sum[which] += sets[which]->pixels[i * 784 + k];
        }
    assert_int_equal(sum[0], 3431114169);
    assert_int_equal(sum[1], 573469082);
    assert_int_equal(labels[0], 8087216427);
    assert_int_equal(labels[1], 225732341);
    dataset_close(data);
}

/* Any pixel and any label counts, and nothing else. */
static void test_content(void **state) {
    (void)state;
    enum { COUNT = 3000, SIDE = 40 }; /* more than one block, and a rest */
    struct image_set set = {.count = COUNT, .shape = {SIDE, SIDE, 1}};
    size_t bytes = (size_t)COUNT * SIDE * SIDE;
    set.pixels = malloc(bytes);
    set.labels = malloc(COUNT);
    assert_true(set.pixels && set.labels);
    for (size_t i = 0; i < bytes; i++)
        set.pixels[i] = (uint8_t)(i * 2654435761u >> 24);
    for (size_t i = 0; i < COUNT; i++)
        set.labels[i] = (uint8_t)(i % 10);
    content_hash(&set);
    uint64_t content = set.content;
    assert_true(content != 0);
    content_hash(&set);
    assert_true(set.content == content);
    const size_t places[] = {0, 63, 64, (4 << 20) - 1, 4 << 20, bytes - 65, bytes - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        set.pixels[places[i]] ^= 1;
        content_hash(&set);
        assert_true(set.content != content);
        set.pixels[places[i]] ^= 1;
    }
    set.labels[COUNT - 1] ^= 1;
    content_hash(&set);
    assert_true(set.content != content);
    set.labels[COUNT - 1] ^= 1;
    uint8_t first = set.pixels[100]; /* two bytes change places: far apart, and in different lanes */
    set.pixels[100] = set.pixels[5000000 % bytes];
    set.pixels[5000000 % bytes] = first;
    content_hash(&set);
    assert_true(set.content != content || set.pixels[100] == first);
    free(set.pixels);
    free(set.labels);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content),       cmocka_unit_test(idx),
        cmocka_unit_test(classes_file),       cmocka_unit_test(cifar10),
        cmocka_unit_test(cifar100),           cmocka_unit_test(generated),
        cmocka_unit_test(shapes_are_visible), cmocka_unit_test(written_and_read_again),
        cmocka_unit_test(known_names),        cmocka_unit_test(fashion_mnist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
