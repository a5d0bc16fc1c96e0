/* A step: load, forward, losses, backward (tower by tower, on the device's workers), then average and update.
 */
#include "engine/base/clock.h"
#include "engine/train/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What the workers read while the towers run. */
struct shards {
    struct trainer *t;
    const struct batch *batch;
    size_t image_values; /* of the network's input */
};

static double value_at(const struct trainer *t, struct span span, size_t i) {
    return t->info.element_bytes == 8 ? ((const double *)span.data)[i]
                                      : (double)((const float *)span.data)[i];
}

static bool layer_has_relu(const struct model *model, const struct model_layer *layer) {
    for (int i = 0; i < layer->op_count; i++)
        if (model->ops[layer->first_op + i].kind == OP_RELU)
            return true;
    return false;
}

/* Share of zero activations of the layers that keep theirs: only where the host can read them. */
static void count_zeros(struct trainer *t, int k) {
    const struct model *model = t->options.model;
    const struct tower *tower = &t->towers->tower[k];
    for (int i = 0; i < model->layer_count; i++) {
        int64_t *zeros = &t->towers->zeros[k * model->layer_count + i];
        int64_t *values = &t->towers->values[k * model->layer_count + i];
        *zeros = *values = 0;
        if (!tower->net || !t->info.host_memory || !layer_has_relu(model, &model->layers[i]))
            continue;
        struct span y = net_activation(tower->net, &tower->memory, i);
        size_t count = y.data ? y.bytes / (size_t)t->info.element_bytes : 0;
        for (size_t j = 0; j < count; j++)
            *zeros += value_at(t, y, j) == 0;
        *values = (int64_t)count;
    }
}

static enum status run_tower(void *context, int k, int worker, struct stream *stream) {
    const struct shards *shards = context;
    struct trainer *t = shards->t;
    struct tower *tower = &t->towers->tower[k];
    const struct device_handle device = t->options.device;
    double start = clock_seconds();
    if (t->result.layers)
        count_zeros(t, k); /* zeroes the counts; again after forward when there is a shard */
    if (tower->net) {
        size_t n = (size_t)tower->images, first = (size_t)tower->first;
        struct span scratch = t->towers->scratch[worker];
        STATUS_TRY(device.ops->write(device.device, stream, net_input(tower->net, &tower->memory),
                                     shards->batch->pixels + first * shards->image_values,
                                     n * shards->image_values));
        double loaded = clock_seconds();
        STATUS_TRY(
            net_forward(tower->net, stream, &tower->memory, t->shared.values, t->shared.prepared, scratch));
        STATUS_TRY(net_loss(tower->net, stream, &tower->memory, shards->batch->labels + first));
        STATUS_TRY(device.ops->read(device.device, stream, t->host_losses + first,
                                    net_losses(tower->net, &tower->memory), n));
        double forward = clock_seconds();
        if (t->result.layers)
            count_zeros(t, k);
        STATUS_TRY(
            net_backward(tower->net, stream, &tower->memory, t->shared.values, t->shared.prepared, scratch));
        tower->load = loaded - start;
        tower->forward = forward - loaded;
        tower->backward = clock_seconds() - forward;
    }
    tower->done = clock_seconds();
    return STATUS_OK;
}

/* ---- finding what is not finite */

static enum status fault(struct trainer *t, int tower, const char *tensor, const char *what) {
    struct fault *f = &t->fault;
    f->tower = tower;
    snprintf(f->tensor, sizeof f->tensor, "%s", tensor);
    if (tower >= 0)
        snprintf(f->text, sizeof f->text, "step %lld: %s of tower %d is not finite (%s)",
                 (long long)t->progress.steps + 1, what, tower, tensor);
    else
        snprintf(f->text, sizeof f->text, "step %lld: %s is not finite (%s)",
                 (long long)t->progress.steps + 1, what, tensor);
    return STATUS_NON_FINITE;
}

/* The first layer of a tower whose output has a value that is not finite, as "conv2/activations". */
static void name_activation(const struct trainer *t, int k, char *out, size_t size) {
    const struct model *model = t->options.model;
    const struct tower *tower = &t->towers->tower[k];
    snprintf(out, size, "cross_entropy");
    for (int i = 0; i < model->layer_count && t->info.host_memory; i++) {
        struct span y = net_activation(tower->net, &tower->memory, i);
        size_t count = y.data ? y.bytes / (size_t)t->info.element_bytes : 0;
        for (size_t j = 0; j < count; j++)
            if (!isfinite(value_at(t, y, j))) {
                snprintf(out, size, "%s/activations", model->layers[i].name);
                return;
            }
    }
}

/* The first parameter tensor whose piece of a flat buffer has a value that is not finite. */
static const char *name_parameter(const struct trainer *t, struct span flat) {
    const struct model *model = t->options.model;
    for (int i = 0; i < model->parameter_count && t->info.host_memory; i++) {
        const struct model_parameter *p = &model->parameters[i];
        for (size_t j = 0; j < p->count; j++)
            if (!isfinite(value_at(t, flat, p->offset + j)))
                return p->name;
    }
    return "unknown";
}

static enum status check_losses(struct trainer *t) {
    for (int k = 0; k < t->towers->count; k++) {
        const struct tower *tower = &t->towers->tower[k];
        if (tower->net && !isfinite(tower->cross_entropy)) {
            char tensor[MODEL_NAME_MAX + 32];
            name_activation(t, k, tensor, sizeof tensor);
            return fault(t, k, tensor, "the loss");
        }
    }
    return STATUS_OK;
}

static enum status check_gradients(struct trainer *t, double average_norm2) {
    for (int k = 0; k < t->towers->count; k++)
        if (t->towers->tower[k].net && !isfinite(t->towers->norms2[k]))
            return fault(t, k, name_parameter(t, t->towers->gradients[k]), "the gradient");
    if (!isfinite(average_norm2))
        return fault(t, -1, name_parameter(t, t->shared.gradient), "the averaged gradient");
    return STATUS_OK;
}

static enum status check_parameters(struct trainer *t) {
    for (int i = 0; i < t->options.model->parameter_count; i++)
        if (!isfinite(t->shared.norms2[i]) || !isfinite(t->shared.update_norms2[i]))
            return fault(t, -1, t->options.model->parameters[i].name, "a parameter after the update");
    return STATUS_OK;
}

/* ---- the phases */

/* Cross-entropies from the images' losses, the step's collection, and what each tower's scope makes of it. */
static void combine_losses(struct trainer *t) {
    struct towers *towers = t->towers;
    struct step_result *r = &t->result;
    r->cross_entropy = r->weight_decay = r->loss = 0;
    for (int k = 0; k < towers->count; k++) {
        struct tower *tower = &towers->tower[k];
        double sum = 0;
        struct span losses = tower->net ? net_losses(tower->net, &tower->memory) : (struct span){0};
        for (int64_t i = 0; i < tower->images; i++)
            sum += t->info.element_bytes == 8 ? value_at(t, losses, (size_t)i)
                                              : (double)t->host_losses[tower->first + i];
        tower->cross_entropy = sum / (double)tower->images; /* 0 / 0, NaN, when idle */
        collection_fill(&towers->collection, k, t->segments, t->shared.norms2, tower->cross_entropy);
    }
    for (int k = 0; k < towers->count; k++) {
        struct tower *tower = &towers->tower[k];
        int terms = towers->collection.per_tower;
        const int *chosen = towers->chosen + (size_t)k * (size_t)terms;
        tower->total = collection_sum(&towers->collection, chosen, terms);
        if (!tower->net)
            continue;
        double decay = collection_sum(&towers->collection, chosen, terms - 1);
        r->cross_entropy += towers->weights[k] * tower->cross_entropy;
        r->weight_decay += towers->weights[k] * decay;
        r->loss += towers->weights[k] * tower->total;
    }
}

static enum status average(struct trainer *t) {
    struct towers *towers = t->towers;
    double average_norm2 = 0;
    struct combine_args args = {
        .towers = towers->count,
        .gradients = towers->gradients,
        .weights = towers->weights,
        .parameters = t->shared.values,
        .segments = t->segments,
        .segment_count = t->options.model->parameter_count,
        .want_dots = t->result.cosines,
        .average = t->shared.gradient,
        .norms2 = towers->norms2,
        .dots = towers->dots,
        .segment_norms2 = t->result.layers ? t->shared.gradient_norms2 : NULL,
        .average_norm2 = &average_norm2,
    };
    STATUS_TRY(t->options.device.ops->combine(t->options.device.device, &args));
    STATUS_TRY(check_gradients(t, average_norm2));
    t->result.grad_norm = sqrt(average_norm2);

    double sum = 0, weighted2 = 0;
    int active = 0;
    for (int k = 0; k < towers->count; k++) {
        if (!towers->tower[k].net)
            continue;
        active++;
        sum += sqrt(towers->norms2[k]);
        weighted2 += towers->weights[k] * towers->norms2[k];
    }
    t->result.grad_norm_mean = sum / active;
    noise_update(&t->noise, weighted2, average_norm2, t->result.images, active);
    return STATUS_OK;
}

static enum status update(struct trainer *t) {
    double clip = t->settings.clip_norm, norm = t->result.grad_norm;
    struct update_args args = {
        .parameters = t->shared.values,
        .average = t->shared.gradient,
        .velocity = t->shared.velocity,
        .shadow = t->shared.average,
        .segments = t->segments,
        .segment_count = t->options.model->parameter_count,
        .learning_rate = t->result.lr,
        .momentum = t->settings.momentum,
        .gradient_scale = clip > 0 && norm > clip ? clip / norm : 1,
        .ema_decay = average_decay(t->settings.ema, t->progress.steps),
        .parameter_norms2 = t->shared.norms2,
        .update_norms2 = t->shared.update_norms2,
    };
    STATUS_TRY(t->options.device.ops->update(t->options.device.device, &args));
    t->shared.stale = true;
    STATUS_TRY(check_parameters(t));
    double parameters = 0, change = 0;
    for (int i = 0; i < args.segment_count; i++) {
        parameters += t->shared.norms2[i];
        change += t->shared.update_norms2[i];
    }
    t->result.update_ratio = sqrt(change) / sqrt(parameters); /* NaN for parameters that are all 0 */
    return STATUS_OK;
}

static struct net *any_net(const struct towers *towers) {
    struct net *net = NULL;
    for (int k = 0; k < towers->count && !net; k++)
        net = towers->tower[k].net;
    return net;
}

enum status step_run(struct trainer *t) {
    double start = clock_seconds();
    int64_t step = t->progress.steps + 1;
    const struct batch *batch;
    double waited = 0;
    STATUS_TRY(loader_next(t->loader, &batch, &waited));
    t->loader_place = loader_after(&t->options.data->train, batch);
    STATUS_TRY(towers_shard(t->towers, &t->nets, batch->images));
    t->result = (struct step_result){
        .images = batch->images,
        .waited = waited,
        .lr = schedule_rate(&t->schedule, t->progress.images),
        .cosines = t->step_recorded,
        .layers = step % LAYERS_EVERY == 0,
    };
    if (t->shared.stale) {
        STATUS_TRY(trainer_prepare(t, any_net(t->towers), t->shared.values, t->shared.prepared));
        t->shared.stale = false;
    }
    struct shards shards = {t, batch, shape_size(t->options.model->input)};
    struct device_handle device = t->options.device;
    STATUS_TRY(device.ops->each(device.device, t->towers->count, run_tower, &shards));
    STATUS_TRY(trainer_wait(t));
    double towers_done = clock_seconds();
    combine_losses(t);
    STATUS_TRY(check_losses(t));
    STATUS_TRY(average(t));
    STATUS_TRY(trainer_wait(t));
    double averaged = clock_seconds();
    STATUS_TRY(update(t));
    STATUS_TRY(trainer_wait(t));
    double end = clock_seconds();

    t->result.average_seconds = averaged - towers_done;
    t->result.update_seconds = end - averaged;
    t->result.seconds = end - start;
    t->progress.steps = step;
    t->progress.images += batch->images;
    t->progress.place = t->loader_place;
    running_update(&t->running, t->result.loss, t->result.grad_norm);
    return STATUS_OK;
}

int64_t steps_per_epoch(const struct trainer *t) {
    int64_t batch = trainer_batch(&t->settings, t->settings.towers), count = t->options.data->train.count;
    return count / batch + (count % batch != 0);
}
