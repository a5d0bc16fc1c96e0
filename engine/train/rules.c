#include "engine/train/rules.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const char *const names[RULES] = {
    [RULE_UNSCOPED] = "unscoped",
    [RULE_SUM] = "sum",
    [RULE_LAST] = "last",
    [RULE_PRINT_LAST] = "print-last",
    [RULE_DECAY_PER_TOWER] = "decay-per-tower",
    [RULE_PLAIN_MEAN] = "plain-mean",
    [RULE_CLIP_BEFORE] = "clip-before",
    [RULE_NO_AVERAGE] = "no-average",
};

const char *rule_name(enum rule rule) {
    return rule > RULE_RIGHT && rule < RULES ? names[rule] : NULL;
}

enum rule rule_find(const char *name) {
    for (int i = RULE_RIGHT + 1; i < RULES; i++)
        if (!strcmp(name, names[i]))
            return (enum rule)i;
    return RULE_RIGHT;
}

static int active_towers(const struct rule_step *step) {
    int n = 0;
    for (int k = 0; k < step->towers; k++)
        n += step->shares[k] > 0;
    return n;
}

/* What one tower's gradient counts; `before`: active towers built before it, of n. */
static double weight(enum rule rule, const struct rule_step *step, int k, int before, int n) {
    switch (rule) {
    case RULE_UNSCOPED:
        return (double)(n - before) / n; /* in the totals of all towers from k on */
    case RULE_SUM:
        return 1;
    case RULE_LAST:
        return before == n - 1;
    case RULE_PLAIN_MEAN:
        return 1.0 / n;
    case RULE_CLIP_BEFORE: {
        double norm = step->clip_norm > 0 ? sqrt(step->norms2[k]) : 0;
        return step->shares[k] * (norm > step->clip_norm ? step->clip_norm / norm : 1);
    }
    default:
        return step->shares[k];
    }
}

void rule_weights(enum rule rule, const struct rule_step *step, double *weights, double *decay) {
    int n = active_towers(step), before = 0;
    for (int k = 0; k < step->towers; k++) {
        weights[k] = 0;
        if (step->shares[k] > 0)
            weights[k] = weight(rule, step, k, before++, n);
    }
    *decay = rule == RULE_DECAY_PER_TOWER ? n : 1;
}

double rule_printed(enum rule rule, const struct rule_step *step) {
    int n = active_towers(step);
    double sum = 0, last = 0;
    for (int k = 0; k < step->towers; k++)
        if (step->shares[k] > 0) {
            last = step->losses[k];
            sum += last;
        }
    switch (rule) {
    case RULE_UNSCOPED: /* the last tower's total holds all */
    case RULE_SUM:
        return sum;
    case RULE_LAST:
    case RULE_PRINT_LAST:
        return last;
    case RULE_DECAY_PER_TOWER:
        return step->cross_entropy + n * step->weight_decay;
    case RULE_PLAIN_MEAN:
        return sum / n;
    default:
        return step->cross_entropy + step->weight_decay;
    }
}

bool rule_clips_after(enum rule rule) {
    return rule != RULE_CLIP_BEFORE;
}
