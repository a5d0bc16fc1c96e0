/* The right way to combine the towers' gradients, and the wrong ones that people have met.
 *
 * Towers k = 1..N with n_k of the step's n images (towers without images take no part), gradients G_k of
 * their total losses (decay included), shares p_k = n_k / n. Right is sum_k p_k G_k. Every wrong rule is an
 * exact linear combination of the same gradients:
 *
 *   unscoped         (1/N) sum_k sum_{j<=k} G_j   tower k's total holds those of all towers before it
 *   sum              sum_k G_k
 *   last             G_N                          only the last tower trains
 *   print-last       sum_k p_k G_k                only the printed loss is the last tower's
 *   decay-per-tower  sum_k p_k g_k + N wd w       the decay counts N times (g_k: without the decay)
 *   plain-mean       (1/N) sum_k G_k              differs when the shards are uneven
 *   clip-before      sum_k p_k clip(G_k)          differs when clipping is on
 *   no-average       each tower keeps its own parameters; only in force, never as a view of one step */
#ifndef TOWERSCOPE_ENGINE_TRAIN_RULES_H
#define TOWERSCOPE_ENGINE_TRAIN_RULES_H

#include <stdbool.h>
#include <stdint.h>

enum rule {
    RULE_RIGHT,
    RULE_UNSCOPED,
    RULE_SUM,
    RULE_LAST,
    RULE_PRINT_LAST,
    RULE_DECAY_PER_TOWER,
    RULE_PLAIN_MEAN,
    RULE_CLIP_BEFORE,
    RULE_NO_AVERAGE,
    RULES
};

/* What a rule works on: the figures of one step. */
struct rule_step {
    int towers;
    const double *shares; /* [towers] p_k; 0: no images, takes no part */
    const double *losses; /* [towers] total loss; read where the share is not 0 */
    const double *norms2; /* [towers] |G_k|^2; read by clip-before alone */
    double cross_entropy; /* weighted mean of the towers' */
    double weight_decay;  /* sum of a tower's decay terms: the same in each */
    double clip_norm;     /* 0: no clipping */
};

/* "unscoped", ...; NULL for RULE_RIGHT and numbers that are none. */
const char *rule_name(enum rule rule);
/* RULE_RIGHT when there is no such name. */
enum rule rule_find(const char *name);

/* Into weights[towers]. The rule's gradient is sum_k weights[k] * G_k with every weight decay taken `*decay`
 * times; the sum of the weights may be anything. RULE_NO_AVERAGE gives those of RULE_RIGHT. */
void rule_weights(enum rule rule, const struct rule_step *step, double *weights, double *decay);

/* The loss that a program with this rule prints. */
double rule_printed(enum rule rule, const struct rule_step *step);

/* Whether the rule clips the combined gradient afterwards, as the right way does. */
bool rule_clips_after(enum rule rule);

#endif
