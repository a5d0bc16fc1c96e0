#include "tui/canvas.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "tui/rune.h"

struct range {
    uint32_t first, last;
};

/* East Asian wide and emoji blocks, and characters that take no column (Unicode 15, by block). */
static const struct range wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},
    {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xa960, 0xa97c},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};
static const struct range invisible[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x064b, 0x065f},   {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x202a, 0x202e}, {0x2060, 0x2069},   {0x20d0, 0x20ff},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0000, 0xe0fff},
};

/* One ASCII character for each that the console draws with. */
static const struct {
    uint32_t rune;
    char ascii;
} replacements[] = {
    {0x2500, '-'}, {0x2501, '='}, {0x254c, '.'}, {0x2578, '-'}, {0x2550, '='},  {0x2502, '|'},  {0x2514, '+'},
    {0x2524, '|'}, {0x2534, '+'}, {0x254e, ':'}, {0x2576, '-'}, {0x2581, '_'},  {0x2588, '#'},  {0x258d, '|'},
    {0x2591, '.'}, {0x2592, '='}, {0x2593, '#'}, {0x25a0, '#'}, {0x25b4, '^'},  {0x25b2, '^'},  {0x25b8, '>'},
    {0x25be, 'v'}, {0x25bc, 'v'}, {0x25c2, '<'}, {0x25cb, 'o'}, {0x25cf, '*'},  {0x2190, '<'},  {0x2191, '^'},
    {0x2192, '>'}, {0x2193, 'v'}, {0x2013, '-'}, {0x2014, '-'}, {0x2018, '\''}, {0x2019, '\''}, {0x2026, '~'},
    {0x2212, '-'}, {0x2248, '~'}, {0x2264, '<'}, {0x2265, '>'}, {0x2260, '#'},  {0x00b7, '.'},  {0x00d7, 'x'},
    {0x00f7, '/'}, {0x03a3, 'S'}, {0x2016, '='}, {0x2713, '+'}, {0x2717, 'x'},  {0x2590, '['},  {0x258c, ']'},
    {0x2220, '/'}, {0x1e21, 'g'}, {0x2510, '+'}, {0x251c, '+'}, {0x2518, '+'},  {0x2580, '"'},  {0x00b0, ' '},
};

static bool within(const struct range *table, size_t count, uint32_t rune) {
    if (rune < table[0].first || rune > table[count - 1].last)
        return false;
    for (size_t i = 0; i < count; i++)
        if (rune >= table[i].first && rune <= table[i].last)
            return true;
    return false;
}

uint32_t rune_next(const char **text) {
    int32_t rune = text_next(text);
    return rune < 0 ? 0xfffd : (uint32_t)rune;
}

int rune_width(uint32_t rune) {
    /* What screens are drawn with, and nothing of the tables: letters, then signs, lines, blocks and braille.
     */
    if (rune < 0x300 || (rune >= 0x2100 && rune < 0x2e80))
        return 1;
    if (within(invisible, sizeof invisible / sizeof *invisible, rune))
        return 0;
    return within(wide, sizeof wide / sizeof *wide, rune) ? 2 : 1;
}

int text_width(const char *text) {
    int width = 0;
    for (uint32_t rune; (rune = rune_next(&text)) != 0 && width < INT_MAX - 2;)
        width += rune_width(rune);
    return width;
}

/* Whether a blank stands between the groups of a count, as in "1 240". */
static bool within_number(const char *text, const char *blank) {
    return blank > text && isdigit((unsigned char)blank[-1]) && strspn(blank + 1, "0123456789") == 3;
}

size_t text_fit(const char *text, int cols) {
    const char *at = text, *space = NULL;
    int width = 0;
    while (*at) {
        const char *before = at;
        uint32_t rune = rune_next(&at);
        width += rune_width(rune);
        if (width > cols)
            return (size_t)((space ? space : before > text ? before : at) - text);
        if (rune == ' ' && !within_number(text, before))
            space = at;
    }
    return (size_t)(at - text);
}

/* The next row's text, from where the blanks between two rows end. */
static const char *next_row(const char *text, size_t bytes) {
    text += bytes;
    return text + strspn(text, " ");
}

const char *text_from(const char *text, int cols, int row) {
    for (; *text && cols > 0 && row > 0; row--)
        text = next_row(text, text_fit(text, cols));
    return text;
}

int text_rows(const char *text, int cols) {
    int rows = 0;
    for (; *text && cols > 0; rows++)
        text = next_row(text, text_fit(text, cols));
    return rows;
}

int rune_encode(uint32_t rune, char out[5]) {
    int n = rune < 0x80 ? 1 : rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, rune >>= 6)
        out[i] = (char)(0x80 | (rune & 0x3f));
    out[0] = (char)(first[n] | rune);
    out[n] = 0;
    return n;
}

static uint32_t rune_ascii(uint32_t rune) {
    if (rune < 0x7f)
        return rune;
    for (size_t i = 0; i < sizeof replacements / sizeof *replacements; i++)
        if (replacements[i].rune == rune)
            return (uint32_t)replacements[i].ascii;
    return '?';
}

enum style style_tones(int upper, int lower) {
    upper = upper < 0 ? 0 : upper >= TONES ? TONES - 1 : upper;
    lower = lower < 0 ? 0 : lower >= TONES ? TONES - 1 : lower;
    return (enum style)(STYLES + upper * TONES + lower);
}

struct canvas *canvas_new(int rows, int cols) {
    struct canvas *canvas = calloc(1, sizeof *canvas);
    if (!canvas)
        return NULL;
    canvas->rows = rows < 1 ? 1 : rows;
    canvas->cols = cols < 1 ? 1 : cols;
    canvas->glyphs = GLYPHS_BRAILLE;
    canvas->cells = calloc((size_t)canvas->rows * (size_t)canvas->cols, sizeof *canvas->cells);
    if (!canvas->cells) {
        free(canvas);
        return NULL;
    }
    canvas_clear(canvas);
    return canvas;
}

void canvas_free(struct canvas *canvas) {
    if (canvas)
        free(canvas->cells);
    free(canvas);
}

void canvas_clear(struct canvas *canvas) {
    for (int i = 0; i < canvas->rows * canvas->cols; i++)
        canvas->cells[i] = (struct cell){' ', STYLE_PLAIN};
    canvas->clip = canvas_whole(canvas);
    canvas->cursor_row = canvas->cursor_col = -1;
}

struct box canvas_whole(const struct canvas *canvas) {
    return (struct box){0, 0, canvas->rows, canvas->cols};
}

void canvas_clip(struct canvas *canvas, struct box box) {
    int bottom = box.row + box.rows, right = box.col + box.cols;
    box.row = box.row < 0 ? 0 : box.row;
    box.col = box.col < 0 ? 0 : box.col;
    bottom = bottom > canvas->rows ? canvas->rows : bottom;
    right = right > canvas->cols ? canvas->cols : right;
    box.rows = bottom > box.row ? bottom - box.row : 0;
    box.cols = right > box.col ? right - box.col : 0;
    canvas->clip = box;
}

static bool inside(const struct canvas *canvas, int row, int col) {
    const struct box *clip = &canvas->clip;
    return row >= clip->row && row < clip->row + clip->rows && col >= clip->col &&
           col < clip->col + clip->cols;
}

/* A wide character of which one half is overwritten leaves no half behind. */
static void split_wide(struct canvas *canvas, int row, int col) {
    struct cell *line = canvas->cells + (size_t)row * (size_t)canvas->cols;
    if (line[col].rune == 0 && col > 0)
        line[col - 1].rune = ' ';
    if (col + 1 < canvas->cols && line[col + 1].rune == 0)
        line[col + 1].rune = ' ';
}

void canvas_put(struct canvas *canvas, int row, int col, uint32_t rune, enum style style) {
    if (!inside(canvas, row, col))
        return;
    if (rune < 0x20 || (rune >= 0x7f && rune < 0xa0))
        rune = '?';
    if (canvas->glyphs == GLYPHS_ASCII)
        rune = rune_ascii(rune);
    int width = rune_width(rune);
    if (width == 0)
        return;
    if (width == 2 && !inside(canvas, row, col + 1)) {
        rune = '?';
        width = 1;
    }
    struct cell *cell = canvas->cells + (size_t)row * (size_t)canvas->cols + (size_t)col;
    split_wide(canvas, row, col);
    *cell = (struct cell){rune, (uint32_t)style};
    if (width == 2) {
        split_wide(canvas, row, col + 1);
        cell[1] = (struct cell){0, (uint32_t)style};
        cell->rune = rune;
    }
}

int canvas_text(struct canvas *canvas, int row, int col, int cols, enum style style, const char *text) {
    if (cols <= 0)
        return 0;
    int width = text_width(text), room = width > cols ? cols - 1 : cols, used = 0;
    for (uint32_t rune; (rune = rune_next(&text)) != 0;) {
        int w = rune_width(rune);
        if (used + w > room)
            break;
        if (w > 0)
            canvas_put(canvas, row, col + used, rune, style);
        /* In ASCII a wide character is one '?', and a space keeps the columns where they were. */
        if (w == 2 && canvas->glyphs == GLYPHS_ASCII)
            canvas_put(canvas, row, col + used + 1, ' ', style);
        used += w;
    }
    if (width > cols)
        canvas_put(canvas, row, col + used++, RUNE_ELLIPSIS, style);
    return used;
}

int canvas_print(struct canvas *canvas, int row, int col, int cols, enum style style, const char *format,
                 ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return canvas_text(canvas, row, col, cols, style, text);
}

int canvas_text_right(struct canvas *canvas, int row, int end, int cols, enum style style, const char *text) {
    int width = text_width(text);
    if (width > cols)
        width = cols;
    return canvas_text(canvas, row, end - width, width, style, text);
}

int canvas_paragraph(struct canvas *canvas, struct box box, enum style style, const char *text) {
    int row = 0;
    for (; row < box.rows && *text && box.cols > 0; row++) {
        char part[512];
        size_t bytes = text_fit(text, box.cols);
        bool last = row == box.rows - 1;
        snprintf(part, sizeof part, "%.*s", last ? (int)sizeof part - 1 : (int)bytes, text);
        canvas_text(canvas, box.row + row, box.col, box.cols, style, part);
        text = next_row(text, bytes);
    }
    return row;
}

void canvas_fill(struct canvas *canvas, int row, int col, int cols, uint32_t rune, enum style style) {
    for (int i = 0; i < cols; i++)
        canvas_put(canvas, row, col + i, rune, style);
}
