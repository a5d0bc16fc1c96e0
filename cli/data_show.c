/* towerscope data show: images in the terminal. A character shows two pixels, one above the other: the upper
 * as the colour of a half block, the lower as the ground behind it. Without colours or UTF-8, its lightness
 * as a character. */
#include "cli/data.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "datasets/dataset.h"
#include "engine/base/text.h"

static const char help[] =
    "usage: towerscope data show PATH [options]\n\n"
    "Shows images with their number and class: in colour on a terminal with UTF-8, else as characters.\n\n"
    "  --class X    only this class, by number or name\n"
    "  --count N    how many (default 8)\n"
    "  --first N    from the image of this number on (default 0)\n"
    "  --test       of the test set (default: of the training set)\n"
    "  --width N    columns to fill (default: the terminal's, else 80)\n";

enum { MOST_IN_A_ROW = 64, LABEL = 256 };

struct sheet {
    const struct image_set *set;
    char **class_names; /* or NULL */
    bool colour;
    int64_t index[MOST_IN_A_ROW]; /* images of the row being gathered */
    int count, room;
};

/* Colours as characters would be noise in a file, on a terminal without them, or where they are not wanted.
 */
static bool colours_fit(void) {
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no && *no) && term && *term && strcmp(term, "dumb") != 0 &&
           !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static int terminal_width(void) {
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* The pixel's red, green and blue; black below the last row. */
static void pixel_at(const struct image_set *set, int64_t image, int row, int column, int rgb[3]) {
    struct shape s = set->shape;
    const uint8_t *pixel = set->pixels + (size_t)image * shape_size(s) +
                           ((size_t)row * (size_t)s.w + (size_t)column) * (size_t)s.c;
    for (int c = 0; c < 3; c++)
        rgb[c] = row >= s.h ? 0 : pixel[s.c == 3 ? c : 0];
}

/* The nearest of xterm's 256 colours: the cube of 6x6x6 from number 16, or the 24 greys from 232. */
static int colour_number(const int rgb[3]) {
    static const int level[6] = {0, 95, 135, 175, 215, 255};
    int cube = 0, cube_error = 0, mean = (rgb[0] + rgb[1] + rgb[2]) / 3, grey_error = 0;
    for (int c = 0; c < 3; c++) {
        int best = 0;
        for (int i = 1; i < 6; i++)
            if (abs(level[i] - rgb[c]) < abs(level[best] - rgb[c]))
                best = i;
        cube = 6 * cube + best;
        cube_error += (level[best] - rgb[c]) * (level[best] - rgb[c]);
    }
    int grey = mean < 8 ? 0 : mean > 238 ? 23 : (mean - 3) / 10;
    for (int c = 0; c < 3; c++)
        grey_error += (8 + 10 * grey - rgb[c]) * (8 + 10 * grey - rgb[c]);
    return grey_error < cube_error ? 232 + grey : 16 + cube;
}

static void print_line_of_colours(const struct sheet *sheet, int64_t image, int row) {
    int before_above = -1, before_below = -1;
    for (int column = 0; column < sheet->set->shape.w; column++) {
        int rgb[3];
        pixel_at(sheet->set, image, row, column, rgb);
        int above = colour_number(rgb);
        pixel_at(sheet->set, image, row + 1, column, rgb);
        int below = colour_number(rgb);
        if (above != before_above)
            printf("\x1b[38;5;%dm", above);
        if (below != before_below)
            printf("\x1b[48;5;%dm", below);
        fputs("\u2580", stdout);
        before_above = above;
        before_below = below;
    }
    fputs("\x1b[0m", stdout);
}

static void print_line_of_characters(const struct sheet *sheet, int64_t image, int row) {
    static const char ramp[] = " .:-=+*#%@";
    for (int column = 0; column < sheet->set->shape.w; column++) {
        int above[3], below[3];
        pixel_at(sheet->set, image, row, column, above);
        pixel_at(sheet->set, image, row + 1, column, below);
        int light = 0; /* twice a hundred times the lightness, ITU-R BT.601 */
        for (int c = 0; c < 3; c++)
            light += (c == 0 ? 30 : c == 1 ? 59 : 11) * (above[c] + below[c]);
        putchar(ramp[light * (int)(sizeof ramp - 1) / (2 * 100 * 256)]);
    }
}

/* Print the gathered images side by side, then their labels. */
static void print_row(struct sheet *sheet) {
    int width = sheet->set->shape.w;
    for (int row = 0; row < sheet->set->shape.h; row += 2) {
        for (int i = 0; i < sheet->count; i++) {
            fputs(i ? "  " : "", stdout);
            (sheet->colour ? print_line_of_colours : print_line_of_characters)(sheet, sheet->index[i], row);
        }
        putchar('\n');
    }
    for (int i = 0; i < sheet->count; i++) {
        char label[LABEL];
        int class = sheet->set->labels[sheet->index[i]];
        snprintf(label, sizeof label, "%lld: %d %s", (long long)sheet->index[i], class,
                 sheet->class_names ? sheet->class_names[class] : "");
        bool last = i == sheet->count - 1;
        printf("%s%-*.*s", i ? "  " : "", last ? 0 : width, width, label);
    }
    fputs("\n\n", stdout);
    sheet->count = 0;
}

/* A class by name or number; -1 when there is none such. */
static int find_class(const struct dataset *data, const char *word) {
    for (int i = 0; data->class_names && i < data->classes; i++)
        if (!strcmp(data->class_names[i], word))
            return i;
    int64_t number;
    return text_integer(word, &number) && number >= 0 && number < data->classes ? (int)number : -1;
}

static int show(const struct dataset *data, bool test, const char *class_word, int64_t first, int64_t count,
                int width) {
    struct sheet sheet = {.set = test ? &data->test : &data->train, .class_names = data->class_names};
    int class = class_word ? find_class(data, class_word) : -1;
    if (class_word && class < 0)
        return cli_fail(status_fail(STATUS_BAD_INPUT,
                                    "--class: %s has no class \"%s\"; it has 0 to %d, data check lists them",
                                    data->name, class_word, data->classes - 1));
    sheet.colour = colours_fit();
    sheet.room = (width + 2) / (sheet.set->shape.w + 2);
    if (sheet.room < 1)
        sheet.room = 1;
    if (sheet.room > MOST_IN_A_ROW)
        sheet.room = MOST_IN_A_ROW;
    int64_t shown = 0;
    for (int64_t i = first; i < sheet.set->count && shown < count; i++) {
        if (class >= 0 && sheet.set->labels[i] != class)
            continue;
        sheet.index[sheet.count++] = i;
        shown++;
        if (sheet.count == sheet.room)
            print_row(&sheet);
    }
    if (sheet.count)
        print_row(&sheet);
    if (shown == 0)
        return cli_fail(status_fail(STATUS_NOT_FOUND, "no such image: %s has %lld %s images", data->name,
                                    (long long)sheet.set->count, test ? "test" : "training"));
    return EXIT_DONE;
}

int data_show(int argc, char **argv) {
    int64_t count = 8, first = 0, width = 0;
    bool test = false;
    const char *class_word = NULL, *path;
    const struct argument options[] = {
        {.name = "--class", .value = "a number or name", .text = &class_word},
        {.name = "--count", .value = "a number", .integer = &count, .low = 1, .high = INFINITY},
        {.name = "--first", .value = "a number", .integer = &first, .high = INFINITY},
        {.name = "--test", .flag = &test},
        {.name = "--width", .value = "a number", .integer = &width, .low = 1, .high = 100000},
    };
    const struct data_part part = {"data show", help, "a PATH", options, sizeof options / sizeof *options};
    int rc = data_arguments(argc, argv, &part, &path);
    if (rc >= 0)
        return rc;
    setlocale(LC_CTYPE, "");
    struct dataset *data;
    enum status status = dataset_open(path, NULL, &data);
    if (status != STATUS_OK)
        return cli_fail(status);
    rc = show(data, test, class_word, first, count, width ? (int)width : terminal_width());
    dataset_close(data);
    return rc;
}
