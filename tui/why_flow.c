#include "tui/why_draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/format.h"
#include "tui/picture.h"
#include "tui/rune.h"

static enum style hue_of(int tower) {
    return (enum style)(STYLE_TOWER + tower % TOWER_HUES);
}

static bool beyond(const struct why_picture *p, enum why_phase phase) {
    return p->phase >= phase;
}

/* ---- heads */

static void head(const struct scene *scene, const struct why_picture *p, struct column_span span, bool right,
                 enum why_phase from, enum why_phase to, const char *text) {
    int row = p->at->heads.row;
    if (span.cols <= 0 || p->at->heads.rows <= 0)
        return;
    bool here = p->phase >= from && p->phase <= to;
    enum style style = here ? STYLE_SELECTED : STYLE_FAINT;
    if (right)
        canvas_text_right(scene->canvas, row, span.col + span.cols, span.cols, style, text);
    else
        canvas_text(scene->canvas, row, span.col, span.cols, style, text);
}

static void draw_heads(const struct scene *scene, const struct why_picture *p) {
    const struct why_layout *at = p->at;
    char text[96], scope[48];
    bool wide = at->terms.cols >= 40;
    head(scene, p, at->batch, false, WHY_LOAD, WHY_LOAD, "batch");
    head(scene, p, at->shard, false, WHY_LOAD, WHY_FORWARD, at->shard.cols >= 6 ? "shard" : "");
    if (p->view->no_scope)
        snprintf(scope, sizeof scope, "no scope");
    else
        snprintf(scope, sizeof scope, "scope \u25c2 tower_%d/ \u25b8", p->view->tower);
    snprintf(text, sizeof text, wide ? "collection 'losses'  %s" : "'losses' %s", scope);
    if (text_width(text) > at->terms.cols)
        snprintf(text, sizeof text, "%s", p->view->no_scope ? scope : scope + strlen("scope "));
    head(scene, p, at->terms, false, WHY_LOSSES, WHY_LOSSES, text);
    head(scene, p, at->total, true, WHY_LOSSES, WHY_LOSSES, wide ? "add_n" : "total");
    head(scene, p, at->norm, true, WHY_BACKWARD, WHY_BACKWARD, "|g|");
    if (!p->view->presenter)
        head(scene, p, at->angle, true, WHY_AVERAGE, WHY_AVERAGE,
             at->angle.cols >= 10 ? "\u2220 average" : "cos");
    const char *rule = p->step->applied ? p->step->applied : "average";
    bool both = at->average.cols >= 2 + text_width(rule) + 8;
    snprintf(text, sizeof text, "  %s%s", rule, both ? ", update" : "");
    head(scene, p, at->average, false, WHY_AVERAGE, WHY_UPDATE, text);
}

/* ---- rows */

static int decimals_of(const struct why_picture *p) {
    return p->view->presenter ? 2 : p->at->terms.cols >= 40 ? 4 : 3;
}

static bool is_lit(const struct why_picture *p, int tower) {
    return p->view->no_scope ? tower <= p->view->tower : tower == p->view->tower;
}

/* The layer tells two terms of one tower apart: where a name has no room, its end goes, then the scope, which
 * the head names. */
static void fit_name(const char *name, int cols, char *out, size_t size) {
    const char *scope = strchr(name, '/'), *kind = strrchr(name, '/');
    snprintf(out, size, "%s", name);
    if (text_width(name) <= cols || !scope || (kind > scope && (int)(kind - name) + 2 <= cols))
        return;
    snprintf(out, size, "%s", scope + 1);
    if (text_width(out) <= cols || kind == scope)
        return;
    int length =
        (int)(kind - scope) - 1; /* of the layer's name: where that is too long, its end tells most */
    if (length <= cols)
        out[length] = 0;
    else if (cols > 1 && text_width(name) == (int)strlen(name))
        snprintf(out, size, "\u2026%.*s", cols - 1, kind - (cols - 1));
}

/* "tower_0/ ... tower_2/  9 terms", or as much of it as there is room for. */
static void folded_name(const struct why_row *r, int terms, int cols, char *out, size_t size) {
    char count[32] = "";
    int all = (r->last - r->tower + 1) * terms;
    if (terms > 0)
        snprintf(count, sizeof count, " %d term%s", all, all == 1 ? "" : "s");
    if (r->last > r->tower)
        snprintf(out, size, "tower_%d/ \u2026 tower_%d/ %s", r->tower, r->last, count);
    else
        snprintf(out, size, "tower_%d/ \u2026%s", r->tower, count);
    if (text_width(out) <= cols)
        return;
    if (r->last > r->tower)
        snprintf(out, size, "tower_%d\u2013%d/", r->tower, r->last);
    else
        snprintf(out, size, "tower_%d/ \u2026", r->tower);
}

static void draw_term(const struct scene *scene, const struct why_picture *p, int row,
                      const struct why_row *r) {
    struct column_span span = p->at->terms;
    struct canvas *canvas = scene->canvas;
    if (span.cols < 6)
        return;
    bool lit = is_lit(p, r->tower) && beyond(p, WHY_LOSSES), no_scope = p->view->no_scope;
    enum style style = lit ? (no_scope ? STYLE_WARNING : STYLE_STRONG) : STYLE_FAINT;
    char text[128], name[128], value[FORMAT_SIZE];
    int left = span.col + 1, room = span.cols - 2, end = left + room;
    if (r->term == -2) {
        snprintf(text, sizeof text, "  \u2026 and the others of its %d", p->step->terms);
        if (text_width(text) > room)
            snprintf(text, sizeof text, "\u2026 of %d", p->step->terms);
        canvas_text(canvas, row, left, room, style, text);
    } else if (r->term < 0 || r->last > r->tower) {
        folded_name(r, p->step->terms, room, text, sizeof text);
        canvas_text(canvas, row, left, room, style, text);
    } else {
        double number;
        const char *full = why_step_term(p->step, r->tower, r->term, &number);
        int digits = decimals_of(p), value_cols = digits + 3;
        format_fixed(value, beyond(p, WHY_LOSSES) ? number : wire_unknown(), value_cols, digits);
        int name_cols = room - 1 - text_width(value + strspn(value, " "));
        fit_name(full ? full : "", name_cols, name, sizeof name);
        canvas_text(canvas, row, left, name_cols, style, name);
        canvas_text_right(canvas, row, end, value_cols, style, value);
    }
    if (lit) {
        canvas_put(canvas, row, span.col, RUNE_RIGHT_HALF, hue_of(r->tower));
        canvas_put(canvas, row, end, RUNE_LEFT_HALF, hue_of(r->tower));
    }
}

static void draw_shard(const struct scene *scene, const struct why_picture *p, int row,
                       const struct why_row *r) {
    struct column_span span = p->at->shard;
    struct canvas *canvas = scene->canvas;
    if (span.cols <= 0 || !r->first)
        return;
    canvas_put(canvas, row, span.col, RUNE_LEFT_BAR, hue_of(r->tower));
    char text[96], count[FORMAT_SIZE];
    int64_t images = 0;
    for (int k = r->tower; k <= r->last && images != WIRE_UNKNOWN_INT; k++) {
        int64_t more = why_step_tower(p->step, k).images;
        if (more == WIRE_UNKNOWN_INT || __builtin_add_overflow(images, more, &images))
            images = WIRE_UNKNOWN_INT;
    }
    format_count(count, beyond(p, WHY_LOAD) ? images : WIRE_UNKNOWN_INT);
    if (span.cols >= 14 && r->last > r->tower)
        snprintf(text, sizeof text, "%d\u2013%d  %s", r->tower, r->last, count);
    else if (span.cols >= 14)
        snprintf(text, sizeof text, "%-3d %4s %s", r->tower, count,
                 beyond(p, WHY_FORWARD) ? "\u2500\u2500\u25b8" : "");
    else if (span.cols >= 7 && r->last > r->tower)
        snprintf(text, sizeof text, "%d\u2013%d", r->tower, r->last);
    else if (span.cols >= 7)
        snprintf(text, sizeof text, "%-2d%4s", r->tower, count);
    else
        snprintf(text, sizeof text, "%d", r->tower);
    canvas_text(canvas, row, span.col + 1, span.cols - 1, STYLE_PLAIN, text);
}

static void number(const struct scene *scene, struct column_span span, int row, double value, int decimals,
                   enum style style) {
    char text[FORMAT_SIZE];
    if (span.cols <= 0)
        return;
    format_fixed(text, value, span.cols, decimals);
    canvas_text_right(scene->canvas, row, span.col + span.cols, span.cols, style, text);
}

static void draw_angle(const struct scene *scene, struct column_span span, int row, double cosine) {
    char text[FORMAT_SIZE + 16], number_text[FORMAT_SIZE];
    if (span.cols <= 0)
        return;
    format_cosine(number_text, cosine);
    if (span.cols >= 10 && isfinite(cosine))
        snprintf(text, sizeof text, "%s %3.0f\u00b0", number_text,
                 acos(fmax(-1, fmin(1, cosine))) * 180 / M_PI);
    else
        snprintf(text, sizeof text, "%s", number_text);
    canvas_text_right(scene->canvas, row, span.col + span.cols, span.cols,
                      cosine < 0 ? STYLE_WARNING : STYLE_PLAIN, text);
}

static void draw_figures(const struct scene *scene, const struct why_picture *p, int row,
                         const struct why_row *r) {
    if (!r->first || r->last > r->tower)
        return;
    struct why_tower t = why_step_tower(p->step, r->tower);
    double unknown = wire_unknown();
    bool no_scope = p->view->no_scope, averaged = beyond(p, WHY_AVERAGE);
    double total = no_scope ? why_step_total(p->step, r->tower, false) : t.loss;
    int digits = decimals_of(p);
    number(scene, p->at->total, row, beyond(p, WHY_LOSSES) ? total : unknown, digits,
           no_scope              ? STYLE_WARNING
           : is_lit(p, r->tower) ? STYLE_STRONG
                                 : STYLE_PLAIN);
    number(scene, p->at->norm, row, beyond(p, WHY_BACKWARD) && !no_scope ? t.grad_norm : unknown,
           p->view->presenter ? 2 : 3, STYLE_PLAIN);
    if (!p->view->presenter)
        draw_angle(scene, p->at->angle, row, averaged && !no_scope ? t.cosine : unknown);
}

/* ---- average and update */

static void draw_bracket(const struct scene *scene, const struct why_picture *p, int from, int to,
                         int middle) {
    int col = p->at->average.col;
    enum style style = beyond(p, WHY_AVERAGE) ? STYLE_PLAIN : STYLE_FAINT;
    for (int row = from; row <= to && from < to; row++)
        canvas_put(scene->canvas, row, col,
                   row == from     ? RUNE_TOP_RIGHT
                   : row == to     ? RUNE_BOTTOM_RIGHT
                   : row == middle ? RUNE_BRANCH_RIGHT
                                   : RUNE_VERTICAL,
                   style);
    canvas_put(scene->canvas, middle, col + 1, RUNE_LINE, style);
    canvas_put(scene->canvas, middle, col + 2, RUNE_RIGHT, style);
}

static const struct event_alternative *alternative(const struct why_picture *p, const char *name) {
    if (!name || !p->step->why || !beyond(p, WHY_AVERAGE))
        return NULL;
    for (int64_t i = 0; i < p->step->why->alternative_count; i++)
        if (p->step->why->alternatives[i].name && !strcmp(p->step->why->alternatives[i].name, name))
            return &p->step->why->alternatives[i];
    return NULL;
}

/* Without the scope another average would come out. */
static const struct event_alternative *unscoped(const struct why_picture *p) {
    return p->view->no_scope ? alternative(p, "unscoped") : NULL;
}

static void draw_unscoped(const struct scene *scene, int middle, int bottom, int col, int room,
                          const struct event_alternative *a) {
    char text[96], value[FORMAT_SIZE];
    format_short(value, a->grad_norm, 3);
    snprintf(text, sizeof text, "|g| %s", value);
    canvas_text(scene->canvas, middle, col, room, STYLE_WARNING, text);
    if (middle + 1 <= bottom && isfinite(a->step_size)) {
        snprintf(text, sizeof text, "\u00d7%.2f%s", a->step_size, room >= 13 ? " as far" : "");
        canvas_text(scene->canvas, middle + 1, col, room, STYLE_WARNING, text);
    }
}

/* "loss 3.787", with as many digits as there is room for, or the number alone. */
static void draw_loss(const struct scene *scene, int row, int col, int room, const char *word, double loss) {
    char text[96], value[FORMAT_SIZE];
    for (int digits = 4; digits >= 2; digits--) {
        format_short(value, loss, digits > 2 ? digits : 4);
        snprintf(text, sizeof text, "%s%s%s", digits > 2 ? word : "", digits > 2 ? " " : "", value);
        if (text_width(text) <= room)
            break;
    }
    canvas_text(scene->canvas, row, col, room, STYLE_PLAIN, text);
}

/* What w moves by: the average, cut to the clip norm, or the velocity. False: nobody told. */
static bool draw_update(const struct scene *scene, const struct why_picture *p, int row, int col, int room) {
    const struct why_step *step = p->step;
    double momentum = step->momentum;
    const struct event *begun = &step->state->run_start;
    if (wire_is_unknown(momentum) && !beyond(p, WHY_UPDATE) && begun->kind == EVENT_RUN_START)
        momentum = begun->run_start.momentum; /* nobody has told of this step yet: as the run began */
    if (wire_is_unknown(momentum))
        return false;
    char text[96], lr[FORMAT_SIZE];
    const char *by = momentum > 0 ? "v" : why_step_clipped(step) ? "cut" : step->applied ? "g" : "\u1e21";
    format_short(lr, step->lr, 2);
    const char *rate = wire_is_unknown(step->lr) ? "lr" : lr;
    snprintf(text, sizeof text, "w\u2190w\u2212%.8s\u00b7%s", rate, by);
    if (text_width(text) > room)
        snprintf(text, sizeof text, "w\u2212%.8s\u00b7%s", rate, by);
    if (text_width(text) > room)
        snprintf(text, sizeof text, "w\u2212lr\u00b7%s", by);
    canvas_text(scene->canvas, row, col, room, beyond(p, WHY_UPDATE) ? STYLE_STRONG : STYLE_FAINT, text);
    return true;
}

static void draw_average(const struct scene *scene, const struct why_picture *p, int from, int to) {
    struct column_span span = p->at->average;
    struct box flow = p->at->flow;
    struct canvas *canvas = scene->canvas;
    if (span.cols <= 0 || flow.rows <= 0)
        return;
    int bottom = flow.row + flow.rows - 1, middle = (from + to) / 2, col = span.col + 4, room = span.cols - 4;
    middle = middle < from + 1 && to > from + 1 ? from + 1 : middle;
    draw_bracket(scene, p, from, to, middle);
    if (unscoped(p)) {
        draw_unscoped(scene, middle, bottom, col, room, unscoped(p));
        return;
    }
    bool averaged = beyond(p, WHY_AVERAGE), updated = beyond(p, WHY_UPDATE), wide = room >= 14;
    char text[96], value[FORMAT_SIZE];
    const struct event_alternative *wrong = alternative(p, p->step->applied); /* what is in force instead */
    double norm = wrong ? wrong->grad_norm : p->step->grad_norm;
    const char *name = p->step->applied ? "|g|" : canvas->glyphs == GLYPHS_ASCII ? "|mean|" : "|\u1e21|";
    for (int digits = 3; digits > 1; digits--) {
        format_short(value, averaged ? norm : wire_unknown(), digits);
        snprintf(text, sizeof text, "%s %s", name, value);
        if (text_width(text) <= room)
            break;
    }
    canvas_text(canvas, middle, col, room, averaged ? STYLE_STRONG : STYLE_FAINT, text);
    if (middle - 1 >= flow.row && middle > from && averaged)
        draw_loss(scene, middle - 1, col, room, wrong ? "prints" : "loss",
                  wrong ? wrong->printed_loss : p->step->loss);
    int next = middle + 1;
    if (next <= bottom)
        next += draw_update(scene, p, next, col, room);
    if (next <= bottom && updated && isfinite(p->step->update_ratio) && !p->view->presenter) {
        format_short(value, 100 * p->step->update_ratio, 2);
        snprintf(text, sizeof text, wide ? "w moves %s %%" : "by %s %%", value);
        if (text_width(text) > room)
            snprintf(text, sizeof text, "%s %%", value);
        canvas_text(canvas, next, col, room, STYLE_FAINT, text);
    }
}

/* ---- pictures of the chosen tower's shard */

static void draw_pictures(const struct scene *scene, const struct why_picture *p) {
    struct column_span span = p->at->batch;
    int row = p->at->flow.row, end = row + p->at->flow.rows;
    for (int64_t e = 0; e < scene->state->images_count; e++) {
        const struct event_images *images = &scene->state->images[e].images;
        if (images->tower != p->view->tower || images->step != p->step->step)
            continue;
        for (int64_t i = 0; i < images->image_count; i++) {
            int rows, cols; /* as large as the width allows, or not at all */
            picture_fit(images->images[i].width, images->images[i].height, 1 << 10, span.cols, &rows, &cols);
            if (rows < 1 || row + rows > end)
                return;
            picture_draw(scene->canvas, (struct box){row, span.col, rows, span.cols}, &images->images[i],
                         NULL);
            row += rows + 1;
        }
    }
}

static void draw_batch(const struct scene *scene, const struct why_picture *p) {
    struct column_span span = p->at->batch;
    char count[FORMAT_SIZE];
    if (span.cols <= 0 || p->at->heads.rows <= 0)
        return;
    format_count(count, beyond(p, WHY_LOAD) ? p->step->images : WIRE_UNKNOWN_INT);
    canvas_print(scene->canvas, p->at->heads.row, span.col, span.cols,
                 p->phase == WHY_LOAD ? STYLE_SELECTED : STYLE_FAINT, "batch %s", count);
    if (beyond(p, WHY_LOAD))
        draw_pictures(scene, p);
}

static int most_of(int a, int b) {
    return a > b ? a : b;
}

void why_draw_flow(const struct scene *scene, const struct why_picture *p) {
    struct why_row rows[WHY_ROWS];
    struct box flow = p->at->flow;
    draw_heads(scene, p);
    draw_batch(scene, p);
    if (flow.rows <= 0)
        return;
    int space = p->view->presenter ? 2 : 1;
    int terms = p->step->terms, towers = p->step->towers;
    int most = terms + towers - 1; /* for a room: the terms of one tower alone, unless all have air */
    bool airy = towers * (most_of(terms, 1) + 1) - 1 <= flow.rows;
    int room = space == 2 && !airy && most < flow.rows ? most : flow.rows;
    int count = why_fold(p->step->towers, p->step->terms, p->view->tower, room, rows), more = 0;
    if (space == 2) /* a blank line between towers, when all still fit */
        for (int i = 1; i < count; i++)
            more += rows[i].first;
    bool spaced = space == 2 && count + more <= flow.rows;
    int row = flow.row, first = flow.row, last = flow.row;
    for (int i = 0; i < count; i++) {
        row += spaced && i > 0 && rows[i].first;
        draw_shard(scene, p, row, &rows[i]);
        draw_term(scene, p, row, &rows[i]);
        draw_figures(scene, p, row, &rows[i]);
        last = row++;
    }
    if (count > 0)
        draw_average(scene, p, first, last);
    int left = p->at->shard.col, below = flow.row + flow.rows - last - 1;
    if (p->view->presenter && count > 0)
        why_draw_sum(scene, p, (struct box){last + 1, left, below, flow.col + flow.cols - left - 1});
}
