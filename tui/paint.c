#include "tui/paint.h"

#include <string.h>

#include "tui/term.h"

void paint_free(struct painter *painter) {
    canvas_free(painter->shown);
    painter->shown = NULL;
}

void paint_distrust(struct painter *painter) {
    paint_free(painter);
    term_distrust();
}

bool paint(struct painter *painter, const struct canvas *scene) {
    struct canvas *shown = painter->shown;
    bool fresh = !shown || shown->rows != scene->rows || shown->cols != scene->cols;
    if (fresh) {
        paint_free(painter);
        shown = painter->shown = canvas_new(scene->rows, scene->cols);
        if (!shown)
            return false;
    }
    bool same = !fresh && shown->cursor_row == scene->cursor_row && shown->cursor_col == scene->cursor_col;
    size_t bytes = (size_t)scene->cols * sizeof *scene->cells;
    for (int row = 0; row < scene->rows; row++) {
        const struct cell *now = scene->cells + row * scene->cols;
        struct cell *was = shown->cells + row * scene->cols;
        if (!fresh && !memcmp(now, was, bytes))
            continue;
        for (int col = 0; col < scene->cols; col++)
            if (fresh || now[col].rune != was[col].rune || now[col].style != was[col].style)
                term_put(row, col, &now[col]);
        memcpy(was, now, bytes);
        same = false;
    }
    if (same)
        return true;
    shown->cursor_row = scene->cursor_row;
    shown->cursor_col = scene->cursor_col;
    term_show(scene->cursor_row, scene->cursor_col);
    return true;
}
