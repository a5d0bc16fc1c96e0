/* A scene: a grid of cells, each one character and what it means. Views draw into it; paint.c brings the
 * difference to the last scene to the terminal. Nothing here knows of terminals, and nothing is ever written
 * outside the scene or outside the clip box, whatever a view asks for. */
#ifndef TOWERSCOPE_TUI_CANVAS_H
#define TOWERSCOPE_TUI_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a cell means; palette.h says how that looks. Towers beyond TOWER_HUES share hues: their number tells.
 */
enum { TOWER_HUES = 8 };
enum style {
    STYLE_PLAIN,
    STYLE_FAINT,  /* frames, labels, what can wait */
    STYLE_STRONG, /* the average, titles */
    STYLE_GOOD,
    STYLE_WARNING,
    STYLE_ALARM,
    STYLE_BANNER,                                 /* a standing alarm, across the whole line */
    STYLE_SELECTED,                               /* the row or word that keys act on */
    STYLE_KEY,                                    /* a key in the footer and the help */
    STYLE_TOWER,                                  /* + tower % TOWER_HUES */
    STYLE_TOWER_FAINT = STYLE_TOWER + TOWER_HUES, /* the same hue, for curves behind the average */
    STYLES = STYLE_TOWER_FAINT + TOWER_HUES
};

/* Tones of a picture: a ramp of greys, then a cube of 4 x 4 x 4 colours. A cell of a picture has the upper
 * half of its block in one tone and the lower in another; its style is one of STYLES + TONES * TONES. */
enum { TONE_GREYS = 16, TONES = TONE_GREYS + 64 };
enum style style_tones(int upper, int lower);

/* What plots and bars may be drawn with. */
enum glyphs { GLYPHS_ASCII, GLYPHS_BLOCK, GLYPHS_BRAILLE };

struct box {
    int row, col, rows, cols;
};

struct cell {
    uint32_t rune;  /* a Unicode character; 0: the right half of the wide one before it */
    uint32_t style; /* enum style, or style_tones() */
};

struct canvas {
    int rows, cols;
    enum glyphs glyphs; /* ASCII: every character is replaced by one of ASCII as it is put */
    struct box clip;
    int cursor_row, cursor_col; /* where the terminal's cursor shows; row -1: nowhere */
    struct cell *cells;         /* [row * cols + col] */
};

/* An empty scene, all spaces; NULL when there is no memory. Sizes below 1 become 1. */
struct canvas *canvas_new(int rows, int cols);
void canvas_free(struct canvas *canvas);

/* All spaces, no clip, no cursor. */
void canvas_clear(struct canvas *canvas);

/* Draw only inside `box` from now on (cut to the scene). */
void canvas_clip(struct canvas *canvas, struct box box);
struct box canvas_whole(const struct canvas *canvas);

/* One character. A wide one that does not fit whole, and a control character, become '?'. */
void canvas_put(struct canvas *canvas, int row, int col, uint32_t rune, enum style style);

/* UTF-8 text in at most `cols` columns; text that is longer ends in an ellipsis. Bytes that are no UTF-8 and
 * control characters are drawn as '?'. Returns the columns it took. */
int canvas_text(struct canvas *canvas, int row, int col, int cols, enum style style, const char *text);

/* The same, formatted; at most 511 bytes. */
int canvas_print(struct canvas *canvas, int row, int col, int cols, enum style style, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Text that ends with column `end` - 1; text longer than `cols` is cut at its end. Returns the columns taken.
 */
int canvas_text_right(struct canvas *canvas, int row, int end, int cols, enum style style, const char *text);

/* Text over the rows of a box, broken at blanks; what is left over in the last row ends in an ellipsis.
 * Returns the rows it took. */
int canvas_paragraph(struct canvas *canvas, struct box box, enum style style, const char *text);

/* `cols` times the same character. */
void canvas_fill(struct canvas *canvas, int row, int col, int cols, uint32_t rune, enum style style);

/* The next character of UTF-8 text, which moves on; 0 at the end, U+FFFD for a byte that is no UTF-8. */
uint32_t rune_next(const char **text);
/* Columns a character takes: 0 (combining, invisible), 1 or 2. */
int rune_width(uint32_t rune);
/* Columns of UTF-8 text. */
int text_width(const char *text);
/* Bytes of the text that go on a row of `cols` columns: up to its last space, else what fits, one character
 * at least; 0 at the end of the text. */
size_t text_fit(const char *text, int cols);
/* Rows of `cols` columns that canvas_paragraph() takes for the text when it has them; 0 without columns. */
int text_rows(const char *text, int cols);
/* The text from row `row` of those on; its end when there are fewer. */
const char *text_from(const char *text, int cols, int row);
/* A character as UTF-8 into out[5], with its ending zero; returns its bytes. */
int rune_encode(uint32_t rune, char out[5]);

#endif
