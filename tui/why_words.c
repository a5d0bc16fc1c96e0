#include "tui/why_words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "tui/format.h"

const char *why_phase_name(enum why_phase phase) {
    static const char *const names[WHY_PHASES] = {"load",     "forward", "losses",
                                                  "backward", "average", "update"};
    return phase >= 0 && phase < WHY_PHASES ? names[phase] : "";
}

static bool is_even(const struct why_step *step) {
    return step->images == WIRE_UNKNOWN_INT || step->towers < 1 || step->images % step->towers == 0;
}

static void losses_words(const struct why_step *step, int tower, bool scope, char *out, size_t size) {
    if (step->terms == 0)
        snprintf(out, size, "each tower has added its terms to the step's one collection");
    else if (step->terms == 1 && scope)
        snprintf(
            out, size,
            "this model has no weight decay: the scope tower_%d/ picks one term, the cross-entropy of its "
            "images",
            tower);
    else if (step->towers == 1)
        snprintf(
            out, size,
            "the tower's %d terms, weight decay and cross-entropy, are added up: a gradient is taken of one "
            "number",
            step->terms);
    else if (scope)
        snprintf(out, size,
                 "one collection for all towers: the scope tower_%d/ picks the %d terms of tower %d, and "
                 "add_n adds up "
                 "those alone",
                 tower, step->terms, tower);
    else if (!step->applied || strcmp(step->applied, "unscoped") != 0)
        snprintf(out, size,
                 "a look only, the step keeps its scope: without it tower %d would add up %d term%s of %d "
                 "tower%s",
                 tower, (tower + 1) * step->terms, (tower + 1) * step->terms == 1 ? "" : "s", tower + 1,
                 tower ? "s" : "");
    else
        snprintf(out, size,
                 "without a scope tower %d adds up all that is in the collection when it is built: %d term%s "
                 "of %d "
                 "tower%s",
                 tower, (tower + 1) * step->terms, (tower + 1) * step->terms == 1 ? "" : "s", tower + 1,
                 tower ? "s" : "");
}

/* The update as it is made: with the momentum, the clip norm and the moving average that the step has. */
static void update_words(const struct why_step *step, char *out, size_t size) {
    const bool one = step->towers == 1;
    char lr[FORMAT_SIZE], norm[FORMAT_SIZE], cut[120] = "", formula[160] = "";
    format_short(lr, step->lr, 3);
    format_short(norm, step->grad_norm, 3);
    if (why_step_clipped(step))
        snprintf(cut, sizeof cut, ", cut from length %s to %g", norm, step->clip_norm);
    if (step->momentum > 0) /* without blanks: no line is broken in it */
        snprintf(formula, sizeof formula, ", v\u2190%g\u00b7v+\u1e21, w\u2190w\u2212%s\u00b7v",
                 step->momentum, lr);
    else if (step->momentum <= 0) /* known */
        snprintf(formula, sizeof formula, ", w \u2190 w \u2212 %s\u00b7\u1e21", lr);
    snprintf(out, size, "one step with the %s%s%s%s%s", one ? "gradient" : "average", cut, formula,
             one ? "" : ", and all towers have the same parameters again",
             step->ema > 0 ? "; the moving average follows" : "");
}

void why_phase_words(enum why_phase phase, const struct why_step *step, int tower, bool scope, char *out,
                     size_t size) {
    char images[FORMAT_SIZE];
    format_count(images, step->images);
    const bool one = step->towers == 1, even = is_even(step);
    switch (phase) {
    case WHY_NOTHING:
        snprintf(out, size, "nothing of this step is done yet%s",
                 one ? "" : "; every tower holds the same parameters");
        break;
    case WHY_LOAD:
        if (step->towers == 1)
            snprintf(out, size, "the batch of %s images goes to the one tower whole", images);
        else
            snprintf(out, size,
                     "the batch of %s images is cut into %d shards; no tower sees the images of another",
                     images, step->towers);
        break;
    case WHY_FORWARD:
        snprintf(out, size, "%s",
                 one ? "the tower runs the batch through the network"
                     : "each tower runs its own images through the network, all with the same parameters");
        break;
    case WHY_LOSSES:
        losses_words(step, tower, scope, out, size);
        break;
    case WHY_BACKWARD:
        snprintf(out, size, "%s takes the gradient of its own total: what its own images say%s",
                 one ? "the tower" : "each tower", step->terms == 1 ? ", no more" : ", and the decay");
        break;
    case WHY_AVERAGE:
        snprintf(out, size, "%s",
                 one    ? "one tower: its gradient is the average"
                 : even ? "average_gradients takes the mean of the towers' gradients, variable by variable; "
                          "it averages "
                          "no losses"
                        : "uneven shards: the towers' gradients are averaged by their shares of the images, "
                          "pk = nk / n");
        break;
    default:
        update_words(step, out, size);
    }
}

/* ---- the proof */

enum why_verdict why_proof_words(const struct why_step *step, char *found, char *meaning, size_t size) {
    const struct event_why *why = step->why;
    *meaning = 0;
    if (!why) {
        snprintf(found, size, "the same images on one tower: compared when the gradients are averaged");
        return WHY_UNPROVEN;
    }
    if (wire_is_unknown(why->proof_loss_difference)) {
        snprintf(found, size, "the same images on one tower: not compared in this step");
        snprintf(meaning, size, "the log says why: no memory for it, or towers that go their own ways");
        return WHY_UNPROVEN;
    }
    char loss[FORMAT_SIZE], of_loss[FORMAT_SIZE], of_gradient[FORMAT_SIZE], images[FORMAT_SIZE];
    format_short(loss, why->proof_loss, 5);
    format_short(of_loss, why->proof_loss_difference, 1);
    format_short(of_gradient, why->proof_gradient_difference, 1);
    format_count(images, why->images);
    snprintf(found, size,
             "the same %s images on one tower: loss %s, differs by %s; gradient by %s of its norm", images,
             loss, of_loss, of_gradient);
    if (why->proof_loss_difference <= 1e-5 && why->proof_gradient_difference <= 1e-4) {
        snprintf(meaning, size, "the same step: %d tower%s, one answer", step->towers,
                 step->towers > 1 ? "s" : "");
        return WHY_HOLDS;
    }
    snprintf(
        meaning, size,
        "not one step: a network that normalises over the batch uses each shard's own mean and variance");
    return WHY_FAILS;
}

/* ---- wrong rules */

struct rule_words {
    const char *name, *formula, *explained;
};

static const struct rule_words rules[] = {
    {"unscoped", "g = 1/N \u03a3k (g0 + ... + gk)",
     "The last tower's total holds all terms: so it prints what the sum prints. But the first tower's "
     "images count N times, the last one's once, the decay (N+1)/2 times: so it steps otherwise. Nothing "
     "fails: so it is hard to find."},
    {"sum", "g = g0 + ... + gN-1",
     "Each tower's loss is a mean over its own images: N added are N times the plain mean, with even shards "
     "as good as N times the learning rate. A small rate seems to profit; near its limit the run diverges."},
    {"last", "g = gN-1",
     "Only the last tower's gradient reaches the parameters, as when a variable is overwritten in the loop "
     "over "
     "the towers. It is a fair gradient of a smaller batch: the run learns, more noisily, and all other "
     "towers "
     "work for nothing."},
    {"print-last", "g = \u03a3k pk\u00b7gk; printed: loss of the last tower",
     "The original script averaged the gradients properly, but printed the loss left over from the loop: "
     "the last tower's. The training is right; the number on the screen is that of 1/N of the batch and "
     "jumps about more."},
    {"decay-per-tower", "g = \u03a3k pk\u00b7gk(cross-entropy) + N\u00b7wd\u00b7w",
     "All towers read the same parameters, so each has the same decay, and the mean of N equal numbers is "
     "that number. Added up over the towers, the decay shrinks the parameters N times as fast."},
    {"plain-mean", "g = 1/N \u03a3k gk",
     "With even shards the plain mean is the right one. With uneven shards an image in a small shard then "
     "weighs "
     "more than one in a large shard: weight each tower by its share of the images, pk = nk / n."},
    {"clip-before", "g = \u03a3k pk\u00b7clip(gk)",
     "Clipping each tower's gradient before averaging bends the direction: the towers with the largest "
     "gradients are cut, the others are not. Clipped after averaging, N towers still make the step of one."},
};

static const struct rule_words *find(const char *name) {
    for (size_t i = 0; name && i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].name, name))
            return &rules[i];
    return NULL;
}

const char *why_rule_formula(const char *name) {
    const struct rule_words *words = find(name);
    return words ? words->formula : "";
}

const char *why_rule_explained(const char *name) {
    const struct rule_words *words = find(name);
    return words ? words->explained : "";
}

/* Why it makes no difference in this step. */
static void identical_words(const char *name, const struct why_step *step, bool brief, char *out,
                            size_t size) {
    const char *reason = step->towers == 1                  ? ": one tower"
                         : text_is(name, "plain-mean")      ? ": even shards"
                         : text_is(name, "clip-before")     ? ": no clipping"
                         : text_is(name, "decay-per-tower") ? ": no decay"
                                                            : "";
    snprintf(out, size, "identical%s%s", brief ? "" : " here", reason);
}

/* Towers that have images, and so a loss and a gradient; *last: the last of them. */
static int active_towers(const struct why_step *step, int *last) {
    int count = 0;
    *last = step->towers - 1;
    for (int i = 0; i < step->towers; i++)
        if (why_step_tower(step, i).images != 0) {
            count++;
            *last = i;
        }
    return count;
}

static void last_words(const struct why_step *step, int last, bool brief, char *out, size_t size) {
    int64_t kept = why_step_tower(step, last).images, all = step->images;
    if (kept < 0 || all < kept) /* not known */
        snprintf(out, size, "only the last tower trains");
    else
        snprintf(out, size,
                 brief ? "%lld of %lld images unused"
                       : "only the last tower trains: %lld of %lld images for nothing",
                 (long long)(all - kept), (long long)all);
}

void why_rule_words(const struct event_alternative *rule, const struct why_step *step, bool brief, char *out,
                    size_t size) {
    const char *name = rule->name;
    int last, n = active_towers(step, &last);
    char lr[FORMAT_SIZE];
    *out = 0;
    if (rule->identical) {
        identical_words(name, step, brief, out, size);
    } else if (text_is(name, "unscoped")) {
        snprintf(out, size,
                 brief ? "tower 0 counts %d times" : "sums all losses built so far: tower 0 counts %d times",
                 n);
    } else if (text_is(name, "sum")) {
        format_short(lr, step->lr * n, 3);
        if (!is_even(step))
            snprintf(out, size, brief ? "%d times the plain mean" : "%d times the plain mean of the towers",
                     n);
        else if (brief || wire_is_unknown(step->lr))
            snprintf(out, size, "%d times as far", n);
        else
            snprintf(out, size, "the same direction, %d times as far: as if lr were %s", n, lr);
    } else if (text_is(name, "last")) {
        last_words(step, last, brief, out, size);
    } else if (text_is(name, "print-last")) {
        snprintf(out, size, "%s",
                 brief ? "prints one tower's loss" : "the right step; only the printed loss is one tower's");
    } else if (text_is(name, "decay-per-tower")) {
        snprintf(out, size,
                 brief ? "the decay counts %d times"
                       : "the decay counts %d times: the weights shrink too fast",
                 n);
    } else if (text_is(name, "plain-mean")) {
        snprintf(out, size, "%s",
                 brief ? "small shards weigh more" : "uneven shards: an image of a small one weighs more");
    } else if (text_is(name, "clip-before") && wire_is_unknown(rule->grad_norm)) {
        snprintf(out, size, "%s", brief ? "differs where it clips" : "differs when gradients are clipped");
    } else if (text_is(name, "clip-before")) {
        snprintf(out, size, "%s",
                 brief ? "points another way" : "each gradient cut by itself: the average points elsewhere");
    }
}
