#include "cli/bench_layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench_peak.h"
#include "cli/bench_spread.h"
#include "datasets/order.h"
#include "engine/base/clock.h"
#include "engine/base/random.h"

/* One group of operations, its images cut into lanes as a tower's are: each has a plan and memory of its own.
 * Parameters, and what is derived from them, are the first lane's. */
struct lane {
    struct plan *plan;
    struct plan_args args;
};

struct group {
    struct device_handle device;
    const struct op *ops;
    int count;          /* operations */
    struct lane *lanes; /* [lane_count] */
    int lane_count;
    bool later; /* what gradients of parameters are made from all lanes' images */
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

static enum status allocate_shared(struct group *g) {
    struct lane *first = &g->lanes[0];
    for (int i = 0; i < g->count; i++)
        STATUS_TRY(buffer(g, op_parameter_size(&g->ops[i]) * sizeof(float), 0.05f, &first->args.params[i]));
    STATUS_TRY(buffer(g, g->device.ops->plan_info(first->plan)->prepared_bytes, 0, &first->args.prepared));
    for (int l = 1; l < g->lane_count; l++) {
        memcpy(g->lanes[l].args.params, first->args.params, sizeof first->args.params);
        g->lanes[l].args.prepared = first->args.prepared;
    }
    return STATUS_OK;
}

static enum status allocate(struct group *g, struct lane *lane, int images, bool input_gradient) {
    const struct plan_info *info = g->device.ops->plan_info(lane->plan);
    struct plan_args *a = &lane->args;
    size_t in = (size_t)images * shape_size(g->ops[0].in) * sizeof(float);
    size_t out = (size_t)images * shape_size(g->ops[g->count - 1].out) * sizeof(float);
    STATUS_TRY(buffer(g, in, 1, &a->x));
    STATUS_TRY(buffer(g, out, 1, &a->y));
    STATUS_TRY(buffer(g, out, 1, &a->dy));
    STATUS_TRY(buffer(g, input_gradient ? in : 0, 0, &a->dx));
    for (int i = 0; i < g->count; i++)
        STATUS_TRY(buffer(g, op_parameter_size(&g->ops[i]) * sizeof(float), 0, &a->grads[i]));
    STATUS_TRY(buffer(g, info->saved_bytes, 0, &a->saved));
    return buffer(g, info->scratch_bytes, 0, &a->scratch);
}

static enum status group_open(struct group *g, int images, bool input_gradient) {
    g->lanes = calloc((size_t)g->lane_count, sizeof *g->lanes);
    if (!g->lanes)
        return status_fail(STATUS_NO_MEMORY, "no memory for a benchmark");
    for (int l = 0; l < g->lane_count; l++) {
        int64_t first;
        struct plan_request request = {.ops = g->ops,
                                       .count = g->count,
                                       .images = (int)order_shard(images, g->lane_count, l, &first),
                                       .training = true,
                                       .input_gradient = input_gradient};
        STATUS_TRY(g->device.ops->plan(g->device.device, &request, &g->lanes[l].plan));
        STATUS_TRY(allocate(g, &g->lanes[l], request.images, input_gradient));
    }
    g->later = g->lane_count > 1 && g->device.ops->plan_info(g->lanes[0].plan)->gradients_later;
    return allocate_shared(g);
}

static void group_close(struct group *g) {
    void (*drop)(struct device *, struct span) = g->device.ops->buffer_free;
    for (int l = 0; g->lanes && l < g->lane_count; l++) {
        struct plan_args *a = &g->lanes[l].args;
        struct span own[] = {a->x, a->y, a->dy, a->dx, a->saved, a->scratch};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            drop(g->device.device, own[i]);
        for (int i = 0; i < PLAN_MAX_OPS; i++) {
            drop(g->device.device, a->grads[i]);
            if (l == 0)
                drop(g->device.device, a->params[i]);
        }
        if (l == 0)
            drop(g->device.device, a->prepared);
        if (g->lanes[l].plan)
            g->device.ops->plan_free(g->lanes[l].plan);
    }
    free(g->lanes);
}

static enum status forward_lane(void *context, int lane, struct stream *stream) {
    const struct group *g = context;
    return g->device.ops->forward(stream, g->lanes[lane].plan, &g->lanes[lane].args);
}

static enum status backward_lane(void *context, int lane, struct stream *stream) {
    const struct group *g = context;
    struct plan_args args = g->lanes[lane].args;
    if (g->later)
        memset(args.grads, 0, sizeof args.grads);
    return g->device.ops->backward(stream, g->lanes[lane].plan, &args);
}

/* The share-th of as many pieces of a tensor as there are lanes. */
static struct span piece(const struct group *g, struct span tensor, int share) {
    int64_t first, count = order_shard((int64_t)(tensor.bytes / sizeof(float)), g->lane_count, share, &first);
    return (struct span){(float *)tensor.data + first, (size_t)count * sizeof(float)};
}

/* What the lanes made, or left for later, into the first one's gradient. */
static enum status gather_share(void *context, int share, struct stream *stream) {
    const struct group *g = context;
    const struct plan_args *to = &g->lanes[0].args;
    for (int l = 0; g->later && l < g->lane_count; l++) {
        struct plan_args args = g->lanes[l].args;
        memcpy(args.grads, to->grads, sizeof args.grads);
        STATUS_TRY(g->device.ops->gradients(stream, g->lanes[l].plan, &args, share, g->lane_count, l > 0));
    }
    for (int l = 1; !g->later && l < g->lane_count; l++)
        for (int i = 0; i < g->count; i++)
            if (to->grads[i].data)
                STATUS_TRY(g->device.ops->add(g->device.device, stream, piece(g, to->grads[i], share),
                                              piece(g, g->lanes[l].args.grads[i], share)));
    return STATUS_OK;
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
    struct group *g = t->group;
    if (ops->prepare)
        STATUS_TRY(ops->prepare(stream, g->lanes[0].plan, &g->lanes[0].args));
    for (int i = 0; i < t->rounds; i++) {
        STATUS_TRY(bench_peak_team(t->kernels, stream, &t->peak[i]));
        double start = clock_seconds();
        STATUS_TRY(ops->lanes(stream, g->lane_count, forward_lane, g));
        double forward = clock_seconds();
        STATUS_TRY(ops->lanes(stream, g->lane_count, backward_lane, g));
        if (g->lane_count > 1)
            STATUS_TRY(ops->lanes(stream, g->lane_count, gather_share, g));
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

static enum status measure(struct group *g, const struct net_group *from,
                           const struct bench_layers_work *work, bool input_gradient,
                           struct bench_layer *out) {
    STATUS_TRY(group_open(g, work->images, input_gradient));
    struct times times = {.group = g, .kernels = work->kernels, .rounds = work->rounds};
    STATUS_TRY(g->device.ops->each(g->device.device, 1, run, &times));
    double flops = from->flops * work->images, backward_flops = flops * (input_gradient ? 2 : 1);
    *out = (struct bench_layer){.flops = flops,
                                .forward_share = share(&times, flops, times.forward),
                                .backward_share = share(&times, backward_flops, times.backward),
                                .input_gradient = input_gradient};
    out->forward = bench_spread(times.forward, work->rounds).middle; /* sorts them: after the shares */
    out->backward = bench_spread(times.backward, work->rounds).middle;
    snprintf(out->name, sizeof out->name, "%s", from->name);
    snprintf(out->implementation, sizeof out->implementation, "%s",
             g->device.ops->plan_info(g->lanes[0].plan)->implementation);
    return STATUS_OK;
}

enum status bench_layers(const struct bench_layers_work *work, struct bench_layer *layers, int room,
                         int *count) {
    struct net *net;
    struct net_options options = {
        .images = work->images, .lanes = net_lanes_for(work->device, 1), .training = true};
    STATUS_TRY(net_plan(work->model, work->device, &options, &net));
    const struct net_group *groups;
    int total = net_groups(net, &groups);
    enum status status = STATUS_OK;
    *count = 0;
    for (int i = 0; i < total && i < room && status == STATUS_OK; i++) {
        struct group g = {.device = work->device,
                          .ops = work->model->ops + groups[i].first_op,
                          .count = groups[i].op_count,
                          .lane_count = net_lanes(net)};
        status = measure(&g, &groups[i], work, i > 0, &layers[i]);
        group_close(&g);
        *count += status == STATUS_OK;
    }
    net_free(net);
    return status;
}
