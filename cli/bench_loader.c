#include "cli/bench_loader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/bench_spread.h"
#include "cli/telemetry.h"
#include "engine/base/clock.h"
#include "engine/hub/hub.h"
#include "engine/train/trainer.h"

enum { RECORD_EVERY = 2, KEPT = 1024 }; /* the others show what a step takes without its cosines */

struct bench_loader {
    struct dataset *data;
    struct model *model;
    struct trainer *trainer;
    struct device_handle device;
    struct hub *hub;
    struct telemetry telemetry;
    int batch;
    struct event_step step; /* what the last one's event told of it: without towers ... */
    double load;            /* ... but for their time to load, in seconds: all have the same */
    int pairs;              /* of steps, the second one recorded */
    double longer[KEPT];    /* seconds that the average took in it than in the first: of the last pairs */
};

static void emit(void *context, const struct event *event, bool recorded) {
    struct bench_loader *b = context;
    hub_emit(b->hub, event, recorded);
    if (event->kind != EVENT_STEP)
        return;
    b->step = event->step;
    b->step.towers = NULL;
    b->load = event->step.towers[0].load_ms * 1e-3;
}

static enum status open_record(struct bench_loader *b, const char *folder, int towers) {
    char path[512];
    struct hub_options options = {0};
    struct device_info info;
    STATUS_TRY(b->device.ops->describe(b->device.device, &info));
    snprintf(path, sizeof path, "%s/%d-threads-%d-towers", folder, info.threads, towers);
    if (mkdir(path, 0700))
        return status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
    STATUS_TRY(live_describe(path, &options.run));
    return hub_open(&options, &b->hub);
}

static enum status open_all(struct bench_loader *b, const char *model_name, int towers, const char *folder) {
    int64_t batches = 5000 / b->batch + 1, most = 40; /* full ones all; of small ones few, to open soon */
    int64_t images = (batches < most ? batches : most) * b->batch;
    struct dataset_options data_options = {.seed = 1, .generated_train = images, .generated_test = 100};
    STATUS_TRY(dataset_open("generated", &data_options, &b->data));
    const struct image_set *train = &b->data->train;
    struct model_ends ends = {train->shape.h, train->shape.w, train->shape.c, b->data->classes};
    STATUS_TRY(model_read(model_name, ends, (double)NAN, &b->model));
    STATUS_TRY(open_record(b, folder, towers));
    struct trainer_options options = {
        .run_name = "bench", .data = b->data, .model = b->model, .device = b->device, .sink = {emit, b}};
    settings_clear(&options.settings);
    STATUS_TRY(settings_set(&options.settings, "bench", "distort", "on"));
    options.settings.towers = towers;
    options.settings.batch = b->batch;
    options.settings.eval_every = 0;
    options.settings.record_every = RECORD_EVERY;
    options.settings.lr = 0.01;
    STATUS_TRY(trainer_open(&options, &b->trainer));
    trainer_begin(b->trainer);
    return STATUS_OK;
}

enum status bench_loader_open(const char *model_name, struct device_handle device, int towers, int batch,
                              const char *folder, struct bench_loader **out) {
    *out = NULL;
    struct bench_loader *b = calloc(1, sizeof *b);
    if (!b)
        return status_fail(STATUS_NO_MEMORY, "no memory for a benchmark");
    b->batch = batch;
    b->device = device;
    enum status status = open_all(b, model_name, towers, folder);
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
    hub_close(b->hub);
    model_free(b->model);
    dataset_close(b->data);
    free(b);
}

/* What an engine does between two steps. */
static void between_steps(struct bench_loader *b) {
    struct command command;
    struct device_info info;
    struct event event;
    (void)hub_take(b->hub, trainer_steps(b->trainer), &command);
    if (b->device.ops->describe(b->device.device, &info) == STATUS_OK &&
        telemetry_measure(&b->telemetry, info.name, info.threads, &event))
        hub_emit(b->hub, &event, false);
}

static enum status one_step(struct bench_loader *b, double *seconds) {
    double start = clock_seconds();
    STATUS_TRY(trainer_step(b->trainer));
    between_steps(b);
    *seconds = clock_seconds() - start;
    return STATUS_OK;
}

enum status bench_loader_run(struct bench_loader *b, double seconds, double *rate, struct bench_rest *rest) {
    int64_t images = 0;
    *rest = (struct bench_rest){0};
    double record = hub_processor_seconds(b->hub), start = clock_seconds(), now;
    do { /* always two: the second one is recorded */
        double taken = 0, average[RECORD_EVERY];
        for (int k = 0; k < RECORD_EVERY; k++) {
            STATUS_TRY(one_step(b, &taken));
            average[k] = b->step.average_ms * 1e-3;
            images += b->step.images;
        }
        b->longer[b->pairs++ % KEPT] = average[1] - average[0];
        rest->steps++;
        rest->seconds += taken;
        rest->part[BENCH_PICTURES] += b->load;
        rest->part[BENCH_EVENTS] += taken - b->step.seconds;
        now = clock_seconds();
    } while (now - start < seconds);
    *rate = (double)images / (now - start);
    rest->part[BENCH_RECORD] = hub_processor_seconds(b->hub) - record;
    return STATUS_OK;
}

double bench_loader_cosines(const struct bench_loader *b) {
    double sorted[KEPT];
    memcpy(sorted, b->longer, sizeof sorted);
    return bench_spread(sorted, b->pairs < KEPT ? b->pairs : KEPT).middle;
}
