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

/* The state holds the newest figures only; their past is gathered as it goes by. */
static void remember(struct layers_view *view, const struct scene *scene) {
    const struct event_layers *e = &scene->state->layers.layers;
    if (view->generation != scene->generation || (view->count > 0 && e->step < view->step)) {
        view->generation = scene->generation;
        view->count = 0;
    } else if (view->count > 0 && e->step == view->step) {
        return;
    }
    view->step = e->step;
    bool full = view->count == LAYERS_PAST;
    const struct event_step *step = &scene->state->step.step;
    bool same = scene->state->step.kind == EVENT_STEP && step->step == e->step;
    if (full)
        memmove(view->wrong, view->wrong + 1, sizeof view->wrong - sizeof view->wrong[0]);
    view->wrong[full ? LAYERS_PAST - 1 : view->count] =
        same ? step->applied != NULL : *scene->state->rule != 0;
    for (int64_t i = 0; i < e->layer_count && i < LAYERS_MOST; i++) {
        if (full)
            memmove(view->past[i], view->past[i] + 1, sizeof view->past[i] - sizeof view->past[i][0]);
        view->past[i][full ? LAYERS_PAST - 1 : view->count] = (float)e->layers[i].grad_norm;
    }
    view->count += !full;
}

static void draw_past(struct canvas *canvas, int row, int col, int cols, const float *past, int count) {
    static const char ascii[] = "_.,-~=+*#";
    int from = count > cols ? count - cols : 0;
    float low = INFINITY, high = -INFINITY;
    for (int i = from; i < count; i++)
        if (isfinite(past[i])) {
            low = fminf(low, past[i]);
            high = fmaxf(high, past[i]);
        }
    for (int i = from; i < count; i++) {
        uint32_t rune = '?'; /* not finite */
        if (isfinite(past[i])) {
            int level = high > low ? (int)lroundf((past[i] - low) / (high - low) * 7) : 3;
            rune = canvas->glyphs == GLYPHS_ASCII ? (uint32_t)ascii[level]
                                                  : RUNE_LOWEST_EIGHTH + (uint32_t)level;
        }
        canvas_put(canvas, row, col + i - from, rune, rune == '?' ? STYLE_ALARM : STYLE_PLAIN);
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

static void draw_layer(const struct scene *scene, const struct layers_view *view, int row, int left, int cols,
                       int64_t i) {
    struct canvas *canvas = scene->canvas;
    const struct event_layer *l = &scene->state->layers.layers.layers[i];
    char count[FORMAT_SIZE];
    bool wide = cols >= 78;
    int col = left + 16;
    canvas_text(canvas, row, left, 15, STYLE_PLAIN, l->name ? l->name : "");
    format_count(count, l->parameters);
    if (wide)
        canvas_text_right(canvas, row, col += 11, 10, STYLE_FAINT, count);
    put(canvas, row, col += 10, 9, STYLE_PLAIN, l->param_norm, 3);
    put(canvas, row, col += 10, 9, STYLE_PLAIN, l->grad_norm, 4);
    bool odd = isfinite(l->update_ratio) && l->update_ratio > 0.1;
    put_percent(canvas, row, col += 9, l->update_ratio, odd ? STYLE_WARNING : STYLE_PLAIN);
    bool dead = isfinite(l->zeros) && l->zeros > 0.95;
    put_percent(canvas, row, col += 9, l->zeros, dead ? STYLE_WARNING : STYLE_PLAIN);
    if (i < LAYERS_MOST && left + cols - col - 2 > 3)
        draw_past(canvas, row, col + 2, left + cols - col - 2, view->past[i], view->count);
}

/* Crosses under the marks that a wrong rule made. */
static void draw_wrong(struct canvas *canvas, int row, int left, int col, int cols,
                       const struct layers_view *view) {
    int from = view->count > cols ? view->count - cols : 0;
    bool any = false;
    for (int i = from; i < view->count; i++)
        if (view->wrong[i]) {
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

/* What the columns are, below the table; returns the rows it needs. */
static int draw_remarks(struct canvas *canvas, struct box box, const char *of_step, bool draw) {
    char text[700];
    snprintf(
        text, sizeof text,
        "The figures are those of %s. update %%: how far the step moved the layer, of the length of its "
        "weights. zeros %%: of its activations after the ReLU; \u2013 without one, or where they are never "
        "kept: worked out in one go with the pooling, or on a GPU. |g|, lowest to highest: a mark each "
        "time the layers were told since this screen was opened, the newest at the right.",
        of_step);
    if (draw)
        canvas_paragraph(canvas, box, STYLE_FAINT, text);
    return text_rows(text, box.cols);
}

/* The names of the columns that draw_layer() has room for. */
static void draw_heads(struct canvas *canvas, int row, int left, int cols) {
    static const struct {
        const char *name;
        int cols;
    } heads[] = {{"parameters", 11}, {"|w|", 10}, {"|g|", 10}, {"update %", 9}, {"zeros %", 9}};
    bool wide = cols >= 78;
    int col = left + 16;
    canvas_text(canvas, row, left, 15, STYLE_FAINT, "layer");
    int i = wide ? 0 : 1;
    for (; i < 5 && col + heads[i].cols <= left + cols; i++)
        canvas_text_right(canvas, row, col += heads[i].cols, heads[i].cols - 1, STYLE_FAINT, heads[i].name);
    if (i == 5 && left + cols - col - 2 > 3)
        canvas_text(canvas, row, col + 2, left + cols - col - 2, STYLE_FAINT,
                    left + cols - col - 2 < 22 ? "|g|, to now" : "|g|, lowest to highest");
}

void layers_view_draw(struct layers_view *view, const struct scene *scene, struct box body) {
    struct canvas *canvas = scene->canvas;
    const struct event_layers *e = &scene->state->layers.layers;
    int margin = body.cols >= 24 ? 1 : 0, left = body.col + margin, cols = body.cols - 2 * margin;
    canvas_clip(canvas, body);
    if (scene->state->layers.kind != EVENT_LAYERS) {
        canvas_text(canvas, body.row + body.rows / 3, left, cols, STYLE_FAINT,
                    "the layers are told with the first step, and with each 100th");
        canvas_clip(canvas, canvas_whole(canvas));
        return;
    }
    remember(view, scene);
    bool wide = cols >= 78;
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
        draw_layer(scene, view, body.row + 1 + shown, left, cols, shown + view->scroll);
    int past = left + 16 + (wide ? 11 : 0) + 10 + 10 + 9 + 9 + 2;
    if (left + cols - past > 3 && shown < body.rows - 2)
        draw_wrong(canvas, body.row + 1 + shown, left, past, left + cols - past, view);
    remarks = (struct box){body.row + shown + 3, left, words, cols};
    if (whole)
        draw_remarks(canvas, remarks, step, true);
    else if (rows > 0)
        canvas_print(canvas, body.row + body.rows - 1, left, cols, STYLE_FAINT,
                     "%.*s   update %%: |step| / |w|   zeros %%: of the activations",
                     (int)(cols < 100 ? strcspn(step, ",") : strlen(step)), step);
    canvas_clip(canvas, canvas_whole(canvas));
}
