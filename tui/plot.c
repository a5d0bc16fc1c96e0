#include "tui/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "tui/format.h"
#include "tui/raster.h"
#include "tui/rune.h"

/* The strongest curve of a cell decides its colour. */
enum { RANK_SAMPLES = 1, RANK_TOWER, RANK_MEAN, RANK_AVERAGE };

enum { TICKS = 16 };

int plot_columns(struct box box, enum glyphs glyphs) {
    struct plot_layout at;
    layout_plot(box, &at);
    return at.area.cols * glyphs_across(glyphs);
}

static int dot_row(const struct raster *raster, const struct axis *values, double value) {
    double place = axis_place(values, value);
    place = place < -1 ? -1 : place > 2 ? 2 : place;
    return (int)lround((1 - place) * (raster->dot_rows - 1));
}

enum line_value { LINE_MEAN, LINE_SMOOTH };

static double line_value(const struct bucket *bucket, enum line_value which) {
    return which == LINE_SMOOTH ? (double)bucket->smooth : bucket->sum / bucket->count;
}

/* A line through the buckets that hold samples. Where `beside` (the average) went on without this series, the
 * line is broken: the tower was not there. What a wrong rule made is drawn as an alarm. */
static void draw_line(struct raster *raster, const struct axis *values, const struct bucket *buckets,
                      const struct bucket *beside, enum line_value which, enum style right, int rank) {
    int last_col = -1, last_row = 0;
    for (int col = 0; col < raster->dot_cols; col++) {
        const struct bucket *b = &buckets[col];
        bool value = b->count > 0 && !(values->log && !(line_value(b, which) > 0));
        if (!value) {
            if (b->bad > 0 || b->count > 0 || (beside && beside[col].count > 0))
                last_col = -1;
            continue;
        }
        int row = dot_row(raster, values, line_value(b, which));
        enum style style = b->applied ? STYLE_ALARM : right;
        if (last_col < 0) {
            raster_dot(raster, row, col, style, rank);
        } else if (rank == RANK_MEAN) { /* dotted, to be told from the average without colour */
            if (col % 3 == 0)
                raster_dot(raster, row, col, style, rank);
        } else {
            int from = last_row;
            for (int c = last_col + 1; c <= col; c++) {
                int to = last_row + (int)lround((double)(row - last_row) * (c - last_col) / (col - last_col));
                raster_column(raster, c, from == to ? to : from < to ? from + 1 : from - 1, to, style, rank);
                from = to;
            }
        }
        last_col = col;
        last_row = row;
    }
}

/* The least and the greatest of each bucket, a dot each: noise and spikes stay as high as they were, however
 * many steps share a column. */
static void draw_extremes(struct raster *raster, const struct axis *values, const struct bucket *buckets,
                          enum style style) {
    for (int col = 0; col < raster->dot_cols; col++) {
        const struct bucket *b = &buckets[col];
        double low = values->log ? (double)b->least : (double)b->low;
        if (!(low <= (double)b->high))
            continue;
        raster_dot(raster, dot_row(raster, values, (double)b->high), col, style, RANK_SAMPLES);
        raster_dot(raster, dot_row(raster, values, low), col, style, RANK_SAMPLES);
    }
}

static void draw_curves(struct canvas *canvas, const struct plot_layout *at, const struct plot *plot,
                        const struct axis *values) {
    struct raster raster;
    if (!raster_init(&raster, at->area.rows, at->area.cols, canvas->glyphs))
        return;
    const struct curves *curves = plot->curves;
    const struct bucket *average = curves_series(curves, SERIES_AVERAGE);
    enum line_value which = plot->smoothed ? LINE_SMOOTH : LINE_MEAN;
    if (!plot->quiet) {
        draw_extremes(&raster, values, average, STYLE_FAINT);
        for (int i = SERIES_TOWERS; i < curves->series; i++) {
            bool range = curves->request.tower_count < 0;
            int tower = range ? 0 : curves->request.towers[i - SERIES_TOWERS];
            enum style style = range ? STYLE_FAINT : (enum style)(STYLE_TOWER_FAINT + tower % TOWER_HUES);
            draw_extremes(&raster, values, curves_series(curves, i), style);
            draw_line(&raster, values, curves_series(curves, i), average, which, style, RANK_TOWER);
        }
    }
    draw_line(&raster, values, curves_series(curves, SERIES_MEAN), NULL, which, STYLE_PLAIN, RANK_MEAN);
    draw_line(&raster, values, average, NULL, which, STYLE_STRONG, RANK_AVERAGE);
    raster_paint(&raster, canvas, at->area.row, at->area.col);
    raster_free(&raster);
}

/* The value that would stand at `rank` if they were in order; they change places (Hoare, "Algorithm 65:
 * Find", 1961). */
static double value_at(double *values, int count, int rank) {
    for (int low = 0, high = count - 1; low < high;) {
        double middle = values[rank];
        int i = low, j = high;
        while (i <= j) {
            while (values[i] < middle)
                i++;
            while (values[j] > middle)
                j--;
            if (i <= j) {
                double value = values[i];
                values[i++] = values[j];
                values[j--] = value;
            }
        }
        low = j < rank ? i : low;
        high = rank < i ? j : high;
    }
    return values[rank];
}

/* A spike far above everything else would press the rest flat: the axis leaves it out, and it is marked. So
 * far is twenty times as far from the least as nine tenths of the columns are. */
static double usual_high(const struct curves *curves, double low, double high) {
    enum { MOST = 1024 };
    static const double TIMES = 20;
    double highs[MOST];
    int count = 0;
    const struct bucket *average = curves_series(curves, SERIES_AVERAGE);
    for (int i = 0; i < curves->request.columns && count < MOST; i++)
        if (average[i].count > 0)
            highs[count++] = (double)average[i].high;
    if (count < 10)
        return high;
    double usual = value_at(highs, count, count * 9 / 10);
    return fmin(high, usual + TIMES * (usual - low) + 1e-9 * fabs(usual));
}

static void mark(struct canvas *canvas, const struct plot_layout *at, int row, int col, uint32_t rune,
                 enum style style) {
    canvas_put(canvas, at->area.row + row, at->area.col + col / glyphs_across(canvas->glyphs), rune, style);
}

/* Samples that have no place on the axis are marked at its edge: beyond it or not finite above, not positive
 * below. */
static void draw_misfits(struct canvas *canvas, const struct plot_layout *at, const struct plot *plot,
                         const struct axis *values) {
    for (int series = 0; series < plot->curves->series; series++) {
        const struct bucket *buckets = curves_series(plot->curves, series);
        for (int col = 0; col < at->area.cols * glyphs_across(canvas->glyphs); col++) {
            if (buckets[col].count > 0 && axis_place(values, (double)buckets[col].high) > 1.02)
                mark(canvas, at, 0, col, RUNE_UP, STYLE_WARNING);
            if (buckets[col].bad > 0)
                mark(canvas, at, 0, col, RUNE_CROSS, STYLE_ALARM);
            if (plot->log && buckets[col].negative > 0)
                mark(canvas, at, at->area.rows - 1, col, RUNE_CROSS, STYLE_WARNING);
        }
    }
}

static void draw_value_axis(struct canvas *canvas, const struct plot_layout *at, const struct axis *values) {
    struct box box = at->labels;
    int line = box.col + box.cols - 1;
    for (int row = 0; row < box.rows; row++)
        canvas_put(canvas, box.row + row, line, RUNE_VERTICAL, STYLE_FAINT);
    double ticks[TICKS];
    int count = axis_ticks(values, ticks, TICKS), last = -2;
    int decimals = values->log ? 0 : (int)fmax(0, -floor(log10(values->tick) + 1e-9));
    for (int i = count - 1; i >= 0; i--) {
        int row = (int)floor((1 - axis_place(values, ticks[i])) * (box.rows - 1e-9));
        row = row >= box.rows ? box.rows - 1 : row;
        if (row < last + 2)
            continue;
        last = row;
        char text[FORMAT_SIZE];
        double shown;
        snprintf(text, sizeof text, "%.*f", decimals, ticks[i]);
        bool brief = values->log || decimals > 4 || fabs(ticks[i]) > 99999;
        for (int digits = values->log ? 1 : 3; brief && digits > 0; digits--) {
            format_short(text, ticks[i], digits);
            brief = text_width(text) > box.cols - 2;
        }
        if (text_real(text, &shown) && fabs(shown - ticks[i]) > 1e-3 * fabs(ticks[i]))
            *text = 0; /* it has no room for its digits */
        canvas_text_right(canvas, box.row + row, line - 1, box.cols - 2, STYLE_FAINT, text);
        canvas_put(canvas, box.row + row, line, RUNE_BRANCH_LEFT, STYLE_FAINT);
    }
}

static int step_col(const struct plot_layout *at, const struct axis *steps, double step) {
    int col = (int)floor(axis_place(steps, step) * at->area.cols);
    return at->area.col + (col >= at->area.cols ? at->area.cols - 1 : col);
}

/* Nothing stands in the row of steps there, nor right beside it. */
static bool is_blank(const struct canvas *canvas, int row, int col, int cols) {
    for (int c = col - 1; c <= col + cols; c++)
        if (c >= 0 && c < canvas->cols && canvas->cells[row * canvas->cols + c].rune != ' ')
            return false;
    return true;
}

static void draw_step_axis(struct canvas *canvas, const struct plot_layout *at, const struct axis *steps) {
    canvas_text_right(canvas, at->steps.row, at->area.col - 2, 5, STYLE_FAINT, "step");
    double ticks[TICKS];
    int count = axis_ticks(steps, ticks, TICKS), free_from = at->area.col, end = at->area.col + at->area.cols;
    for (int i = -1; i < count; i++) {
        double step = i < 0 ? steps->low : ticks[i];
        char text[FORMAT_SIZE];
        format_count(text, (int64_t)llround(step));
        int width = text_width(text), col = step_col(at, steps, step) - (i < 0 ? 0 : width / 2);
        if (col + width > end)
            col = end - width;
        if (col < free_from || !is_blank(canvas, at->steps.row, col, width))
            continue;
        canvas_text(canvas, at->steps.row, col, width, STYLE_FAINT, text);
        free_from = col + width + 3;
    }
}

/* ---- where a wrong rule was in force */

/* A row of crosses under the columns from..to, in it the rule's name. */
static void draw_rule(struct canvas *canvas, const struct plot_layout *at, int from, int to,
                      const char *name) {
    int across = glyphs_across(canvas->glyphs), row = at->steps.row;
    int first = at->area.col + from / across, last = at->area.col + to / across;
    int width = text_width(name), cols = last - first + 1;
    canvas_fill(canvas, row, first, cols, RUNE_CROSS, STYLE_WARNING);
    if (width + 4 <= cols) { /* a cross at least on both sides */
        canvas_print(canvas, row, first + 1, width + 2, STYLE_WARNING, " %s ", name);
        return;
    }
    int beside = last + 2, end = at->area.col + at->area.cols;
    if (beside + width > end)
        beside = first - 1 - width;
    if (beside >= at->area.col && is_blank(canvas, row, beside, width))
        canvas_text(canvas, row, beside, width, STYLE_WARNING, name);
}

/* Columns without a sample of their own belong to those around them. From the newest back, whose name must be
 * read. */
static void draw_rules(struct canvas *canvas, const struct plot_layout *at, const struct plot *plot) {
    const struct bucket *average = curves_series(plot->curves, SERIES_AVERAGE);
    int from = -1, to = -1, applied = 0;
    for (int col = plot->curves->request.columns - 1; col >= -1; col--) {
        bool any = col >= 0 && (average[col].count > 0 || average[col].bad > 0);
        if (col >= 0 && (!any || (average[col].applied && average[col].applied == applied))) {
            from = any ? col : from;
            continue;
        }
        if (applied)
            draw_rule(canvas, at, from, to, plot->rules[applied - 1]);
        applied = col >= 0 ? average[col].applied : 0;
        from = to = col;
    }
}

static enum style marker_style(enum state_marker_kind kind) {
    return kind == MARKER_ALARM ? STYLE_ALARM : kind == MARKER_REWIND ? STYLE_WARNING : STYLE_FAINT;
}

/* Whose text comes first: what changed the run or befell it, what moved it on or stopped it, its routine. */
enum marker_rank { RANK_CHANGE, RANK_MOVE, RANK_ROUTINE, MARKER_RANKS };

static enum marker_rank marker_rank(const struct state_marker *marker) {
    static const char *const moves[] = {"pause", "resume", "step", "phase"};
    if (marker->kind == MARKER_CHECKPOINT || marker->kind == MARKER_EVAL || marker->kind == MARKER_NOTE)
        return RANK_ROUTINE;
    for (size_t i = 0; marker->kind == MARKER_COMMAND && marker->text && i < sizeof moves / sizeof *moves;
         i++)
        if (!strncmp(marker->text, moves[i], strlen(moves[i])))
            return RANK_MOVE;
    return RANK_CHANGE;
}

/* Which columns of the row of markers are taken: by markers, and by texts with a blank on both sides. */
enum { MARKER_COLS = 512 };

struct marker_row {
    struct box box;
    bool taken[MARKER_COLS];
    bool saved;             /* a checkpoint is drawn */
    bool named;             /* a text stands there */
    int count[MARKER_COLS]; /* markers, those of the routine aside; 0 once one of them had its turn */
};

static bool is_free(const struct marker_row *row, int col, int cols) {
    int from = col - row->box.col;
    if (from < 0 || from + cols > row->box.cols || from + cols > MARKER_COLS)
        return false;
    for (int c = from; c < from + cols; c++)
        if (row->taken[c])
            return false;
    return true;
}

static void take(struct marker_row *row, int col, int cols) {
    for (int c = col - row->box.col; c < col - row->box.col + cols; c++)
        if (c >= 0 && c < MARKER_COLS)
            row->taken[c] = true;
}

/* "towers 2->4" as "towers 2→4". */
static void marker_text(const char *text, char *out, size_t size) {
    const char *arrow = strstr(text, "->");
    if (arrow)
        snprintf(out, size, "%.*s\u2192%s", (int)(arrow - text), text, arrow + 2);
    else
        snprintf(out, size, "%s", text);
}

static void draw_mark(struct canvas *canvas, const struct plot_layout *at, struct marker_row *row, int col,
                      const struct state_marker *marker) {
    enum style style = marker_style(marker->kind);
    if (!is_free(row, col, 1))
        return;
    canvas_put(canvas, at->markers.row, col, RUNE_DOWN, style);
    take(row, col, 1);
    for (int r = at->area.row; marker_rank(marker) != RANK_ROUTINE && r < at->area.row + at->area.rows; r++)
        canvas_put(canvas, r, col, RUNE_DASHED_VERTICAL, style);
}

/* The text beside a mark, with how many others it stands for: behind it, or before it. The first one must be
 * read: where it has no room it hides older marks before it, whose lines stay. */
static void draw_name(struct canvas *canvas, struct marker_row *row, int col,
                      const struct state_marker *marker, int others) {
    char text[128];
    marker_text(marker->text ? marker->text : "", text, sizeof text);
    if (others > 0)
        snprintf(text + strlen(text), sizeof text - strlen(text), " +%d", others);
    int width = text_width(text), edge = row->box.col + row->box.cols - col - 2, from = col + 2;
    if (!is_free(row, col + 1, width + (width < edge ? 2 : 1))) {
        from = col - width - 1;
        if (!is_free(row, from - 1, width + 2) && (row->named || from < row->box.col))
            return;
        canvas_fill(canvas, row->box.row, from, width + 1, ' ', STYLE_PLAIN);
    }
    row->named = true;
    canvas_text(canvas, row->box.row, from, width, marker_style(marker->kind), text);
    take(row, from - 1, width + 2);
}

/* A column of the row of markers; -1: not on the axis. */
static int marker_col(const struct marker_row *row, const struct plot_layout *at, const struct axis *steps,
                      const struct state_marker *marker) {
    double place = axis_place(steps, (double)marker->step);
    int col = place >= 0 && place <= 1 ? step_col(at, steps, (double)marker->step) : -1;
    return col - row->box.col < MARKER_COLS ? col : -1;
}

/* What the run was told and what befell it: all marks, then texts, from the newest back. */
static void draw_told(struct canvas *canvas, const struct plot_layout *at, const struct plot *plot,
                      const struct axis *steps, struct marker_row *row) {
    for (int texts = 0; texts < 2; texts++)
        for (int rank = 0; rank < RANK_ROUTINE; rank++)
            for (int64_t i = plot->marker_count - 1; i >= 0; i--) {
                const struct state_marker *marker = &plot->markers[i];
                int col = (int)marker_rank(marker) == rank ? marker_col(row, at, steps, marker) : -1;
                if (col < 0)
                    continue;
                int *count = &row->count[col - row->box.col];
                if (!texts) {
                    draw_mark(canvas, at, row, col, marker);
                    ++*count;
                } else if (*count > 0) {
                    draw_name(canvas, row, col, marker, *count - 1);
                    *count = 0;
                }
            }
}

static void draw_markers(struct canvas *canvas, const struct plot_layout *at, const struct plot *plot,
                         const struct axis *steps) {
    struct marker_row row = {.box = at->markers};
    draw_told(canvas, at, plot, steps, &row);
    row.named = true; /* nothing of the routine must be read */
    for (int64_t i = plot->marker_count - 1; i >= 0; i--) {
        const struct state_marker *marker = &plot->markers[i];
        int col = marker_col(&row, at, steps, marker);
        if (col < 0 || marker_rank(marker) != RANK_ROUTINE || !is_free(&row, col, 1))
            continue;
        draw_mark(canvas, at, &row, col, marker);
        if (marker->kind != MARKER_CHECKPOINT || !row.saved) /* the newest has the word */
            draw_name(canvas, &row, col, marker, 0);
        row.saved = row.saved || marker->kind == MARKER_CHECKPOINT;
    }
}

static void draw_caption(struct canvas *canvas, const struct plot_layout *at, const struct plot *plot) {
    struct box box = at->caption;
    int used = canvas_text(canvas, box.row, box.col, box.cols, STYLE_STRONG, plot->title) + 3;
    int setting = text_width(plot->setting), legend = text_width(plot->legend);
    if (used + setting <= box.cols)
        canvas_text_right(canvas, box.row, box.col + box.cols, setting, STYLE_PLAIN, plot->setting);
    if (used + legend + (setting ? setting + 3 : 0) <= box.cols)
        canvas_text(canvas, box.row, box.col + used, legend, STYLE_FAINT, plot->legend);
}

static void draw_cursor(struct canvas *canvas, const struct plot_layout *at, const struct axis *steps,
                        double step) {
    double place = axis_place(steps, step);
    if (!(place >= 0 && place <= 1))
        return;
    int col = step_col(at, steps, step);
    for (int row = at->area.row; row < at->area.row + at->area.rows; row++)
        if (canvas->cells[row * canvas->cols + col].rune == ' ')
            canvas_put(canvas, row, col, RUNE_VERTICAL, STYLE_KEY);
}

/* Bring the values' axis up to date: it stays as it is while the values are in it and fill at least half of
 * it, since an axis that moves means drawing everything again. False: there are no values yet. */
static bool fit_values(const struct plot *plot, int ticks) {
    struct axis *axis = plot->values;
    double low, high;
    bool any = curves_range(plot->curves, plot->log, &low, &high);
    if (!any) {
        *axis = axis_values(0, 1, ticks, false);
        return false;
    }
    high = usual_high(plot->curves, low, high);
    if (axis->low < axis->high && axis->log == plot->log && axis_place(axis, low) >= 0 &&
        axis_place(axis, high) <= 1 && axis_place(axis, high) - axis_place(axis, low) >= 0.5)
        return true;
    bool moved = axis->low < axis->high && axis->log == plot->log;
    double slack = moved ? 0.1 * (high - low) : 0; /* one that had to move once will have to again */
    *axis = axis_values(low - (plot->log || low - slack < 0 ? 0 : slack), high + slack, ticks, plot->log);
    return true;
}

void plot_draw(struct canvas *canvas, struct box box, const struct plot *plot) {
    struct plot_layout at;
    layout_plot(box, &at);
    if (at.area.rows <= 0 || at.area.cols <= 0)
        return;
    const struct axis *steps = &plot->curves->request.steps;
    bool any = fit_values(plot, at.area.rows >= 12 ? 5 : 3);
    struct axis values = *plot->values;
    draw_caption(canvas, &at, plot);
    draw_value_axis(canvas, &at, &values);
    if (plot->curves->buckets)
        draw_rules(canvas, &at, plot);
    draw_step_axis(canvas, &at, steps);
    draw_markers(canvas, &at, plot, steps);
    if (any)
        draw_curves(canvas, &at, plot, &values);
    if (plot->curves->buckets)
        draw_misfits(canvas, &at, plot, &values);
    if (plot->cursor != WIRE_UNKNOWN_INT)
        draw_cursor(canvas, &at, steps, (double)plot->cursor);
}
