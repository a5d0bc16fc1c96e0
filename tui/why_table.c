#include "tui/why_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/format.h"
#include "tui/rune.h"

static struct box inner(struct box box) {
    int margin = box.cols >= 24 ? 1 : 0;
    return (struct box){box.row, box.col + margin, box.rows, box.cols - 2 * margin};
}

/* ---- the proof */

void why_draw_proof(const struct scene *scene, const struct why_picture *p) {
    static const enum style styles[] = {STYLE_FAINT, STYLE_GOOD, STYLE_WARNING};
    static const char *const marks[] = {"", "\u2713 ", "\u2717 "};
    char found[256], meaning[256], text[600];
    struct why_step early = *p->step;
    if (p->phase < WHY_AVERAGE)
        early.why = NULL; /* an earlier phase is looked at */
    enum why_verdict verdict = why_proof_words(&early, found, meaning, sizeof found);
    struct box box = inner(p->at->proof);
    if (box.rows <= 0)
        return;
    const char *mark = marks[verdict];
    bool looked_at = p->view->no_scope && !p->step->applied; /* the step itself was made with the scope */
    if (looked_at && verdict == WHY_HOLDS)
        snprintf(meaning, sizeof meaning, "the step as it was made, with the scope: %d tower%s, one answer",
                 p->step->towers, p->step->towers > 1 ? "s" : "");
    if (p->view->presenter && verdict == WHY_HOLDS) {
        snprintf(text, sizeof text,
                 "%s%sthe same images on one tower give the same loss and the same gradient", mark,
                 looked_at ? "with the scope " : "");
        canvas_paragraph(scene->canvas, box, STYLE_GOOD, text);
        return;
    }
    int used = canvas_text(scene->canvas, box.row, box.col, box.cols, STYLE_STRONG, "proof") + 2;
    struct box rest = {box.row, box.col + used, box.rows, box.cols - used};
    snprintf(text, sizeof text, "%s   %s%s", found, mark, meaning);
    if (text_width(text) <= rest.cols) {
        int before = canvas_text(scene->canvas, rest.row, rest.col, rest.cols, STYLE_PLAIN, found);
        snprintf(text, sizeof text, "%s%s", mark, meaning);
        canvas_text(scene->canvas, rest.row, rest.col + before + 3, rest.cols - before - 3, styles[verdict],
                    text);
        return;
    }
    if (rest.rows == 1 && verdict != WHY_UNPROVEN) { /* the verdict first */
        char loss[FORMAT_SIZE], gradient[FORMAT_SIZE];
        format_short(loss, p->step->why->proof_loss_difference, 1);
        format_short(gradient, p->step->why->proof_gradient_difference, 1);
        const char *judged = verdict != WHY_HOLDS ? "not the step of one tower"
                             : looked_at          ? "as made, with the scope"
                                                  : "one tower makes the same step";
        snprintf(text, sizeof text, "%s%s: loss differs by %s, gradient by %s", mark, judged, loss, gradient);
        if (text_width(text) > rest.cols)
            snprintf(text, sizeof text, "%s%s: loss %s, gradient %s off", mark, judged, loss, gradient);
        if (text_width(text) > rest.cols)
            snprintf(text, sizeof text, "%s%s", mark, judged);
        canvas_text(scene->canvas, rest.row, rest.col, rest.cols, styles[verdict], text);
        return;
    }
    canvas_text(scene->canvas, rest.row, rest.col, rest.cols, STYLE_PLAIN, found);
    rest.row++;
    rest.rows--;
    snprintf(text, sizeof text, "%s%s", mark, meaning);
    canvas_paragraph(scene->canvas, rest, styles[verdict], text);
}

/* ---- the table */

static const char *const names[] = {"unscoped",        "sum",        "last",       "print-last",
                                    "decay-per-tower", "plain-mean", "clip-before"};
enum { NAMES = sizeof names / sizeof *names };

int why_alternatives(const struct why_step *step, const struct event_alternative **out) {
    if (step->why && step->why->alternative_count > 0) {
        *out = step->why->alternatives;
        return (int)step->why->alternative_count;
    }
    *out = NULL;
    return NAMES;
}

/* Whether the model has no decay, as the newest step or the run's begin tells. */
static bool no_decay(const struct run_state *state) {
    double decay = state->step.kind == EVENT_STEP             ? state->step.step.weight_decay
                   : state->run_start.kind == EVENT_RUN_START ? state->run_start.run_start.weight_decay
                                                              : wire_unknown();
    return isfinite(decay) && !(fabs(decay) > 0);
}

/* Whether nothing is clipped: as this step tells, or the newest that was looked into. */
static bool no_clipping(const struct why_step *step) {
    const struct event *why = &step->state->why;
    double norm = step->gradients || why->kind != EVENT_WHY ? step->clip_norm : why->why.clip_norm;
    return isfinite(norm) && !(norm > 0);
}

/* What makes no difference is known of most rules before the average: the sentence stays the same. */
static bool surely_identical(const struct why_step *step, const char *name) {
    int64_t images = step->images, towers = step->towers;
    if (!strcmp(name, "clip-before"))
        return no_clipping(step);
    if (towers == 1)
        return true;
    if (!strcmp(name, "plain-mean"))
        return images != WIRE_UNKNOWN_INT && towers > 0 && images % towers == 0;
    return !strcmp(name, "decay-per-tower") && no_decay(step->state);
}

static struct event_alternative alternative_at(const struct why_picture *p, int i) {
    const struct event_alternative *all;
    int count = why_alternatives(p->step, &all);
    double unknown = wire_unknown();
    if (all && p->phase >= WHY_AVERAGE && i < count) {
        struct event_alternative told = all[i];
        told.name = told.name ? told.name : ""; /* a foreign record may leave it out */
        return told;
    }
    struct event_alternative out = {NULL, unknown, unknown, unknown, unknown, false};
    out.name = all && i < count ? all[i].name : i < NAMES ? names[i] : NULL;
    out.name = out.name ? out.name : "";
    out.identical = surely_identical(p->step, out.name);
    return out;
}

enum { WORDS_COLS = 25 }; /* of the brief sentences */

struct table_columns {
    struct column_span name, prints, norm, cosine, step, words;
};

/* The words first where they have room, then the cosine, then the norm: of three figures the step tells most.
 */
static struct table_columns columns_of(struct box box) {
    struct table_columns c;
    int col = box.col + 2, cols = box.cols;
    bool wide = cols >= 100;
    int left = cols - 2 - 16 - 8 - (cols >= 30 ? 7 : 0), words = left >= WORDS_COLS ? WORDS_COLS : 0;
    bool cosine = left - words >= 5, norm = cosine && left - words >= 12;
    struct column_span *spans[] = {&c.name, &c.prints, &c.norm, &c.cosine, &c.step};
    int widths[] = {15, wide ? 9 : 7, norm ? (wide ? 8 : 6) : 0, cosine ? 4 : 0, cols >= 30 ? 6 : 0};
    for (int i = 0; i < 5; i++) {
        *spans[i] = (struct column_span){col, widths[i]};
        col += widths[i] ? widths[i] + (wide ? 2 : 1) : 0;
    }
    c.words = (struct column_span){col, words ? box.col + cols - col : 0};
    return c;
}

static void put_right(struct canvas *canvas, struct column_span span, int row, enum style style,
                      const char *text) {
    if (span.cols > 0)
        canvas_text_right(canvas, row, span.col + span.cols, span.cols, style, text);
}

static void draw_row(const struct scene *scene, const struct why_picture *p, const struct table_columns *c,
                     int row, int index) {
    struct canvas *canvas = scene->canvas;
    struct event_alternative a = alternative_at(p, index);
    bool selected = index == p->view->selected, on = p->step->applied && !strcmp(p->step->applied, a.name);
    enum style style = on ? STYLE_WARNING : a.identical ? STYLE_FAINT : STYLE_PLAIN;
    char text[FORMAT_SIZE + 8], words[256];
    if (selected)
        canvas_put(canvas, row, c->name.col - 2, RUNE_RIGHT, STYLE_STRONG);
    canvas_text(canvas, row, c->name.col, c->name.cols, selected ? STYLE_SELECTED : style, a.name);
    format_fixed(text, a.printed_loss, c->prints.cols, 4);
    put_right(canvas, c->prints, row, style, text);
    format_fixed(text, a.grad_norm, c->norm.cols, 3);
    put_right(canvas, c->norm, row, style, text);
    format_cosine(text, a.cosine);
    put_right(canvas, c->cosine, row, style, text);
    if (isfinite(a.step_size))
        snprintf(text, sizeof text, a.step_size < 99.5 ? "\u00d7%.2f" : "\u00d7%.0f", a.step_size);
    else
        snprintf(text, sizeof text, "\u2013");
    put_right(canvas, c->step, row, style, text);
    const char *before = !on ? "" : p->step->taken_back ? "made this step: " : "in force: ";
    for (int brief = 0; brief < 2; brief++) { /* whole, or as briefly as it can be said */
        char said[200];
        why_rule_words(&a, p->step, brief != 0, said, sizeof said);
        snprintf(words, sizeof words, "%s%s", before, said);
        if (text_width(words) <= c->words.cols)
            break;
    }
    canvas_text(canvas, row, c->words.col, c->words.cols, style, words);
}

void why_draw_table(const struct scene *scene, const struct why_picture *p) {
    struct box box = inner(p->at->table);
    const struct event_alternative *all;
    int count = why_alternatives(p->step, &all);
    if (box.rows <= 0)
        return;
    struct table_columns c = columns_of(box);
    int head = p->at->table_head.row;
    if (p->at->table_head.rows > 0) {
        canvas_text(scene->canvas, head, c.name.col - 2, c.name.cols + 2, STYLE_STRONG, "what if");
        put_right(scene->canvas, c.prints, head, STYLE_FAINT, "prints");
        put_right(scene->canvas, c.norm, head, STYLE_FAINT, "|g|");
        put_right(scene->canvas, c.cosine, head, STYLE_FAINT, "cos");
        put_right(scene->canvas, c.step, head, STYLE_FAINT, "step");
        canvas_text(scene->canvas, head, c.words.col, c.words.cols, STYLE_FAINT,
                    p->phase >= WHY_AVERAGE && p->step->why ? "in words"
                    : c.words.cols < 48                     ? "numbers at the average"
                                                            : "in words; the numbers come with the average");
    }
    int first = p->view->selected >= box.rows ? p->view->selected - box.rows + 1 : 0;
    for (int i = 0; i < box.rows && first + i < count; i++)
        draw_row(scene, p, &c, box.row + i, first + i);
}

void why_draw_details(const struct scene *scene, const struct why_picture *p) {
    struct box box = inner(p->at->details);
    if (box.rows < 2)
        return;
    struct event_alternative a = alternative_at(p, p->view->selected);
    char words[256];
    int used = canvas_text(scene->canvas, box.row, box.col, box.cols, STYLE_STRONG, a.name);
    canvas_text(scene->canvas, box.row, box.col + used + 3, box.cols - used - 3, STYLE_PLAIN,
                why_rule_formula(a.name));
    box.row++;
    box.rows--;
    if (box.rows >= 3 && p->at->table.rows == 0) { /* the table is not there to say it */
        why_rule_words(&a, p->step, false, words, sizeof words);
        int rows = canvas_paragraph(scene->canvas, box, a.identical ? STYLE_FAINT : STYLE_PLAIN, words);
        box.row += rows;
        box.rows -= rows;
    }
    canvas_paragraph(scene->canvas, box, STYLE_FAINT, why_rule_explained(a.name));
}
