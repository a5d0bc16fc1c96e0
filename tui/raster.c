#include "tui/raster.h"

#include <stdlib.h>
#include <string.h>

#include "tui/rune.h"

int glyphs_across(enum glyphs glyphs) {
    return glyphs == GLYPHS_ASCII ? 1 : 2;
}

int glyphs_down(enum glyphs glyphs) {
    return glyphs == GLYPHS_BRAILLE ? 4 : glyphs == GLYPHS_BLOCK ? 2 : 3;
}

bool raster_init(struct raster *raster, int rows, int cols, enum glyphs glyphs) {
    memset(raster, 0, sizeof *raster);
    if (rows <= 0 || cols <= 0)
        return true;
    size_t cells = (size_t)rows * (size_t)cols;
    raster->dots = calloc(cells, 3);
    if (!raster->dots)
        return false;
    raster->style = raster->dots + cells;
    raster->rank = raster->style + cells;
    raster->rows = rows;
    raster->cols = cols;
    raster->glyphs = glyphs;
    raster->dot_rows = rows * glyphs_down(glyphs);
    raster->dot_cols = cols * glyphs_across(glyphs);
    return true;
}

void raster_free(struct raster *raster) {
    free(raster->dots);
    memset(raster, 0, sizeof *raster);
}

static void put(struct raster *raster, size_t cell, unsigned dots, enum style style, int rank) {
    if (rank < raster->rank[cell])
        return;
    if (rank > raster->rank[cell]) {
        raster->rank[cell] = (uint8_t)rank;
        raster->dots[cell] = 0;
    }
    raster->style[cell] = (uint8_t)style;
    raster->dots[cell] |= (uint8_t)dots;
}

/* The bits of a cell's dots, row by row. Braille's are numbered down the left column, then the right, with
 * the fourth row last. */
static const uint8_t *bits_of(enum glyphs glyphs) {
    static const uint8_t braille[8] = {0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80};
    static const uint8_t in_order[6] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20};
    return glyphs == GLYPHS_BRAILLE ? braille : in_order;
}

void raster_dot(struct raster *raster, int row, int col, enum style style, int rank) {
    if (row < 0 || row >= raster->dot_rows || col < 0 || col >= raster->dot_cols)
        return;
    if (raster->glyphs != GLYPHS_BRAILLE) {
        raster_column(raster, col, row, row, style, rank);
        return;
    }
    /* The usual, by constants: a frame has a thousand single dots. */
    unsigned r = (unsigned)row, c = (unsigned)col;
    put(raster, r / 4 * (unsigned)raster->cols + c / 2, bits_of(GLYPHS_BRAILLE)[r % 4 * 2 + c % 2], style,
        rank);
}

void raster_column(struct raster *raster, int col, int from, int to, enum style style, int rank) {
    if (from > to) {
        int swap = from;
        from = to;
        to = swap;
    }
    from = from < 0 ? 0 : from;
    to = to >= raster->dot_rows ? raster->dot_rows - 1 : to;
    if (col < 0 || col >= raster->dot_cols || from > to)
        return;
    int down = glyphs_down(raster->glyphs), across = glyphs_across(raster->glyphs);
    const uint8_t *bits = bits_of(raster->glyphs) + col % across;
    for (int r = from / down, row = from; row <= to; r++) { /* cell by cell */
        unsigned dots = 0;
        for (; row <= to && row < (r + 1) * down; row++)
            dots |= bits[(row - r * down) * across];
        put(raster, (size_t)r * (size_t)raster->cols + (size_t)(col / across), dots, style, rank);
    }
}

static uint32_t rune_of(enum glyphs glyphs, unsigned dots) {
    static const uint16_t quarters[16] = {' ',    0x2598, 0x259d, 0x2580, 0x2596, 0x258c, 0x259e, 0x259b,
                                          0x2597, 0x259a, 0x2590, 0x259c, 0x2584, 0x2599, 0x259f, 0x2588};
    static const char ascii[8] = {' ', '\'', '-', '"', '.', ':', '=', '|'};
    if (glyphs == GLYPHS_BLOCK)
        return quarters[dots & 15];
    if (glyphs == GLYPHS_ASCII)
        return (uint32_t)ascii[dots & 7];
    return RUNE_BRAILLE + dots;
}

void raster_paint(const struct raster *raster, struct canvas *canvas, int row, int col) {
    for (int r = 0; r < raster->rows; r++)
        for (int c = 0; c < raster->cols; c++) {
            size_t cell = (size_t)r * (size_t)raster->cols + (size_t)c;
            if (raster->dots[cell])
                canvas_put(canvas, row + r, col + c, rune_of(raster->glyphs, raster->dots[cell]),
                           raster->style[cell]);
        }
}
