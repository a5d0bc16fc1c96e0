/* A checkpoint alone is enough for somebody else: an independent model of the network in NumPy reads it and
 * computes the same logits. Skipped where Python lacks NumPy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "kernels/registry.h"
#include "tests/support/cmocka.h"
#include "tests/support/net_run.h"
#include "tests/support/train_run.h"

enum { IMAGES = 6, SKIPPED = 77 };

static bool skipped;

static enum status save(void *context, const struct snapshot *snapshot, struct event_checkpoint *out) {
    return checkpoint_save(context, snapshot, out);
}

static void ignore(void *context, const struct event *event, bool recorded) {
    (void)context, (void)event, (void)recorded;
}

static void write_floats(const char *path, const double *values, size_t count) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < count; i++) {
        float value = (float)values[i];
        assert_int_equal(fwrite(&value, sizeof value, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
}

/* A few steps of the tutorial's network, saved in `folder`. */
static void train(struct device_handle device, const struct model *model, struct checkpoint_folder *folder) {
    struct dataset data = made_data(48, 8, 28, 3, 10);
    const char *const words[] = {"batch=16", "towers=2", "lr=0.05", NULL};
    struct trainer *trainer;
    struct trainer_options options = {.settings = made_settings(words),
                                      .run_name = "test",
                                      .data = &data,
                                      .model = model,
                                      .device = device,
                                      .sink = {ignore, NULL},
                                      .store = {.save = save, .context = folder}};
    if (trainer_open(&options, &trainer) != STATUS_OK)
        fail_msg("%s", status_text());
    for (int i = 0; i < 4; i++)
        assert_int_equal(trainer_step(trainer), STATUS_OK);
    assert_int_equal(trainer_save(trainer), STATUS_OK);
    trainer_close(trainer);
    made_data_free(&data);
}

static void test_logits(void **state) {
    (void)state;
    struct device_handle device;
    struct model *model;
    struct checkpoint_folder folder = {0};
    struct checkpoint back;
    assert_int_equal(device_open("cpu", 2, NULL, &device), STATUS_OK);
    assert_int_equal(model_read("cifar10", (struct model_ends){28, 28, 3, 10}, NAN, &model), STATUS_OK);
    snprintf(folder.path, sizeof folder.path, "%s/checkpoints", getenv("TEST_TMP"));
    train(device, model, &folder);
    assert_int_equal(checkpoint_read(folder.last, model, &back), STATUS_OK);

    struct net_run run;
    double *pixels = net_run_pixels(model, IMAGES, 3),
           *parameters = malloc(model->flat_count * sizeof *parameters);
    int32_t *labels = net_run_labels(model, IMAGES, 3);
    assert_non_null(parameters);
    for (size_t i = 0; i < model->flat_count; i++)
        parameters[i] = (double)back.snapshot.parameters[i];
    net_run_open(&run, device, model, IMAGES, false);
    net_run_step(&run, parameters, pixels, labels);
    double logits[IMAGES * 10];
    for (size_t i = 0; i < IMAGES * 10; i++)
        logits[i] = net_run_value(&run, net_logits(run.net, &run.memory), i);
    char paths[2][600], command[9000];
    snprintf(paths[0], sizeof paths[0], "%s/pixels", getenv("TEST_TMP"));
    snprintf(paths[1], sizeof paths[1], "%s/logits", getenv("TEST_TMP"));
    write_floats(paths[0], pixels, IMAGES * shape_size(model->input));
    write_floats(paths[1], logits, IMAGES * 10);
    snprintf(command, sizeof command,
             "PATH=/usr/bin:$PATH python3 '%s/tests/train/checkpoint_numpy.py' '%s' '%s' %d '%s'",
             getenv("SOURCE"), folder.last, paths[0], IMAGES, paths[1]);
    int status = system(command);
    assert_true(WIFEXITED(status));
    int code = WEXITSTATUS(status);
    skipped = code == SKIPPED || code == 127;
    if (!skipped)
        assert_int_equal(code, 0);
    net_run_close(&run);
    free(pixels);
    free(parameters);
    free(labels);
    checkpoint_free(&back);
    model_free(model);
    device_close(&device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_logits)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (failed || !skipped)
        return failed;
    printf("python3 has no numpy\n");
    return SKIPPED;
}
