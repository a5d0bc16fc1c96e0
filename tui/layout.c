#include "tui/layout.h"

#include <string.h>

enum {
    PLOT_ROWS_MIN = 6, /* caption, markers, three of curve, steps */
    PLOT_COLS_MIN = 40,
    PLOTS_BESIDE = 100, /* columns from which two plots stand side by side */
    PLOTS_STACKED = 18, /* rows from which two narrow plots stand one above the other */
    TIME_COLS = 28,     /* the time bar and its legend, comfortably */
    TIME_COLS_MAX = 60,
    COSINE_COLS = 4,
    COSINE_BAR_COLS = 13,
    PLOT_LABEL_COLS = 7,
};

static int least(int a, int b) {
    return a < b ? a : b;
}

static int most(int a, int b) {
    return a > b ? a : b;
}

void layout_frame(int rows, int cols, struct frame_layout *out) {
    memset(out, 0, sizeof *out);
    rows = most(rows, 1);
    cols = most(cols, 1);
    int top = 0, bottom = rows;
    out->header = (struct box){top++, 0, 1, cols};
    if (rows >= 16)
        out->rule = (struct box){top++, 0, 1, cols};
    if (rows >= 4)
        out->footer = (struct box){--bottom, 0, 1, cols};
    out->message_shares_footer = rows < 20;
    if (!out->message_shares_footer)
        out->message = (struct box){--bottom, 0, 1, cols};
    else
        out->message = rows >= 4 ? out->footer : (struct box){rows - 1, 0, 1, cols};
    out->body = (struct box){top, 0, bottom - top, cols};
}

/* A set of columns, the widest first; the first that fits is taken. */
struct column_set {
    unsigned columns; /* bit by enum tower_column */
    bool long_heads, cosine_bar;
    int time_cols;
};

#define BIT(column) (1u << COLUMN_##column)
enum {
    NUMBERS = BIT(CROSS_ENTROPY) | BIT(WEIGHT_DECAY) | BIT(LOSS) | BIT(GRAD_NORM),
    EVERYTHING = BIT(TOWER) | BIT(WORKER) | BIT(IMAGES) | NUMBERS | BIT(COSINE),
};

static const struct column_set column_sets[] = {
    {EVERYTHING | BIT(TIME), true, true, TIME_COLS},
    {EVERYTHING | BIT(TIME), true, true, 20},
    {EVERYTHING | BIT(TIME), true, false, 16},
    {EVERYTHING, true, false, 0},
    {EVERYTHING & ~BIT(WORKER), true, false, 0},
    {EVERYTHING & ~BIT(WORKER), false, false, 0},
    {BIT(TOWER) | NUMBERS | BIT(COSINE), false, false, 0},
    {BIT(TOWER) | NUMBERS, false, false, 0},
    {(BIT(TOWER) | NUMBERS) & ~BIT(WEIGHT_DECAY), false, false, 0},
    {BIT(TOWER) | BIT(LOSS) | BIT(GRAD_NORM), false, false, 0},
    {BIT(TOWER) | BIT(LOSS), false, false, 0},
    {BIT(LOSS), false, false, 0},
};

/* Least width and gap before a column, with long and with short heads. */
static const struct {
    int long_cols, short_cols, long_gap, short_gap;
} column_sizes[TOWER_COLUMNS] = {
    [COLUMN_TOWER] = {5, 4, 0, 0},         [COLUMN_WORKER] = {6, 6, 2, 2},
    [COLUMN_IMAGES] = {6, 6, 2, 2},        [COLUMN_CROSS_ENTROPY] = {13, 8, 2, 2},
    [COLUMN_WEIGHT_DECAY] = {12, 8, 3, 2}, [COLUMN_LOSS] = {8, 8, 3, 2},
    [COLUMN_GRAD_NORM] = {7, 7, 2, 2},     [COLUMN_COSINE] = {COSINE_COLS, COSINE_COLS, 3, 3},
    [COLUMN_TIME] = {0, 0, 3, 3},
};

static int column_cols(const struct column_set *set, int column) {
    if (column == COLUMN_COSINE && set->cosine_bar)
        return COSINE_BAR_COLS;
    if (column == COLUMN_TIME)
        return set->time_cols;
    return set->long_heads ? column_sizes[column].long_cols : column_sizes[column].short_cols;
}

static int column_gap(const struct column_set *set, int column) {
    return set->long_heads ? column_sizes[column].long_gap : column_sizes[column].short_gap;
}

static int set_cols(const struct column_set *set) {
    int cols = 0;
    for (int c = 0; c < TOWER_COLUMNS; c++)
        if (set->columns >> c & 1)
            cols += column_cols(set, c) + (cols ? column_gap(set, c) : 0);
    return cols;
}

static void place_columns(int cols, int worker_cols, struct towers_layout *out) {
    int margin = cols >= 24 ? 1 : 0, room = cols - 2 * margin;
    const struct column_set *set = column_sets;
    const struct column_set *last = column_sets + sizeof column_sets / sizeof *column_sets - 1;
    while (set < last && set_cols(set) > room)
        set++;
    out->long_heads = set->long_heads;
    out->cosine_bar = set->cosine_bar;
    if (set_cols(set) > room) { /* a few columns: what there is of the loss */
        out->columns[COLUMN_LOSS] = (struct column_span){0, most(room, 0)};
        return;
    }
    /* Room left over: first for the devices' names, then air between the columns, then a longer time bar. */
    int spare = room - set_cols(set), gaps = 0, worker = 0, widen = 0;
    if (set->columns & BIT(WORKER))
        worker = least(most(worker_cols - 6, 0), least(spare, 6));
    spare -= worker;
    for (int c = 1; c < TOWER_COLUMNS; c++)
        gaps += (int)(set->columns >> c & 1);
    if (gaps > 0)
        widen = least(spare / gaps, set->columns & BIT(TIME) ? 3 : 1);
    spare -= widen * gaps;
    int col = margin;
    for (int c = 0; c < TOWER_COLUMNS; c++) {
        if (!(set->columns >> c & 1))
            continue;
        int width = column_cols(set, c) + (c == COLUMN_WORKER ? worker : 0);
        if (c == COLUMN_TIME)
            width += least(spare, TIME_COLS_MAX - width);
        if (col > margin)
            col += column_gap(set, c) + widen;
        out->columns[c] = (struct column_span){col, width};
        col += width;
    }
}

static void place_plots(struct box box, struct towers_layout *out) {
    int margin = 1;
    if (box.cols >= PLOTS_BESIDE) {
        int gap = 4, width = (box.cols - 2 * margin - gap) / 2;
        out->plot[0] = (struct box){box.row, margin, box.rows, width};
        out->plot[1] = (struct box){box.row, margin + width + gap, box.rows, width};
    } else if (box.rows >= PLOTS_STACKED) {
        int upper = (box.rows + 1) / 2;
        out->plot[0] = (struct box){box.row, margin, upper, box.cols - 2 * margin};
        out->plot[1] = (struct box){box.row + upper, margin, box.rows - upper, box.cols - 2 * margin};
    } else {
        out->plot[0] = (struct box){box.row, margin, box.rows, box.cols - 2 * margin};
    }
}

void layout_towers(struct box body, int towers, int worker_cols, struct towers_layout *out) {
    memset(out, 0, sizeof *out);
    if (body.rows <= 0 || body.cols <= 0)
        return;
    place_columns(body.cols, worker_cols, out);
    int heads = body.rows >= 2, rule = body.rows >= 7, note = body.rows >= 8;
    int left = body.rows - heads - 1 - rule - note;
    int plot = 0, rows = least(towers, left);
    /* The plot wants its rows and a rule; the towers keep three rows, or as many as they are. */
    if (body.cols >= PLOT_COLS_MIN && left - PLOT_ROWS_MIN - 1 >= least(towers, 3)) {
        rows = least(towers, left - most(PLOT_ROWS_MIN, body.rows / 3) - 1);
        plot = left - rows - 1;
    }
    if (rows < towers && rows < 3) {
        out->range_row = rows > 0;
        rows = least(rows, 1);
    }
    if (!out->range_row) {
        out->pinned = rows < towers && rows >= 5 ? 2 : 0;
        out->scrolling = rows - out->pinned;
    }
    int row = body.row, cols = body.cols;
    out->heads = (struct box){row, 0, heads, cols};
    row += heads;
    out->towers = (struct box){row, 0, rows, cols};
    row += rows;
    out->sum_rule = (struct box){row, 0, rule, cols};
    row += rule;
    out->average = (struct box){row, 0, 1, cols};
    row += 1;
    out->note = (struct box){row, 0, note, cols};
    row += note;
    if (plot > 0) {
        out->plot_rule = (struct box){row, 0, 1, cols};
        place_plots((struct box){row + 1, 0, plot, cols}, out);
    }
}

void layout_plot(struct box box, struct plot_layout *out) {
    memset(out, 0, sizeof *out);
    if (box.rows < PLOT_ROWS_MIN || box.cols <= PLOT_LABEL_COLS + 8)
        return;
    int left = box.col + PLOT_LABEL_COLS, cols = box.cols - PLOT_LABEL_COLS;
    out->caption = (struct box){box.row, box.col, 1, box.cols};
    out->markers = (struct box){box.row + 1, left, 1, cols};
    out->labels = (struct box){box.row + 2, box.col, box.rows - 3, PLOT_LABEL_COLS};
    out->area = (struct box){box.row + 2, left, box.rows - 3, cols};
    out->steps = (struct box){box.row + box.rows - 1, box.col, 1, box.cols};
}
