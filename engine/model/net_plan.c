/* A net before it runs: groups of operations, and where everything lies.
 *
 * The images of a net are cut into lanes, one for each thread that will be there, and a lane goes through all
 * groups by itself, in memory of its own: in that it is what a tower on one thread is. When all are done,
 * their gradients are added up, and made where a group left them for later. So threads wait for each other
 * twice a step, not at every operation.
 *
 * Moments of one step, for G groups: -1 the input is written; 0 .. G-1 forward; G the loss; G+1 .. 2G
 * backward, the last group first; 2G+1 what is made from all lanes when they are done. A buffer is in use
 * from the moment that writes it to the last that reads it. */
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

static int later_moment(const struct net *net) {
    return last_moment(net) + 1;
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

/* Plan the next group, which begins with operation `first`. */
static enum status add_group(struct net *net, const struct net_options *options, struct lane_plan *lane,
                             int first) {
    const struct model *model = net->model;
    int left = model->op_count - first;
    struct plan_request request = {
        .ops = model->ops + first,
        .count = left < PLAN_MAX_OPS ? left : PLAN_MAX_OPS,
        .images = lane->images,
        .training = options->training,
        .input_gradient = first > 0,
        .reaches_end = left <= PLAN_MAX_OPS,
        .force = options->force,
    };
    struct group *group = &lane->groups[lane->planned];
    enum status status = net->device.ops->plan(net->device.device, &request, &group->plan);
    if (status != STATUS_OK)
        return status_prefix(status, "%s, %s: ", model->name, layer_of(model, first)->name);
    lane->planned++; /* from here on net_free() frees the plan */
    group->info = *net->device.ops->plan_info(group->plan);
    group->first_op = first;
    if (group->info.taken < 1 || group->info.taken > request.count)
        return status_fail(STATUS_INTERNAL, "%s: took %d of %d operations", group->info.implementation,
                           group->info.taken, request.count);
    return STATUS_OK;
}

static enum status plan_lane(struct net *net, const struct net_options *options, struct lane_plan *lane,
                             int images) {
    const struct model *model = net->model;
    lane->images = images;
    lane->groups = arena_array(&net->arena, (size_t)model->op_count, sizeof *lane->groups);
    if (!lane->groups)
        return status_fail(STATUS_NO_MEMORY, "no memory to plan %s", model->name);
    for (int first = 0; first < model->op_count; first += lane->groups[lane->planned - 1].info.taken)
        STATUS_TRY(add_group(net, options, lane, first));
    return STATUS_OK;
}

static enum status describe_groups(struct net *net) {
    const struct model *model = net->model;
    net->described = arena_array(&net->arena, (size_t)net->group_count, sizeof *net->described);
    for (int g = 0; net->described && g < net->group_count; g++) {
        const struct group *group = &net->plans[0].groups[g];
        struct net_group *described = &net->described[g];
        *described = (struct net_group){.info = &group->info,
                                        .first_op = group->first_op,
                                        .op_count = group->info.taken,
                                        .name = group_name(net, group->first_op, group->info.taken)};
        if (!described->name)
            return status_fail(STATUS_NO_MEMORY, "no memory to plan %s", model->name);
        for (int i = 0; i < group->info.taken; i++)
            described->flops += op_flops(&model->ops[group->first_op + i]);
    }
    return net->described ? STATUS_OK : status_fail(STATUS_NO_MEMORY, "no memory to plan %s", model->name);
}

/* ---- memory */

/* images x values x bytes of one, or a failure that names the tensor. */
static enum status sized(const struct net *net, int images, const char *name, size_t values, size_t element,
                         struct place *out) {
    size_t bytes;
    if (__builtin_mul_overflow(values, (size_t)images, &bytes) ||
        __builtin_mul_overflow(bytes, element, &bytes))
        return status_fail(STATUS_NO_MEMORY,
                           "%s, %s: %d images of %zu values are more bytes than can be counted",
                           net->model->name, name, images, values);
    out->bytes = bytes;
    return STATUS_OK;
}

/* Sizes and times of use of what a tower's arena has once for all lanes. */
static enum status set_common_places(struct net *net) {
    const struct model *model = net->model;
    const struct group *groups = net->plans[0].groups;
    const int last = last_moment(net), end = net->group_count - 1, images = net->images;
    size_t classes = (size_t)model->classes, real = net->element, activation = net->activation;
    STATUS_TRY(sized(net, images, "input", shape_size(model->input), activation, &net->input));
    STATUS_TRY(sized(net, images, "losses", 1, real, &net->losses));
    STATUS_TRY(sized(net, images, "probabilities", classes, real, &net->probabilities));
    STATUS_TRY(sized(net, images, net->described[end].name, classes,
                     groups[end].info.real_output ? real : activation, &net->logits));
    net->input.first = INPUT_MOMENT;
    net->input.last = net->training && groups[0].info.backward_reads_x ? backward_moment(net, 0) : 0;
    /* read after the step, so they share with none */
    struct place *results[] = {&net->losses, &net->probabilities, &net->logits};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        results[i]->first = INPUT_MOMENT;
        results[i]->last = last;
    }
    if (!net->training)
        return STATUS_OK;
    net->dlogits.first = loss_moment(net);
    net->dlogits.last = backward_moment(net, end);
    return sized(net, images, "logits", classes, activation, &net->dlogits);
}

/* The same of what each lane has for itself. */
static enum status set_places(struct net *net, struct lane_plan *lane) {
    const struct model *model = net->model;
    const size_t activation = net->activation;
    for (int g = 0; g < net->group_count; g++) {
        struct group *group = &lane->groups[g];
        const char *name = net->described[g].name;
        if (g + 1 < net->group_count) {
            const struct op *last = &model->ops[group->first_op + group->info.taken - 1];
            STATUS_TRY(sized(net, lane->images, name, shape_size(last->out),
                             group->info.real_output ? net->element : activation, &group->y));
            group->y.first = g;
            group->y.last = g + 1;
            if (net->training && group->info.backward_reads_y)
                group->y.last = backward_moment(net, g);
            else if (net->training && lane->groups[g + 1].info.backward_reads_x)
                group->y.last = backward_moment(net, g + 1);
            if (net->training && group_is_later(net, &lane->groups[g + 1]))
                group->y.last = later_moment(net);
        }
        group->saved =
            (struct place){0, group->info.saved_bytes, g, net->training ? backward_moment(net, g) : g};
        if (net->training && g > 0) {
            STATUS_TRY(sized(net, lane->images, name, shape_size(model->ops[group->first_op].in), activation,
                             &group->dx));
            group->dx.first = backward_moment(net, g);
            group->dx.last =
                group_is_later(net, &lane->groups[g - 1]) ? later_moment(net) : backward_moment(net, g - 1);
        }
    }
    return STATUS_OK;
}

static int list_common(struct net *net, struct place **out) {
    struct place *places[] = {&net->input, &net->dlogits, &net->losses, &net->probabilities, &net->logits};
    enum { COUNT = sizeof places / sizeof *places };
    memcpy(out, places, sizeof places);
    return COUNT;
}

static int list_own(const struct net *net, struct lane_plan *lane, struct place **out) {
    for (int g = 0; g < net->group_count; g++) {
        *out++ = &lane->groups[g].y;
        *out++ = &lane->groups[g].dx;
        *out++ = &lane->groups[g].saved;
    }
    return 3 * net->group_count;
}

static enum status place_all(struct place **places, int count, struct piece *pieces, size_t *total) {
    for (int i = 0; i < count; i++)
        pieces[i] =
            (struct piece){.bytes = places[i]->bytes, .first = places[i]->first, .last = places[i]->last};
    STATUS_TRY(layout_place(pieces, count, total));
    for (int i = 0; i < count; i++)
        places[i]->offset = pieces[i].offset;
    return STATUS_OK;
}

/* A lane alone: all in one layout. Several don't wait for each other, so no two may use the same memory at
 * any moment: first what they have in common, then what is each one's own. */
static enum status lay_out(struct net *net) {
    int most = 5 + 3 * net->group_count;
    struct place **places = arena_array(&net->arena, (size_t)most, sizeof *places);
    struct piece *pieces = arena_array(&net->arena, (size_t)most, sizeof *pieces);
    if (!places || !pieces)
        return status_fail(STATUS_NO_MEMORY, "no memory to plan %s", net->model->name);
    int count = list_common(net, places);
    if (net->lane_count == 1) {
        count += list_own(net, &net->plans[0], places + count);
        return place_all(places, count, pieces, &net->sizes.arena_bytes);
    }
    for (int i = 0; i < count; i++) {
        places[i]->first = INPUT_MOMENT;
        places[i]->last = last_moment(net);
    }
    STATUS_TRY(place_all(places, count, pieces, &net->sizes.arena_bytes));
    for (int i = 0; i < 2 && net->plans[i].images; i++) {
        count = list_own(net, &net->plans[i], places);
        STATUS_TRY(place_all(places, count, pieces, &net->plans[i].bytes));
    }
    for (int l = 0; l < net->lane_count; l++) {
        net->lanes[l].offset = net->sizes.arena_bytes;
        if (__builtin_add_overflow(net->sizes.arena_bytes, net->lanes[l].plan->bytes,
                                   &net->sizes.arena_bytes))
            return status_fail(STATUS_NO_MEMORY, "more bytes of memory than can be counted are needed");
    }
    return STATUS_OK;
}

/* bytes rounded up to LAYOUT_ALIGNMENT and added to *sum; false: that can't be counted. */
static bool add_aligned(size_t bytes, size_t *sum) {
    return !__builtin_add_overflow(bytes, LAYOUT_ALIGNMENT - 1, &bytes) &&
           !__builtin_add_overflow(*sum, bytes / LAYOUT_ALIGNMENT * LAYOUT_ALIGNMENT, sum);
}

/* Where the tensors lie in the gradient of a lane that is not the first; false: that can't be counted. */
static bool place_tensors(struct net *net) {
    const struct model *model = net->model;
    const struct group *group = net->plans[0].groups;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct model_parameter *parameter = &model->parameters[i];
        while (parameter->op >= group->first_op + group->info.taken)
            group++;
        net->tensor_offsets[i] = net->lane_gradient;
        if (!group_is_later(net, group) && !add_aligned(parameter->count * net->element, &net->lane_gradient))
            return false;
    }
    return true;
}

/* What lies outside of the arena. */
static enum status lay_out_apart(struct net *net) {
    struct net_sizes *sizes = &net->sizes;
    const size_t flat = net->training ? net->model->flat_count * net->element : 0;
    const size_t others = (size_t)net->lane_count - 1;
    size_t scratch = 0;
    net->tensor_offsets =
        arena_array(&net->arena, (size_t)net->model->parameter_count, sizeof *net->tensor_offsets);
    if (!net->tensor_offsets)
        return status_fail(STATUS_NO_MEMORY, "no memory to plan %s", net->model->name);
    bool counted = add_aligned(flat, &net->others_offset);
    if (net->training && others)
        counted = counted && place_tensors(net);
    for (int i = 0; i < 2 && net->plans[i].images; i++) {
        sizes->prepared_bytes = 0; /* the same for both */
        for (int g = 0; g < net->group_count; g++) {
            struct group *group = &net->plans[i].groups[g];
            if (group->info.scratch_bytes > scratch)
                scratch = group->info.scratch_bytes;
            group->prepared_offset = sizes->prepared_bytes;
            counted = counted && add_aligned(group->info.prepared_bytes, &sizes->prepared_bytes);
        }
    }
    counted = counted && add_aligned(scratch, &net->lane_scratch) &&
              !__builtin_mul_overflow(net->lane_scratch, others, &sizes->scratch_bytes) &&
              !__builtin_add_overflow(sizes->scratch_bytes, scratch, &sizes->scratch_bytes) &&
              !__builtin_mul_overflow(net->lane_gradient, others, &sizes->gradient_bytes) &&
              !__builtin_add_overflow(sizes->gradient_bytes, others ? net->others_offset : flat,
                                      &sizes->gradient_bytes);
    return counted ? STATUS_OK
                   : status_fail(STATUS_NO_MEMORY, "%s: more bytes of memory than can be counted are needed",
                                 net->model->name);
}

/* ---- */

/* Never a lane of a single image unless there is only one: a library may compute one image otherwise than two
 * and more. */
static int count_lanes(const struct net *net, int wanted) {
    int most = net->images / 2;
    int count = wanted < most ? wanted : most;
    return count < 1 || !net->device.ops->lanes ? 1 : count;
}

static enum status plan_lanes(struct net *net, const struct net_options *options) {
    const int count = net->lane_count = count_lanes(net, options->lanes);
    const int least = net->images / count, more = net->images % count;
    net->lanes = arena_array(&net->arena, (size_t)count, sizeof *net->lanes);
    if (!net->lanes)
        return status_fail(STATUS_NO_MEMORY, "no memory to plan %s", net->model->name);
    for (int i = 0; i < (more ? 2 : 1); i++)
        STATUS_TRY(plan_lane(net, options, &net->plans[i], least + (more && i == 0)));
    if (more && net->plans[0].planned != net->plans[1].planned)
        return status_fail(STATUS_INTERNAL, "%s: %d groups for %d images, %d for %d", net->model->name,
                           net->plans[0].planned, least + 1, net->plans[1].planned, least);
    net->group_count = net->plans[0].planned;
    for (int l = 0, first = 0; l < count; l++) {
        net->lanes[l] = (struct lane){.plan = &net->plans[more && l >= more], .first = first};
        first += net->lanes[l].plan->images;
    }
    return STATUS_OK;
}

static enum status plan_all(struct net *net, const struct net_options *options) {
    STATUS_TRY(plan_lanes(net, options));
    STATUS_TRY(describe_groups(net));
    STATUS_TRY(set_common_places(net));
    for (int i = 0; i < 2 && net->plans[i].images; i++)
        STATUS_TRY(set_places(net, &net->plans[i]));
    STATUS_TRY(lay_out(net));
    return lay_out_apart(net);
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
    for (int i = 0; i < 2; i++)
        for (int g = 0; g < net->plans[i].planned; g++)
            net->device.ops->plan_free(net->plans[i].groups[g].plan);
    arena_free(&net->arena);
    free(net);
}

struct net_sizes net_sizes(const struct net *net) {
    return net->sizes;
}

int net_lanes(const struct net *net) {
    return net->lane_count;
}

int net_lanes_for(struct device_handle device, int towers) {
    struct device_info info;
    if (!device.ops->lanes || device.ops->describe(device.device, &info) != STATUS_OK)
        return 1;
    return info.threads / device.ops->workers(device.device, towers);
}

int net_groups(const struct net *net, const struct net_group **groups) {
    *groups = net->described;
    return net->group_count;
}

bool net_shares_prepared(const struct net *a, const struct net *b) {
    bool same =
        a->model == b->model && a->device.device == b->device.device && a->group_count == b->group_count;
    for (int g = 0; same && g < a->group_count; g++) {
        const struct plan_info *p = &a->plans[0].groups[g].info, *q = &b->plans[0].groups[g].info;
        same = p->taken == q->taken && p->prepared_bytes == q->prepared_bytes &&
               strcmp(p->implementation, q->implementation) == 0;
    }
    return same;
}
