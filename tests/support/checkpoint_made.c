#include "tests/support/checkpoint_made.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/random.h"
#include "engine/train/checkpoint_parts.h"
#include "tests/support/cmocka.h"

const char checkpoint_model_text[] = "[model]\nname=small\ninput=6\nlr=0.5\n"
                                     "[conv1]\ntype=conv\nkernel=3\nchannels=5\ndeviation=0.3\nrelu=yes\n"
                                     "[out]\ntype=dense\nunits=classes\ndeviation=0.3\nweight_decay=0.01\n";

struct model *checkpoint_model(int classes) {
    struct model *model;
    if (model_parse("small.ini", checkpoint_model_text, (struct model_ends){8, 8, 2, classes}, NAN, &model) !=
        STATUS_OK)
        fail_msg("%s", status_text());
    return model;
}

struct checkpoint_made checkpoint_make(uint64_t seed, bool velocity, bool average) {
    struct checkpoint_made m = {.model = checkpoint_model(4)};
    for (int i = 0; i < 3; i++) {
        m.arrays[i] = calloc(m.model->flat_count, sizeof(float));
        assert_non_null(m.arrays[i]);
        struct random r = random_begin(seed, RANDOM_TEST, (uint64_t)i);
        for (int p = 0; p < m.model->parameter_count; p++)
            for (size_t k = 0; k < m.model->parameters[p].count; k++)
                m.arrays[i][m.model->parameters[p].offset + k] = (float)random_normal(&r);
    }
    m.snapshot =
        (struct snapshot){.progress = {.steps = CHECKPOINT_MADE_STEP,
                                       .images = CHECKPOINT_MADE_STEP * 20 - 3,
                                       .place = {.epoch = 2, .position = 117}},
                          .schedule = {.base = 0.1, .decay = 0.3, .period_images = 12345.5, .start = 3},
                          .noise = {.gradient2 = 1.0 / 3, .spread = -2.5},
                          .running = {.steps = 36,
                                      .loss = 2.302585092994046,
                                      .any = true,
                                      .loss_min = 1.5,
                                      .loss_max = 7,
                                      .grad_norm_max = 9},
                          .model = m.model,
                          .epoch_images = 310,
                          .best = -1,
                          .train_content = UINT64_C(0x0123456789abcdef),
                          .test_content = 0xfe,
                          .applied = "sum",
                          .precision = 0.8765,
                          .parameters = m.arrays[0],
                          .velocity = velocity ? m.arrays[1] : NULL,
                          .average = average ? m.arrays[2] : NULL};
    settings_clear(&m.snapshot.settings);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "seed", "77"), STATUS_OK);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "towers", "3"), STATUS_OK);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "lr", "0.1234567890123456"), STATUS_OK);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "data", "/some place/data"), STATUS_OK);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "momentum", velocity ? "0.9" : "0"),
                     STATUS_OK);
    assert_int_equal(settings_set(&m.snapshot.settings, "test", "ema", average ? "0.99" : "0"), STATUS_OK);
    settings_complete(&m.snapshot.settings, &m.model->defaults);
    return m;
}

void checkpoint_unmake(struct checkpoint_made *m) {
    model_free(m->model);
    for (int i = 0; i < 3; i++)
        free(m->arrays[i]);
}

enum status checkpoint_made_write(const char *path, const struct snapshot *snapshot, uint64_t *bytes) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    assert_non_null(slash);
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    enum status status = checkpoint_write_in(fd, slash + 1, path, snapshot, bytes);
    close(fd);
    return status;
}
