#include "tui/view_why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/wire/state_rule.h"
#include "tui/format.h"
#include "tui/rune.h"
#include "tui/waiting.h"
#include "tui/why_draw.h"

enum { PICTURE_COLS = 112 }; /* from this width on there is room for pictures */

/* Which phase is shown: the one the step has come to, or an earlier one that is looked at. */
static enum why_phase shown_phase(struct why_view *view, const struct why_step *step) {
    if (view->back && (view->step != step->step || view->reached != (int64_t)step->reached || step->moving))
        view->back = false; /* the step moved on */
    return view->back ? view->phase : step->reached;
}

static void gather(struct why_view *view, const struct scene *scene, struct why_step *step) {
    why_step_gather(step, scene->state, scene_towers(scene));
    int last = step->towers > 0 ? step->towers - 1 : 0;
    view->tower = view->tower > last ? last : view->tower < 0 ? 0 : view->tower;
    const struct event_alternative *all;
    int count = why_alternatives(step, &all);
    view->selected = view->selected >= count ? count - 1 : view->selected < 0 ? 0 : view->selected;
}

/* ---- keys */

static void look_at(struct why_view *view, const struct why_step *step, enum why_phase phase) {
    view->back = phase < step->reached;
    view->phase = phase;
    view->step = step->step;
    view->reached = step->reached;
}

static bool walk(struct why_view *view, const struct why_step *step, int by, bool replay,
                 struct view_orders *orders) {
    enum why_phase phase = shown_phase(view, step);
    if (by < 0) {
        if (phase <= WHY_LOAD || step->moving)
            return !replay;
        look_at(view, step, (enum why_phase)(phase - 1));
        return true;
    }
    if (view->back) {
        look_at(view, step, (enum why_phase)(phase + 1));
        return true;
    }
    if (replay)
        return false;
    orders_add(orders, "phase next");
    return true;
}

/* The name of the rule that is selected. */
static const char *selected_rule(const struct why_view *view, const struct why_step *step) {
    static const char *const names[] = {"unscoped",        "sum",        "last",       "print-last",
                                        "decay-per-tower", "plain-mean", "clip-before"};
    const struct event_alternative *all;
    int count = why_alternatives(step, &all);
    int i = view->selected < count ? view->selected : count - 1;
    return all ? all[i].name : names[i];
}

void why_ask_to_apply(const char *rule, bool keys, struct view_orders *orders) {
    snprintf(orders->question, sizeof orders->question,
             "train on under \"%s\"? %s takes it back%s.   y applies it", rule, keys ? "r" : "why restore",
             keys ? ", R rewinds as well" : "");
}

void why_ask_to_rewind(const struct run_state *state, struct view_orders *orders) {
    int64_t to;
    bool sure = state_rewind(state, &to);
    char step[FORMAT_SIZE], from[FORMAT_SIZE], until[FORMAT_SIZE];
    if (sure && to == state->at_step)
        return;
    format_count(step, to);
    format_count(from, to + 1);
    format_count(until, state->at_step);
    if (!sure)
        snprintf(orders->question, sizeof orders->question,
                 "back to the last good step, %s or before? The rest is lost.   y goes back", step);
    else if (to + 1 == state->at_step)
        snprintf(orders->question, sizeof orders->question, "back to step %s? Step %s is lost.   y goes back",
                 step, from);
    else
        snprintf(orders->question, sizeof orders->question,
                 "back to step %s? Steps %s to %s are lost.   y goes back", step, from, until);
}

static bool act_on_step(struct why_view *view, enum action action, const struct why_step *step,
                        const struct scene *scene, bool replay, struct view_orders *orders) {
    switch (action) {
    case ACTION_WHY_NEXT:
        return walk(view, step, 1, replay, orders);
    case ACTION_WHY_BACK:
        return walk(view, step, -1, replay, orders);
    case ACTION_WHY_RUN:
        view->back = false;
        if (!replay)
            orders_add(orders, "phase run");
        return true;
    case ACTION_WHY_APPLY:
        orders_add(orders, "why apply %s", selected_rule(view, step));
        why_ask_to_apply(selected_rule(view, step), true, orders);
        return true;
    case ACTION_WHY_RESTORE:
        orders_add(orders, "why restore");
        return true;
    case ACTION_WHY_REWIND:
        orders_add(orders, "why restore --rewind");
        why_ask_to_rewind(scene->state, orders);
        return true;
    default:
        return false;
    }
}

bool why_view_act(struct why_view *view, enum action action, const struct scene *scene, bool replay,
                  struct view_orders *orders) {
    struct why_step step;
    gather(view, scene, &step);
    switch (action) {
    case ACTION_LEFT:
    case ACTION_RIGHT:
        view->tower += action == ACTION_LEFT ? -1 : 1;
        break;
    case ACTION_UP:
    case ACTION_DOWN:
        view->selected += action == ACTION_UP ? -1 : 1;
        break;
    case ACTION_PAGE_UP:
        view->tower = 0;
        break;
    case ACTION_PAGE_DOWN:
        view->tower = step.towers - 1;
        break;
    case ACTION_WHY_SCOPE:
        view->no_scope = !view->no_scope;
        if (view->no_scope) /* the last tower is built when all the others stand in the collection */
            view->tower = step.towers - 1;
        break;
    case ACTION_WHY_DETAILS:
        view->details = !view->details;
        break;
    case ACTION_WHY_PRESENT:
        view->presenter = !view->presenter;
        break;
    case ACTION_DISMISS:
        if (!view->no_scope && !view->details && !view->presenter && !view->back)
            return false;
        view->no_scope = view->details = view->presenter = view->back = false;
        break;
    default:
        return act_on_step(view, action, &step, scene, replay, orders);
    }
    gather(view, scene, &step);
    return true;
}

void why_view_due(struct why_view *view, const struct scene *scene, struct view_orders *orders) {
    struct why_step step;
    if (scene->canvas->cols < PICTURE_COLS)
        return;
    gather(view, scene, &step);
    bool loaded = step.have && !step.moving && step.reached >= WHY_LOAD;
    if (!loaded || (view->asked_step == step.step && view->asked_tower == view->tower))
        return;
    view->asked_step = step.step;
    view->asked_tower = view->tower;
    for (int64_t i = 0; i < scene->state->images_count; i++)
        if (scene->state->images[i].images.step == step.step &&
            scene->state->images[i].images.tower == view->tower)
            return;
    orders_add(orders, "images %d", view->tower);
}

/* ---- drawing */

static void draw_phases(const struct scene *scene, struct box box, const struct why_step *step,
                        enum why_phase phase, bool back) {
    struct canvas *canvas = scene->canvas;
    char text[96], count[FORMAT_SIZE];
    int margin = box.cols >= 24 ? 1 : 0, col = box.col + margin, end = box.col + box.cols - margin;
    if (box.rows <= 0)
        return;
    format_count(count, step->step);
    snprintf(text, sizeof text, "step %s%s", count,
             back           ? ", looking back"
             : step->frozen ? ", frozen"
             : step->moving ? ", training on"
                            : ", done");
    enum { STRIP = 50, WORDS = 28, GAPS = WHY_PHASES - 1 }; /* the phases without gaps; what stands before */
    int room = end - col, gap = room >= 100 ? 3 : 0, strip = STRIP + GAPS * gap;
    int before = room - strip < WORDS + gap ? room - strip : WORDS + gap; /* so that the phases stand still */
    bool all = before >= 20;
    if (all && text_width(text) > before - 2)
        snprintf(text, sizeof text, "step %s", count);
    int used = canvas_text(canvas, box.row, col, all ? before - 1 : room, STYLE_STRONG, text);
    col += all ? before : used + 3;
    if (!all) {
        if (phase >= 0)
            canvas_text(canvas, box.row, col, end - col, STYLE_SELECTED, why_phase_name(phase));
        return;
    }
    for (int i = 0; i < WHY_PHASES; i++) {
        bool here = !step->moving && i == (int)phase, done = i <= (int)step->reached;
        if (i > 0) {
            canvas_fill(canvas, box.row, col, gap, RUNE_LINE, STYLE_FAINT);
            col += gap;
        }
        snprintf(text, sizeof text, here ? "\u2590%s\u258c" : " %s ", why_phase_name((enum why_phase)i));
        col += canvas_text(canvas, box.row, col, end - col,
                           here                    ? STYLE_SELECTED
                           : done && !step->moving ? STYLE_PLAIN
                                                   : STYLE_FAINT,
                           text);
    }
}

/* What happens in the phase that is shown. */
static void find_words(const struct why_view *view, const struct why_step *step, enum why_phase phase,
                       bool replay, char *out, size_t size) {
    const char *rule = step->applied, *formula = why_rule_formula(rule);
    if (step->moving && replay)
        snprintf(out, size, "the run trained on here: n goes to the next marker of the record");
    else if (step->moving)
        snprintf(out, size, "the run trains on: n freezes the next step and walks it phase by phase");
    else if (step->taken_back && phase >= WHY_AVERAGE)
        snprintf(out, size, "the wrong rule \"%s\" made this step; it is taken back since", rule);
    else if (rule && phase == WHY_AVERAGE)
        snprintf(out, size, "not the mean: the wrong rule \"%s\" is in force%s%s; r takes it back", rule,
                 *formula ? ", " : "", formula);
    else if (rule && phase > WHY_AVERAGE)
        snprintf(out, size, "the wrong rule \"%s\" made this step; r takes it back, R goes back with it",
                 rule);
    else
        why_phase_words(view->no_scope && phase > WHY_LOSSES ? WHY_LOSSES : phase, step, view->tower,
                        !view->no_scope, out, size);
}

static void draw_words(const struct scene *scene, struct box box, const struct why_view *view,
                       const char *words) {
    int margin = box.cols >= 24 ? 1 : 0;
    struct box inside = {box.row, box.col + margin, box.rows, box.cols - 2 * margin};
    canvas_paragraph(scene->canvas, inside, view->presenter ? STYLE_STRONG : STYLE_PLAIN, words);
}

/* Rows that the words take; what is usual at this width at least, so that the rest stands still. */
static int rows_of_words(const char *words, int cols) {
    int least = cols >= 110 ? 1 : 2, rows = text_rows(words, cols - (cols >= 24 ? 2 : 0));
    return rows > least ? rows : least;
}

/* ---- the last whole step: shown again while the next one is told in part */

void why_view_free(struct why_view *view) {
    free(view->whole);
    view->whole = NULL;
}

static void keep_whole(struct why_view *view, const struct canvas *canvas, struct box body) {
    size_t row = (size_t)body.cols * sizeof *view->whole;
    if (body.row < 0 || body.row + body.rows > canvas->rows || body.col < 0 ||
        body.col + body.cols > canvas->cols)
        return;
    struct cell *cells = realloc(view->whole, (size_t)body.rows * row + 1);
    if (!cells)
        return; /* the one before stays, if any */
    for (int r = 0; r < body.rows; r++)
        memcpy(cells + r * body.cols, canvas->cells + (body.row + r) * canvas->cols + body.col, row);
    view->whole = cells;
    view->whole_at = body;
}

static bool show_whole(const struct why_view *view, struct canvas *canvas, struct box body) {
    if (!view->whole || memcmp(&view->whole_at, &body, sizeof body) != 0)
        return false;
    for (int r = 0; r < body.rows; r++)
        memcpy(canvas->cells + (body.row + r) * canvas->cols + body.col, view->whole + r * body.cols,
               (size_t)body.cols * sizeof *view->whole);
    return true;
}

void why_view_draw(struct why_view *view, const struct scene *scene, struct box body) {
    struct why_step step;
    gather(view, scene, &step);
    if (!step.have) {
        waiting_draw(scene, body);
        return;
    }
    if (step.partial && show_whole(view, scene->canvas, body))
        return;
    enum why_phase phase = shown_phase(view, &step);
    const struct event_alternative *all;
    int alternatives = why_alternatives(&step, &all);
    int rows = step.terms > 0 ? step.terms * step.towers : step.towers;
    struct why_layout at;
    char words[512];
    find_words(view, &step, phase, scene->replay, words, sizeof words);
    int folded = step.towers + (step.terms > 0 ? step.terms - 1 : 0);
    layout_why(body, rows, folded, rows_of_words(words, body.cols), alternatives, view->presenter,
               view->details, &at);
    struct why_picture picture = {&step, view, &at, phase};
    canvas_clip(scene->canvas, body);
    draw_phases(scene, at.phases, &step, phase, view->back);
    draw_words(scene, at.words, view, words);
    scene_rule(scene->canvas, at.rule);
    why_draw_flow(scene, &picture);
    scene_rule(scene->canvas, at.proof_rule);
    why_draw_proof(scene, &picture);
    scene_rule(scene->canvas, at.details_rule);
    why_draw_table(scene, &picture);
    why_draw_details(scene, &picture);
    canvas_clip(scene->canvas, canvas_whole(scene->canvas));
    if (step.moving && step.why && !step.partial)
        keep_whole(view, scene->canvas, body);
    else
        why_view_free(view);
}
