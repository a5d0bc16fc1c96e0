/* Towers that never average: each keeps its own parameters, slots and what the kernels derive from them, and
 * goes its own way. The shared parameters are the mean of the towers' after each step: what eval, save,
 * `towers` and the moving average act on. */
#include "engine/train/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct apart {
    int count;
    struct span *values, *velocity, *prepared; /* [count]; velocity: {NULL, 0} without momentum */
    double *even, *norms2, *dots;              /* [count] 1/count; results */
    struct segment *plain;                     /* [parameters] without weight decay */
    double *tensor_norms2, *change_norms2;     /* [parameters] of one tower's update */
    double *mean_change;                       /* [parameters] mean of the towers' change_norms2 */
    double spread;
};

/* ---- copies on the device */

struct copies {
    struct trainer *t;
    struct span from;
    const struct span *to;
};

static enum status copy_item(void *context, int k, int worker, struct stream *stream) {
    (void)worker;
    const struct copies *c = context;
    const struct device_handle device = c->t->machine.device;
    return device.ops->copy(device.device, stream, c->to[k], c->from);
}

static enum status copy_to_all(struct trainer *t, struct span from, const struct span *to, int count) {
    struct copies c = {t, from, to};
    STATUS_TRY(t->machine.device.ops->each(t->machine.device.device, count, copy_item, &c));
    return machine_wait(&t->machine);
}

/* ---- opening */

static bool allocate_arrays(struct apart *a, int parameters) {
    size_t n = (size_t)a->count, tensors = (size_t)parameters;
    a->values = calloc(n, sizeof *a->values);
    a->velocity = calloc(n, sizeof *a->velocity);
    a->prepared = calloc(n, sizeof *a->prepared);
    a->even = calloc(n, sizeof *a->even);
    a->norms2 = calloc(n, sizeof *a->norms2);
    a->dots = calloc(n, sizeof *a->dots);
    a->plain = calloc(tensors, sizeof *a->plain);
    a->tensor_norms2 = calloc(tensors, sizeof *a->tensor_norms2);
    a->change_norms2 = calloc(tensors, sizeof *a->change_norms2);
    a->mean_change = calloc(tensors, sizeof *a->mean_change);
    return a->values && a->velocity && a->prepared && a->even && a->norms2 && a->dots && a->plain &&
           a->tensor_norms2 && a->change_norms2 && a->mean_change;
}

static enum status allocate_buffers(struct trainer *t) {
    struct apart *a = t->rules.apart;
    for (int k = 0; k < a->count; k++) {
        STATUS_TRY(machine_buffer_new(&t->machine, t->shared.flat_bytes, k, &a->values[k]));
        if (t->shared.velocity.data)
            STATUS_TRY(machine_buffer_new(&t->machine, t->shared.flat_bytes, k, &a->velocity[k]));
        if (t->shared.prepared.bytes)
            STATUS_TRY(machine_buffer_new(&t->machine, t->shared.prepared.bytes, k, &a->prepared[k]));
    }
    STATUS_TRY(copy_to_all(t, t->shared.values, a->values, a->count));
    if (t->shared.velocity.data)
        STATUS_TRY(copy_to_all(t, t->shared.velocity, a->velocity, a->count));
    return STATUS_OK;
}

enum status apart_open(struct trainer *t) {
    apart_close(t);
    int parameters = t->options.model->parameter_count;
    struct apart *a = calloc(1, sizeof *a);
    if (!a)
        return status_fail(STATUS_NO_MEMORY, "no memory for towers of their own");
    t->rules.apart = a;
    a->count = t->towers->count;
    a->spread = 0;
    enum status status = STATUS_NO_MEMORY;
    if (allocate_arrays(a, parameters)) {
        for (int k = 0; k < a->count; k++)
            a->even[k] = 1.0 / a->count;
        segments_with_decay(t->segments, parameters, 0, a->plain);
        status = allocate_buffers(t);
    }
    if (status != STATUS_OK) {
        size_t bytes =
            (size_t)a->count * (t->shared.flat_bytes + t->shared.velocity.bytes + t->shared.prepared.bytes);
        apart_close(t);
        return status == STATUS_NO_MEMORY
                   ? status_fail(status,
                                 "%d towers with parameters of their own need %zu bytes, which are not there",
                                 t->towers->count, bytes)
                   : status;
    }
    t->shared.stale = true;
    return STATUS_OK;
}

void apart_close(struct trainer *t) {
    struct apart *a = t->rules.apart;
    if (!a)
        return;
    for (int k = 0; k < a->count; k++) {
        if (a->values)
            machine_buffer_free(&t->machine, &a->values[k]);
        if (a->velocity)
            machine_buffer_free(&t->machine, &a->velocity[k]);
        if (a->prepared)
            machine_buffer_free(&t->machine, &a->prepared[k]);
    }
    free(a->values);
    free(a->velocity);
    free(a->prepared);
    free(a->even);
    free(a->norms2);
    free(a->dots);
    free(a->plain);
    free(a->tensor_norms2);
    free(a->change_norms2);
    free(a->mean_change);
    free(a);
    t->rules.apart = NULL;
    t->shared.stale = true;
}

/* ---- what a step needs */

struct net_operands apart_operands(const struct trainer *t, int k, int worker) {
    const struct apart *a = t->rules.apart;
    return (struct net_operands){
        .parameters = a ? a->values[k] : t->shared.values,
        .prepared = a && t->shared.prepared.bytes ? a->prepared[k] : t->shared.prepared,
        .scratch = t->towers->scratch[worker],
    };
}

enum status apart_prepare(struct trainer *t, struct net *net) {
    for (int k = 0; t->rules.apart && k < t->rules.apart->count; k++)
        STATUS_TRY(machine_prepare(&t->machine, net, t->rules.apart->values[k], t->rules.apart->prepared[k]));
    return STATUS_OK;
}

/* Tower k by its own gradient: of its own total, with its own decay. */
static enum status update_tower(struct trainer *t, int k) {
    const struct device_handle device = t->machine.device;
    struct apart *a = t->rules.apart;
    double one = 1, norm2, average_norm2;
    struct combine_args own = {
        .towers = 1,
        .gradients = &t->towers->gradients[k],
        .weights = &one,
        .parameters = a->values[k],
        .segments = t->segments,
        .segment_count = t->options.model->parameter_count,
        .average = t->shared.gradient,
        .norms2 = &norm2,
        .average_norm2 = &average_norm2,
    };
    STATUS_TRY(device.ops->combine(device.device, &own));
    STATUS_TRY(machine_wait(&t->machine));
    struct update_args args = step_update_args(t);
    args.parameters = a->values[k];
    args.velocity = a->velocity[k];
    args.shadow = (struct span){0};
    args.gradient_scale = clip_scale(t->settings.clip_norm, sqrt(average_norm2));
    args.parameter_norms2 = a->tensor_norms2;
    args.update_norms2 = a->change_norms2;
    STATUS_TRY(device.ops->update(device.device, &args));
    STATUS_TRY(machine_wait(&t->machine));
    for (int i = 0; i < args.segment_count; i++)
        a->mean_change[i] += a->change_norms2[i] / a->count;
    return STATUS_OK;
}

/* The mean of the towers' copies into `mean`. */
static enum status take_mean(struct trainer *t, const struct span *copies, struct span mean) {
    struct apart *a = t->rules.apart;
    double norm2;
    struct combine_args args = {
        .towers = a->count,
        .gradients = copies,
        .weights = a->even,
        .parameters = copies[0], /* times a decay of 0 */
        .segments = a->plain,
        .segment_count = t->options.model->parameter_count,
        .want_dots = true,
        .average = mean,
        .norms2 = a->norms2,
        .dots = a->dots,
        .average_norm2 = &norm2,
    };
    STATUS_TRY(t->machine.device.ops->combine(t->machine.device.device, &args));
    STATUS_TRY(machine_wait(&t->machine));
    double sum = 0;
    for (int k = 0; k < a->count; k++) /* |w_k - mean|^2 */
        sum += fmax(a->norms2[k] - 2 * a->dots[k] + norm2, 0);
    if (mean.data == t->shared.values.data)
        a->spread = sqrt(sum / a->count) / sqrt(norm2);
    return STATUS_OK;
}

enum status apart_update(struct trainer *t) {
    struct apart *a = t->rules.apart;
    memset(a->mean_change, 0, (size_t)t->options.model->parameter_count * sizeof *a->mean_change);
    for (int k = 0; k < a->count; k++)
        if (t->towers->tower[k].net)
            STATUS_TRY(update_tower(t, k));
    if (t->shared.velocity.data)
        STATUS_TRY(take_mean(t, a->velocity, t->shared.velocity));
    STATUS_TRY(take_mean(t, a->values, t->shared.values));
    /* A rate of 0 moves the moving average towards the mean and measures it. */
    struct update_args args = step_update_args(t);
    args.average = t->shared.values;
    args.velocity = (struct span){0};
    args.learning_rate = 0;
    args.momentum = 0;
    STATUS_TRY(t->machine.device.ops->update(t->machine.device.device, &args));
    STATUS_TRY(machine_wait(&t->machine));
    memcpy(args.update_norms2, a->mean_change, (size_t)args.segment_count * sizeof *a->mean_change);
    return STATUS_OK;
}

double apart_spread(const struct trainer *t) {
    return t->rules.apart ? t->rules.apart->spread : wire_unknown();
}
