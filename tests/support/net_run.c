#include "tests/support/net_run.h"

#include "engine/base/random.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Every kind of layer, each order of pool and norm, two strides, small enough for plain C in double. */
static const char SMALL[] =
    "[model]\nname=small\ninput=9\n"
    "[conv1]\ntype=conv\nkernel=3\nchannels=6\ndeviation=0.3\nbias=0.1\nrelu=yes\n"
    "[pool1]\ntype=pool\nkernel=3\nstride=2\n"
    "[norm1]\ntype=lrn\nradius=2\nbias=1\nalpha=0.05\nbeta=0.75\n"
    "[conv2]\ntype=conv\nkernel=3\nchannels=8\nstride=2\ndeviation=0.3\nbias=0.1\nrelu=yes\n"
    "[norm2]\ntype=lrn\nradius=1\nbias=2\nalpha=0.05\nbeta=0.5\n"
    "[pool2]\ntype=pool\nkernel=2\nstride=1\n"
    "[local3]\ntype=dense\nunits=12\ndeviation=0.3\nbias=0.1\nrelu=yes\nweight_decay=0.004\n"
    "[out]\ntype=dense\nunits=classes\ndeviation=0.3\n";

static void must(enum status status) {
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_name(status), status_text());
}

static struct span buffer(struct net_run *run, size_t bytes) {
    struct span span;
    must(run->device.ops->buffer_new(run->device.device, bytes, 0, &span));
    return span;
}

void net_run_open(struct net_run *run, struct device_handle device, const struct model *model, int images,
                  bool training) {
    net_run_open_with(run, device, model, &(struct net_options){.images = images, .training = training});
}

void net_run_open_with(struct net_run *run, struct device_handle device, const struct model *model,
                       const struct net_options *options) {
    struct device_info info;
    must(device.ops->describe(device.device, &info));
    assert_true(info.host_memory);
    *run = (struct net_run){
        .device = device, .model = model, .element = (size_t)info.element_bytes, .images = options->images};
    must(net_plan(model, device, options, &run->net));
    struct net_sizes sizes = net_sizes(run->net);
    run->memory.arena = buffer(run, sizes.arena_bytes);
    run->memory.gradient = buffer(run, sizes.gradient_bytes);
    run->parameters = buffer(run, model->flat_count * run->element);
    run->prepared = buffer(run, sizes.prepared_bytes);
    run->scratch = buffer(run, sizes.scratch_bytes);
    net_run_poison(run);
}

void net_run_close(struct net_run *run) {
    struct span *spans[] = {&run->memory.arena, &run->memory.gradient, &run->parameters, &run->prepared,
                            &run->scratch};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        run->device.ops->buffer_free(run->device.device, *spans[i]);
    net_free(run->net);
    *run = (struct net_run){0};
}

void net_run_poison(struct net_run *run) {
    memset(run->memory.arena.data, 0xFF, run->memory.arena.bytes);
    memset(run->scratch.data, 0xFF, run->scratch.bytes);
}

static void fill(const struct net_run *run, struct span span, const double *values, size_t count) {
    assert_true(span.bytes >= count * run->element);
    for (size_t i = 0; i < count; i++)
        if (run->element == sizeof(double))
            ((double *)span.data)[i] = values[i];
        else
            ((float *)span.data)[i] = (float)values[i];
}

struct work {
    struct net_run *run;
    const int32_t *labels;
};

static enum status step(void *context, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    struct work *work = context;
    struct net_run *r = work->run;
    struct net_operands operands = net_run_operands(r);
    operands.labels = work->labels;
    STATUS_TRY(net_prepare(r->net, stream, r->parameters, r->prepared));
    STATUS_TRY(net_pass(r->net, stream, &r->memory, &operands, NET_FORWARD, NULL));
    STATUS_TRY(net_pass(r->net, stream, &r->memory, &operands, NET_LOSS, NULL));
    if (net_sizes(r->net).gradient_bytes == 0)
        return STATUS_OK;
    return net_pass(r->net, stream, &r->memory, &operands, NET_BACKWARD, NULL);
}

struct net_operands net_run_operands(const struct net_run *run) {
    return (struct net_operands){run->parameters, run->prepared, run->scratch, NULL};
}

void net_run_fill(struct net_run *run, const double *pixels) {
    fill(run, net_input(run->net, &run->memory), pixels, (size_t)run->images * shape_size(run->model->input));
}

void net_run_step(struct net_run *run, const double *parameters, const double *pixels,
                  const int32_t *labels) {
    fill(run, run->parameters, parameters, run->model->flat_count);
    net_run_fill(run, pixels);
    must(run->device.ops->each(run->device.device, 1, step, &(struct work){run, labels}));
}

double net_run_value(const struct net_run *run, struct span span, size_t i) {
    assert_true((i + 1) * run->element <= span.bytes);
    return run->element == sizeof(double) ? ((double *)span.data)[i] : (double)((float *)span.data)[i];
}

double net_run_mean_loss(const struct net_run *run) {
    double sum = 0;
    for (int i = 0; i < run->images; i++)
        sum += net_run_value(run, net_losses(run->net, &run->memory), (size_t)i);
    return sum / run->images;
}

double *net_run_pixels(const struct model *model, int images, uint64_t seed) {
    size_t count = (size_t)images * shape_size(model->input);
    double *pixels = malloc(count * sizeof *pixels);
    assert_non_null(pixels);
    struct random r = random_begin(seed, RANDOM_TEST, 1);
    for (size_t i = 0; i < count; i++)
        pixels[i] = (double)(float)random_normal(&r);
    return pixels;
}

int32_t *net_run_labels(const struct model *model, int images, uint64_t seed) {
    int32_t *labels = malloc((size_t)images * sizeof *labels);
    assert_non_null(labels);
    struct random r = random_begin(seed, RANDOM_TEST, 2);
    for (int i = 0; i < images; i++)
        labels[i] = (int32_t)random_below(&r, (uint32_t)model->classes);
    return labels;
}

double *net_run_parameters(const struct model *model, uint64_t seed) {
    float *initial = malloc(model->flat_count * sizeof *initial);
    double *parameters = malloc(model->flat_count * sizeof *parameters);
    assert_non_null(initial);
    assert_non_null(parameters);
    model_initialise(model, seed, initial);
    for (size_t i = 0; i < model->flat_count; i++)
        parameters[i] = (double)initial[i];
    free(initial);
    return parameters;
}

struct model *net_run_small(void) {
    struct model *model;
    must(model_parse("m.ini", SMALL, (struct model_ends){12, 12, 2, 5}, NAN, &model));
    return model;
}

struct model *net_run_cifar10(void) {
    struct model *model;
    must(model_read("cifar10", (struct model_ends){32, 32, 3, 10}, NAN, &model));
    return model;
}

void net_run_device(const char *name, int threads, struct device_handle *device) {
    must(device_open(name, threads, NULL, device));
}

enum status net_run_prepare(void *run, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    struct net_run *r = run;
    return net_prepare(r->net, stream, r->parameters, r->prepared);
}

enum status net_run_forward(void *run, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    struct net_run *r = run;
    const struct net_operands operands = net_run_operands(r);
    return net_pass(r->net, stream, &r->memory, &operands, NET_FORWARD, NULL);
}
