#include "engine/base/clock.h"
#include "engine/model/layout.h"
#include "engine/model/net_impl.h"

/* ---- places */

static struct span part(struct span whole, size_t offset, size_t bytes) {
    if (bytes == 0 || !whole.data)
        return (struct span){NULL, 0};
    return (struct span){(char *)whole.data + offset, bytes};
}

static struct span common(const struct net_memory *memory, const struct place *place) {
    return part(memory->arena, place->offset, place->bytes);
}

/* A lane's images of what all have in common. */
static struct span common_part(const struct net *net, const struct net_memory *memory,
                               const struct lane *lane, const struct place *place) {
    size_t image = place->bytes / (size_t)net->images;
    return part(memory->arena, place->offset + (size_t)lane->first * image,
                (size_t)lane->plan->images * image);
}

static struct span own(const struct net_memory *memory, const struct lane *lane, const struct place *place) {
    return part(memory->arena, lane->offset + place->offset, place->bytes);
}

struct span net_input(const struct net *net, const struct net_memory *memory) {
    return common(memory, &net->input);
}

struct span net_logits(const struct net *net, const struct net_memory *memory) {
    return common(memory, &net->logits);
}

struct span net_losses(const struct net *net, const struct net_memory *memory) {
    return common(memory, &net->losses);
}

struct span net_probabilities(const struct net *net, const struct net_memory *memory) {
    return common(memory, &net->probabilities);
}

struct span net_activation(const struct net *net, const struct net_memory *memory, int layer, int lane) {
    const struct model_layer *l = &net->model->layers[layer];
    const struct lane *of = &net->lanes[lane];
    for (int g = 0; g < net->group_count; g++) {
        const struct group *group = &of->plan->groups[g];
        if (group->first_op + group->info.taken != l->first_op + l->op_count)
            continue;
        if (g + 1 == net->group_count)
            return common_part(net, memory, of, &net->logits);
        if (group->y.last > net->group_count) /* still in use after the loss */
            return own(memory, of, &group->y);
    }
    return (struct span){NULL, 0};
}

size_t net_activation_count(const struct net *net, int layer, int lane) {
    const struct model_layer *l = &net->model->layers[layer];
    return (size_t)net->lanes[lane].plan->images *
           shape_size(net->model->ops[l->first_op + l->op_count - 1].out);
}

/* ---- running */

static enum status enough(const char *what, struct span span, size_t bytes) {
    if (bytes == 0 || (span.data && span.bytes >= bytes))
        return STATUS_OK;
    return status_fail(STATUS_INTERNAL, "%s has %zu bytes, the net needs %zu", what,
                       span.data ? span.bytes : 0, bytes);
}

/* The spans of the group's tensors in a flat buffer. */
static void tensors(const struct net *net, const struct group *group, struct span flat, struct span *out) {
    const struct model *model = net->model;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct model_parameter *parameter = &model->parameters[i];
        int op = parameter->op - group->first_op;
        if (op >= 0 && op < group->info.taken)
            out[op] = part(flat, parameter->offset * net->element, parameter->count * net->element);
    }
}

static struct span prepared_part(const struct group *group, struct span prepared) {
    return part(prepared, group->prepared_offset, group->info.prepared_bytes);
}

/* Plans that are waiting to be prepared together. */
struct preparations {
    const struct plan *plans[16];
    struct plan_args args[16];
    int count;
};

static enum status prepare(const struct device_ops *ops, struct stream *stream, struct preparations *p) {
    int count = p->count;
    p->count = 0;
    if (ops->prepare_all && count)
        return ops->prepare_all(stream, count, p->plans, p->args);
    for (int i = 0; i < count; i++)
        STATUS_TRY(ops->prepare(stream, p->plans[i], &p->args[i]));
    return STATUS_OK;
}

enum status net_prepare(const struct net *net, struct stream *stream, struct span parameters,
                        struct span prepared) {
    const struct device_ops *ops = net->device.ops;
    struct preparations p = {.count = 0};
    if (!ops->prepare)
        return STATUS_OK;
    STATUS_TRY(enough("the parameters", parameters, net->model->flat_count * net->element));
    STATUS_TRY(enough("the prepared memory", prepared, net->sizes.prepared_bytes));
    for (int g = 0; g < net->group_count; g++) {
        const struct group *group = &net->plans[0].groups[g];
        if (group->info.prepared_bytes == 0)
            continue;
        struct plan_args *args = &p.args[p.count];
        *args = (struct plan_args){.prepared = prepared_part(group, prepared)};
        tensors(net, group, parameters, args->params);
        p.plans[p.count++] = group->plan;
        if (p.count == (int)(sizeof p.plans / sizeof *p.plans))
            STATUS_TRY(prepare(ops, stream, &p));
    }
    return prepare(ops, stream, &p);
}

/* What the lanes of a call read; the first one leaves its seconds. */
struct pass {
    const struct net *net;
    const struct net_memory *memory;
    const struct net_operands *operands;
    unsigned parts;
    struct net_seconds seconds;
};

static enum status run_lanes(struct pass *pass, struct stream *stream,
                             enum status (*work)(void *context, int lane, struct stream *stream)) {
    const struct net *net = pass->net;
    return net->lane_count == 1 ? work(pass, 0, stream)
                                : net->device.ops->lanes(stream, net->lane_count, work, pass);
}

static struct plan_args group_args(const struct pass *pass, int lane, const struct group *group) {
    struct plan_args args = {.saved = own(pass->memory, &pass->net->lanes[lane], &group->saved),
                             .scratch = part(pass->operands->scratch, (size_t)lane * pass->net->lane_scratch,
                                             group->info.scratch_bytes),
                             .prepared = prepared_part(group, pass->operands->prepared)};
    tensors(pass->net, group, pass->operands->parameters, args.params);
    return args;
}

/* The group's input and output. */
static struct span group_x(const struct pass *pass, const struct lane *lane, int g) {
    return g > 0 ? own(pass->memory, lane, &lane->plan->groups[g - 1].y)
                 : common_part(pass->net, pass->memory, lane, &pass->net->input);
}

static struct span group_y(const struct pass *pass, const struct lane *lane, int g) {
    return g + 1 < pass->net->group_count ? own(pass->memory, lane, &lane->plan->groups[g].y)
                                          : common_part(pass->net, pass->memory, lane, &pass->net->logits);
}

static enum status forward_lane(void *context, int number, struct stream *stream) {
    const struct pass *pass = context;
    const struct net *net = pass->net;
    const struct lane *lane = &net->lanes[number];
    for (int g = 0; g < net->group_count; g++) {
        const struct group *group = &lane->plan->groups[g];
        struct plan_args args = group_args(pass, number, group);
        args.x = group_x(pass, lane, g);
        args.y = group_y(pass, lane, g);
        STATUS_TRY(net->device.ops->forward(stream, group->plan, &args));
    }
    return STATUS_OK;
}

static enum status loss_lane(void *context, int number, struct stream *stream) {
    const struct pass *pass = context;
    const struct net *net = pass->net;
    const struct lane *lane = &net->lanes[number];
    struct loss_args args = {.images = lane->plan->images,
                             .classes = net->model->classes,
                             .logits = common_part(net, pass->memory, lane, &net->logits),
                             .real_logits = net->plans[0].groups[net->group_count - 1].info.real_output,
                             .labels = pass->operands->labels + lane->first,
                             .scale = 1.0 / net->images,
                             .losses = common_part(net, pass->memory, lane, &net->losses),
                             .probabilities = common_part(net, pass->memory, lane, &net->probabilities),
                             .dlogits = common_part(net, pass->memory, lane, &net->dlogits)};
    return net->device.ops->loss(stream, &args);
}

/* ---- backward: first each lane, then what takes all of them */

static struct span group_dy(const struct pass *pass, const struct lane *lane, int g) {
    return g + 1 < pass->net->group_count ? own(pass->memory, lane, &lane->plan->groups[g + 1].dx)
                                          : common_part(pass->net, pass->memory, lane, &pass->net->dlogits);
}

/* A tensor of the gradient that a lane makes. */
static struct span lane_tensor(const struct pass *pass, int lane, int tensor) {
    const struct net *net = pass->net;
    const struct model_parameter *parameter = &net->model->parameters[tensor];
    size_t offset = lane == 0 ? parameter->offset * net->element
                              : net->others_offset + (size_t)(lane - 1) * net->lane_gradient +
                                    net->tensor_offsets[tensor];
    return part(pass->memory->gradient, offset, parameter->count * net->element);
}

static void lane_tensors(const struct pass *pass, int lane, const struct group *group, struct span *out) {
    const struct model *model = pass->net->model;
    for (int i = 0; i < model->parameter_count; i++) {
        int op = model->parameters[i].op - group->first_op;
        if (op >= 0 && op < group->info.taken)
            out[op] = lane_tensor(pass, lane, i);
    }
}

static enum status backward_lane(void *context, int number, struct stream *stream) {
    const struct pass *pass = context;
    const struct net *net = pass->net;
    const struct lane *lane = &net->lanes[number];
    for (int g = net->group_count - 1; g >= 0; g--) {
        const struct group *group = &lane->plan->groups[g];
        struct plan_args args = group_args(pass, number, group);
        args.dy = group_dy(pass, lane, g);
        args.dx = own(pass->memory, lane, &group->dx);
        if (group->info.backward_reads_x) /* else it may lie under something else by now */
            args.x = group_x(pass, lane, g);
        if (group->info.backward_reads_y)
            args.y = group_y(pass, lane, g);
        if (!group_is_later(net, group))
            lane_tensors(pass, number, group, args.grads);
        STATUS_TRY(net->device.ops->backward(stream, group->plan, &args));
    }
    return STATUS_OK;
}

/* A share of a group's gradients from all lanes' images, in the order of the lanes. */
static enum status later_share(const struct pass *pass, struct stream *stream, int g, int share) {
    const struct net *net = pass->net;
    for (int l = 0; l < net->lane_count; l++) {
        const struct lane *lane = &net->lanes[l];
        const struct group *group = &lane->plan->groups[g];
        struct plan_args args = {.x = group_x(pass, lane, g), .dy = group_dy(pass, lane, g)};
        lane_tensors(pass, 0, group, args.grads);
        STATUS_TRY(net->device.ops->gradients(stream, group->plan, &args, share, net->lane_count, l > 0));
    }
    return STATUS_OK;
}

/* The share-th of `shares` pieces of a tensor, cut where cache lines end. */
static struct span piece(struct span tensor, int share, int shares) {
    size_t lines = (tensor.bytes + LAYOUT_ALIGNMENT - 1) / LAYOUT_ALIGNMENT;
    size_t begin = lines * (size_t)share / (size_t)shares * LAYOUT_ALIGNMENT;
    size_t end = lines * ((size_t)share + 1) / (size_t)shares * LAYOUT_ALIGNMENT;
    end = end < tensor.bytes ? end : tensor.bytes;
    return part(tensor, begin, end > begin ? end - begin : 0);
}

/* A share of the sums of what the lanes made of a group's gradients, in the order of the lanes. */
static enum status sum_share(const struct pass *pass, struct stream *stream, int g, int share) {
    const struct net *net = pass->net;
    const struct group *group = &net->plans[0].groups[g];
    for (int i = 0; i < net->model->parameter_count; i++) {
        int op = net->model->parameters[i].op - group->first_op;
        struct span to = piece(lane_tensor(pass, 0, i), share, net->lane_count);
        for (int l = 1; l < net->lane_count && op >= 0 && op < group->info.taken && to.data; l++)
            STATUS_TRY(net->device.ops->add(net->device.device, stream, to,
                                            piece(lane_tensor(pass, l, i), share, net->lane_count)));
    }
    return STATUS_OK;
}

static enum status gather_share(void *context, int share, struct stream *stream) {
    const struct pass *pass = context;
    for (int g = 0; g < pass->net->group_count; g++)
        STATUS_TRY(group_is_later(pass->net, &pass->net->plans[0].groups[g])
                       ? later_share(pass, stream, g, share)
                       : sum_share(pass, stream, g, share));
    return STATUS_OK;
}

/* ---- a pass */

static enum status pass_lane(void *context, int number, struct stream *stream) {
    struct pass *pass = context;
    struct net_seconds taken = {0};
    double start = clock_seconds();
    if (pass->parts & NET_FORWARD) {
        STATUS_TRY(forward_lane(pass, number, stream));
        taken.forward = clock_seconds() - start;
    }
    if (pass->parts & NET_LOSS) {
        STATUS_TRY(loss_lane(pass, number, stream));
        taken.loss = clock_seconds() - start - taken.forward;
    }
    if (number == 0)
        pass->seconds = taken;
    return pass->parts & NET_BACKWARD ? backward_lane(pass, number, stream) : STATUS_OK;
}

static enum status check(const struct pass *pass) {
    const struct net *net = pass->net;
    const struct net_operands *operands = pass->operands;
    if (pass->parts & NET_BACKWARD && !net->training)
        return status_fail(STATUS_INTERNAL, "backward of a net that was planned for forward only");
    if (pass->parts & NET_LOSS && !operands->labels)
        return status_fail(STATUS_INTERNAL, "a loss without labels");
    STATUS_TRY(enough("a tower's arena", pass->memory->arena, net->sizes.arena_bytes));
    STATUS_TRY(enough("the parameters", operands->parameters, net->model->flat_count * net->element));
    STATUS_TRY(enough("the prepared memory", operands->prepared, net->sizes.prepared_bytes));
    STATUS_TRY(enough("a worker's scratch", operands->scratch, net->sizes.scratch_bytes));
    return pass->parts & NET_BACKWARD
               ? enough("a tower's gradient", pass->memory->gradient, net->sizes.gradient_bytes)
               : STATUS_OK;
}

static enum status run_pass(void *context, struct stream *stream) {
    struct pass *pass = context;
    double start = clock_seconds();
    STATUS_TRY(run_lanes(pass, stream, pass_lane));
    if (pass->parts & NET_BACKWARD) {
        if (pass->net->lane_count > 1)
            STATUS_TRY(run_lanes(pass, stream, gather_share));
        pass->seconds.backward = clock_seconds() - start - pass->seconds.forward - pass->seconds.loss;
    }
    return STATUS_OK;
}

enum status net_pass(const struct net *net, struct stream *stream, const struct net_memory *memory,
                     const struct net_operands *operands, unsigned parts, struct net_seconds *seconds) {
    struct pass pass = {.net = net, .memory = memory, .operands = operands, .parts = parts};
    STATUS_TRY(check(&pass));
    if (parts & NET_AGAIN && net->device.ops->repeat) {
        const struct repeat repeat = {.key = {net, memory->arena.data, memory->gradient.data,
                                              operands->parameters.data, operands->prepared.data,
                                              operands->scratch.data},
                                      .labels = operands->labels,
                                      .images = net->images,
                                      .part = (int)parts};
        STATUS_TRY(net->device.ops->repeat(stream, &repeat, run_pass, &pass));
    } else {
        STATUS_TRY(run_pass(&pass, stream));
    }
    if (seconds)
        *seconds = pass.seconds;
    return STATUS_OK;
}
