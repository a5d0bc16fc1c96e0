#include "cli/bench_layers.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/bench_peak.h"
#include "cli/bench_spread.h"
#include "engine/base/clock.h"
#include "engine/base/random.h"

/* One group of operations with memory of its own. */
struct group {
    struct device_handle device;
    const struct op *ops;
    struct plan *plan;
    struct plan_args args;
};

static enum status buffer(struct group *g, size_t bytes, float scale, struct span *out) {
    if (bytes == 0)
        return STATUS_OK;
    STATUS_TRY(g->device.ops->buffer_new(g->device.device, bytes, 0, out));
    float *values = malloc(bytes);
    if (!values)
        return status_fail(STATUS_NO_MEMORY, "no memory for a benchmark");
    struct random random = random_begin(2, RANDOM_GENERATED_DATA, bytes);
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = scale * (2 * random_float(&random) - 1);
    enum status status = g->device.ops->write(g->device.device, NULL, *out, values, bytes / sizeof *values);
    free(values);
    return status;
}

static enum status allocate(struct group *g, int images, bool input_gradient) {
    const struct plan_info *info = g->device.ops->plan_info(g->plan);
    struct plan_args *a = &g->args;
    size_t in = (size_t)images * shape_size(g->ops[0].in) * sizeof(float);
    size_t out = (size_t)images * shape_size(g->ops[info->taken - 1].out) * sizeof(float);
    STATUS_TRY(buffer(g, in, 1, &a->x));
    STATUS_TRY(buffer(g, out, 1, &a->y));
    STATUS_TRY(buffer(g, out, 1, &a->dy));
    STATUS_TRY(buffer(g, input_gradient ? in : 0, 0, &a->dx));
    for (int i = 0; i < info->taken; i++) {
        STATUS_TRY(buffer(g, op_parameter_size(&g->ops[i]) * sizeof(float), 0.05f, &a->params[i]));
        STATUS_TRY(buffer(g, op_parameter_size(&g->ops[i]) * sizeof(float), 0, &a->grads[i]));
    }
    STATUS_TRY(buffer(g, info->saved_bytes, 0, &a->saved));
    STATUS_TRY(buffer(g, info->scratch_bytes, 0, &a->scratch));
    return buffer(g, info->prepared_bytes, 0, &a->prepared);
}

static void group_close(struct group *g) {
    struct plan_args *a = &g->args;
    struct span *spans[] = {&a->x, &a->y, &a->dy, &a->dx, &a->saved, &a->scratch, &a->prepared};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        g->device.ops->buffer_free(g->device.device, *spans[i]);
    for (int i = 0; i < PLAN_MAX_OPS; i++) {
        g->device.ops->buffer_free(g->device.device, a->params[i]);
        g->device.ops->buffer_free(g->device.device, a->grads[i]);
    }
    if (g->plan)
        g->device.ops->plan_free(g->plan);
}

struct times {
    struct group *group;
    const struct peak_kernels *kernels;
    int rounds;
    double forward[BENCH_LAYER_ROUNDS], backward[BENCH_LAYER_ROUNDS]; /* seconds */
    double peak[BENCH_LAYER_ROUNDS];                                  /* GFLOP/s */
};

static enum status run(void *context, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    struct times *t = context;
    const struct device_ops *ops = t->group->device.ops;
    const struct plan *plan = t->group->plan;
    struct plan_args *args = &t->group->args;
    if (ops->prepare)
        STATUS_TRY(ops->prepare(stream, plan, args));
    for (int i = 0; i < t->rounds; i++) {
        STATUS_TRY(bench_peak_team(t->kernels, stream, &t->peak[i]));
        double start = clock_seconds();
        STATUS_TRY(ops->forward(stream, plan, args));
        double forward = clock_seconds();
        STATUS_TRY(ops->backward(stream, plan, args));
        t->forward[i] = forward - start;
        t->backward[i] = clock_seconds() - forward;
    }
    return STATUS_OK;
}

/* Median of the rounds' shares of the peak. */
static double share(const struct times *t, double flops, const double *seconds) {
    double shares[BENCH_LAYER_ROUNDS];
    for (int i = 0; i < t->rounds; i++)
        shares[i] = flops / seconds[i] * 1e-9 / t->peak[i];
    return bench_spread(shares, t->rounds).middle;
}

static enum status measure(struct group *g, const struct net_group *from, const struct peak_kernels *kernels,
                           int images, int rounds, bool input_gradient, struct bench_layer *out) {
    struct plan_request request = {.ops = g->ops,
                                   .count = from->op_count,
                                   .images = images,
                                   .training = true,
                                   .input_gradient = input_gradient};
    STATUS_TRY(g->device.ops->plan(g->device.device, &request, &g->plan));
    STATUS_TRY(allocate(g, images, input_gradient));
    struct times times = {.group = g, .kernels = kernels, .rounds = rounds};
    STATUS_TRY(g->device.ops->each(g->device.device, 1, run, &times));
    double flops = from->flops * images, backward_flops = flops * (input_gradient ? 2 : 1);
    *out = (struct bench_layer){.flops = flops,
                                .forward_share = share(&times, flops, times.forward),
                                .backward_share = share(&times, backward_flops, times.backward),
                                .input_gradient = input_gradient};
    out->forward = bench_spread(times.forward, rounds).middle; /* sorts them: after the shares */
    out->backward = bench_spread(times.backward, rounds).middle;
    snprintf(out->name, sizeof out->name, "%s", from->name);
    snprintf(out->implementation, sizeof out->implementation, "%s",
             g->device.ops->plan_info(g->plan)->implementation);
    return STATUS_OK;
}

enum status bench_layers(const struct model *model, struct device_handle device,
                         const struct peak_kernels *kernels, int images, int rounds,
                         struct bench_layer *layers, int room, int *count) {
    struct net *net;
    struct net_options options = {.images = images, .training = true};
    STATUS_TRY(net_plan(model, device, &options, &net));
    const struct net_group *groups;
    int total = net_groups(net, &groups);
    enum status status = STATUS_OK;
    *count = 0;
    for (int i = 0; i < total && i < room && status == STATUS_OK; i++) {
        struct group g = {.device = device, .ops = model->ops + groups[i].first_op};
        status = measure(&g, &groups[i], kernels, images, rounds, i > 0, &layers[i]);
        group_close(&g);
        *count += status == STATUS_OK;
    }
    net_free(net);
    return status;
}
