#include "tui/towers_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/format.h"
#include "tui/legend.h"
#include "tui/rune.h"
#include "tui/times.h"

enum { COSINE_BAR = 8 }; /* cells of the cosine's bar */

static const struct {
    const char *long_head, *short_head;
    int decimals; /* -1: no number */
} heads[TOWER_COLUMNS] = {
    [COLUMN_TOWER] = {"tower", "twr", -1},
    [COLUMN_WORKER] = {"worker", "worker", -1},
    [COLUMN_IMAGES] = {"images", "images", 0},
    [COLUMN_CROSS_ENTROPY] = {"cross-entropy", "CE", 4},
    [COLUMN_WEIGHT_DECAY] = {"weight decay", "WD", 4},
    [COLUMN_LOSS] = {"loss", "loss", 4},
    [COLUMN_GRAD_NORM] = {"|g|", "|g|", 3},
    [COLUMN_COSINE] = {"cosine", "cos", -1},
    [COLUMN_TIME] = {"", "", -1},
};

/* The figures of a row, a tower's or the average. */
struct figures {
    double value[TOWER_COLUMNS];
};

static struct figures tower_figures(const struct event_step_tower *t) {
    struct figures f = {{0}};
    f.value[COLUMN_IMAGES] = t->images == WIRE_UNKNOWN_INT ? wire_unknown() : (double)t->images;
    f.value[COLUMN_CROSS_ENTROPY] = t->cross_entropy;
    f.value[COLUMN_WEIGHT_DECAY] = t->weight_decay;
    f.value[COLUMN_LOSS] = t->loss;
    f.value[COLUMN_GRAD_NORM] = t->grad_norm;
    f.value[COLUMN_COSINE] = t->cosine;
    return f;
}

static struct figures average_figures(const struct event_step *s) {
    struct figures f = {{0}};
    f.value[COLUMN_IMAGES] = s->images == WIRE_UNKNOWN_INT ? wire_unknown() : (double)s->images;
    f.value[COLUMN_CROSS_ENTROPY] = s->cross_entropy;
    f.value[COLUMN_WEIGHT_DECAY] = s->weight_decay;
    f.value[COLUMN_LOSS] = s->loss;
    f.value[COLUMN_GRAD_NORM] = s->grad_norm;
    return f;
}

static enum style figure_style(double value, enum style style) {
    return wire_is_unknown(value) ? STYLE_FAINT : isfinite(value) ? style : STYLE_ALARM;
}

static void draw_figures(const struct scene *scene, const struct towers_layout *at, int row,
                         const struct figures *figures, enum style style) {
    for (int c = 0; c < TOWER_COLUMNS; c++) {
        struct column_span span = at->columns[c];
        if (span.cols <= 0 || heads[c].decimals < 0)
            continue;
        char text[FORMAT_SIZE];
        format_fixed(text, figures->value[c], span.cols, heads[c].decimals);
        canvas_text(scene->canvas, row, span.col, span.cols, figure_style(figures->value[c], style), text);
    }
}

static void draw_heads(const struct scene *scene, const struct towers_layout *at) {
    if (at->heads.rows <= 0)
        return;
    struct canvas *canvas = scene->canvas;
    for (int c = 0; c < TOWER_COLUMNS; c++) {
        struct column_span span = at->columns[c];
        if (span.cols <= 0)
            continue;
        const char *head = at->long_heads ? heads[c].long_head : heads[c].short_head;
        if (c == COLUMN_COSINE && at->cosine_bar)
            head = "cosine to avg";
        char time[64], ms[FORMAT_SIZE];
        if (c == COLUMN_TIME) {
            format_short(ms, scene->shown->have ? 1000 * scene->shown->step.seconds : wire_unknown(), 3);
            snprintf(time, sizeof time, "step %s ms", ms);
            head = time;
        }
        bool number = heads[c].decimals >= 0 || (c == COLUMN_COSINE && !at->cosine_bar);
        if (number)
            canvas_text_right(canvas, at->heads.row, span.col + span.cols, span.cols + 2, STYLE_FAINT, head);
        else
            canvas_text(canvas, at->heads.row, span.col, span.cols, STYLE_FAINT, head);
    }
    /* The heads read as what they are: cross-entropy + weight decay = loss. */
    const struct column_span *ce = &at->columns[COLUMN_CROSS_ENTROPY],
                             *wd = &at->columns[COLUMN_WEIGHT_DECAY];
    if (at->long_heads && wd->cols > 0) {
        int plus =
            (ce->col + ce->cols + wd->col + wd->cols - (int)strlen(heads[COLUMN_WEIGHT_DECAY].long_head)) / 2;
        canvas_put(canvas, at->heads.row, plus, '+', STYLE_FAINT);
        canvas_put(canvas, at->heads.row, wd->col + wd->cols + 1, '=', STYLE_FAINT);
    }
}

static void draw_cosine(const struct scene *scene, const struct towers_layout *at, int row, double cosine,
                        bool older, enum style hue) {
    struct column_span span = at->columns[COLUMN_COSINE];
    if (span.cols <= 0)
        return;
    char text[FORMAT_SIZE];
    format_cosine(text, cosine);
    enum style style =
        older ? STYLE_FAINT : figure_style(cosine, cosine <= -0.005 ? STYLE_WARNING : STYLE_PLAIN);
    canvas_text_right(scene->canvas, row, span.col + span.cols, span.cols, style, text);
    if (!at->cosine_bar || !isfinite(cosine) || cosine <= 0)
        return;
    int halves = (int)lround(fmin(cosine, 1) * COSINE_BAR * 2);
    for (int i = 0; i < COSINE_BAR && halves > 0; i++, halves -= 2)
        canvas_put(scene->canvas, row, span.col + i, halves >= 2 ? RUNE_HEAVY_LINE : RUNE_HALF_HEAVY_LINE,
                   hue);
}

/* ---- time: one bar a tower, all to the scale of the step */

enum {
    PART_LOAD = TIMES_LOAD,
    PART_FORWARD = TIMES_FORWARD,
    PART_BACKWARD = TIMES_BACKWARD,
    PART_WAIT = TIMES_WAIT,
    PART_AVERAGE = TIMES_AVERAGE,
    PARTS
};

static const struct legend_part parts[PARTS] = {
    {RUNE_DOUBLE_LINE, 'l', STYLE_PLAIN, "load", "load"},
    {RUNE_HEAVY_LINE, 'f', STYLE_PLAIN, "forward", "fwd"},
    {RUNE_LINE, 'b', STYLE_PLAIN, "backward", "back"},
    {RUNE_DASHES, 'w', STYLE_FAINT, "wait", "wait"},
    {RUNE_DOT, 'a', STYLE_FAINT, "average", "avg"},
};

static void draw_time(const struct scene *scene, struct column_span span, int row,
                      const struct event_step_tower *t) {
    const struct event_step *step = &scene->shown->step;
    double ms[TIMES_PARTS];
    double whole = times_of(step, t, ms);
    int edges[TIMES_PARTS + 1];
    times_place(ms, whole, span.cols, edges);
    for (int p = 0; p < TIMES_PARTS; p++) /* the update is drawn as part of the averaging */
        for (int col = edges[p]; col < edges[p + 1]; col++) {
            const struct legend_part *part = &parts[p < TIMES_AVERAGE ? p : PART_AVERAGE];
            legend_put(scene->canvas, row, span.col + col, part, part->style);
        }
}

/* What the parts of the bars mean, beside the rule and the averaged row. */
static void draw_time_legend(const struct scene *scene, const struct towers_layout *at) {
    struct column_span span = at->columns[COLUMN_TIME];
    if (span.cols <= 0 || at->sum_rule.rows <= 0 || !scene->shown->have)
        return;
    const struct box lines[] = {{at->sum_rule.row, span.col, 1, span.cols},
                                {at->average.row, span.col, 1, span.cols}};
    legend_draw(scene->canvas, lines, 2, parts, PARTS);
}

/* ---- rows */

static void draw_tower(const struct scene *scene, const struct towers_table *table, int row, int tower,
                       const char *mark) {
    const struct towers_layout *at = table->at;
    struct canvas *canvas = scene->canvas;
    enum style hue = (enum style)(STYLE_TOWER + tower % TOWER_HUES);
    struct column_span name = at->columns[COLUMN_TOWER], worker = at->columns[COLUMN_WORKER];
    bool named = tower == table->selected;
    if (name.cols > 0) {
        canvas_put(canvas, row, name.col, RUNE_LEFT_BAR, hue);
        char text[FORMAT_SIZE];
        int digits = table->digits, lead = digits < 3 ? 2 : 1;
        snprintf(text, sizeof text, "%*d", digits, tower);
        canvas_text(canvas, row, name.col + lead, name.cols - lead, named ? STYLE_WARNING : STYLE_PLAIN,
                    text);
        canvas_text(canvas, row, name.col + 4, 1, STYLE_FAINT, mark);
    }
    static const struct event_step_tower nothing;
    struct event_step_tower unknown = nothing;
    const struct event_step_tower *t = &unknown;
    bool older = false;
    if (scene->shown->have && tower < scene->shown->tower_count) {
        t = &scene->shown->towers[tower].figures;
        older = scene->shown->towers[tower].cosine_older;
    } else {
        unknown.images = WIRE_UNKNOWN_INT;
        unknown.cross_entropy = unknown.weight_decay = unknown.loss = wire_unknown();
        unknown.grad_norm = unknown.cosine = wire_unknown();
    }
    if (worker.cols > 0)
        canvas_text(canvas, row, worker.col, worker.cols, STYLE_PLAIN, t->device ? t->device : "\u2013");
    struct figures figures = tower_figures(t);
    draw_figures(scene, at, row, &figures, named ? STYLE_WARNING : STYLE_PLAIN);
    draw_cosine(scene, at, row, t->cosine, older, hue);
    if (at->columns[COLUMN_TIME].cols > 0 && t != &unknown)
        draw_time(scene, at->columns[COLUMN_TIME], row, t);
}

/* The towers with the lowest and the highest loss of those that are not among the rows that scroll. */
static void extremes(const struct scene *scene, const struct towers_table *table, int *lowest, int *highest) {
    int first = table->first, behind = first + table->at->scrolling;
    *lowest = *highest = table->order[behind < table->count ? behind : 0];
    if (!scene->shown->have)
        return;
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < table->count; i++) {
        if (i >= first && i < behind)
            continue;
        int tower = table->order[i];
        double loss = scene->shown->towers[tower].figures.loss;
        if (loss < low) {
            low = loss;
            *lowest = tower;
        }
        if (loss > high || (!wire_is_unknown(loss) && isnan(loss))) {
            high = isnan(loss) ? INFINITY : loss;
            *highest = tower;
        }
    }
}

static void range_text(char *out, size_t size, double low, double high, int room) {
    for (int digits = 4; digits >= 1; digits--) {
        char a[FORMAT_SIZE], b[FORMAT_SIZE];
        format_short(a, low, digits);
        format_short(b, high, digits);
        const char *from = a + (a[0] == '0' && a[1] == '.'), *to = b + (b[0] == '0' && b[1] == '.');
        if (!strcmp(from, to) || !(low < high))
            snprintf(out, size, "%s", a);
        else
            snprintf(out, size, "%s\u2013%s", from, to);
        if (text_width(out) <= room)
            return;
    }
}

/* All towers in one row, each figure as its range. */
static void draw_range(const struct scene *scene, const struct towers_table *table) {
    const struct towers_layout *at = table->at;
    int row = at->towers.row, last_end = 0;
    char text[2 * FORMAT_SIZE + 4];
    snprintf(text, sizeof text, "0\u2013%d", table->count - 1);
    canvas_text(scene->canvas, row, at->columns[COLUMN_TOWER].col, at->columns[COLUMN_TOWER].cols,
                STYLE_PLAIN, text);
    for (int c = 0; c < TOWER_COLUMNS; c++) {
        struct column_span span = at->columns[c];
        int room = span.col + span.cols - last_end - 1;
        if (span.cols <= 0 || c == COLUMN_TOWER || c == COLUMN_WORKER || c == COLUMN_TIME) {
            last_end = span.cols > 0 ? span.col + span.cols : last_end;
            continue;
        }
        last_end = span.col + span.cols;
        double low = INFINITY, high = -INFINITY;
        for (int i = 0; i < table->count && scene->shown->have; i++) {
            struct figures f = tower_figures(&scene->shown->towers[table->order[i]].figures);
            if (isfinite(f.value[c])) {
                low = fmin(low, f.value[c]);
                high = fmax(high, f.value[c]);
            }
        }
        if (!(low <= high))
            snprintf(text, sizeof text, "\u2013");
        else if (!(low < high) && heads[c].decimals >= 0)
            format_fixed(text, low, span.cols, heads[c].decimals);
        else
            range_text(text, sizeof text, low, high, room);
        canvas_text_right(scene->canvas, row, last_end, room, STYLE_PLAIN, text);
    }
}

static bool even_shards(const struct shown *shown) {
    for (int i = 1; i < shown->tower_count; i++)
        if (shown->towers[i].figures.images != shown->towers[0].figures.images)
            return false;
    return true;
}

/* How the row came about: the average, or the wrong rule in its place. */
static void draw_average_name(const struct scene *scene, const struct towers_layout *at) {
    struct canvas *canvas = scene->canvas;
    const char *applied = scene->shown->have ? scene->shown->step.applied : NULL;
    int row = at->average.row;
    struct column_span name = at->columns[COLUMN_TOWER], worker = at->columns[COLUMN_WORKER];
    char text[64];
    if (applied) {
        int room = worker.cols ? worker.col + worker.cols + 2 - name.col : name.cols;
        canvas_text(canvas, row, name.col, name.cols ? room : 0, STYLE_WARNING, applied);
        return;
    }
    if (canvas->glyphs == GLYPHS_ASCII)
        snprintf(text, sizeof text, "mean");
    else if (scene->shown->have && !even_shards(scene->shown))
        snprintf(text, sizeof text, "\u03a3n\u00f7N");
    else
        snprintf(text, sizeof text, "\u03a3\u00f7%d", scene_towers(scene));
    canvas_text(canvas, row, name.col, name.cols, STYLE_STRONG,
                name.cols >= text_width(text) ? text : "\u03a3");
    canvas_text(canvas, row, worker.col, worker.cols ? 7 : 0, STYLE_STRONG, "average");
}

static void draw_average(const struct scene *scene, const struct towers_layout *at) {
    struct canvas *canvas = scene->canvas;
    const struct event_step *step = &scene->shown->step;
    int row = at->average.row;
    char text[64];
    draw_average_name(scene, at);
    struct event_step unknown = event_new(EVENT_STEP).step;
    struct figures figures = average_figures(scene->shown->have ? step : &unknown);
    draw_figures(scene, at, row, &figures, STYLE_STRONG);
    struct column_span decay = at->columns[COLUMN_WEIGHT_DECAY], loss = at->columns[COLUMN_LOSS];
    double right = step->cross_entropy + step->weight_decay;
    if (scene->shown->have && step->applied && decay.cols > 0 && loss.col > decay.col + decay.cols + 1 &&
        fabs(step->loss - right) > 1e-3 * fabs(right)) /* what a wrong rule prints need not be the sum */
        canvas_put(canvas, row, decay.col + decay.cols + 1, RUNE_UNEQUAL, STYLE_WARNING);
    struct column_span cosine = at->columns[COLUMN_COSINE];
    if (at->cosine_bar && scene->shown->have && isfinite(step->grad_norm_mean)) {
        char mean[FORMAT_SIZE];
        for (int digits = 4; digits > 1; digits--) {
            format_short(mean, step->grad_norm_mean, digits);
            snprintf(text, sizeof text, "of mean %s", mean);
            if (text_width(text) <= cosine.cols + 2)
                break;
        }
        canvas_text(canvas, row, cosine.col, cosine.cols + 2, STYLE_FAINT, text);
    }
}

/* The rule under the towers: where one is in them, when not all are there. */
static void draw_sum_rule(const struct scene *scene, const struct towers_table *table) {
    const struct towers_layout *at = table->at;
    if (at->sum_rule.rows <= 0)
        return;
    struct column_span time = at->columns[COLUMN_TIME];
    int row = at->sum_rule.row, from = at->columns[COLUMN_TOWER].col;
    int to = time.cols > 0 ? time.col - 2 : at->sum_rule.cols - from;
    canvas_fill(scene->canvas, row, from, to - from, RUNE_LINE, STYLE_FAINT);
    if (at->range_row || table->count <= at->scrolling || at->scrolling <= 0)
        return;
    const char *pinned = at->pinned ? ", then \u25b4 highest and \u25be lowest loss " : " ";
    canvas_print(scene->canvas, row, from + 7, to - from - 7, STYLE_FAINT, " towers %d\u2013%d of %d%s",
                 table->order[table->first], table->order[table->first + at->scrolling - 1], table->count,
                 pinned);
}

void towers_table_draw(const struct scene *scene, const struct towers_table *table) {
    const struct towers_layout *at = table->at;
    draw_heads(scene, at);
    if (at->range_row && table->count > 0)
        draw_range(scene, table);
    int row = at->towers.row;
    for (int i = 0; !at->range_row && i < at->scrolling && table->first + i < table->count; i++)
        draw_tower(scene, table, row++, table->order[table->first + i], "");
    if (at->pinned == 2) {
        int lowest, highest;
        extremes(scene, table, &lowest, &highest);
        draw_tower(scene, table, row++, highest, "\u25b4");
        draw_tower(scene, table, row, lowest, "\u25be");
    }
    draw_sum_rule(scene, table);
    if (at->average.rows > 0)
        draw_average(scene, at);
    draw_time_legend(scene, at);
}
