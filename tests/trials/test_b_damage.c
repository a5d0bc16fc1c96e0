/* Checkpoints that were damaged, or are of another network: `train --resume` refuses each by the tensor's
 * name and changes nothing; so does `eval`. The undamaged one is the control. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/train/checkpoint.h"
#include "tests/support/checkpoint_edit.h"
#include "tests/support/cmocka.h"

static char folder[600], path[700], said[4096];

/* Run `towerscope ARGUMENTS`; what it wrote to stderr is in `said`. Returns its exit code. */
static int towerscope(const char *arguments) {
    char command[2000], file[600];
    snprintf(file, sizeof file, "%s/err", getenv("TEST_TMP"));
    snprintf(command, sizeof command, "cd '%s' && exec '%s' %s >out 2>err </dev/null", getenv("TEST_TMP"),
             getenv("TOWERSCOPE"), arguments);
    int status = system(command);
    FILE *stream = fopen(file, "rb");
    assert_non_null(stream);
    said[fread(said, 1, sizeof said - 1, stream)] = 0;
    fclose(stream);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Size and time of change of every file of the run's folder of checkpoints and of its record, as text. */
static void fingerprint(char *out, size_t size) {
    *out = 0;
    char record[700];
    struct stat about;
    snprintf(record, sizeof record, "%s/runs/r/events.jsonl", getenv("TEST_TMP"));
    assert_int_equal(stat(record, &about), 0);
    snprintf(out, size, "record %lld %lld.%09ld\n", (long long)about.st_size, (long long)about.st_mtim.tv_sec,
             about.st_mtim.tv_nsec);
    long long sum = 0;
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        char name[1000];
        snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || stat(name, &about) != 0)
            continue;
        count++;
        sum += about.st_size ^ about.st_mtim.tv_nsec;
    }
    closedir(dir);
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%d files, %lld", count, sum);
}

static void refused(const char *arguments, const char *says) {
    char before[300], after[300];
    fingerprint(before, sizeof before);
    int code = towerscope(arguments);
    if (code != 1 && code != 3)
        fail_msg("%s: expected \"%s\", got exit %d: %s", arguments, says, code, said);
    if (!strstr(said, says) || !strchr(said, '\n') || strchr(said, '\n')[1])
        fail_msg("%s: expected one line with \"%s\": %s", arguments, says, said);
    fingerprint(after, sizeof after);
    assert_string_equal(before, after);
}

static int train_first(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s/runs/r/checkpoints", getenv("TEST_TMP"));
    snprintf(path, sizeof path, "%s/step-00000004.safetensors", folder);
    int code = towerscope("data make some --images 200");
    if (code == 0)
        code = towerscope("train r --data some --model mlp --towers 2 --batch 32 --steps 4 --momentum 0.9 "
                          "--checkpoint-every 2 --eval-every 0");
    if (code != 0)
        print_error("%s", said);
    return code;
}

static void drop_momentum(struct checkpoint_edit *e) {
    edit_drop(e, "hidden2/weights/momentum");
}
static void drop_average(struct checkpoint_edit *e) {
    edit_drop(e, "hidden1/biases/average");
}
static void drop_counter(struct checkpoint_edit *e) {
    edit_drop(e, "counters/images");
}
static void rename_weights(struct checkpoint_edit *e) {
    edit_rename(e, "softmax_linear/weights", "softmax/weights");
}
static void reshape(struct checkpoint_edit *e) {
    struct safetensors_tensor *tensor = edit_tensor(e, "hidden2/weights");
    tensor->dims[0] = 64;
    tensor->dims[1] = 128;
}
static void half_type(struct checkpoint_edit *e) {
    struct safetensors_tensor *tensor = edit_tensor(e, "hidden2/weights");
    tensor->type = SAFETENSORS_BF16;
    tensor->dims[0] *= 2;
}
static void put_nan(struct checkpoint_edit *e) {
    ((float *)edit_values(e, "hidden1/weights"))[5] = NAN;
}
static void put_infinity(struct checkpoint_edit *e) {
    ((float *)edit_values(e, "hidden2/biases/momentum"))[0] = INFINITY;
}
static void add_stranger(struct checkpoint_edit *e) {
    static const float one[2] = {1, 2};
    edit_add(
        e, (struct safetensors_tensor){
               .name = "hidden3/weights", .type = SAFETENSORS_F32, .dims = {2}, .dim_count = 1, .data = one});
}
static void other_format(struct checkpoint_edit *e) {
    edit_word(e, "format", "pt");
}
static void far_position(struct checkpoint_edit *e) {
    *(int64_t *)edit_values(e, "counters/position") = 200;
}
static void huge_counter(struct checkpoint_edit *e) {
    *(int64_t *)edit_values(e, "counters/images") = INT64_MAX;
}

static const struct {
    void (*edit)(struct checkpoint_edit *edit);
    const char *says;
} edits[] = {
    {drop_momentum, "hidden2/weights/momentum, F32 [128, 64], is missing"},
    {drop_average, "hidden1/biases/average, F32 [128], is missing"},
    {drop_counter, "counters/images, I64 [1], is missing"},
    {rename_weights, "softmax_linear/weights, F32 [64, 10], is missing"},
    {reshape, "hidden2/weights is F32 [64, 128]; the model mlp needs F32 [128, 64]"},
    {half_type, "hidden2/weights is BF16 [256, 64]; the model mlp needs F32 [128, 64]"},
    {put_nan, "value 5 of hidden1/weights is NaN"},
    {put_infinity, "value 0 of hidden2/biases/momentum is infinite"},
    {add_stranger, "hidden3/weights belongs to no parameter of the model mlp"},
    {other_format, "its format is \"pt\""},
    {far_position, "counters/position is 200; a place in an epoch of 200 images is expected"},
    {huge_counter, "counters/images is 9.223372036854776e+18; a number from 0 to 2^53 is expected"},
};

static void test_edited(void **state) {
    (void)state;
    struct checkpoint_edit whole;
    edit_open(&whole, path);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        struct checkpoint_edit e;
        edit_write(&whole, path);
        edit_open(&e, path);
        edits[i].edit(&e);
        edit_write(&e, path);
        edit_close(&e);
        refused("train r --resume --steps 6", edits[i].says);
        char arguments[800];
        snprintf(arguments, sizeof arguments, "eval '%s'", path);
        refused(arguments, edits[i].says);
    }
    edit_write(&whole, path);
    edit_close(&whole);
}

/* Cut at any place, or a byte of the header another. */
static void test_bytes(void **state) {
    (void)state;
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    char *bytes = malloc((size_t)about.st_size);
    FILE *stream = fopen(path, "rb");
    assert_true(bytes && stream && fread(bytes, 1, (size_t)about.st_size, stream) == (size_t)about.st_size);
    fclose(stream);
    const long long cuts[] = {0, 7, 8, 100, about.st_size / 2, about.st_size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        assert_int_equal(truncate(path, cuts[i]), 0);
        refused("train r --resume --steps 6", path + strlen(getenv("TEST_TMP")) + 1);
        stream = fopen(path, "wb");
        assert_true(stream && fwrite(bytes, 1, (size_t)about.st_size, stream) == (size_t)about.st_size);
        assert_int_equal(fclose(stream), 0);
    }
    assert_int_equal(truncate(path, about.st_size + 5), 0);
    refused("train r --resume --steps 6", "5 bytes follow the last tensor");
    assert_int_equal(truncate(path, about.st_size), 0);
    free(bytes);
}

/* A whole file, but not what is asked to go on. */
static void test_other_run(void **state) {
    (void)state;
    refused("train r --resume --steps 6 --seed 9", "the seed 1 can't become 9");
    refused("train r --resume --steps 6 --model softmax", "of the model mlp and can't go on with softmax");
    int code = towerscope("train --resume");
    assert_int_equal(code, 2);
    assert_non_null(strstr(said, "--resume needs the NAME"));
    code = towerscope("train nobody --resume");
    assert_int_equal(code, 4);
    assert_non_null(strstr(said, "no run \"nobody\""));
}

static void test_control(void **state) {
    (void)state;
    assert_int_equal(towerscope("eval r"), 0);
    assert_string_equal(said, "");
    assert_int_equal(towerscope("train r --resume --steps 6"), 0);
    assert_string_equal(said, "");
    char newest[1100];
    assert_int_equal(checkpoint_newest(folder, newest, sizeof newest), STATUS_OK);
    assert_non_null(strstr(newest, "step-00000006"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edited),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_other_run),
        cmocka_unit_test(test_control),
    };
    return cmocka_run_group_tests(tests, train_first, NULL);
}
