#include "tui/view_images.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/printable.h"
#include "tui/format.h"
#include "tui/picture.h"

enum {
    EIGHT = 8,
    CLASSES_MOST = 4096 /* a matrix of more is none that an engine told */
};

static int64_t shard_of(const struct scene *scene, int tower) {
    const struct event_step *step = &scene->state->step.step;
    return scene->state->step.kind == EVENT_STEP && tower < step->tower_count ? step->towers[tower].images
                                                                              : EIGHT;
}

static void keep_in(struct images_view *view, const struct scene *scene) {
    int towers = scene_towers(scene);
    view->tower = view->tower >= towers ? towers - 1 : view->tower;
    view->tower = view->tower < 0 ? 0 : view->tower;
    int64_t images = shard_of(scene, view->tower), last = images > 0 ? (images - 1) / EIGHT * EIGHT : 0;
    view->first = view->first > last ? last : view->first;
    view->first = view->first < 0 ? 0 : view->first;
}

bool images_view_act(struct images_view *view, enum action action, const struct scene *scene, bool replay,
                     struct view_orders *orders) {
    switch (action) {
    case ACTION_LEFT:
    case ACTION_RIGHT:
        view->tower += action == ACTION_LEFT ? -1 : 1;
        view->first = 0;
        break;
    case ACTION_UP:
    case ACTION_DOWN:
        view->first += action == ACTION_UP ? -EIGHT : EIGHT;
        break;
    case ACTION_AGAIN:
        view->asked = false;
        break;
    case ACTION_CONFUSION:
        view->confusion = !view->confusion;
        if (view->confusion && !replay &&
            !(scene->state->eval.kind == EVENT_EVAL && scene->state->eval.eval.classes > 0))
            orders_add(orders, "eval --confusion");
        break;
    default:
        return false;
    }
    keep_in(view, scene);
    return true;
}

void images_view_due(struct images_view *view, const struct scene *scene, struct view_orders *orders) {
    const struct run_state *state = scene->state;
    bool paused = state->phase[0] == 'p';
    int64_t step = paused ? state->at_step : 0; /* a run that trains on is asked once */
    keep_in(view, scene);
    if (state->step.kind != EVENT_STEP || (view->asked && view->asked_tower == view->tower &&
                                           view->asked_first == view->first && view->asked_step == step))
        return;
    view->asked = true;
    view->asked_tower = view->tower;
    view->asked_first = view->first;
    view->asked_step = step;
    orders_add(orders, "images %d %lld", view->tower, (long long)view->first);
}

/* ---- drawing */

static const struct event_images *find(const struct images_view *view, const struct run_state *state) {
    for (int64_t i = state->images_count - 1; i >= 0; i--)
        if (state->images[i].images.tower == view->tower && state->images[i].images.first == view->first)
            return &state->images[i].images;
    return NULL;
}

/* A class by its name, or by its number where the data set has no names: "class 3", or briefly "3". Whether
 * it has a name. */
static bool class_words(const struct run_state *state, int64_t class, bool brief, char *out, size_t size) {
    const struct event_run_start *e = &state->run_start.run_start;
    bool named = state->run_start.kind == EVENT_RUN_START && class >= 0 && class < e->class_name_count &&
                 e->class_names[class].name && *e->class_names[class].name;
    if (named)
        text_printable(out, size, e->class_names[class].name);
    else
        snprintf(out, size, "%s%lld", brief ? "" : "class ", (long long)class);
    return named;
}

/* Under a picture: "cat 91 %", and a wrong one by a cross and words, not by colour alone. */
static void draw_verdict(const struct scene *scene, int row, int col, int rows, int cols,
                         const struct event_image *image) {
    bool known = image->prediction != WIRE_UNKNOWN_INT, right = known && image->prediction == image->label;
    char text[160], is[48], taken_for[48];
    class_words(scene->state, image->label, false, is, sizeof is);
    class_words(scene->state, image->prediction, true, taken_for, sizeof taken_for);
    if (!known)
        snprintf(text, sizeof text, "is %s, not yet seen", is);
    else if (right)
        snprintf(text, sizeof text, "\u2713 %s, %.0f %%", is, 100 * image->probability);
    if (!known && text_width(text) > cols)
        snprintf(text, sizeof text, "is %s", is);
    if (known && right && text_width(text) > cols)
        snprintf(text, sizeof text, "\u2713 %s", is);
    if (known && !right)
        snprintf(text, sizeof text, "\u2717 is %s, not %s, %.0f %%", is, taken_for, 100 * image->probability);
    if (known && !right && text_width(text) > cols) {
        class_words(scene->state, image->label, true, is, sizeof is);
        snprintf(text, sizeof text, "\u2717 %s, not %s, %.0f %%", is, taken_for, 100 * image->probability);
        if (text_width(text) > cols && rows > 1) { /* on two lines */
            snprintf(text, sizeof text, "not %s, %.0f %%", taken_for, 100 * image->probability);
            if (text_width(text) > cols - 2)
                snprintf(text, sizeof text, "not %s", taken_for);
            int in = text_width(text) + 2 <= cols ? 2 : 0;
            canvas_text(scene->canvas, row + 1, col + in, cols - in, STYLE_WARNING, text);
            snprintf(text, sizeof text, "\u2717 %s", is);
        } else if (text_width(text) > cols) {
            snprintf(text, sizeof text, "\u2717 %s, not %s", is, taken_for);
        }
    }
    canvas_text(scene->canvas, row, col, cols,
                !known  ? STYLE_FAINT
                : right ? STYLE_GOOD
                        : STYLE_WARNING,
                text);
}

static void draw_pictures(const struct scene *scene, struct box box, const struct event_images *images) {
    int64_t count = images->image_count;
    if (count <= 0 || box.rows < 3 || box.cols < 8)
        return;
    int best_across = 1, best_down = 0, best_rows = 0, rows, cols;
    for (int across = 1; across <= count; across++) { /* the largest pictures, in few rows and even ones */
        int down = (int)((count + across - 1) / across);
        picture_fit(images->images[0].width, images->images[0].height, box.rows / down - 2,
                    box.cols / across - 2, &rows, &cols);
        if ((rows > best_rows || (rows == best_rows && down < best_down)) && box.cols / across >= 12) {
            best_rows = rows;
            best_down = down;
            best_across = across;
        }
    }
    int down = (int)((count + best_across - 1) / best_across), high = box.rows / down,
        wide = box.cols / best_across;
    for (int64_t i = 0; i < count; i++) {
        int row = box.row + (int)(i / best_across) * high, col = box.col + (int)(i % best_across) * wide;
        const struct event_image *image = &images->images[i];
        picture_fit(image->width, image->height, high - 2, wide - 2, &rows, &cols);
        picture_draw(scene->canvas, (struct box){row, col, high - 2, wide - 2}, image, NULL);
        draw_verdict(scene, row + rows, col, high - rows, wide - 1, image);
    }
}

/* Of the largest of its counts and the numbers of its classes. */
static int confusion_digits(const struct event_eval *e) {
    int64_t most = e->classes - 1;
    for (int64_t i = 0; i < e->classes * e->classes; i++)
        most = e->confusion[i] > most ? e->confusion[i] : most;
    return snprintf(NULL, 0, "%lld", (long long)most);
}

static void draw_confusion(const struct scene *scene, struct box box) {
    const struct event_eval *e = &scene->state->eval.eval;
    struct canvas *canvas = scene->canvas;
    if (scene->state->eval.kind != EVENT_EVAL || e->classes <= 0 || e->classes > CLASSES_MOST ||
        e->confusion_count < e->classes * e->classes) {
        canvas_text(canvas, box.row, box.col, box.cols, STYLE_FAINT,
                    scene->replay ? "no confusion matrix in the record up to here"
                                  : "no confusion matrix yet: eval --confusion makes one");
        return;
    }
    char step[FORMAT_SIZE];
    format_count(step, e->step);
    canvas_print(canvas, box.row, box.col, box.cols, STYLE_STRONG,
                 "confusion at step %s: rows are labels, columns what they were taken for", step);
    int cell = (box.cols - 4) / (int)e->classes, digits = cell >= 2 ? confusion_digits(e) : 0;
    if (cell < 2 || cell <= digits) {
        canvas_print(canvas, box.row + 1, box.col, box.cols, STYLE_FAINT, "%lld classes do not fit here",
                     (long long)e->classes);
        return;
    }
    int most = digits > 3 ? digits + 3 : 6;
    cell = cell > most ? most : cell;
    for (int64_t r = -1; r < e->classes && box.row + 2 + r < box.row + box.rows && cell >= 2; r++)
        for (int64_t c = 0; c < e->classes; c++) {
            char text[24];
            int64_t count = r < 0 ? c : e->confusion[r * e->classes + c];
            int row = box.row + 2 + (int)r, end = box.col + 4 + cell * (int)(c + 1);
            snprintf(text, sizeof text, "%lld", (long long)count);
            enum style style = r < 0       ? STYLE_FAINT
                               : r == c    ? STYLE_STRONG
                               : count > 0 ? STYLE_PLAIN
                                           : STYLE_FAINT;
            canvas_text_right(canvas, row, end, cell - 1, style, r >= 0 && count == 0 ? "\u00b7" : text);
            if (r >= 0 && c == 0) {
                char name[48];
                int beside = box.col + 4 + cell * (int)e->classes + 2;
                canvas_print(canvas, row, box.col, 4, STYLE_FAINT, "%3lld", (long long)r);
                if (beside + 4 < box.col + box.cols && class_words(scene->state, r, true, name, sizeof name))
                    canvas_text(canvas, row, beside, box.col + box.cols - beside, STYLE_FAINT, name);
            }
        }
}

/* What became of the newest request: a batch that was changed, as after a rewind, is loaded by the next step.
 */
static void hear(struct images_view *view, const struct run_state *state) {
    const struct event_command *command = &state->command.command;
    int tower;
    if (state->command.kind != EVENT_COMMAND || !command->text || !command->status ||
        sscanf(command->text, "images %d", &tower) != 1)
        return;
    view->refused_tower = tower;
    *view->refused = 0;
    if (!strcmp(command->status, "refused") && command->reason) {
        const char *brief = strstr(command->reason, "holds no images"); /* the head names the tower */
        snprintf(view->refused, sizeof view->refused, "%s", brief ? brief : command->reason);
    }
}

static void draw_head(const struct images_view *view, const struct scene *scene, struct box box,
                      const struct event_images *images) {
    const struct run_state *state = scene->state;
    if (!images) {
        if (*view->refused && view->refused_tower == view->tower) {
            canvas_print(scene->canvas, box.row, box.col, box.cols, STYLE_STRONG,
                         "\u25c2 tower %d \u25b8   %s", view->tower, view->refused);
            return;
        }
        int64_t shard = shard_of(scene, view->tower);
        if (shard == 0)
            canvas_print(scene->canvas, box.row, box.col, box.cols, STYLE_STRONG,
                         "\u25c2 tower %d \u25b8   no images in this step", view->tower);
        else {
            bool over = scene->replay || state->ended || state->crashed, room = box.cols >= 64;
            canvas_print(scene->canvas, box.row, box.col, box.cols, STYLE_STRONG,
                         "\u25c2 tower %d \u25b8   %lld image%s, not asked for%s", view->tower,
                         (long long)shard, shard == 1 ? "" : "s",
                         !over  ? " yet"
                         : room ? " while the run trained"
                                : "");
        }
        return;
    }
    int64_t last = view->first + (images->image_count > 0 ? images->image_count - 1 : 0);
    canvas_print(scene->canvas, box.row, box.col, box.cols, STYLE_STRONG,
                 "\u25c2 tower %d \u25b8   images %lld\u2013%lld of %lld", view->tower,
                 (long long)view->first, (long long)last, (long long)shard_of(scene, view->tower));
}

void images_view_draw(struct images_view *view, const struct scene *scene, struct box body) {
    struct canvas *canvas = scene->canvas;
    int margin = body.cols >= 24 ? 1 : 0;
    struct box box = {body.row, body.col + margin, body.rows, body.cols - 2 * margin};
    keep_in(view, scene);
    hear(view, scene->state);
    canvas_clip(canvas, body);
    if (view->confusion) {
        draw_confusion(scene, box);
    } else {
        const struct event_images *images = find(view, scene->state);
        draw_head(view, scene, box, images);
        if (images) {
            char step[FORMAT_SIZE];
            format_count(step, images->step);
            const char *words = "as the network saw them at step ";
            if (text_width(words) + text_width(step) > box.cols - 40)
                words = "at step ";
            canvas_print(canvas, box.row, box.col + 40, box.cols - 40, STYLE_FAINT, "%s%s", words, step);
            draw_pictures(scene, (struct box){box.row + 2, box.col, box.rows - 2, box.cols}, images);
        } else if (scene->state->control.kind == EVENT_CONTROL && !scene->state->control.control.yours) {
            canvas_paragraph(canvas, (struct box){box.row + 2, box.col, box.rows - 2, box.cols}, STYLE_FAINT,
                             "Pictures are told to all consoles when the one that has control asks for them: "
                             "it does so as it opens this screen.");
        }
    }
    canvas_clip(canvas, canvas_whole(canvas));
}
