#include "tui/header.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/format.h"
#include "tui/why_step.h"

/* A piece of the line. Pieces are left out from the least important one until the rest fits; each has a width
 * that its usual figures keep to, so that nothing moves while they change. */
struct piece {
    char text[64];
    enum style style;
    int width;
    int rank;   /* 0 goes last */
    bool right; /* stands at the right end */
    bool shown;
};

enum { MOST = 11 }; /* on a screen of one row, under a wrong rule, while a planned run trains */

struct line {
    struct piece pieces[MOST];
    int count;
};

static struct piece *add(struct line *line, int rank, bool right, enum style style, int width) {
    struct piece *piece = &line->pieces[line->count < MOST ? line->count++ : MOST - 1];
    *piece = (struct piece){.style = style, .width = width, .rank = rank, .right = right, .shown = true};
    return piece;
}

static int digits_cols(int64_t value) {
    char text[FORMAT_SIZE];
    format_count(text, value);
    return text_width(text);
}

static int64_t planned_of(const struct run_state *state) {
    return state->run_start.kind == EVENT_RUN_START ? state->run_start.run_start.steps : WIRE_UNKNOWN_INT;
}

/* While training goes on, the step whose figures are shown; once it stands, where it stands. */
static int64_t step_of(const struct scene *scene) {
    const struct run_state *state = scene->state;
    bool moves = scene->shown->have && !state->ended && !strcmp(state->phase, "training");
    if (!moves && state->at_step != WIRE_UNKNOWN_INT)
        return state->at_step;
    return scene->shown->have ? scene->shown->step.step : 0;
}

static void add_step(struct line *line, const struct scene *scene) {
    int64_t step = step_of(scene), planned = planned_of(scene->state);
    char now[FORMAT_SIZE], all[FORMAT_SIZE];
    format_count(now, step);
    if (planned == WIRE_UNKNOWN_INT) {
        struct piece *piece =
            add(line, 2, false, STYLE_PLAIN, 5 + (digits_cols(step) > 7 ? digits_cols(step) : 7));
        snprintf(piece->text, sizeof piece->text, "step %s", now);
        return;
    }
    format_count(all, planned);
    int cols = digits_cols(planned);
    struct piece *piece = add(line, 2, false, STYLE_PLAIN, 5 + cols + 3 + cols);
    snprintf(piece->text, sizeof piece->text, "step %.20s / %.20s", now, all);
}

static void add_rates(struct line *line, const struct scene *scene) {
    const struct run_state *state = scene->state;
    bool have = scene->shown->have;
    char text[FORMAT_SIZE];
    struct piece *piece;
    if (have && isfinite(scene->shown->step.epoch)) {
        piece = add(line, 7, false, STYLE_PLAIN, 11);
        snprintf(piece->text, sizeof piece->text, "epoch %.2f", scene->shown->step.epoch);
    }
    if (isfinite(state->lr)) { /* of the next step: a command tells at once */
        format_short(text, state->lr, 3);
        piece = add(line, 5, false, STYLE_PLAIN, 9);
        snprintf(piece->text, sizeof piece->text, "lr %.12s", text);
    }
    if (state->batch != WIRE_UNKNOWN_INT) {
        piece = add(line, 8, false, STYLE_PLAIN, 9);
        format_count(text, state->batch);
        snprintf(piece->text, sizeof piece->text, "batch %.20s", text);
    }
    if (have && isfinite(scene->shown->images_per_second)) {
        format_count(text, (int64_t)llround(scene->shown->images_per_second));
        piece = add(line, 4, true, STYLE_PLAIN, 13);
        snprintf(piece->text, sizeof piece->text, "%*s%.20s img/s",
                 7 - text_width(text) > 0 ? 7 - text_width(text) : 0, "", text);
    }
}

static void add_time_left(struct line *line, const struct scene *scene) {
    const struct run_state *state = scene->state;
    int64_t planned = planned_of(state);
    double rate = scene->shown->images_per_second;
    if (!scene->shown->have || planned == WIRE_UNKNOWN_INT || !(rate > 0) || state->batch <= 0 ||
        state->ended || state->crashed || !strcmp(state->phase, "paused"))
        return;
    double left = (double)planned - (double)scene->shown->step.step;
    if (left < 0)
        return;
    char text[FORMAT_SIZE];
    format_duration(text, left * (double)state->batch / rate);
    struct piece *piece = add(line, 6, true, STYLE_PLAIN, 15);
    snprintf(piece->text, sizeof piece->text, "%.20s left", text);
}

/* Figures larger than usual (epoch 1000.00, a million images/s) push the others aside rather than touch them.
 */
static void widen(struct line *line) {
    for (int i = 0; i < line->count; i++) {
        int needed = text_width(line->pieces[i].text);
        if (line->pieces[i].width < needed)
            line->pieces[i].width = needed;
    }
}

static void drop_until_it_fits(struct line *line, int cols, int gap) {
    for (;;) {
        int sum = 0, worst = -1;
        for (int i = 0; i < line->count; i++) {
            const struct piece *piece = &line->pieces[i];
            if (!piece->shown)
                continue;
            sum += piece->width + (sum ? gap : 0);
            if (piece->rank > 0 && (worst < 0 || piece->rank > line->pieces[worst].rank))
                worst = i;
        }
        if (sum <= cols || worst < 0)
            return;
        line->pieces[worst].shown = false;
    }
}

void header_draw(const struct scene *scene, struct box box, const char *run, bool alone) {
    const struct run_state *state = scene->state;
    struct line line = {.count = 0};
    uint32_t glyph;
    enum style style;
    const char *phase = scene_phase(state, &glyph, &style);
    if (state->run_start.kind == EVENT_RUN_START && state->run_start.run_start.run)
        run = state->run_start.run_start.run;
    struct piece *piece = add(&line, 9, false, STYLE_FAINT, 10);
    snprintf(piece->text, sizeof piece->text, "towerscope");
    piece = add(&line, 3, false, STYLE_STRONG, 0);
    snprintf(piece->text, sizeof piece->text, "%.40s", run ? run : "");
    char mark[5];
    rune_encode(glyph, mark);
    int words = 2 + (int)strlen(phase);
    piece = add(&line, 0, false, style, box.cols >= 40 ? 12 : box.cols >= words ? words : 1);
    snprintf(piece->text, sizeof piece->text, "%s%s%s", mark, box.cols >= words ? " " : "",
             box.cols >= words ? phase : "");
    const char *applied = why_in_force(state);
    if (applied) {
        piece = add(&line, 1, false, STYLE_ALARM, 0);
        snprintf(piece->text, sizeof piece->text, "wrong rule: %.20s", applied);
    }
    add_step(&line, scene);
    if (alone && scene->shown->have) {
        char loss[FORMAT_SIZE];
        format_fixed(loss, scene->shown->step.loss, 6, 4);
        piece = add(&line, 1, false, STYLE_STRONG, 11);
        snprintf(piece->text, sizeof piece->text, "loss %.20s", loss);
    }
    add_rates(&line, scene);
    add_time_left(&line, scene);
    widen(&line);
    int margin = box.cols >= 24 ? 1 : 0, gap = box.cols >= 125 ? 3 : 2;
    drop_until_it_fits(&line, box.cols - 2 * margin, gap);
    int col = box.col + margin, end = box.col + box.cols - margin;
    for (int i = 0; i < line.count; i++)
        if (line.pieces[i].shown && !line.pieces[i].right) {
            canvas_text(scene->canvas, box.row, col, end - col, line.pieces[i].style, line.pieces[i].text);
            col += line.pieces[i].width + gap;
        }
    for (int i = line.count - 1; i >= 0; i--)
        if (line.pieces[i].shown && line.pieces[i].right) {
            canvas_text_right(scene->canvas, box.row, end, line.pieces[i].width, line.pieces[i].style,
                              line.pieces[i].text);
            end -= line.pieces[i].width + gap;
        }
}
