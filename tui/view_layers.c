#include "tui/view_layers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/format.h"
#include "tui/rune.h"

bool layers_view_act(struct layers_view *view, enum action action) {
    if (action != ACTION_UP && action != ACTION_DOWN && action != ACTION_HOME)
        return false;
    view->scroll += action == ACTION_UP ? -1 : action == ACTION_DOWN ? 1 : -view->scroll;
    return true;
}

/* The newest of layer i's gradient norms, as many as there are columns. */
static void draw_past(struct canvas *canvas, int row, int col, int cols, const struct state_layers_past *past,
                      int64_t i) {
    static const char ascii[] = "_.,-~=+*#";
    int from = past->count > cols ? past->count - cols : 0;
    float low = INFINITY, high = -INFINITY;
    for (int k = from; k < past->count; k++)
        if (isfinite(past->grad_norm[k][i])) {
            low = fminf(low, past->grad_norm[k][i]);
            high = fmaxf(high, past->grad_norm[k][i]);
        }
    for (int k = from; k < past->count; k++) {
        float value = past->grad_norm[k][i];
        uint32_t rune = '?'; /* not finite */
        if (isfinite(value)) {
            int level = high > low ? (int)lroundf((value - low) / (high - low) * 7) : 3;
            rune = canvas->glyphs == GLYPHS_ASCII ? (uint32_t)ascii[level]
                                                  : RUNE_LOWEST_EIGHTH + (uint32_t)level;
        }
        canvas_put(canvas, row, col + k - from, rune, rune == '?' ? STYLE_ALARM : STYLE_PLAIN);
    }
}

static void put(struct canvas *canvas, int row, int end, int cols, enum style style, double value,
                int decimals) {
    char text[FORMAT_SIZE];
    format_fixed(text, value, cols, decimals);
    canvas_text_right(canvas, row, end, cols, style, text);
}

/* A share or ratio in percent; a ratio far from a thousandth is worth a look. */
static void put_percent(struct canvas *canvas, int row, int end, double value, enum style style) {
    char text[FORMAT_SIZE];
    format_fixed(text, wire_is_unknown(value) ? value : 100 * value, 7, 2);
    canvas_text_right(canvas, row, end, 7, style, text);
}

/* Columns of the table: the name, and figures beside it, that of the parameters only where it is wide. */
enum { NAME_COLS = 16, FIGURES = 5, PARAMETERS = 0, UPDATE = 3, ZEROS = 4, PAST_LEAST = 4 };
static const struct {
    const char *name;
    int cols;
} heads[FIGURES] = {{"parameters", 11}, {"|w|", 10}, {"|g|", 10}, {"update %", 9}, {"zeros %", 9}};

static bool is_wide(int cols) {
    return cols >= 78;
}

/* Where the figures up to one of them end. */
static int figure_end(int cols, int figure) {
    int end = NAME_COLS;
    for (int i = is_wide(cols) ? PARAMETERS : PARAMETERS + 1; i <= figure; i++)
        end += heads[i].cols;
    return end;
}

/* Columns that are left for the past. */
static int past_cols(int cols) {
    int left = cols - figure_end(cols, ZEROS) - 2;
    return left >= PAST_LEAST ? left : 0;
}

static void draw_layer(const struct scene *scene, int row, int left, int cols, int64_t i) {
    struct canvas *canvas = scene->canvas;
    const struct event_layer *l = &scene->state->layers.layers.layers[i];
    char count[FORMAT_SIZE];
    int end[FIGURES];
    for (int f = 0; f < FIGURES; f++)
        end[f] = left + figure_end(cols, f);
    canvas_text(canvas, row, left, NAME_COLS - 1, STYLE_PLAIN, l->name ? l->name : "");
    format_count(count, l->parameters);
    if (is_wide(cols))
        canvas_text_right(canvas, row, end[PARAMETERS], 10, STYLE_FAINT, count);
    put(canvas, row, end[PARAMETERS + 1], 9, STYLE_PLAIN, l->param_norm, 3);
    put(canvas, row, end[PARAMETERS + 2], 9, STYLE_PLAIN, l->grad_norm, 4);
    bool odd = isfinite(l->update_ratio) && l->update_ratio > 0.1;
    put_percent(canvas, row, end[UPDATE], l->update_ratio, odd ? STYLE_WARNING : STYLE_PLAIN);
    bool dead = isfinite(l->zeros) && l->zeros > 0.95;
    put_percent(canvas, row, end[ZEROS], l->zeros, dead ? STYLE_WARNING : STYLE_PLAIN);
    if (i < STATE_LAYERS && past_cols(cols) > 0)
        draw_past(canvas, row, left + cols - past_cols(cols), past_cols(cols), &scene->state->layers_past, i);
}

/* Crosses under the marks that a wrong rule made. */
static void draw_wrong(struct canvas *canvas, int row, int left, int col, int cols,
                       const struct state_layers_past *past) {
    int from = past->count > cols ? past->count - cols : 0;
    bool any = false;
    for (int i = from; i < past->count; i++)
        if (past->wrong[i]) {
            canvas_put(canvas, row, col + i - from, RUNE_CROSS, STYLE_WARNING);
            any = true;
        }
    if (any)
        canvas_text_right(canvas, row, col - 2, col - 2 - left, STYLE_WARNING, "under a wrong rule");
}

/* Of which step the figures are, and when the next ones come. */
static void describe_step(const struct scene *scene, char *out, size_t size) {
    const struct run_state *state = scene->state;
    int64_t at = state->layers.layers.step, next;
    if (__builtin_add_overflow(at - at % LAYERS_EVERY, LAYERS_EVERY, &next))
        next = WIRE_UNKNOWN_INT;
    int64_t planned = state->run_start.kind ? state->run_start.run_start.steps : WIRE_UNKNOWN_INT;
    char step[FORMAT_SIZE], then[FORMAT_SIZE];
    format_count(step, at);
    format_count(then, next);
    bool over =
        scene->replay || state->ended || state->crashed || (planned != WIRE_UNKNOWN_INT && next > planned);
    snprintf(out, size, over ? "step %s" : "step %s, next with step %s", step, then);
}

/* What the columns that are there mean, below the table; returns the rows it needs. */
static int draw_remarks(struct canvas *canvas, struct box box, const char *of_step, bool draw) {
    char text[700];
    snprintf(text, sizeof text, "The figures are those of %s.%s%s%s", of_step,
             figure_end(box.cols, UPDATE) > box.cols
                 ? " |w| and |g|: lengths of the weights and the gradient."
                 : " update %: how far the step moved the layer, of the "
                   "length of its weights.",
             figure_end(box.cols, ZEROS) > box.cols
                 ? ""
                 : " zeros %: of its activations after the ReLU; \u2013 without one, or where they are never "
                   "kept: worked out in one go with the pooling, or on a GPU.",
             past_cols(box.cols) == 0 ? ""
                                      : " |g|, lowest to highest: a mark each time the layers were told, the "
                                        "newest at the right.");
    if (draw)
        canvas_paragraph(canvas, box, STYLE_FAINT, text);
    return text_rows(text, box.cols);
}

/* The names of the columns that draw_layer() has room for. */
static void draw_heads(struct canvas *canvas, int row, int left, int cols) {
    canvas_text(canvas, row, left, NAME_COLS - 1, STYLE_FAINT, "layer");
    for (int i = is_wide(cols) ? PARAMETERS : PARAMETERS + 1; i < FIGURES && figure_end(cols, i) <= cols; i++)
        canvas_text_right(canvas, row, left + figure_end(cols, i), heads[i].cols - 1, STYLE_FAINT,
                          heads[i].name);
    int room = past_cols(cols);
    canvas_text(canvas, row, left + cols - room, room, STYLE_FAINT,
                room < 22 ? "|g|, to now" : "|g|, lowest to highest");
}

void layers_view_draw(struct layers_view *view, const struct scene *scene, struct box body) {
    struct canvas *canvas = scene->canvas;
    const struct event_layers *e = &scene->state->layers.layers;
    int margin = body.cols >= 24 ? 1 : 0, left = body.col + margin, cols = body.cols - 2 * margin;
    canvas_clip(canvas, body);
    if (scene->state->layers.kind != EVENT_LAYERS) {
        canvas_paragraph(canvas, (struct box){body.row + body.rows / 3, left, body.rows / 2, cols},
                         STYLE_FAINT, "the layers are told with the first step, and with each 100th");
        canvas_clip(canvas, canvas_whole(canvas));
        return;
    }
    draw_heads(canvas, body.row, left, cols);
    struct box remarks = {0, left, 0, cols};
    char step[96];
    describe_step(scene, step, sizeof step);
    int words = draw_remarks(canvas, remarks, step, false);
    bool whole = body.rows >= 4 + (int)e->layer_count + words; /* otherwise what fits one line */
    int rows = body.rows - (whole ? 3 + words : 3), most = (int)e->layer_count - rows;
    view->scroll = view->scroll > most ? most : view->scroll;
    view->scroll = view->scroll < 0 ? 0 : view->scroll;
    int shown = 0;
    for (; shown < rows && shown + view->scroll < e->layer_count; shown++)
        draw_layer(scene, body.row + 1 + shown, left, cols, shown + view->scroll);
    int room = past_cols(cols);
    if (room > 0 && shown < body.rows - 2)
        draw_wrong(canvas, body.row + 1 + shown, left, left + cols - room, room, &scene->state->layers_past);
    remarks = (struct box){body.row + shown + 3, left, words, cols};
    if (whole)
        draw_remarks(canvas, remarks, step, true);
    else if (rows > 0)
        canvas_print(canvas, body.row + body.rows - 1, left, cols, STYLE_FAINT,
                     "%.*s   update %%: |step| / |w|   zeros %%: of the activations",
                     (int)(cols < 100 ? strcspn(step, ",") : strlen(step)), step);
    canvas_clip(canvas, canvas_whole(canvas));
}
