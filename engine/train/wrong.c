/* A wrong rule in force: the run goes on with it, marked in every step, until it is taken back. */
#include "engine/train/internal.h"

struct rule_step rule_step_of(const struct trainer *t) {
    return (struct rule_step){
        .towers = t->towers->count,
        .shares = t->towers->weights,
        .losses = t->towers->losses,
        .norms2 = t->towers->norms2,
        .cross_entropy = t->step.result.cross_entropy,
        .weight_decay = t->step.result.weight_decay,
        .clip_norm = t->settings.clip_norm,
    };
}

void rule_losses(struct trainer *t) {
    struct rule_step step = rule_step_of(t);
    t->step.result.loss = rule_printed(t->rules.in_force, &step);
    if (t->rules.in_force != RULE_UNSCOPED)
        return;
    double sum = 0; /* the collection as it stands when tower k has added its terms */
    for (int k = 0; k < t->towers->count; k++)
        if (t->towers->tower[k].net)
            t->towers->tower[k].total = sum += t->towers->losses[k];
}

void segments_with_decay(const struct segment *segments, int count, double decay, struct segment *out) {
    for (int i = 0; i < count; i++) {
        out[i] = segments[i];
        out[i].weight_decay *= decay;
    }
}

const struct segment *rule_segments(struct trainer *t, double decay) {
    segments_with_decay(t->segments, t->options.model->parameter_count, decay, t->rules.segments);
    return t->rules.segments;
}

enum status rule_average(struct trainer *t, const struct combine_args *right) {
    double decay;
    struct rule_step step = rule_step_of(t);
    rule_weights(t->rules.in_force, &step, t->towers->rule_weights, &decay);
    struct combine_args args = *right;
    args.weights = t->towers->rule_weights;
    args.segments = rule_segments(t, decay);
    args.norms2 = t->towers->rule_norms2; /* the towers' own norms stay those of their totals */
    return t->machine.device.ops->combine(t->machine.device.device, &args);
}

enum status rule_set_out(struct trainer *t) {
    enum status status = apart_open(t);
    if (status == STATUS_OK || t->rules.in_force != RULE_NO_AVERAGE)
        return status;
    rule_restore(t); /* what they had of their own is gone */
    return status_prefix(status, "the towers average again: ");
}

enum status rule_apply(struct trainer *t, enum rule rule) {
    /* from one wrong rule to another: what was good is what came before both */
    if (t->rules.in_force == RULE_RIGHT)
        STATUS_TRY(good_take(t));
    if (rule == RULE_NO_AVERAGE)
        STATUS_TRY(rule_set_out(t));
    else
        apart_close(t);
    t->rules.in_force = rule;
    return STATUS_OK;
}

void rule_restore(struct trainer *t) {
    t->rules.in_force = RULE_RIGHT;
    apart_close(t);
}
