#include "cli/svg.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/wire/record.h"
#include "tui/palette.h"
#include "tui/rune.h"

enum { CELL_TENTHS = 84, LINE = 17, BASE = 13 }; /* a character's width in tenths of a unit, a row's height */

#define GROUND "#101418"
#define INK    "#c8c8c8"

/* ---- the state at a step */

static int64_t begun_step(const struct event *event) {
    switch (event->kind) {
    case EVENT_STEP:
        return event->step.step;
    case EVENT_PHASE:
        return event->phase.step;
    case EVENT_LOSSES:
        return event->losses.step;
    case EVENT_WHY:
        return event->why.step;
    default:
        return WIRE_UNKNOWN_INT;
    }
}

/* The state after step `at`, without the end of the run. *last: the last step there was, as far as that was
 * read. */
static enum status read_until(struct record_reader *reader, int64_t at, struct arena *arena,
                              struct run_state *state, int64_t *last) {
    struct event event;
    enum status status;
    while ((status = record_next(reader, -1, arena, &event)) == STATUS_OK) {
        int64_t step = begun_step(&event);
        bool over = event.kind == EVENT_RUN_END ||
                    (event.kind == EVENT_STATE && event.state.state && !strcmp(event.state.state, "ended"));
        if (step != WIRE_UNKNOWN_INT && step > *last)
            *last = step;
        if (event.kind == EVENT_RUN_END && event.run_end.step > *last)
            *last = event.run_end.step;
        if (at != WIRE_UNKNOWN_INT && (over || (step != WIRE_UNKNOWN_INT && step > at)))
            return STATUS_OK;
        if (event.kind != EVENT_NONE)
            STATUS_TRY(state_apply(state, &event));
        arena_reset(arena);
    }
    return status == STATUS_BUSY ? STATUS_OK : status;
}

static enum status read_record(const struct svg_options *options, struct run_state *state) {
    struct record_reader *reader;
    struct arena arena = {0};
    STATUS_TRY(record_reader_open(options->record, 0, &reader));
    int64_t last = 0;
    enum status status = read_until(reader, options->at, &arena, state, &last);
    int64_t damaged = record_reader_damaged(reader);
    record_reader_close(reader);
    arena_free(&arena);
    if (status == STATUS_OK && state->events == 0)
        return status_fail(STATUS_BAD_INPUT, "%s: there is no event in it; is it a run's events.jsonl?",
                           options->record);
    if (status == STATUS_OK && options->at != WIRE_UNKNOWN_INT && options->at > last)
        return status_fail(STATUS_BAD_INPUT, "--at: there is no step %lld: the record has steps 0 to %lld",
                           (long long)options->at, (long long)last);
    if (status == STATUS_OK && damaged > 0)
        fprintf(stderr, "towerscope: %s: %lld line%s can't be read: the picture is drawn without\n",
                options->record, (long long)damaged, damaged == 1 ? "" : "s");
    return status;
}

/* ---- the scene */

static enum status open_screen(const struct svg_options *options, const struct app_options *with,
                               struct app *app, const struct run_state *state) {
    char names[256] = "";
    if (!options->screen)
        return STATUS_OK;
    for (int i = 0; i < with->keymap.count; i++) {
        const struct key_binding *binding = &with->keymap.bindings[i];
        if (binding->group != GROUP_SCREENS || !binding->label)
            continue;
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s", binding->label);
        if (!strcasecmp(binding->label, options->screen)) {
            (void)app_key(app, binding->keys[0], state, 0);
            return STATUS_OK;
        }
    }
    return status_fail(STATUS_BAD_INPUT, "there is no screen \"%s\"; there are:%s", options->screen, names);
}

/* ---- SVG */

static void put_colour(FILE *out, const char *name, short colour, const char *otherwise) {
    uint8_t rgb[3];
    if (colour < 0) {
        fprintf(out, " %s=\"%s\"", name, otherwise);
        return;
    }
    palette_rgb(colour, rgb);
    fprintf(out, " %s=\"#%02x%02x%02x\"", name, rgb[0], rgb[1], rgb[2]);
}

/* Tenths of a unit as "12.3". */
static void put_tenths(FILE *out, const char *before, int tenths) {
    fprintf(out, "%s%d.%d", before, tenths / 10, tenths % 10);
}

struct rect { /* in tenths of a unit */
    int x, y, width, height;
};

static void put_rect(FILE *out, struct rect rect, short colour, const char *otherwise) {
    put_tenths(out, "<rect x=\"", rect.x);
    put_tenths(out, "\" y=\"", rect.y);
    put_tenths(out, "\" width=\"", rect.width);
    put_tenths(out, "\" height=\"", rect.height);
    fputs("\"", out);
    put_colour(out, "fill", colour, otherwise);
    fputs("/>\n", out);
}

/* `cols` cells of a row; half: 0 all of their height, 1 the upper half, 2 the lower. */
static struct rect cells_rect(int row, int col, int cols, int half) {
    enum { HEIGHT = LINE * 10 };
    return (struct rect){col * CELL_TENTHS, row * HEIGHT + (half == 2 ? HEIGHT / 2 : 0), cols * CELL_TENTHS,
                         half ? HEIGHT / 2 : HEIGHT};
}

static short ink_of(const struct look *look) {
    return look->reverse ? look->background : look->foreground;
}

static const char *otherwise_ink(const struct look *look) {
    return look->reverse ? GROUND : INK;
}

/* Lines and the dots of curves are drawn, not written: the fonts of a picture's reader may have them in
 * another width. */
static void put_line(FILE *out, const struct look *look, int row, int col, int cols, bool upright) {
    enum { THICK = 10 };
    struct rect rect = cells_rect(row, col, cols, 0);
    if (upright) {
        rect.x += (CELL_TENTHS - THICK) / 2;
        rect.width = THICK;
    } else {
        rect.y += (rect.height - THICK) / 2;
        rect.height = THICK;
    }
    put_rect(out, rect, ink_of(look), otherwise_ink(look));
}

static void put_dots(FILE *out, const struct look *look, uint32_t rune, int row, int col) {
    static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    enum { DOT = 24 };
    fputs("<path d=\"", out);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 2; c++)
            if (rune & bits[r][c]) {
                put_tenths(out, "M", col * CELL_TENTHS + (2 * c + 1) * CELL_TENTHS / 4 - DOT / 2);
                put_tenths(out, " ", row * LINE * 10 + (2 * r + 1) * LINE * 10 / 8 - DOT / 2);
                fprintf(out, "h%d.%dv%d.%dh-%d.%dz", DOT / 10, DOT % 10, DOT / 10, DOT % 10, DOT / 10,
                        DOT % 10);
            }
    fputs("\"", out);
    put_colour(out, "fill", ink_of(look), otherwise_ink(look));
    fputs("/>\n", out);
}

static void put_runes(FILE *out, const struct cell *cells, int count) {
    char text[5];
    for (int i = 0; i < count; i++) {
        uint32_t rune = cells[i].rune;
        if (rune == '<' || rune == '>' || rune == '&') {
            fprintf(out, "&#%u;", (unsigned)rune);
        } else if (rune) {
            rune_encode(rune, text);
            fputs(text, out);
        }
    }
}

static void put_text(FILE *out, const struct look *look, const struct cell *cells, int row, int col,
                     int count) {
    put_tenths(out, "<text x=\"", col * CELL_TENTHS);
    fprintf(out, "\" y=\"%d\"", row * LINE + BASE);
    if (count > 1)
        fprintf(out, " textLength=\"%d.%d\"", count * CELL_TENTHS / 10, count * CELL_TENTHS % 10);
    if (look->bold)
        fputs(" font-weight=\"bold\"", out);
    put_colour(out, "fill", ink_of(look), otherwise_ink(look));
    fputs(">", out);
    put_runes(out, cells, count);
    fputs("</text>\n", out);
}

/* Not every reader heeds textLength: a word of ASCII keeps to its cells well enough, any other character has
 * a place of its own. */
static void put_word(FILE *out, const struct look *look, const struct cell *cells, int row, int col,
                     int count) {
    for (int from = 0, n; from < count; from += n) {
        uint32_t rune = cells[from].rune;
        bool repeats = rune == RUNE_LINE || (rune > ' ' && rune < 0x7f);
        for (n = 1; repeats && from + n < count; n++)
            if (rune == RUNE_LINE ? cells[from + n].rune != rune
                                  : cells[from + n].rune <= ' ' || cells[from + n].rune >= 0x7f)
                break;
        if (rune == RUNE_LINE)
            put_line(out, look, row, col + from, n, false);
        else if (rune == RUNE_VERTICAL)
            put_line(out, look, row, col + from, 1, true);
        else if (rune >= RUNE_BRAILLE && rune < RUNE_BRAILLE_END)
            put_dots(out, look, rune, row, col + from);
        else if (rune)
            put_text(out, look, cells + from, row, col + from, n);
    }
}

static void put_run(FILE *out, const struct preferences *preferences, const struct cell *cells, int row,
                    int col, int count) {
    if (cells->style >= STYLES) {
        for (int i = 0; i < count; i++) {
            int tones = cells[i].style - STYLES;
            put_rect(out, cells_rect(row, col + i, 1, 1), palette_tone(tones / TONES), "#000");
            put_rect(out, cells_rect(row, col + i, 1, 2), palette_tone(tones % TONES), "#000");
        }
        return;
    }
    struct look look = palette_look(preferences->palette, (enum style)cells->style, 256, false);
    if (look.reverse || look.background >= 0)
        put_rect(out, cells_rect(row, col, count, 0), look.reverse ? look.foreground : look.background, INK);
    /* word by word: blanks in a row do not survive everywhere */
    for (int from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && (cells[to].rune == ' ') == (cells[from].rune == ' ');)
            to++;
        if (cells[from].rune != ' ')
            put_word(out, &look, cells + from, row, col + from, to - from);
    }
}

static void write_svg(FILE *out, const struct preferences *preferences, const struct canvas *canvas) {
    int width = (canvas->cols * CELL_TENTHS + 9) / 10, height = canvas->rows * LINE;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-8 -8 %d %d\" font-family=\"ui-monospace, "
            "'DejaVu "
            "Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\" shape-rendering=\"crispEdges\">\n"
            "<rect x=\"-8\" y=\"-8\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"" GROUND "\"/>\n",
            width + 16, height + 16, width + 16, height + 16);
    for (int row = 0; row < canvas->rows; row++) {
        const struct cell *cells = canvas->cells + (size_t)row * (size_t)canvas->cols;
        for (int col = 0, count; col < canvas->cols; col += count) {
            bool picture = cells[col].style >= STYLES;
            for (count = 1; col + count < canvas->cols; count++)
                if (picture ? cells[col + count].style < STYLES
                            : cells[col + count].style != cells[col].style)
                    break;
            put_run(out, preferences, cells + col, row, col, count);
        }
    }
    fputs("</svg>\n", out);
}

/* A picture over the record that it is drawn from would be the end of the record. */
static bool is_record(const struct svg_options *options) {
    char path[PATH_MAX];
    struct stat file, record;
    if (stat(options->file, &file) || stat(options->record, &record))
        return false;
    if (S_ISDIR(record.st_mode) &&
        ((size_t)snprintf(path, sizeof path, "%s/" RECORD_FILE, options->record) >= sizeof path ||
         stat(path, &record)))
        return false;
    return file.st_dev == record.st_dev && file.st_ino == record.st_ino;
}

static enum status write_file(const struct svg_options *options, const struct preferences *preferences,
                              const struct canvas *canvas) {
    if (!strcmp(options->file, "-")) {
        write_svg(stdout, preferences, canvas);
        return STATUS_OK; /* main() sees whether all of it was written */
    }
    if (is_record(options))
        return status_fail(STATUS_REFUSED,
                           "--svg: %s is the record itself; name another file for the picture",
                           options->file);
    FILE *out = fopen(options->file, "we");
    if (!out)
        return status_fail(STATUS_IO, "%s can't be written: %s", options->file, strerror(errno));
    write_svg(out, preferences, canvas);
    bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed)
        return STATUS_OK;
    enum status status = status_fail(STATUS_IO, "%s can't be written: %s", options->file, strerror(errno));
    struct stat info;
    if (lstat(options->file, &info) == 0 && S_ISREG(info.st_mode)) /* a piece of a picture is none */
        unlink(options->file);
    return status;
}

enum status svg_draw(const struct svg_options *options, const struct app_options *with) {
    struct run_state *state = state_new();
    struct canvas *canvas = canvas_new(options->rows, options->cols);
    struct app *app = app_new(with);
    enum status status = state && canvas && app ? read_record(options, state)
                                                : status_fail(STATUS_NO_MEMORY, "no memory for a picture");
    if (status == STATUS_OK) {
        app_draw(app, canvas, state, 1, 0);
        status = open_screen(options, with, app, state);
    }
    if (status == STATUS_OK) {
        app_draw(app, canvas, state, 1, 0);
        status = write_file(options, &with->preferences, canvas);
    }
    app_free(app);
    canvas_free(canvas);
    state_free(state);
    return status;
}
