/* Checkpoints that are not what the model needs: refused, with the tensor or number that is wrong. */
#include "engine/train/checkpoint.h"
#include "tests/support/checkpoint_edit.h"
#include "tests/support/checkpoint_made.h"
#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[700];

static int set_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "%s/step-%08d.safetensors", getenv("TEST_TMP"), CHECKPOINT_MADE_STEP);
    return 0;
}

static void expect(const struct model *model, enum status expected, const char *says) {
    struct checkpoint back;
    enum status status = checkpoint_read(path, model, &back);
    checkpoint_free(&back);
    if (status != expected || !strstr(status_text(), says) || strncmp(status_text(), path, strlen(path)) != 0)
        fail_msg("got %s \"%s\", expected \"%s\"", status_name(status),
                 status == STATUS_OK ? "" : status_text(), says);
}

static void drop_momentum(struct checkpoint_edit *e) {
    edit_drop(e, "conv1/biases/momentum");
}
static void drop_average(struct checkpoint_edit *e) {
    edit_drop(e, "out/weights/average");
}
static void drop_counter(struct checkpoint_edit *e) {
    edit_drop(e, "counters/position");
}
static void rename_weights(struct checkpoint_edit *e) {
    edit_rename(e, "out/weights", "out/kernel");
}
static void add_stranger(struct checkpoint_edit *e) {
    static const float one = 1;
    edit_add(
        e, (struct safetensors_tensor){
               .name = "conv9/weights", .type = SAFETENSORS_F32, .dims = {1}, .dim_count = 1, .data = &one});
}
static void reshape(struct checkpoint_edit *e) {
    struct safetensors_tensor *t = edit_tensor(e, "conv1/weights");
    t->dims[2] = 5;
    t->dims[3] = 2;
}
static void flatten(struct checkpoint_edit *e) {
    struct safetensors_tensor *t = edit_tensor(e, "out/weights");
    t->dims[0] *= t->dims[1];
    t->dim_count = 1;
}
static void other_type(struct checkpoint_edit *e) {
    edit_tensor(e, "conv1/biases")->type = SAFETENSORS_I32;
}
static void put_nan(struct checkpoint_edit *e) {
    ((float *)edit_values(e, "out/weights/average"))[7] = NAN;
}
static void put_infinity(struct checkpoint_edit *e) {
    ((float *)edit_values(e, "conv1/weights"))[0] = -INFINITY;
}
static void negative_step(struct checkpoint_edit *e) {
    *(int64_t *)edit_values(e, "counters/step") = -1;
}
static void nan_schedule(struct checkpoint_edit *e) {
    *(double *)edit_values(e, "schedule/base") = NAN;
}
static void other_format(struct checkpoint_edit *e) {
    edit_word(e, "format", "pt");
}
static void no_format(struct checkpoint_edit *e) {
    edit_word(e, "format", NULL);
}
static void no_config(struct checkpoint_edit *e) {
    edit_word(e, "config", NULL);
}
static void bad_config(struct checkpoint_edit *e) {
    edit_word(e, "config", "towers = many\n");
}
static void unknown_slot(struct checkpoint_edit *e) {
    edit_word(e, "slots", "values speed");
}
static void fewer_slots(struct checkpoint_edit *e) {
    edit_word(e, "slots", "values average");
}
static void no_values(struct checkpoint_edit *e) {
    edit_word(e, "slots", "momentum average");
}
/* Numbers that are good ones and do not agree with the others. */
static void whole(struct checkpoint_edit *e, const char *name, int64_t value) {
    *(int64_t *)edit_values(e, name) = value;
}
static void real(struct checkpoint_edit *e, const char *name, double value) {
    *(double *)edit_values(e, name) = value;
}
static void best_too_good(struct checkpoint_edit *e) {
    real(e, "counters/best_precision", 1.5);
}
static void best_too_bad(struct checkpoint_edit *e) {
    real(e, "counters/best_precision", -0.5);
}
static void precision_too_good(struct checkpoint_edit *e) {
    edit_word(e, "precision", "87.65");
}
static void more_images(struct checkpoint_edit *e) {
    whole(e, "counters/images", 738);
}
static void other_epoch(struct checkpoint_edit *e) {
    whole(e, "counters/epoch", 3);
}
static void endless_epochs(struct checkpoint_edit *e) {
    whole(e, "counters/epoch", INT64_C(1) << 53);
    whole(e, "counters/epoch_images", INT64_C(1) << 53);
}
static void beyond_the_epoch(struct checkpoint_edit *e) {
    whole(e, "counters/position", 310);
}
static void empty_epoch(struct checkpoint_edit *e) {
    whole(e, "counters/epoch_images", 0);
}
static void more_steps(struct checkpoint_edit *e) {
    whole(e, "counters/step", 738);
    edit_word(e, "step", "738");
}
static void no_steps(struct checkpoint_edit *e) {
    whole(e, "counters/step", 0);
    edit_word(e, "step", "0");
}
static void two_steps(struct checkpoint_edit *e) {
    whole(e, "counters/step", 36);
}
static void two_seeds(struct checkpoint_edit *e) {
    edit_word(e, "seed", "78");
}
static void rising_rate(struct checkpoint_edit *e) {
    real(e, "schedule/decay", 1.5);
}
static void huge_rate(struct checkpoint_edit *e) {
    real(e, "schedule/base", 1e31);
}
static void no_period(struct checkpoint_edit *e) {
    real(e, "schedule/period_images", 1e-9);
}
static void more_seen(struct checkpoint_edit *e) {
    whole(e, "running/steps", 38);
}
static void crossed_losses(struct checkpoint_edit *e) {
    real(e, "running/loss_min", 8);
}
static void no_velocities(struct checkpoint_edit *e) {
    edit_word(e, "slots", "values average");
    edit_drop(e, "conv1/weights/momentum");
    edit_drop(e, "conv1/biases/momentum");
    edit_drop(e, "out/weights/momentum");
    edit_drop(e, "out/biases/momentum");
}
static void no_averages(struct checkpoint_edit *e) {
    edit_word(e, "slots", "values momentum");
    edit_drop(e, "conv1/weights/average");
    edit_drop(e, "conv1/biases/average");
    edit_drop(e, "out/weights/average");
    edit_drop(e, "out/biases/average");
}
static void momentum_of_two(struct checkpoint_edit *e) {
    edit_word(e, "config", "momentum = 2\n");
}
static void ema_of_one(struct checkpoint_edit *e) {
    edit_word(e, "config", "ema = 1\n");
}
static void many_towers(struct checkpoint_edit *e) {
    edit_word(e, "config", "towers = 5000\n");
}
static void no_batch(struct checkpoint_edit *e) {
    edit_word(e, "config", "batch = 0\n");
}
static void short_content(struct checkpoint_edit *e) {
    edit_word(e, "content", "0123456789abcdef");
}
static void unknown_rule(struct checkpoint_edit *e) {
    edit_word(e, "applied", "guess");
}
/* Numbers and words as good as the right ones: their sum tells. */
static void another_best(struct checkpoint_edit *e) {
    real(e, "counters/best_precision", 0.25);
}
static void another_text(struct checkpoint_edit *e) {
    static char text[4000];
    const char *was = safetensors_word(&e->file, "model_text");
    snprintf(text, sizeof text, "%s# remark\n", was);
    edit_word(e, "model_text", text);
}
static void no_content(struct checkpoint_edit *e) {
    edit_word(e, "content", NULL);
}
static void no_towers(struct checkpoint_edit *e) {
    edit_word(e, "config", "seed = 77\nbatch = 8\nlr = 0.1\nmomentum = 0.9\nema = 0.9\n");
}

static const struct refusal {
    void (*edit)(struct checkpoint_edit *e);
    enum status status;
    const char *says;
} refusals[] = {
    {drop_momentum, STATUS_BAD_INPUT, "the tensor conv1/biases/momentum, F32 [5], is missing"},
    {drop_average, STATUS_BAD_INPUT, "out/weights/average, F32 [180, 4], is missing"},
    {drop_counter, STATUS_BAD_INPUT, "counters/position, I64 [1], is missing"},
    {rename_weights, STATUS_BAD_INPUT, "out/weights, F32 [180, 4], is missing"},
    {add_stranger, STATUS_BAD_INPUT, "conv9/weights belongs to no parameter of the model small"},
    {reshape, STATUS_BAD_INPUT, "conv1/weights is F32 [3, 3, 5, 2]; the model small needs F32 [3, 3, 2, 5]"},
    {flatten, STATUS_BAD_INPUT, "out/weights is F32 [720]; the model small needs F32 [180, 4]"},
    {other_type, STATUS_BAD_INPUT, "conv1/biases is I32 [5]; the model small needs F32 [5]"},
    {put_nan, STATUS_NON_FINITE, "value 7 of out/weights/average is NaN"},
    {put_infinity, STATUS_NON_FINITE, "value 0 of conv1/weights is infinite"},
    {negative_step, STATUS_BAD_INPUT, "counters/step is -1"},
    {nan_schedule, STATUS_BAD_INPUT, "schedule/base is nan"},
    {other_format, STATUS_BAD_INPUT, "its format is \"pt\""},
    {no_format, STATUS_BAD_INPUT, "no checkpoint of towerscope"},
    {no_config, STATUS_BAD_INPUT, "no \"config\""},
    {bad_config, STATUS_BAD_INPUT, "many"},
    {unknown_slot, STATUS_BAD_INPUT, "only values, momentum and average are known"},
    {fewer_slots, STATUS_BAD_INPUT, "/momentum belongs to no parameter"},
    {no_values, STATUS_BAD_INPUT, "without values"},
    {best_too_good, STATUS_BAD_INPUT, "counters/best_precision is 1.5; a number from 0 to 1"},
    {best_too_bad, STATUS_BAD_INPUT, "counters/best_precision is -0.5; a number from 0 to 1"},
    {precision_too_good, STATUS_BAD_INPUT, "its precision is \"87.65\"; a number from 0 to 1"},
    {more_images, STATUS_BAD_INPUT, "counters/images is 738; 2 epochs of 310 and 117 more is expected"},
    {other_epoch, STATUS_BAD_INPUT, "counters/images is 737; 3 epochs of 310 and 117 more is expected"},
    {endless_epochs, STATUS_BAD_INPUT, "counters/images is 737; 9007199254740992 epochs"},
    {beyond_the_epoch, STATUS_BAD_INPUT, "counters/position is 310; a place in an epoch of 310 images"},
    {empty_epoch, STATUS_BAD_INPUT, "counters/epoch_images is 0; at least 1"},
    {more_steps, STATUS_BAD_INPUT, "counters/step is 738; a number of steps that used 737 images"},
    {no_steps, STATUS_BAD_INPUT, "counters/step is 0; a number of steps that used 737 images"},
    {two_steps, STATUS_BAD_INPUT, "its step is \"37\" in the metadata and 36 in counters/step"},
    {two_seeds, STATUS_BAD_INPUT, "its seed is \"78\" in the metadata and 77 in config, seed"},
    {rising_rate, STATUS_BAD_INPUT, "schedule/decay is 1.5; more than 0 and at most 1"},
    {huge_rate, STATUS_BAD_INPUT, "schedule/base is 1e+31; a learning rate"},
    {no_period, STATUS_BAD_INPUT, "schedule/period_images is 1e-09; at least 0.001 images"},
    {more_seen, STATUS_BAD_INPUT, "running/steps is 38; no more than counters/step"},
    {crossed_losses, STATUS_BAD_INPUT, "running/loss_min is 8; at most running/loss_max"},
    {no_velocities, STATUS_BAD_INPUT, "its momentum is 0.9 and \"momentum\" is not among its slots"},
    {no_averages, STATUS_BAD_INPUT, "its ema is 0.99 and \"average\" is not among its slots"},
    {momentum_of_two, STATUS_BAD_INPUT, "momentum is 2, which is out of its range"},
    {ema_of_one, STATUS_BAD_INPUT, "ema is 1, which is out of its range"},
    {many_towers, STATUS_BAD_INPUT, "towers is 5000, which is out of its range"},
    {no_batch, STATUS_BAD_INPUT, "batch is 0, which is out of its range"},
    {no_towers, STATUS_BAD_INPUT, "config: towers is missing"},
    {short_content, STATUS_BAD_INPUT, "its content is \"0123456789abcdef\"; two numbers of 16 hexadecimal"},
    {another_best, STATUS_BAD_INPUT, "its metadata or counters are not as they were saved (their sum is "},
    {another_text, STATUS_BAD_INPUT, "its metadata or counters are not as they were saved (their sum is "},
    {no_content, STATUS_BAD_INPUT, "its metadata or counters are not as they were saved (their sum is "},
    {unknown_rule, STATUS_BAD_INPUT, "saved under the wrong rule \"guess\", which is none of those known"},
};

static void test_refusals(void **state) {
    (void)state;
    struct checkpoint_made m = checkpoint_make(3, true, true);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        assert_int_equal(checkpoint_made_write(path, &m.snapshot, NULL), STATUS_OK);
        struct checkpoint_edit e;
        edit_open(&e, path);
        edit_write(&e, path);
        struct checkpoint back; /* the editing itself harms nothing */
        assert_int_equal(checkpoint_read(path, m.model, &back), STATUS_OK);
        checkpoint_free(&back);
        refusals[i].edit(&e);
        edit_write(&e, path);
        expect(m.model, refusals[i].status, refusals[i].says);
        edit_close(&e);
    }
    checkpoint_unmake(&m);
}

/* A bit that has turned, wherever it lies, is seen; but in the key of the sum itself it makes a file of
 * before there were sums, and a good one. */
static void test_turned_bits(void **state) {
    (void)state;
    struct checkpoint_made m = checkpoint_make(3, true, true);
    assert_int_equal(checkpoint_made_write(path, &m.snapshot, NULL), STATUS_OK);
    int fd = open(path, O_RDWR | O_CLOEXEC), taken = 0;
    assert_true(fd >= 0);
    unsigned char byte, turned;
    for (off_t at = 0; pread(fd, &byte, 1, at) == 1; at++) {
        struct checkpoint back;
        turned = (unsigned char)(byte ^ 1 << at % 8);
        assert_int_equal(pwrite(fd, &turned, 1, at), 1);
        taken += checkpoint_read(path, m.model, &back) == STATUS_OK;
        checkpoint_free(&back);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
    if (taken > (int)strlen("state"))
        fail_msg("%d turned bits were not seen", taken);
    checkpoint_unmake(&m);
}

static void test_other_classes(void **state) {
    (void)state;
    struct checkpoint_made m = checkpoint_make(4, false, true);
    assert_int_equal(checkpoint_made_write(path, &m.snapshot, NULL), STATUS_OK);
    struct model *wide = checkpoint_model(100);
    expect(wide, STATUS_BAD_INPUT, "out/weights is F32 [180, 4]; the model small needs F32 [180, 100]");
    model_free(wide);
    checkpoint_unmake(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_refusals, set_path),
        cmocka_unit_test_setup(test_turned_bits, set_path),
        cmocka_unit_test_setup(test_other_classes, set_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
