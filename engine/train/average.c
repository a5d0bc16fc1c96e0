/* What the towers' results come to: the losses, the averaged gradient, the update. */
#include "engine/train/internal.h"

#include <math.h>

/* Cross-entropies from the images' losses, the step's collection, and what each tower's scope makes of it. */
void step_losses(struct trainer *t) {
    struct towers *towers = t->towers;
    struct step_result *r = &t->step.result;
    r->cross_entropy = r->weight_decay = r->loss = 0;
    for (int k = 0; k < towers->count; k++) {
        struct tower *tower = &towers->tower[k];
        struct span losses = tower->net ? net_losses(tower->net, &tower->memory) : (struct span){0};
        double sum = machine_loss_sum(&t->machine, losses, t->step.losses + tower->first, tower->images);
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
        towers->losses[k] = tower->total;
        r->cross_entropy += towers->weights[k] * tower->cross_entropy;
        r->weight_decay += towers->weights[k] * decay;
        r->loss += towers->weights[k] * tower->total;
    }
    if (t->rules.in_force != RULE_RIGHT)
        rule_losses(t);
}

struct combine_args step_combine_args(struct trainer *t, double *average_norm2) {
    struct towers *towers = t->towers;
    return (struct combine_args){
        .towers = towers->count,
        .gradients = towers->gradients,
        .weights = towers->weights,
        .parameters = t->shared.values,
        .segments = t->segments,
        .segment_count = t->options.model->parameter_count,
        .want_dots = t->step.result.cosines,
        .average = t->shared.gradient,
        .norms2 = towers->norms2,
        .dots = towers->dots,
        .segment_norms2 = t->step.result.layers ? t->shared.gradient_norms2 : NULL,
        .average_norm2 = average_norm2,
    };
}

enum status step_average_figures(struct trainer *t, double average_norm2) {
    const struct towers *towers = t->towers;
    STATUS_TRY(fault_gradients(t, average_norm2));
    t->step.result.average_norm2 = average_norm2; /* of the right average: the noise scale is made from it */
    t->step.result.grad_norm = sqrt(average_norm2);
    double sum = 0;
    int active = 0;
    for (int k = 0; k < towers->count; k++) {
        if (!towers->tower[k].net)
            continue;
        active++;
        sum += sqrt(towers->norms2[k]);
    }
    t->step.result.grad_norm_mean = sum / active;
    return STATUS_OK;
}

enum status step_average(struct trainer *t) {
    double average_norm2 = 0;
    struct combine_args args = step_combine_args(t, &average_norm2);
    STATUS_TRY(t->machine.device.ops->combine(t->machine.device.device, &args));
    STATUS_TRY(machine_wait(&t->machine));
    STATUS_TRY(step_average_figures(t, average_norm2));
    if (t->rules.in_force == RULE_RIGHT)
        return STATUS_OK;
    STATUS_TRY(rule_average(t, &args));
    STATUS_TRY(machine_wait(&t->machine));
    STATUS_TRY(fault_gradients(t, average_norm2));
    t->step.result.grad_norm = sqrt(average_norm2);
    return STATUS_OK;
}

double clip_scale(double clip_norm, double norm) {
    return clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1;
}

struct update_args step_update_args(struct trainer *t) {
    bool clips = rule_clips_after(t->rules.in_force);
    return (struct update_args){
        .parameters = t->shared.values,
        .average = t->shared.gradient,
        .velocity = t->shared.velocity,
        .shadow = t->shared.average,
        .segments = t->segments,
        .segment_count = t->options.model->parameter_count,
        .learning_rate = t->step.result.lr,
        .momentum = t->settings.momentum,
        .gradient_scale = clips ? clip_scale(t->settings.clip_norm, t->step.result.grad_norm) : 1,
        .ema_decay = average_decay(t->settings.ema, t->progress.steps),
        .parameter_norms2 = t->shared.norms2,
        .update_norms2 = t->shared.update_norms2,
    };
}

enum status step_update_figures(struct trainer *t) {
    STATUS_TRY(fault_parameters(t));
    double parameters = 0, change = 0;
    for (int i = 0; i < t->options.model->parameter_count; i++) {
        parameters += t->shared.norms2[i];
        change += t->shared.update_norms2[i];
    }
    t->step.result.update_ratio = sqrt(change) / sqrt(parameters); /* NaN for parameters that are all 0 */
    return STATUS_OK;
}

enum status step_update(struct trainer *t) {
    t->shared.stale = true;
    if (t->rules.in_force == RULE_NO_AVERAGE) {
        STATUS_TRY(apart_update(t));
    } else {
        struct update_args args = step_update_args(t);
        STATUS_TRY(t->machine.device.ops->update(t->machine.device.device, &args));
        STATUS_TRY(machine_wait(&t->machine));
    }
    return step_update_figures(t);
}
