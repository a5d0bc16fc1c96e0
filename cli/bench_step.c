#include "cli/bench_step.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>

#include "datasets/order.h"
#include "engine/base/clock.h"
#include "engine/base/random.h"

struct bench_tower {
    struct net *net; /* of its shard; towers with the same number of images share it */
    struct net_memory memory;
    struct span pictures; /* asynchronous devices: its images, in the device's memory */
    int64_t first, images;
    double seconds[BENCH_PHASES];
};

struct bench_step {
    const struct model *model;
    struct device_handle device;
    int count, batch, workers;
    int loaders; /* workers that load the images; 0: each tower's loads its own */
    bool asynchronous;
    struct bench_tower *towers;
    struct span *scratch; /* [workers] */
    struct span values, gradient, average, prepared;
    struct span *gradients; /* [count] */
    double *weights, *norms2, *segment_norms2, *update_norms2, average_norm2;
    float *pixels, *losses, *host_values;
    int32_t *labels;
    double seconds[BENCH_PHASES];
    long steps, done; /* since the phases were asked for; in all */
};

static bool allocate_host(struct bench_step *b) {
    size_t towers = (size_t)b->count, batch = (size_t)b->batch, tensors = (size_t)b->model->parameter_count;
    b->towers = calloc(towers, sizeof *b->towers);
    b->scratch = calloc((size_t)b->workers, sizeof *b->scratch);
    b->gradients = calloc(towers, sizeof *b->gradients);
    b->weights = calloc(towers, sizeof *b->weights);
    b->norms2 = calloc(towers, sizeof *b->norms2);
    b->segment_norms2 = calloc(tensors, sizeof *b->segment_norms2);
    b->update_norms2 = calloc(tensors, sizeof *b->update_norms2);
    b->pixels = calloc(batch * shape_size(b->model->input), sizeof *b->pixels);
    b->losses = calloc(batch, sizeof *b->losses);
    b->labels = calloc(batch, sizeof *b->labels);
    b->host_values = calloc(b->model->flat_count, sizeof *b->host_values);
    return b->towers && b->scratch && b->gradients && b->weights && b->norms2 && b->segment_norms2 &&
           b->update_norms2 && b->pixels && b->losses && b->labels && b->host_values;
}

static enum status plan_towers(struct bench_step *b) {
    for (int k = 0; k < b->count; k++) {
        struct bench_tower *tower = &b->towers[k];
        tower->images = order_shard(b->batch, b->count, k, &tower->first);
        b->weights[k] = (double)tower->images / b->batch;
        for (int i = 0; i < k && !tower->net; i++)
            if (b->towers[i].images == tower->images)
                tower->net = b->towers[i].net;
        struct net_options options = {
            .images = (int)tower->images, .lanes = net_lanes_for(b->device, b->count), .training = true};
        if (!tower->net)
            STATUS_TRY(net_plan(b->model, b->device, &options, &tower->net));
    }
    return STATUS_OK;
}

static enum status allocate_device(struct bench_step *b) {
    enum status (*make)(struct device *, size_t, int, struct span *) = b->device.ops->buffer_new;
    struct device *device = b->device.device;
    size_t flat = b->model->flat_count * sizeof(float), scratch = 0, prepared = 0;
    for (int k = 0; k < b->count; k++) {
        struct net_sizes sizes = net_sizes(b->towers[k].net);
        STATUS_TRY(make(device, sizes.arena_bytes, k, &b->towers[k].memory.arena));
        STATUS_TRY(make(device, sizes.gradient_bytes, k, &b->towers[k].memory.gradient));
        b->gradients[k] = b->towers[k].memory.gradient;
        size_t input = net_input(b->towers[k].net, &b->towers[k].memory).bytes;
        if (b->asynchronous)
            STATUS_TRY(make(device, input, k, &b->towers[k].pictures));
        scratch = sizes.scratch_bytes > scratch ? sizes.scratch_bytes : scratch;
        prepared = sizes.prepared_bytes;
    }
    for (int i = 0; i < b->workers; i++)
        STATUS_TRY(make(device, scratch, i, &b->scratch[i]));
    STATUS_TRY(make(device, prepared, PLACE_SHARED, &b->prepared));
    STATUS_TRY(make(device, flat, PLACE_SHARED, &b->gradient));
    STATUS_TRY(make(device, flat, PLACE_SHARED, &b->average));
    return make(device, flat, PLACE_SHARED, &b->values);
}

/* The pictures to where a step takes them from. */
static enum status fill_pictures(const struct bench_step *b) {
    size_t values = shape_size(b->model->input);
    for (int k = 0; k < b->count && b->asynchronous; k++) {
        const struct bench_tower *t = &b->towers[k];
        STATUS_TRY(b->device.ops->write(b->device.device, NULL, t->pictures,
                                        b->pixels + (size_t)t->first * values, (size_t)t->images * values));
    }
    return STATUS_OK;
}

/* Images as standardised ones are, labels drawn evenly, parameters as a run begins with. */
static enum status fill(struct bench_step *b) {
    struct random random = random_begin(1, RANDOM_GENERATED_DATA, 0);
    for (size_t i = 0; i < (size_t)b->batch * shape_size(b->model->input); i++)
        b->pixels[i] = (float)random_normal(&random);
    for (int i = 0; i < b->batch; i++)
        b->labels[i] = (int32_t)random_below(&random, (uint32_t)b->model->classes);
    model_initialise(b->model, 1, b->host_values);
    const struct device_ops *ops = b->device.ops;
    STATUS_TRY(ops->write(b->device.device, NULL, b->values, b->host_values, b->model->flat_count));
    STATUS_TRY(ops->write(b->device.device, NULL, b->average, b->host_values, b->model->flat_count));
    return fill_pictures(b);
}

enum status bench_step_open(const struct model *model, struct device_handle device, int towers, int batch,
                            struct bench_step **out) {
    *out = NULL;
    if (towers > batch)
        return status_fail(STATUS_BAD_INPUT, "%d towers for a batch of %d images: each needs one", towers,
                           batch);
    struct bench_step *b = calloc(1, sizeof *b);
    if (!b)
        return status_fail(STATUS_NO_MEMORY, "no memory for a benchmark");
    *b = (struct bench_step){.model = model,
                             .device = device,
                             .count = towers,
                             .batch = batch,
                             .workers = device.ops->workers(device.device, towers)};
    struct device_info info;
    enum status status = device.ops->describe(device.device, &info);
    if (status == STATUS_OK && info.host_memory)
        b->loaders = device.ops->workers(device.device, batch);
    b->asynchronous = status == STATUS_OK && info.asynchronous;
    if (status == STATUS_OK)
        status = allocate_host(b) ? STATUS_OK : status_fail(STATUS_NO_MEMORY, "no memory for a benchmark");
    if (status == STATUS_OK)
        status = plan_towers(b);
    if (status == STATUS_OK)
        status = allocate_device(b);
    if (status == STATUS_OK)
        status = fill(b);
    if (status != STATUS_OK) {
        bench_step_close(b);
        return status;
    }
    *out = b;
    return STATUS_OK;
}

void bench_step_close(struct bench_step *b) {
    if (!b)
        return;
    void (*drop)(struct device *, struct span) = b->device.ops->buffer_free;
    struct device *device = b->device.device;
    for (int k = 0; b->towers && k < b->count; k++) {
        bool shared = false;
        for (int i = 0; i < k; i++)
            shared = shared || b->towers[i].net == b->towers[k].net;
        if (!shared)
            net_free(b->towers[k].net);
        drop(device, b->towers[k].memory.arena);
        drop(device, b->towers[k].memory.gradient);
        drop(device, b->towers[k].pictures);
    }
    for (int i = 0; b->scratch && i < b->workers; i++)
        drop(device, b->scratch[i]);
    struct span shared[] = {b->values, b->gradient, b->average, b->prepared};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        drop(device, shared[i]);
    void *host[] = {b->towers,        b->scratch, b->gradients, b->weights, b->norms2,     b->segment_norms2,
                    b->update_norms2, b->pixels,  b->losses,    b->labels,  b->host_values};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
    free(b);
}

static enum status prepare(void *context, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    struct bench_step *b = context;
    return net_prepare(b->towers[0].net, stream, b->values, b->prepared);
}

/* Images first .. first + images - 1 of a tower's shard to its input. */
static enum status load_images(struct bench_step *b, const struct bench_tower *t, int64_t first,
                               int64_t images, struct stream *stream) {
    size_t values = shape_size(b->model->input), skipped = (size_t)first * values * sizeof(float);
    struct span input = net_input(t->net, &t->memory);
    input = (struct span){(char *)input.data + skipped, input.bytes - skipped};
    return b->device.ops->write(b->device.device, stream, input,
                                b->pixels + (size_t)(t->first + first) * values, (size_t)images * values);
}

/* As a run does it in host memory: every worker a part of the batch, whichever towers' images these are. */
static enum status load_part(void *context, int part, int worker, struct stream *stream) {
    (void)worker;
    struct bench_step *b = context;
    int64_t first, images = order_shard(b->batch, b->loaders, part, &first);
    for (const struct bench_tower *t = b->towers; images > 0; t++) {
        int64_t left = t->first + t->images - first, now = left < images ? left : images;
        if (left <= 0)
            continue;
        STATUS_TRY(load_images(b, t, first - t->first, now, stream));
        first += now;
        images -= now;
    }
    return STATUS_OK;
}

static struct net_operands operands_of(const struct bench_step *b, const struct bench_tower *t, int worker) {
    return (struct net_operands){b->values, b->prepared, b->scratch[worker], b->labels + t->first};
}

/* As engine/train/step.c queues a tower's step. */
static enum status queue_tower(const struct bench_step *b, int k, int worker, struct stream *stream) {
    const struct bench_tower *t = &b->towers[k];
    const struct device_ops *ops = b->device.ops;
    const struct net_operands operands = operands_of(b, t, worker);
    STATUS_TRY(ops->copy(b->device.device, stream, net_input(t->net, &t->memory), t->pictures));
    STATUS_TRY(net_pass(t->net, stream, &t->memory, &operands, NET_STEP | NET_AGAIN, NULL));
    return ops->read(b->device.device, stream, b->losses + t->first, net_losses(t->net, &t->memory),
                     (size_t)t->images);
}

static enum status run_tower(void *context, int k, int worker, struct stream *stream) {
    struct bench_step *b = context;
    if (b->asynchronous)
        return queue_tower(b, k, worker, stream);
    struct bench_tower *t = &b->towers[k];
    const struct device_ops *ops = b->device.ops;
    size_t first = (size_t)t->first, images = (size_t)t->images;
    double start = clock_seconds();
    if (!b->loaders)
        STATUS_TRY(load_images(b, t, 0, t->images, stream));
    double loaded = clock_seconds();
    struct net_seconds seconds;
    struct net_operands operands = operands_of(b, t, worker);
    STATUS_TRY(net_pass(t->net, stream, &t->memory, &operands, NET_STEP, &seconds));
    t->seconds[BENCH_FORWARD] = loaded - start + seconds.forward;
    t->seconds[BENCH_LOSS] = seconds.loss;
    t->seconds[BENCH_BACKWARD] = seconds.backward;
    return ops->read(b->device.device, stream, b->losses + first, net_losses(t->net, &t->memory), images);
}

static struct combine_args average_args(struct bench_step *b) {
    return (struct combine_args){.towers = b->count,
                                 .gradients = b->gradients,
                                 .weights = b->weights,
                                 .parameters = b->values,
                                 .segments = b->model->segments,
                                 .segment_count = b->model->parameter_count,
                                 .average = b->gradient,
                                 .norms2 = b->norms2,
                                 .average_norm2 = &b->average_norm2};
}

static struct update_args update_args(struct bench_step *b) {
    return (struct update_args){.parameters = b->values,
                                .average = b->gradient,
                                .shadow = b->average,
                                .segments = b->model->segments,
                                .segment_count = b->model->parameter_count,
                                .learning_rate = 0.01,
                                .gradient_scale = 1,
                                .ema_decay = 0.9999,
                                .parameter_norms2 = b->segment_norms2,
                                .update_norms2 = b->update_norms2};
}

/* Average and update; *averaged: when the first of them was done, where they are two calls. */
static enum status average_and_update(struct bench_step *b, double *averaged) {
    const struct device_ops *ops = b->device.ops;
    struct combine_args average = average_args(b);
    struct update_args update = update_args(b);
    if (b->asynchronous) {
        *averaged = clock_seconds();
        return ops->combine_update(b->device.device, &average, &update);
    }
    STATUS_TRY(ops->combine(b->device.device, &average));
    *averaged = clock_seconds();
    return ops->update(b->device.device, &update);
}

static enum status step(struct bench_step *b) {
    struct device_handle device = b->device;
    double start = clock_seconds();
    STATUS_TRY(device.ops->each(device.device, 1, prepare, b));
    double prepared = clock_seconds();
    if (b->loaders)
        STATUS_TRY(device.ops->each(device.device, b->loaders, load_part, b));
    double loaded = clock_seconds();
    STATUS_TRY(device.ops->each(device.device, b->count, run_tower, b));
    double towers = clock_seconds(), averaged;
    STATUS_TRY(average_and_update(b, &averaged));
    double end = clock_seconds();
    b->seconds[BENCH_PREPARE] += prepared - start;
    b->seconds[BENCH_FORWARD] += loaded - prepared;
    b->seconds[BENCH_AVERAGE] += averaged - towers;
    b->seconds[BENCH_UPDATE] += end - averaged;
    for (int phase = BENCH_FORWARD; phase <= BENCH_BACKWARD; phase++) {
        double slowest = 0;
        for (int k = 0; k < b->count; k++)
            slowest = fmax(slowest, b->towers[k].seconds[phase]);
        b->seconds[phase] += slowest;
    }
    b->steps++;
    b->done++;
    return STATUS_OK;
}

/* Wait for an asynchronous device. */
static enum status finish(struct bench_step *b) {
    enum status status;
    while ((status = b->device.ops->poll(b->device.device)) == STATUS_BUSY)
        sched_yield();
    return status;
}

enum status bench_step_run(struct bench_step *b, double seconds, double *rate) {
    enum { AT_ONCE = 10 }; /* steps that may wait on an asynchronous device */
    double start = clock_seconds(), now;
    long steps = 0;
    do {
        STATUS_TRY(step(b));
        steps++;
        if (steps % AT_ONCE == 0)
            STATUS_TRY(finish(b));
        now = clock_seconds();
    } while (now - start < seconds);
    STATUS_TRY(finish(b));
    now = clock_seconds();
    *rate = (double)steps * b->batch / (now - start);
    return STATUS_OK;
}

void bench_step_phases(struct bench_step *b, double seconds[BENCH_PHASES]) {
    for (int phase = 0; phase < BENCH_PHASES; phase++) {
        seconds[phase] = b->steps ? b->seconds[phase] / (double)b->steps : 0;
        b->seconds[phase] = 0;
    }
    b->steps = 0;
}

double bench_step_loss(const struct bench_step *b) {
    double sum = 0;
    for (int i = 0; i < b->batch; i++)
        sum += (double)b->losses[i];
    return b->done ? sum / b->batch : (double)NAN;
}
