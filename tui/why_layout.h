/* Where the parts of the Why screen stand, and which towers unfold their terms: from sizes alone. */
#ifndef TOWERSCOPE_TUI_WHY_LAYOUT_H
#define TOWERSCOPE_TUI_WHY_LAYOUT_H

#include "tui/layout.h"

enum { WHY_ROWS = 128 }; /* rows of the flow at most */

/* A row of the flow. */
struct why_row {
    int tower, last; /* last > tower: a range of folded towers */
    int term;        /* -1: the tower is folded into this row; -2: the terms that had no room */
    bool first;      /* the tower's first row: its total stands here */
};

/* Fold `towers` of `terms` each into at most `rows` rows, `chosen` unfolded. Returns how many rows there are.
 */
int why_fold(int towers, int terms, int chosen, int rows, struct why_row out[WHY_ROWS]);

struct why_layout {
    struct box phases, words, rule, heads, flow, proof_rule, proof, table_head, table, details_rule, details;
    /* columns of the flow; cols 0: not shown */
    struct column_span batch, shard, terms, total, norm, angle, average;
};

/* rows_wanted: rows the flow would like; rows_folded: those of one tower's terms and a row for each other;
 * words: rows that the sentence on the phase takes; alternatives: lines of the table; presenter: fewer,
 * larger. */
void layout_why(struct box body, int rows_wanted, int rows_folded, int words, int alternatives,
                bool presenter, bool details, struct why_layout *out);

#endif
