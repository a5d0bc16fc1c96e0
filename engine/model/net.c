#include "engine/model/net_impl.h"

/* ---- places */

static struct span part(struct span whole, size_t offset, size_t bytes) {
    if (bytes == 0 || !whole.data)
        return (struct span){NULL, 0};
    return (struct span){(char *)whole.data + offset, bytes};
}

static struct span in_arena(const struct net_memory *memory, const struct place *place) {
    return part(memory->arena, place->offset, place->bytes);
}

struct span net_input(const struct net *net, const struct net_memory *memory) {
    return in_arena(memory, &net->input);
}

struct span net_logits(const struct net *net, const struct net_memory *memory) {
    return in_arena(memory, &net->groups[net->group_count - 1].y);
}

struct span net_losses(const struct net *net, const struct net_memory *memory) {
    return in_arena(memory, &net->losses);
}

struct span net_probabilities(const struct net *net, const struct net_memory *memory) {
    return in_arena(memory, &net->probabilities);
}

struct span net_activation(const struct net *net, const struct net_memory *memory, int layer) {
    const struct model_layer *l = &net->model->layers[layer];
    for (int g = 0; g < net->group_count; g++) {
        const struct group *group = &net->groups[g];
        if (group->first_op + group->info.taken == l->first_op + l->op_count &&
            group->y.last > net->group_count) /* still in use after the loss */
            return in_arena(memory, &group->y);
    }
    return (struct span){NULL, 0};
}

size_t net_activation_count(const struct net *net, int layer) {
    const struct model_layer *l = &net->model->layers[layer];
    return (size_t)net->images * shape_size(net->model->ops[l->first_op + l->op_count - 1].out);
}

/* ---- running */

static enum status enough(const char *what, struct span span, size_t bytes) {
    if (bytes == 0 || (span.data && span.bytes >= bytes))
        return STATUS_OK;
    return status_fail(STATUS_INTERNAL, "%s has %zu bytes, the net needs %zu", what,
                       span.data ? span.bytes : 0, bytes);
}

static enum status check(const struct net *net, const struct net_memory *memory, struct span parameters,
                         struct span prepared, struct span scratch) {
    STATUS_TRY(enough("a tower's arena", memory->arena, net->sizes.arena_bytes));
    STATUS_TRY(enough("the parameters", parameters, net->model->flat_count * net->element));
    STATUS_TRY(enough("the prepared memory", prepared, net->sizes.prepared_bytes));
    return enough("a worker's scratch", scratch, net->sizes.scratch_bytes);
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

enum status net_prepare(const struct net *net, struct stream *stream, struct span parameters,
                        struct span prepared) {
    if (!net->device.ops->prepare)
        return STATUS_OK;
    STATUS_TRY(enough("the parameters", parameters, net->model->flat_count * net->element));
    STATUS_TRY(enough("the prepared memory", prepared, net->sizes.prepared_bytes));
    for (int g = 0; g < net->group_count; g++) {
        const struct group *group = &net->groups[g];
        if (group->info.prepared_bytes == 0)
            continue;
        struct plan_args args = {.prepared = prepared_part(group, prepared)};
        tensors(net, group, parameters, args.params);
        STATUS_TRY(net->device.ops->prepare(stream, group->plan, &args));
    }
    return STATUS_OK;
}

enum status net_forward(const struct net *net, struct stream *stream, const struct net_memory *memory,
                        struct span parameters, struct span prepared, struct span scratch) {
    STATUS_TRY(check(net, memory, parameters, prepared, scratch));
    const struct place *x = &net->input;
    for (int g = 0; g < net->group_count; g++) {
        const struct group *group = &net->groups[g];
        struct plan_args args = {.x = in_arena(memory, x),
                                 .y = in_arena(memory, &group->y),
                                 .saved = in_arena(memory, &group->saved),
                                 .scratch = part(scratch, 0, group->info.scratch_bytes),
                                 .prepared = prepared_part(group, prepared)};
        tensors(net, group, parameters, args.params);
        STATUS_TRY(net->device.ops->forward(stream, group->plan, &args));
        x = &group->y;
    }
    return STATUS_OK;
}

enum status net_loss(const struct net *net, struct stream *stream, const struct net_memory *memory,
                     const int32_t *labels) {
    STATUS_TRY(enough("a tower's arena", memory->arena, net->sizes.arena_bytes));
    struct loss_args args = {.images = net->images,
                             .classes = net->model->classes,
                             .logits = net_logits(net, memory),
                             .real_logits = net->groups[net->group_count - 1].info.real_output,
                             .labels = labels,
                             .scale = 1.0 / net->images,
                             .losses = net_losses(net, memory),
                             .probabilities = net_probabilities(net, memory),
                             .dlogits = in_arena(memory, &net->dlogits)};
    return net->device.ops->loss(stream, &args);
}

enum status net_backward(const struct net *net, struct stream *stream, const struct net_memory *memory,
                         struct span parameters, struct span prepared, struct span scratch) {
    if (!net->training)
        return status_fail(STATUS_INTERNAL, "backward of a net that was planned for forward only");
    STATUS_TRY(check(net, memory, parameters, prepared, scratch));
    STATUS_TRY(enough("a tower's gradient", memory->gradient, net->sizes.gradient_bytes));
    const struct place *dy = &net->dlogits;
    for (int g = net->group_count - 1; g >= 0; g--) {
        const struct group *group = &net->groups[g];
        const struct place *x = g > 0 ? &net->groups[g - 1].y : &net->input;
        struct plan_args args = {.dy = in_arena(memory, dy),
                                 .dx = in_arena(memory, &group->dx),
                                 .saved = in_arena(memory, &group->saved),
                                 .scratch = part(scratch, 0, group->info.scratch_bytes),
                                 .prepared = prepared_part(group, prepared)};
        if (group->info.backward_reads_x) /* else it may lie under something else by now */
            args.x = in_arena(memory, x);
        if (group->info.backward_reads_y)
            args.y = in_arena(memory, &group->y);
        tensors(net, group, parameters, args.params);
        tensors(net, group, memory->gradient, args.grads);
        STATUS_TRY(net->device.ops->backward(stream, group->plan, &args));
        dy = &group->dx;
    }
    return STATUS_OK;
}
