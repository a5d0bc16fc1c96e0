#include "tui/why_layout.h"

#include <string.h>

static int least(int a, int b) {
    return a < b ? a : b;
}

static int most(int a, int b) {
    return a > b ? a : b;
}

/* ---- folding */

struct fold {
    struct why_row *out;
    int count;
};

static void put(struct fold *fold, int tower, int last, int term, bool first) {
    if (fold->count < WHY_ROWS)
        fold->out[fold->count++] = (struct why_row){tower, last, term, first};
}

static void put_terms(struct fold *fold, int tower, int terms, int rows) {
    for (int i = 0; i < terms && i < rows; i++)
        put(fold, tower, tower, rows < terms && i == rows - 1 && rows > 1 ? -2 : i, i == 0);
}

static void put_range(struct fold *fold, int from, int to) {
    if (from <= to)
        put(fold, from, to, -1, true);
}

/* Towers from..to in `rows` rows; those near `near` (0: the begin, 1: the end) stay apart. */
static void put_side(struct fold *fold, int from, int to, int rows, bool near_end) {
    int count = to - from + 1;
    if (count <= 0 || rows <= 0)
        return;
    if (count <= rows) {
        for (int k = from; k <= to; k++)
            put(fold, k, k, -1, true);
        return;
    }
    int apart = rows - 1, far = apart > 1, near = apart - far;
    int begin = near_end ? far : near, end = near_end ? near : far;
    for (int k = from; k < from + begin; k++)
        put(fold, k, k, -1, true);
    put_range(fold, from + begin, to - end);
    for (int k = to - end + 1; k <= to; k++)
        put(fold, k, k, -1, true);
}

int why_fold(int towers, int terms, int chosen, int rows, struct why_row out[WHY_ROWS]) {
    struct fold fold = {out, 0};
    rows = least(rows, WHY_ROWS);
    if (towers <= 0 || rows <= 0)
        return 0;
    chosen = most(0, least(chosen, towers - 1));
    int unfolded = most(terms, 1);
    if (towers <= rows / unfolded) { /* everything */
        for (int k = 0; k < towers; k++)
            if (terms > 0)
                put_terms(&fold, k, terms, terms);
            else
                put(&fold, k, k, -1, true);
        return fold.count;
    }
    int before = chosen, after = towers - 1 - chosen, sides = (before > 0) + (after > 0);
    if (rows <= sides) {
        put_range(&fold, 0, towers - 1);
        return fold.count;
    }
    int own = most(1, least(unfolded, rows - sides)), left = rows - own;
    if (towers - 1 <= left) { /* a row for each of the others, and terms for as many as there is room for */
        int spare = left - (towers - 1);
        for (int k = 0; k < towers; k++) {
            bool unfold = k != chosen && terms > 1 && spare >= terms - 1;
            spare -= unfold ? terms - 1 : 0;
            if ((k == chosen && terms > 0) || unfold)
                put_terms(&fold, k, terms, k == chosen ? own : terms);
            else
                put(&fold, k, k, -1, true);
        }
        return fold.count;
    }
    int up = before > 0 ? most(1, least(before, (int)((long)left * before / (before + after)))) : 0;
    int down = after > 0 ? most(0, least(after, left - up)) : 0;
    if (after > 0 && down == 0 && up > 1) {
        down = 1;
        up--;
    }
    put_side(&fold, 0, chosen - 1, up, true);
    if (terms > 0)
        put_terms(&fold, chosen, terms, own);
    else
        put(&fold, chosen, chosen, -1, true);
    put_side(&fold, chosen + 1, towers - 1, down, false);
    return fold.count;
}

/* ---- boxes */

struct stack {
    struct box body;
    int row;
};

static struct box take(struct stack *stack, int rows) {
    int left = stack->body.row + stack->body.rows - stack->row;
    rows = most(0, least(rows, left));
    struct box box = {stack->row, stack->body.col, rows, stack->body.cols};
    stack->row += rows;
    return box;
}

static struct column_span column(int *col, int cols) {
    struct column_span span = {*col, cols};
    *col += cols > 0 ? cols + 1 : 0;
    return span;
}

static void layout_columns(struct box body, bool presenter, struct why_layout *out) {
    int cols = body.cols, col = body.col + (cols >= 24 ? 1 : 0), end = body.col + cols - (cols >= 24 ? 1 : 0);
    bool wide = cols >= 112;
    out->batch = column(&col, cols >= 132 ? 24 : wide ? 12 : 0);
    out->shard = column(&col, wide ? 14 : cols >= 50 ? 7 : cols >= 30 ? 3 : 0);
    out->terms = column(&col, wide ? 40 : cols >= 76 ? 35 : most(0, least(35, cols - 26)));
    out->total = column(&col, cols >= 16 ? (wide ? 9 : 6) : 0);
    out->norm = column(&col, cols >= 60 ? (wide ? 6 : 5) : 0);
    out->angle = column(&col, cols >= 66 && !presenter ? (wide ? 10 : 4) : 0);
    out->average = column(&col, most(0, end - col));
    if (out->average.cols < 9)
        out->average.cols = 0;
}

/* Rows of the table beside a flow in `rows` rows: the flow keeps a row for every tower and the terms of one
 * where that leaves the table three, else the five rows that one tower's terms and the others, folded, take.
 */
static int table_rows(int rows, int folded, int alternatives) {
    enum { FLOW = 5, TABLE = 3 };
    int flow = rows - folded >= TABLE ? most(folded, FLOW) : FLOW;
    return most(0, least(alternatives, rows - flow));
}

void layout_why(struct box body, int rows_wanted, int rows_folded, int words, int alternatives,
                bool presenter, bool details, struct why_layout *out) {
    memset(out, 0, sizeof *out);
    struct stack stack = {body, body.row};
    int rows = body.rows;
    bool tall = rows >= 30;
    enum { DETAILS = 7 }; /* rows of one rule in words, and the blank one above */
    out->phases = take(&stack, 1);
    if (presenter && rows >= 16)
        take(&stack, 1);
    words = presenter && rows >= 16 ? most(words, 3) : least(words, rows >= 16 ? 4 : 2);
    out->words = take(&stack, rows >= 8 ? words : 0);
    out->rule = take(&stack, tall ? 1 : 0);
    out->heads = take(&stack, rows >= 6 ? 1 : 0);
    int left = body.row + rows - stack.row;
    int proof = left >= 8 ? (tall && body.cols < 140 ? 2 : 1) : 0;
    int beside = details && !presenter ? DETAILS : 0; /* kept for the words, where the table has room too */
    bool both = beside > 0 &&
                left - proof - (tall ? 2 : 0) - alternatives - 1 - beside >= least(most(rows_folded, 5), 10);
    if (presenter || (details && !both)) { /* the flow, the proof, and one rule in words */
        int explained = details ? most(0, least(left - proof - 4, 8)) : 0;
        out->flow = take(&stack, least(left - proof - explained - (tall ? 2 : 0),
                                       presenter ? left : most(rows_wanted, 3)));
        out->proof_rule = take(&stack, tall ? 1 : 0);
        out->proof = take(&stack, presenter && tall ? 2 : proof);
        out->details_rule = take(&stack, tall && details ? 1 : 0);
        out->details = take(&stack, details ? left : 0);
    } else {
        int table =
            left >= 14 + proof ? alternatives : table_rows(left - proof - 1, rows_folded, alternatives);
        int rules = tall ? 2 : 0;
        int flow = left - proof - rules - (table > 0 ? table + 1 : 0) - beside;
        out->flow = take(&stack, least(flow, most(rows_wanted, 5)));
        out->proof_rule = take(&stack, tall ? 1 : 0);
        out->proof = take(&stack, proof);
        out->details_rule = take(&stack, tall ? 1 : 0); /* between proof and table */
        out->table_head = take(&stack, table > 0 ? 1 : 0);
        out->table = take(&stack, table);
        int spare = body.row + rows - stack.row;
        if (spare >= 4) {
            take(&stack, 1);
            out->details = take(&stack, spare - 1);
        }
    }
    layout_columns(body, presenter, out);
}
