/* Values that are not finite: found before they reach the parameters, and named. */
#include "engine/train/internal.h"

#include <math.h>
#include <stdio.h>

/* Whether one of `count` values is not finite; false also where that can't be found out: while a later step
 * is queued the memory is that one's. */
static bool has_non_finite(const struct trainer *t, struct span values, size_t count) {
    return t->queue.count == 0 && machine_non_finite(&t->machine, values, count) >= 0;
}

static enum status found(struct trainer *t, int tower, const char *tensor, const char *what) {
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
static void name_activation(struct trainer *t, int k, char *out, size_t size) {
    const struct model *model = t->options.model;
    const struct tower *tower = &t->towers->tower[k];
    snprintf(out, size, "cross_entropy");
    for (int i = 0; i < model->layer_count; i++) {
        for (int l = 0; l < net_lanes(tower->net); l++) {
            struct span y = net_activation(tower->net, &tower->memory, i, l);
            if (y.data && has_non_finite(t, y, net_activation_count(tower->net, i, l))) {
                snprintf(out, size, "%s/activations", model->layers[i].name);
                return;
            }
        }
    }
}

/* The first parameter tensor whose piece of a flat buffer has a value that is not finite. */
static const char *name_parameter(struct trainer *t, struct span flat) {
    const struct model *model = t->options.model;
    size_t element = (size_t)t->machine.info.element_bytes;
    for (int i = 0; i < model->parameter_count; i++) {
        const struct model_parameter *p = &model->parameters[i];
        struct span values = {(char *)flat.data + p->offset * element, p->count * element};
        if (has_non_finite(t, values, p->count))
            return p->name;
    }
    return "unknown";
}

enum status fault_losses(struct trainer *t) {
    for (int k = 0; k < t->towers->count; k++) {
        const struct tower *tower = &t->towers->tower[k];
        if (tower->net && !isfinite(tower->cross_entropy)) {
            char tensor[MODEL_NAME_MAX + 32];
            name_activation(t, k, tensor, sizeof tensor);
            return found(t, k, tensor, "the loss");
        }
    }
    return STATUS_OK;
}

enum status fault_gradients(struct trainer *t, double average_norm2) {
    for (int k = 0; k < t->towers->count; k++)
        if (t->towers->tower[k].net && !isfinite(t->towers->norms2[k]))
            return found(t, k, name_parameter(t, t->towers->gradients[k]), "the gradient");
    if (!isfinite(average_norm2))
        return found(t, -1, name_parameter(t, t->shared.gradient), "the averaged gradient");
    return STATUS_OK;
}

enum status fault_parameters(struct trainer *t) {
    for (int i = 0; i < t->options.model->parameter_count; i++)
        if (!isfinite(t->shared.norms2[i]) || !isfinite(t->shared.update_norms2[i]))
            return found(t, -1, t->options.model->parameters[i].name, "a parameter after the update");
    return STATUS_OK;
}
