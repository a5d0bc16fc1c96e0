#include "tui/legend.h"

#include <stdbool.h>
#include <string.h>

/* Ways to write it, the roomiest first. */
struct manner {
    bool brief;
    int gap, behind; /* columns between two parts, and between a glyph and its word */
};

static bool spells_itself(const struct canvas *canvas, const struct legend_part *part) {
    return canvas->glyphs == GLYPHS_ASCII && part->ascii == part->name[0];
}

/* Columns of one part. Close together, a letter that begins its own word is not written twice. */
static int columns_of(const struct canvas *canvas, const struct legend_part *part,
                      const struct manner *manner) {
    int word = text_width(manner->brief ? part->brief : part->name);
    return word + (manner->behind == 0 && spells_itself(canvas, part) ? 0 : 1 + manner->behind);
}

void legend_put(struct canvas *canvas, int row, int col, const struct legend_part *part, enum style style) {
    canvas_put(canvas, row, col, canvas->glyphs == GLYPHS_ASCII ? (uint32_t)part->ascii : part->glyph, style);
}

static void draw_part(struct canvas *canvas, int row, int col, int cols, const struct legend_part *part,
                      const struct manner *manner) {
    const char *word = manner->brief ? part->brief : part->name;
    int width = text_width(word);
    canvas_text(canvas, row, col + cols - width, width, STYLE_FAINT, word);
    legend_put(canvas, row, col, part, part->style);
}

/* Place the parts, and draw them if so wanted; whether all found room. */
static bool place(struct canvas *canvas, const struct box *lines, int line_count,
                  const struct legend_part *parts, int count, const struct manner *manner, bool draw) {
    int line = 0, used = 0;
    for (int i = 0; i < count; i++) {
        int cols = columns_of(canvas, &parts[i], manner);
        while (line < line_count && used + (used ? manner->gap : 0) + cols > lines[line].cols) {
            line++;
            used = 0;
        }
        if (line == line_count)
            return false;
        used += used ? manner->gap : 0;
        if (draw)
            draw_part(canvas, lines[line].row, lines[line].col + used, cols, &parts[i], manner);
        used += cols;
    }
    return true;
}

void legend_draw(struct canvas *canvas, const struct box *lines, int line_count,
                 const struct legend_part *parts, int count) {
    static const struct manner manners[] = {{false, 2, 1}, {false, 1, 1}, {true, 1, 1}, {true, 1, 0}};
    enum { FULL = 2, MANNERS = sizeof manners / sizeof *manners };
    int at = 0;
    while (at < FULL && !place(canvas, lines, 1, parts, count, &manners[at], false))
        at++;
    if (at < FULL)
        line_count = 1;
    else
        for (at = 0;
             at < MANNERS - 1 && !place(canvas, lines, line_count, parts, count, &manners[at], false);)
            at++;
    (void)place(canvas, lines, line_count, parts, count, &manners[at], true);
}
