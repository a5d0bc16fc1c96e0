/* Characters of a scene: how wide they are, and how dots become characters. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "tui/canvas.h"
#include "tui/large.h"
#include "tui/raster.h"

/* From Unicode's charts: of each block that the screens use or a name may hold. */
static void widths(void **state) {
    (void)state;
    static const struct {
        uint32_t rune;
        int width;
    } known[] = {
        {'a', 1},    {0xe9, 1},   {0x2ff, 1},  {0x300, 0},  {0x36f, 0},  {0x370, 1},  {0x10ff, 1},
        {0x1100, 2}, {0x200b, 0}, {0x2026, 1}, {0x20cf, 1}, {0x20d0, 0}, {0x20ff, 0}, {0x2100, 1},
        {0x2192, 1}, {0x2500, 1}, {0x2588, 1}, {0x28ff, 1}, {0x2e7f, 1}, {0x2e80, 2}, {0x303e, 2},
        {0x4e2d, 2}, {0xac00, 2}, {0xfe0f, 0}, {0xff21, 2}, {0xff70, 1}, {0xfffd, 1}, {0x1f600, 2},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (rune_width(known[i].rune) != known[i].width)
            fail_msg("U+%04X takes %d columns, expected %d", (unsigned)known[i].rune,
                     rune_width(known[i].rune), known[i].width);
}

static uint32_t rune_at(enum glyphs glyphs, int row, int col) {
    struct raster raster;
    struct canvas *canvas = canvas_new(2, 2);
    assert_non_null(canvas);
    canvas->glyphs = glyphs;
    assert_true(raster_init(&raster, 1, 1, glyphs));
    raster_dot(&raster, row, col, STYLE_STRONG, 1);
    raster_paint(&raster, canvas, 1, 1);
    uint32_t rune = canvas->cells[3].rune;
    assert_int_equal(canvas->cells[3].style, STYLE_STRONG);
    assert_int_equal(canvas->cells[0].rune, ' ');
    raster_free(&raster);
    canvas_free(canvas);
    return rune;
}

/* "Braille pattern dots-N" has the bit N - 1; dots 1 to 3 and 7 are the left column, 4 to 6 and 8 the right.
 */
static void dots(void **state) {
    (void)state;
    static const int number[4][2] = {{1, 4}, {2, 5}, {3, 6}, {7, 8}};
    for (int row = 0; row < 4; row++)
        for (int col = 0; col < 2; col++)
            assert_int_equal(rune_at(GLYPHS_BRAILLE, row, col), 0x2800 + (1 << (number[row][col] - 1)));
    assert_int_equal(rune_at(GLYPHS_BLOCK, 0, 0),
                     0x2598); /* upper left, upper right, lower left, lower right */
    assert_int_equal(rune_at(GLYPHS_BLOCK, 0, 1), 0x259d);
    assert_int_equal(rune_at(GLYPHS_BLOCK, 1, 0), 0x2596);
    assert_int_equal(rune_at(GLYPHS_BLOCK, 1, 1), 0x2597);
    assert_int_equal(rune_at(GLYPHS_ASCII, 0, 0), '\'');
    assert_int_equal(rune_at(GLYPHS_ASCII, 1, 0), '-');
    assert_int_equal(rune_at(GLYPHS_ASCII, 2, 0), '.');
}

/* Each dot of a large raster lands in its own cell; a higher rank has the cell for itself. */
static void places(void **state) {
    (void)state;
    enum { ROWS = 3, COLS = 5 };
    for (enum glyphs glyphs = GLYPHS_ASCII; glyphs <= GLYPHS_BRAILLE; glyphs++) {
        int down = glyphs_down(glyphs), across = glyphs_across(glyphs);
        for (int row = -1; row <= ROWS * down; row++)
            for (int col = -1; col <= COLS * across; col++) {
                struct raster raster;
                assert_true(raster_init(&raster, ROWS, COLS, glyphs));
                raster_dot(&raster, row, col, STYLE_GOOD, 1);
                for (int r = 0; r < ROWS; r++)
                    for (int c = 0; c < COLS; c++) {
                        bool here = row >= r * down && row < (r + 1) * down && col >= c * across &&
                                    col < (c + 1) * across;
                        assert_int_equal(raster.dots[r * COLS + c] != 0, here);
                    }
                raster_free(&raster);
            }
    }
    struct raster raster;
    assert_true(raster_init(&raster, 1, 1, GLYPHS_BRAILLE));
    raster_dot(&raster, 0, 0, STYLE_GOOD, 1);
    raster_dot(&raster, 3, 1, STYLE_ALARM, 2);
    raster_dot(&raster, 1, 0, STYLE_GOOD, 1);
    assert_int_equal(raster.dots[0], 0x80);
    assert_int_equal(raster.style[0], STYLE_ALARM);
    raster_free(&raster);
}

/* A column is its dots, one by one, from either end, and what is outside is left out. */
static void columns(void **state) {
    (void)state;
    enum { ROWS = 3, COLS = 2, CELLS = ROWS * COLS };
    for (enum glyphs glyphs = GLYPHS_ASCII; glyphs <= GLYPHS_BRAILLE; glyphs++) {
        int rows = ROWS * glyphs_down(glyphs), cols = COLS * glyphs_across(glyphs);
        for (int col = -1; col <= cols; col++)
            for (int from = -2; from <= rows + 1; from++)
                for (int to = -2; to <= rows + 1; to++) {
                    struct raster whole, single;
                    assert_true(raster_init(&whole, ROWS, COLS, glyphs));
                    assert_true(raster_init(&single, ROWS, COLS, glyphs));
                    raster_column(&whole, col, from, to, STYLE_GOOD, 1);
                    for (int row = from < to ? from : to; row <= (from < to ? to : from); row++)
                        raster_dot(&single, row, col, STYLE_GOOD, 1);
                    assert_memory_equal(whole.dots, single.dots, CELLS);
                    assert_memory_equal(whole.style, single.style, CELLS);
                    raster_free(&whole);
                    raster_free(&single);
                }
    }
}

/* A line does not end within a number that is written in groups. */
static void numbers_stay_whole(void **state) {
    (void)state;
    static const char text[] = "falls to 5 after 3 496 288 more images";
    assert_int_equal(text_fit(text, 18), strlen("falls to 5 after "));
    assert_int_equal(text_fit(text, 22), strlen("falls to 5 after "));
    assert_int_equal(text_fit(text, 27), strlen("falls to 5 after 3 496 288 "));
    assert_int_equal(text_fit("1 000 000", 4), 4); /* longer than a line it is cut */
    assert_int_equal(text_fit("towers 4 10", 9), strlen("towers 4 "));
}

/* Large type keeps inside its box, takes the larger size where that fits, and is all or nothing. */
static void large_type(void **state) {
    (void)state;
    static const char text[] = "(1.5+0)/2~3 > -4=6789";
    enum { DOTS = 76 }; /* of the text, blanks between its characters included */
    for (int glyphs = GLYPHS_ASCII; glyphs <= GLYPHS_BRAILLE; glyphs++)
        for (int rows = 0; rows <= 6; rows++)
            for (int cols = 0; cols <= 160; cols++) {
                struct canvas *canvas = canvas_new(8, 162);
                canvas->glyphs = (enum glyphs)glyphs;
                int took = large_draw(canvas, (struct box){1, 1, rows, cols}, STYLE_STRONG, text), last = 0;
                for (int i = 0; i < canvas->rows * canvas->cols; i++) {
                    int row = i / canvas->cols, col = i % canvas->cols;
                    if (canvas->cells[i].rune == ' ')
                        continue;
                    assert_true(row >= 1 && row < 1 + took && col >= 1 && col < 1 + cols);
                    last = col > last ? col : last;
                }
                bool fits = cols >= DOTS && rows >= (glyphs == GLYPHS_ASCII ? 5 : 3);
                bool wide = cols >= 2 * DOTS && rows >= 5;
                assert_int_equal(took, !fits ? 0 : wide || glyphs == GLYPHS_ASCII ? 5 : 3);
                assert_int_equal(last, !fits ? 0 : wide ? 2 * DOTS : DOTS);
                canvas_free(canvas);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(widths),     cmocka_unit_test(dots),
                                       cmocka_unit_test(places),     cmocka_unit_test(columns),
                                       cmocka_unit_test(large_type), cmocka_unit_test(numbers_stay_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
