#include "cli/bench_loader.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/train/trainer.h"

struct bench_loader {
    struct dataset *data;
    struct model *model;
    struct trainer *trainer;
    int batch;
    int64_t images; /* that the steps' events told of */
};

static void count_images(void *context, const struct event *event, bool recorded) {
    (void)recorded;
    struct bench_loader *b = context;
    if (event->kind == EVENT_STEP)
        b->images += event->step.images;
}

static enum status open_all(struct bench_loader *b, const char *model_name, struct device_handle device,
                            int towers) {
    struct dataset_options data_options = {.seed = 1, .generated_train = 5000, .generated_test = 100};
    STATUS_TRY(dataset_open("generated", &data_options, &b->data));
    const struct image_set *train = &b->data->train;
    struct model_ends ends = {train->shape.h, train->shape.w, train->shape.c, b->data->classes};
    STATUS_TRY(model_read(model_name, ends, (double)NAN, &b->model));
    struct trainer_options options = {
        .run_name = "bench", .data = b->data, .model = b->model, .device = device, .sink = {count_images, b}};
    settings_clear(&options.settings);
    STATUS_TRY(settings_set(&options.settings, "bench", "distort", "on"));
    options.settings.towers = towers;
    options.settings.batch = b->batch;
    options.settings.eval_every = 0;
    options.settings.lr = 0.01;
    STATUS_TRY(trainer_open(&options, &b->trainer));
    trainer_begin(b->trainer);
    return STATUS_OK;
}

enum status bench_loader_open(const char *model_name, struct device_handle device, int towers, int batch,
                              struct bench_loader **out) {
    *out = NULL;
    struct bench_loader *b = calloc(1, sizeof *b);
    if (!b)
        return status_fail(STATUS_NO_MEMORY, "no memory for a benchmark");
    b->batch = batch;
    enum status status = open_all(b, model_name, device, towers);
    if (status != STATUS_OK) {
        bench_loader_close(b);
        return status;
    }
    *out = b;
    return STATUS_OK;
}

void bench_loader_close(struct bench_loader *b) {
    if (!b)
        return;
    trainer_close(b->trainer);
    model_free(b->model);
    dataset_close(b->data);
    free(b);
}

enum status bench_loader_run(struct bench_loader *b, double seconds, double *rate) {
    int64_t before = b->images;
    double start = clock_seconds(), now;
    do {
        STATUS_TRY(trainer_step(b->trainer));
        now = clock_seconds();
    } while (now - start < seconds);
    *rate = (double)(b->images - before) / (now - start);
    return STATUS_OK;
}
