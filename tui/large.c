#include "tui/large.h"

#include <string.h>

#include "tui/rune.h"

enum { DOT_ROWS = 5 };

/* Rows of dots, from the top. */
struct shape {
    char of;
    const char *rows[DOT_ROWS];
};

static const struct shape shapes[] = {
    {'0', {"###", "# #", "# #", "# #", "###"}},
    {'1', {" # ", "## ", " # ", " # ", "###"}},
    {'2', {"###", "  #", "###", "#  ", "###"}},
    {'3', {"###", "  #", "###", "  #", "###"}},
    {'4', {"# #", "# #", "###", "  #", "  #"}},
    {'5', {"###", "#  ", "###", "  #", "###"}},
    {'6', {"###", "#  ", "###", "# #", "###"}},
    {'7', {"###", "  #", "  #", " # ", " # "}},
    {'8', {"###", "# #", "###", "# #", "###"}},
    {'9', {"###", "# #", "###", "  #", "###"}},
    {'.', {" ", " ", " ", " ", "#"}},
    {'+', {"   ", " # ", "###", " # ", "   "}},
    {'-', {"   ", "   ", "###", "   ", "   "}},
    {'=', {"   ", "###", "   ", "###", "   "}},
    {'~', {"    ", " # #", "# # ", "    ", "    "}},
    {'(', {" #", "# ", "# ", "# ", " #"}},
    {')', {"# ", " #", " #", " #", "# "}},
    {'/', {"  #", "  #", " # ", "#  ", "#  "}},
    {'>', {"#  ", " # ", "  #", " # ", "#  "}},
    {' ', {" ", " ", " ", " ", " "}},
};

static const struct shape *shape_of(char c) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (shapes[i].of == c)
            return &shapes[i];
    return &shapes[sizeof shapes / sizeof *shapes - 1];
}

static int dots_of(const char *text) {
    int dots = 0;
    for (; *text; text++)
        dots += (int)strlen(shape_of(*text)->rows[0]) + (dots > 0);
    return dots;
}

/* Two rows of dots in one row of cells. */
static uint32_t half_rune(bool upper, bool lower) {
    enum { LOWER_HALF = RUNE_LOWEST_EIGHTH + 3 };
    return upper && lower ? RUNE_BLOCK : upper ? RUNE_UPPER_HALF : lower ? LOWER_HALF : ' ';
}

int large_draw(struct canvas *canvas, struct box box, enum style style, const char *text) {
    int dots = dots_of(text), wide = 2 * dots <= box.cols && box.rows >= DOT_ROWS ? 2 : 1;
    bool halves = wide == 1 && canvas->glyphs != GLYPHS_ASCII;
    int rows = halves ? (DOT_ROWS + 1) / 2 : DOT_ROWS;
    if (dots == 0 || dots > box.cols || rows > box.rows)
        return 0;
    for (int col = box.col; *text; text++, col += wide) {
        const struct shape *shape = shape_of(*text);
        for (int dot = 0; shape->rows[0][dot]; dot++, col += wide)
            for (int row = 0; row < rows; row++) {
                bool upper = shape->rows[halves ? 2 * row : row][dot] == '#';
                bool lower = !halves ? upper : 2 * row + 1 < DOT_ROWS && shape->rows[2 * row + 1][dot] == '#';
                uint32_t rune = half_rune(upper, lower);
                if (rune != ' ')
                    canvas_fill(canvas, box.row + row, col, wide, rune, style);
            }
    }
    return rows;
}
