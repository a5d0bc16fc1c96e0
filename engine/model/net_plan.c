/* A net before it runs: groups of operations, and where everything lies.
 *
 * Moments of one step, for G groups: -1 the input is written; 0 .. G-1 forward; G the loss; G+1 .. 2G
 * backward, the last group first. A buffer is in use from the moment that writes it to the last that reads
 * it. */
#include "engine/model/layout.h"
#include "engine/model/net_impl.h"

#include <stdlib.h>
#include <string.h>

enum { INPUT_MOMENT = -1 };

static int backward_moment(const struct net *net, int group) {
    return 2 * net->group_count - group;
}

static int loss_moment(const struct net *net) {
    return net->group_count;
}

static int last_moment(const struct net *net) {
    return 2 * net->group_count;
}

/* ---- groups */

static const struct model_layer *layer_of(const struct model *model, int op) {
    const struct model_layer *layer = model->layers;
    while (op >= layer->first_op + layer->op_count)
        layer++;
    return layer;
}

/* "conv1+pool1" for whole layers, "conv1.bias" for a part of one. */
static const char *group_name(struct net *net, int first, int count) {
    const struct model *model = net->model;
    const char *name = "";
    for (int op = first; name && op < first + count;) {
        const struct model_layer *layer = layer_of(model, op);
        int end = layer->first_op + layer->op_count;
        bool whole = op == layer->first_op && end <= first + count;
        name = arena_format(&net->arena, "%s%s%s%s%s", name, op == first ? "" : "+", layer->name,
                            whole ? "" : ".", whole ? "" : op_kind_name(model->ops[op].kind));
        op = whole ? end : op + 1;
    }
    return name;
}

static enum status add_group(struct net *net, const struct net_options *options, int first) {
    const struct model *model = net->model;
    int left = model->op_count - first;
    struct plan_request request = {
        .ops = model->ops + first,
        .count = left < PLAN_MAX_OPS ? left : PLAN_MAX_OPS,
        .images = options->images,
        .training = options->training,
        .input_gradient = first > 0,
        .reaches_end = left <= PLAN_MAX_OPS,
        .force = options->force,
    };
    struct group *group = &net->groups[net->group_count];
    enum status status = net->device.ops->plan(net->device.device, &request, &group->plan);
    if (status != STATUS_OK)
        return status_prefix(status, "%s, %s: ", model->name, layer_of(model, first)->name);
    net->group_count++; /* from here on net_free() frees the plan */
    group->info = *net->device.ops->plan_info(group->plan);
    group->first_op = first;
    if (group->info.taken < 1 || group->info.taken > request.count)
        return status_fail(STATUS_INTERNAL, "%s: took %d of %d operations", group->info.implementation,
                           group->info.taken, request.count);
    struct net_group *described = &net->described[net->group_count - 1];
    described->info = &group->info;
    described->first_op = first;
    described->op_count = group->info.taken;
    described->name = group_name(net, first, group->info.taken);
    if (!described->name)
        return status_fail(STATUS_NO_MEMORY, "no memory to plan %s", model->name);
    for (int i = 0; i < group->info.taken; i++)
        described->flops += op_flops(&model->ops[first + i]);
    return STATUS_OK;
}

/* ---- memory */

/* images x values x bytes of one, or a failure that names the tensor. */
static enum status sized(const struct net *net, const char *name, size_t values, size_t element,
                         struct place *out) {
    size_t bytes;
    if (__builtin_mul_overflow(values, (size_t)net->images, &bytes) ||
        __builtin_mul_overflow(bytes, element, &bytes))
        return status_fail(STATUS_NO_MEMORY,
                           "%s, %s: %d images of %zu values are more bytes than can be counted",
                           net->model->name, name, net->images, values);
    out->bytes = bytes;
    return STATUS_OK;
}

/* Sizes and times of use of everything in a tower's arena. */
static enum status set_places(struct net *net) {
    const struct model *model = net->model;
    int last = last_moment(net), loss = loss_moment(net);
    size_t classes = (size_t)model->classes, real = net->element, activation = net->activation;
    STATUS_TRY(sized(net, "input", shape_size(model->input), activation, &net->input));
    STATUS_TRY(sized(net, "losses", 1, real, &net->losses));
    STATUS_TRY(sized(net, "probabilities", classes, real, &net->probabilities));
    net->input.first = INPUT_MOMENT;
    net->input.last = net->training && net->groups[0].info.backward_reads_x ? backward_moment(net, 0) : 0;
    net->losses.first = net->probabilities.first =
        INPUT_MOMENT; /* read after the step, so they share with none */
    net->losses.last = net->probabilities.last = last;
    if (net->training) {
        STATUS_TRY(sized(net, "logits", classes, activation, &net->dlogits));
        net->dlogits.first = loss;
        net->dlogits.last = backward_moment(net, net->group_count - 1);
    }
    for (int g = 0; g < net->group_count; g++) {
        struct group *group = &net->groups[g];
        const char *name = net->described[g].name;
        bool final = g + 1 == net->group_count;
        STATUS_TRY(sized(net, name, shape_size(model->ops[group->first_op + group->info.taken - 1].out),
                         group->info.real_output ? real : activation, &group->y));
        group->y.first = final ? INPUT_MOMENT : g;
        group->y.last = final ? last : g + 1;
        if (net->training && group->info.backward_reads_y && !final)
            group->y.last = backward_moment(net, g);
        else if (net->training && !final && net->groups[g + 1].info.backward_reads_x)
            group->y.last = backward_moment(net, g + 1);
        group->saved =
            (struct place){0, group->info.saved_bytes, g, net->training ? backward_moment(net, g) : g};
        if (net->training && g > 0) {
            STATUS_TRY(sized(net, name, shape_size(model->ops[group->first_op].in), activation, &group->dx));
            group->dx.first = backward_moment(net, g);
            group->dx.last = backward_moment(net, g - 1);
        }
    }
    return STATUS_OK;
}

static enum status lay_out(struct net *net) {
    int count = 4 + 3 * net->group_count;
    struct place **places = arena_array(&net->arena, (size_t)count, sizeof *places);
    struct piece *pieces = arena_array(&net->arena, (size_t)count, sizeof *pieces);
    if (!places || !pieces)
        return status_fail(STATUS_NO_MEMORY, "no memory to plan %s", net->model->name);
    places[0] = &net->input;
    places[1] = &net->dlogits;
    places[2] = &net->losses;
    places[3] = &net->probabilities;
    for (int g = 0; g < net->group_count; g++) {
        places[4 + 3 * g] = &net->groups[g].y;
        places[5 + 3 * g] = &net->groups[g].dx;
        places[6 + 3 * g] = &net->groups[g].saved;
    }
    for (int i = 0; i < count; i++)
        pieces[i] =
            (struct piece){.bytes = places[i]->bytes, .first = places[i]->first, .last = places[i]->last};
    STATUS_TRY(layout_place(pieces, count, &net->sizes.arena_bytes));
    for (int i = 0; i < count; i++)
        places[i]->offset = pieces[i].offset;
    return STATUS_OK;
}

static enum status lay_out_shared(struct net *net) {
    struct net_sizes *sizes = &net->sizes;
    sizes->gradient_bytes = net->training ? net->model->flat_count * net->element : 0;
    for (int g = 0; g < net->group_count; g++) {
        struct group *group = &net->groups[g];
        if (group->info.scratch_bytes > sizes->scratch_bytes)
            sizes->scratch_bytes = group->info.scratch_bytes;
        group->prepared_offset = sizes->prepared_bytes;
        size_t bytes = group->info.prepared_bytes;
        if (__builtin_add_overflow(bytes, LAYOUT_ALIGNMENT - 1, &bytes) ||
            __builtin_add_overflow(sizes->prepared_bytes, bytes / LAYOUT_ALIGNMENT * LAYOUT_ALIGNMENT,
                                   &sizes->prepared_bytes))
            return status_fail(STATUS_NO_MEMORY, "%s: more bytes of prepared parameters than can be counted",
                               net->model->name);
    }
    return STATUS_OK;
}

/* ---- */

static enum status plan_all(struct net *net, const struct net_options *options) {
    const struct model *model = net->model;
    net->groups = arena_array(&net->arena, (size_t)model->op_count, sizeof *net->groups);
    net->described = arena_array(&net->arena, (size_t)model->op_count, sizeof *net->described);
    if (!net->groups || !net->described)
        return status_fail(STATUS_NO_MEMORY, "no memory to plan %s", model->name);
    for (int first = 0; first < model->op_count; first += net->groups[net->group_count - 1].info.taken)
        STATUS_TRY(add_group(net, options, first));
    STATUS_TRY(set_places(net));
    STATUS_TRY(lay_out(net));
    return lay_out_shared(net);
}

enum status net_plan(const struct model *model, struct device_handle device,
                     const struct net_options *options, struct net **out) {
    *out = NULL;
    if (options->images < 1)
        return status_fail(STATUS_INTERNAL, "a net for %d images", options->images);
    struct device_info info;
    STATUS_TRY(device.ops->describe(device.device, &info));
    struct net *net = calloc(1, sizeof *net);
    if (!net)
        return status_fail(STATUS_NO_MEMORY, "no memory to plan %s", model->name);
    net->model = model;
    net->device = device;
    net->images = options->images;
    net->training = options->training;
    net->element = (size_t)info.element_bytes;
    net->activation = (size_t)info.activation_bytes;
    enum status status = plan_all(net, options);
    if (status == STATUS_OK)
        *out = net;
    else
        net_free(net);
    return status;
}

void net_free(struct net *net) {
    if (!net)
        return;
    for (int g = 0; g < net->group_count; g++)
        net->device.ops->plan_free(net->groups[g].plan);
    arena_free(&net->arena);
    free(net);
}

struct net_sizes net_sizes(const struct net *net) {
    return net->sizes;
}

int net_groups(const struct net *net, const struct net_group **groups) {
    *groups = net->described;
    return net->group_count;
}

bool net_shares_prepared(const struct net *a, const struct net *b) {
    bool same =
        a->model == b->model && a->device.device == b->device.device && a->group_count == b->group_count;
    for (int g = 0; same && g < a->group_count; g++) {
        const struct plan_info *p = &a->groups[g].info, *q = &b->groups[g].info;
        same = p->taken == q->taken && p->prepared_bytes == q->prepared_bytes &&
               strcmp(p->implementation, q->implementation) == 0;
    }
    return same;
}
