/* safetensors files: what is written is read back, and every kind of damage is refused by name. */
#include "engine/wire/safetensors.h"
#include "tests/support/cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[512];

static int set_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s/f.safetensors", getenv("TEST_TMP"));
    return 0;
}

static int create(void) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void write_file(uint64_t length, const char *header, size_t header_bytes, size_t data_bytes) {
    FILE *file = fdopen(create(), "wb");
    assert_non_null(file);
    fwrite(&length, sizeof length, 1, file);
    fwrite(header, 1, header_bytes, file);
    for (size_t i = 0; i < data_bytes; i++)
        putc((int)(i % 251), file);
    assert_int_equal(fclose(file), 0);
}

static const float floats[2][3] = {{1.5f, -2, 3}, {-0.0f, INFINITY, 1e-40f}};
static const double doubles[2] = {0.1, -1e300};
static const int64_t whole[1] = {INT64_MIN + 1};

static const struct safetensors_tensor written[] = {
    {"counters/step", SAFETENSORS_I64, {1}, 1, whole, 0, 0},
    {"d", SAFETENSORS_F64, {2}, 1, doubles, 0, 0},
    {"none", SAFETENSORS_F32, {3, 0}, 2, floats, 0, 0},
    {"single", SAFETENSORS_F64, {0}, 0, doubles, 0, 0},
    {"conv1/weights", SAFETENSORS_F32, {2, 3}, 2, floats, 0, 0},
};
enum { WRITTEN = sizeof written / sizeof *written };

static const struct safetensors_word words[] = {
    {"format", "one"}, {"text", "a \"quoted\"\nline \\ \xC3\xA9 \x01"}, {"bytes", "\xFFok\xC3"}};

static void test_round_trip(void **state) {
    (void)state;
    int fd = create();
    uint64_t bytes;
    assert_int_equal(safetensors_write(fd, path, words, 3, written, WRITTEN, &bytes), STATUS_OK);
    assert_int_equal(close(fd), 0);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_size, bytes);

    struct safetensors file;
    assert_int_equal(safetensors_open(path, &file), STATUS_OK);
    assert_int_equal(file.tensor_count, WRITTEN);
    assert_string_equal(safetensors_word(&file, "format"), "one");
    assert_string_equal(safetensors_word(&file, "text"), words[1].value);
    assert_string_equal(safetensors_word(&file, "bytes"), "\xEF\xBF\xBDok\xEF\xBF\xBD");
    assert_null(safetensors_word(&file, "no"));
    assert_null(safetensors_find(&file, "no"));
    for (int i = 0; i < WRITTEN; i++) {
        const struct safetensors_tensor *tensor = safetensors_find(&file, written[i].name);
        assert_non_null(tensor);
        assert_int_equal(tensor->type, written[i].type);
        assert_int_equal(tensor->dim_count, written[i].dim_count);
        assert_memory_equal(tensor->dims, written[i].dims, (size_t)tensor->dim_count * sizeof *tensor->dims);
        assert_int_equal(tensor->offset % 4, 0);
        char values[64];
        assert_true(tensor->bytes <= sizeof values);
        assert_int_equal(safetensors_read(&file, tensor, values), STATUS_OK);
        if (tensor->bytes)
            assert_memory_equal(values, written[i].data, tensor->bytes);
    }
    char text[64];
    safetensors_describe(safetensors_find(&file, "conv1/weights"), text, sizeof text);
    assert_string_equal(text, "F32 [2, 3]");
    safetensors_close(&file);
}

#define W "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"
#define T(dtype, shape, offsets)                                                                             \
    "{\"w\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const struct fault {
    const char *header;
    size_t data; /* bytes after the header */
    const char *says;
} faults[] = {
    {"hello world", 24, "no JSON"},
    {"<!DOCTYPE html><html>", 24, "no JSON"},
    {"[1,2]", 24, "no JSON object"},
    {W "} x", 24, "no JSON"},
    {"{\"w\":5}", 24, "is not described"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3]}}", 24, "is not described"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24],\"more\":1}}", 24,
     "is not described"},
    {"{\"w\":{\"dtype\":5,\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24, "no dtype"},
    {T("F99", "[2,3]", "[0,24]"), 24, "the type \"F99\", which is not known"},
    {T("f32", "[2,3]", "[0,24]"), 24, "the type \"f32\""},
    {T("F32", "6", "[0,24]"), 24, "no shape"},
    {T("F32", "[1,1,1,1,1,1,1,1,6]", "[0,24]"), 24, "no shape"},
    {T("F32", "[2.5,3]", "[0,24]"), 24, "whole numbers"},
    {T("F32", "[2,3.0]", "[0,24]"), 24, "whole numbers"},
    {T("F32", "[-2,-3]", "[0,24]"), 24, "whole numbers"},
    {T("F32", "[\"2\",3]", "[0,24]"), 24, "whole numbers"},
    {T("F32", "[4294967296,4294967296]", "[0,24]"), 24, "more bytes than can be counted"},
    {T("F32", "[4611686018427387904,4]", "[0,0]"), 0, "more bytes than can be counted"},
    {T("F32", "[99999999999999999999]", "[0,24]"), 24, "no JSON"},
    {T("F32", "[1000,1000]", "[0,4]"), 4, "has 4 bytes, F32 [1000, 1000] needs 4000000"},
    {T("F32", "[2,3]", "[0,64]"), 64, "has 64 bytes, F32 [2, 3] needs 24"},
    {T("F64", "[2,3]", "[0,24]"), 24, "needs 48"},
    {T("F32", "[2,3]", "[0]"), 24, "no data_offsets"},
    {T("F32", "[2,3]", "[0,24,48]"), 24, "no data_offsets"},
    {T("F32", "[2,3]", "[-8,16]"), 24, "no data_offsets"},
    {T("F32", "[2,3]", "[0,2e1]"), 24, "no data_offsets"},
    {T("F32", "[2,3]", "[24,0]"), 24, "lies at 24 to 0 of 24 bytes"},
    {T("F32", "[2,3]", "[0,4096]"), 24, "damaged or cut short"},
    {T("F32", "[2,3]", "[0,24]"), 19, "damaged or cut short"},
    {T("F32", "[2,3]", "[0,9223372036854775807]"), 24, "damaged or cut short"},
    {T("F32", "[2,3]", "[0,24]"), 29, "5 bytes follow the last tensor"},
    {T("F32", "[2,3]", "[8,32]"), 32, "leaves a gap"},
    {W ",\"v\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[20,44]}}", 44, "\"v\" overlaps"},
    {W ",\"v\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24, "overlaps"},
    {W ",\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,48]}}", 48, "duplicate"},
    {W ",\"__metadata__\":{\"step\":5}}", 24, "step of __metadata__ is no text"},
    {W ",\"__metadata__\":[]}", 24, "__metadata__ is no JSON object"},
    {"{\"w\\u0000x\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24, "no JSON"},
    {"{\"\xFF\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24, "no JSON"},
    {"{}", 24, "24 bytes follow"},
};

static void refused(enum status status, const char *says) {
    if (status != STATUS_BAD_INPUT || strncmp(status_text(), path, strlen(path)) != 0 ||
        !strstr(status_text(), says))
        fail_msg("got %s \"%s\", expected \"%s\"", status_name(status),
                 status == STATUS_OK ? "" : status_text(), says);
}

static void test_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        write_file(strlen(faults[i].header), faults[i].header, strlen(faults[i].header), faults[i].data);
        struct safetensors file;
        refused(safetensors_open(path, &file), faults[i].says);
        safetensors_close(&file);
    }
    static const char *const good[] = {T("F32", "[2,3]", "[0,24]"), T("BF16", "[12]", "[0,24]"),
                                       W ",\"__metadata__\":{}}", T("F32", "[2,3]", "[0,24]") "     "};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        write_file(strlen(good[i]), good[i], strlen(good[i]), 24);
        struct safetensors file;
        assert_int_equal(safetensors_open(path, &file), STATUS_OK);
        assert_int_equal(file.tensor_count, 1);
        safetensors_close(&file);
    }
}

static void test_lengths(void **state) {
    (void)state;
    static const char good[] = T("F32", "[2,3]", "[0,24]");
    static const struct {
        uint64_t length;
        const char *says;
    } cases[] = {{UINT64_MAX, "at most 1048576"}, {UINT64_C(1) << 63, "at most 1048576"},
                 {101 << 20, "at most 1048576"},  {SAFETENSORS_HEADER_MAX, "damaged or cut short"},
                 {1000, "damaged or cut short"},  {0, "no JSON"},
                 {sizeof good - 2, "no JSON"}};
    struct safetensors file;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(cases[i].length, good, strlen(good), 24);
        refused(safetensors_open(path, &file), cases[i].says);
        safetensors_close(&file);
    }
    for (int bytes = 0; bytes < 8; bytes++) {
        write_file(0, "", 0, 0);
        assert_int_equal(truncate(path, bytes), 0);
        refused(safetensors_open(path, &file), "no safetensors file");
        safetensors_close(&file);
    }
    /* brackets as deep as the header is long: no stack is used up */
    size_t depth = SAFETENSORS_HEADER_MAX / 2 - 8;
    char *deep = malloc(2 * depth + 8);
    assert_non_null(deep);
    memcpy(deep, "{\"w\":", 5);
    memset(deep + 5, '[', depth);
    memset(deep + 5 + depth, ']', depth);
    deep[5 + 2 * depth] = '}';
    write_file(2 * depth + 6, deep, 2 * depth + 6, 24);
    refused(safetensors_open(path, &file), "no JSON");
    safetensors_close(&file);
    free(deep);
}

/* Every way to cut a good file, and every bit of its header flipped: refused, or the same tensors with other
 * words. */
static void test_damage(void **state) {
    (void)state;
    int fd = create();
    assert_int_equal(safetensors_write(fd, path, words, 1, written, WRITTEN, NULL), STATUS_OK);
    close(fd);
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    size_t size = (size_t)about.st_size;
    unsigned char *bytes = malloc(size);
    FILE *stream = fopen(path, "rb");
    assert_true(bytes && stream && fread(bytes, 1, size, stream) == size);
    fclose(stream);
    struct safetensors file;
    for (size_t cut = 0; cut < size; cut++) {
        stream = fdopen(create(), "wb");
        fwrite(bytes, 1, cut, stream);
        fclose(stream);
        assert_int_equal(safetensors_open(path, &file), STATUS_BAD_INPUT);
        safetensors_close(&file);
    }
    uint64_t header;
    memcpy(&header, bytes, sizeof header);
    int accepted = 0;
    stream = fdopen(create(), "wb");
    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    fclose(stream);
    fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    for (size_t bit = 0; bit < 8 * (8 + header); bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(pwrite(fd, bytes + bit / 8, 1, (off_t)(bit / 8)), 1);
        enum status status = safetensors_open(path, &file);
        assert_true(status == STATUS_OK || status == STATUS_BAD_INPUT);
        uint64_t sum = 0;
        for (int i = 0; status == STATUS_OK && i < file.tensor_count; i++)
            sum += file.tensors[i].bytes;
        if (status == STATUS_OK) { /* a letter of a name: nothing that is a number */
            assert_int_equal(sum, size - 8 - header);
            accepted++;
        }
        safetensors_close(&file);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(pwrite(fd, bytes + bit / 8, 1, (off_t)(bit / 8)), 1);
    }
    close(fd);
    assert_true(accepted > 0 && accepted < (int)(8 * header) / 2);
    free(bytes);
}

static void test_places(void **state) {
    (void)state;
    struct safetensors file;
    assert_int_equal(safetensors_open("/no/such/file", &file), STATUS_NOT_FOUND);
    safetensors_close(&file);
    assert_int_equal(safetensors_open("/dev/zero", &file), STATUS_BAD_INPUT);
    safetensors_close(&file);
    assert_int_equal(safetensors_open(getenv("TEST_TMP"), &file), STATUS_BAD_INPUT);
    safetensors_close(&file);
    char fifo[600];
    snprintf(fifo, sizeof fifo, "%s.fifo", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(safetensors_open(fifo, &file), STATUS_BAD_INPUT);
    safetensors_close(&file);
    int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    assert_int_equal(safetensors_write(full, "/dev/full", words, 3, written, WRITTEN, NULL), STATUS_NO_SPACE);
    assert_non_null(strstr(status_text(), strerror(ENOSPC)));
    close(full);
}

static void test_header_too_long(void **state) {
    (void)state;
    char *text = malloc(SAFETENSORS_HEADER_MAX + 1);
    assert_non_null(text);
    memset(text, 'a', SAFETENSORS_HEADER_MAX);
    text[SAFETENSORS_HEADER_MAX] = 0;
    int fd = create();
    const struct safetensors_word word = {"long", text};
    assert_int_equal(safetensors_write(fd, path, &word, 1, written, WRITTEN, NULL), STATUS_BAD_INPUT);
    close(fd);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_round_trip, set_path),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_header_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
