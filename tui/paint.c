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
    size_t count = (size_t)scene->rows * (size_t)scene->cols;
    for (size_t i = 0; i < count; i++) {
        const struct cell *cell = &scene->cells[i];
        if (fresh || cell->rune != shown->cells[i].rune || cell->style != shown->cells[i].style) {
            term_put((int)(i / (size_t)scene->cols), (int)(i % (size_t)scene->cols), cell);
            same = false;
        }
    }
    if (same)
        return true;
    memcpy(shown->cells, scene->cells, count * sizeof *scene->cells);
    shown->cursor_row = scene->cursor_row;
    shown->cursor_col = scene->cursor_col;
    term_show(scene->cursor_row, scene->cursor_col);
    return true;
}
