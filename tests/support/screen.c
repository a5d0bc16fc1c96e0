#include "tests/support/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* plain, faint, strong, good, warning, alarm, banner, selected, key; then the towers' hues and the faint ones
 */
static const char letters[] = " .#+!*@=k01234567abcdefgh";

static void put_row(FILE *out, const char *text, size_t length) {
    while (length > 0 && text[length - 1] == ' ')
        length--;
    fwrite(text, 1, length, out);
    fputc('\n', out);
}

char *screen_text(const struct canvas *canvas) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    char *row = malloc((size_t)canvas->cols * 4 + 8);
    if (!out || !row) {
        free(row);
        return NULL;
    }
    for (int layer = 0; layer < 2; layer++) {
        fprintf(out, layer ? "---- what it means\n" : "");
        for (int r = 0; r < canvas->rows; r++) {
            size_t length = 0;
            for (int c = 0; c < canvas->cols; c++) {
                const struct cell *cell = &canvas->cells[r * canvas->cols + c];
                if (layer)
                    row[length++] = cell->style < STYLES ? letters[cell->style] : 'T'; /* of a picture */
                else if (cell->rune)
                    length += (size_t)rune_encode(cell->rune, row + length);
            }
            put_row(out, row, length);
        }
    }
    free(row);
    if (canvas->cursor_row >= 0)
        fprintf(out, "---- cursor at row %d, column %d\n", canvas->cursor_row, canvas->cursor_col);
    fclose(out);
    return text;
}

static char *read_file(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int c; (c = getc(file)) != EOF;)
        putc(c, out);
    fclose(out);
    fclose(file);
    return text;
}

static void print_difference(const char *wanted, const char *found) {
    int line = 1;
    while (*wanted || *found) {
        size_t a = strcspn(wanted, "\n"), b = strcspn(found, "\n");
        if (a != b || strncmp(wanted, found, a))
            printf("%3d golden |%.*s|\n    found  |%.*s|\n", line, (int)a, wanted, (int)b, found);
        wanted += a + (wanted[a] == '\n');
        found += b + (found[b] == '\n');
        line++;
    }
}

static void golden_path(const char *name, char *path, size_t size) {
    const char *source = getenv("SOURCE");
    snprintf(path, size, "%s/tests/tui/golden/%s.txt", source ? source : ".", name);
}

bool screen_is(const char *name, const char *text) {
    char path[1024];
    golden_path(name, path, sizeof path);
    char *wanted = read_file(path);
    bool same = wanted && !strcmp(wanted, text);
    free(wanted);
    return same;
}

bool screen_is_golden(const char *name, const char *text) {
    char path[1024];
    const char *generate = getenv("GENERATE");
    golden_path(name, path, sizeof path);
    if (generate && !strcmp(generate, "1")) {
        FILE *file = fopen(path, "w");
        if (!file) {
            printf("%s can't be written\n", path);
            return false;
        }
        fputs(text, file);
        return fclose(file) == 0;
    }
    char *wanted = read_file(path);
    bool same = wanted && !strcmp(wanted, text);
    if (!wanted)
        printf("%s: no golden screen; make golden writes it\n", path);
    else if (!same) {
        printf("%s is another screen:\n", name);
        print_difference(wanted, text);
    }
    free(wanted);
    return same;
}
