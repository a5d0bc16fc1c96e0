/* For a room: the sum of the phase in large type, and under it what it is. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tui/large.h"
#include "tui/why_draw.h"

enum { FIGURES = 8 }; /* more are no sum that one reads */

struct sum {
    char text[160], brief[48]; /* brief: where there is no room for all */
    char caption[120], brief_caption[120];
    enum style style;
};

static void add(struct sum *sum, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct sum *sum, const char *format, ...) {
    size_t length = strlen(sum->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sum->text + length, sizeof sum->text - length, format, arguments);
    va_end(arguments);
}

/* "2.02+0.17+1.10=3.29"; figures that do not add up as they are rounded: "~". */
static void add_up(struct sum *sum, const double *values, int count, double total) {
    double rounded = 0;
    bool known = isfinite(total) && count <= FIGURES;
    for (int i = 0; i < count && known; i++) {
        known = isfinite(values[i]);
        rounded += round(100 * values[i]);
        add(sum, "%s%.2f", i ? "+" : "", values[i]);
    }
    if (known && count > 1)
        add(sum, "%s", fabs(rounded - round(100 * total)) < 0.5 ? "=" : "~");
    else
        *sum->text = 0;
    if (isfinite(total))
        snprintf(sum->brief, sizeof sum->brief, "%.2f", total);
    if (*sum->text)
        add(sum, "%s", sum->brief);
}

/* The batch and its shards. */
static void sum_images(struct sum *sum, const struct why_step *step) {
    int64_t images = 0;
    if (step->images == WIRE_UNKNOWN_INT || step->towers < 2 || step->towers > FIGURES)
        return;
    add(sum, "%lld=", (long long)step->images);
    for (int k = 0; k < step->towers; k++) {
        int64_t shard = why_step_tower(step, k).images;
        if (shard == WIRE_UNKNOWN_INT || __builtin_add_overflow(images, shard, &images))
            images = WIRE_UNKNOWN_INT;
        add(sum, "%s%lld", k ? "+" : "", (long long)shard);
        if (images == WIRE_UNKNOWN_INT)
            break;
    }
    if (images != step->images)
        *sum->text = 0;
    snprintf(sum->caption, sizeof sum->caption, "images: the batch, and the towers' shards");
}

/* What add_n adds up in the tower that is looked at. */
static void sum_losses(struct sum *sum, const struct why_picture *p) {
    const struct why_step *step = p->step;
    int tower = p->view->tower;
    double values[FIGURES], total = why_step_total(step, tower, !p->view->no_scope);
    int count = p->view->no_scope ? tower + 1 : step->terms;
    for (int i = 0; i < count && i < FIGURES; i++)
        if (p->view->no_scope)
            values[i] = why_step_total(step, i, true);
        else
            (void)why_step_term(step, tower, i, &values[i]);
    add_up(sum, values, count, total);
    sum->style = p->view->no_scope ? STYLE_WARNING : STYLE_STRONG;
    snprintf(sum->caption, sizeof sum->caption,
             p->view->no_scope ? "without a scope: the total of tower %d is all totals up to its own"
                               : "the total of tower %d: its own terms, added up",
             tower);
}

/* The lengths of the gradients, and of their mean. */
static void sum_gradients(struct sum *sum, const struct why_step *step) {
    double lengths = 0;
    for (int k = 0; k < step->towers; k++) {
        lengths += why_step_tower(step, k).grad_norm;
        if (k < FIGURES)
            add(sum, "%.2f ", why_step_tower(step, k).grad_norm);
    }
    add(sum, "> %.2f", step->grad_norm);
    bool known = isfinite(step->grad_norm) && isfinite(lengths);
    if (!known || step->towers > FIGURES)
        *sum->text = 0;
    if (known)
        snprintf(sum->brief, sizeof sum->brief, "%.2f > %.2f", lengths / step->towers, step->grad_norm);
    snprintf(sum->brief_caption, sizeof sum->brief_caption,
             "mean |g| of the towers, and |g| of their mean: shorter where they disagree");
    snprintf(sum->caption, sizeof sum->caption,
             "|g| of the towers, and of their mean: shorter where they disagree");
}

static bool find_sum(const struct why_picture *p, struct sum *sum) {
    const struct why_step *step = p->step;
    *sum = (struct sum){.style = STYLE_STRONG};
    bool averaged = p->phase >= WHY_AVERAGE && step->towers > 1 && !p->view->no_scope;
    if (averaged && !step->applied)
        sum_gradients(sum, step);
    else if (p->phase >= WHY_LOSSES && !averaged)
        sum_losses(sum, p);
    else if (p->phase == WHY_LOAD || p->phase == WHY_FORWARD)
        sum_images(sum, step);
    return *sum->text || *sum->brief;
}

void why_draw_sum(const struct scene *scene, const struct why_picture *p, struct box box) {
    struct sum sum;
    bool apart = box.rows >= 5; /* a blank row above */
    if (box.rows < 4 || !find_sum(p, &sum))
        return;
    struct box room = {box.row + apart, box.col, box.rows - apart - 1, box.cols};
    const char *caption = sum.caption;
    int rows = large_draw(scene->canvas, room, sum.style, sum.text);
    if (rows == 0) {
        rows = large_draw(scene->canvas, room, sum.style, sum.brief);
        caption = *sum.brief_caption ? sum.brief_caption : sum.caption;
    }
    if (rows > 0)
        canvas_text(scene->canvas, room.row + rows, box.col, box.cols, STYLE_FAINT, caption);
}
