#include "tui/footer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "tui/format.h"
#include "tui/rune.h"

struct hint {
    char keys[32];
    const char *label;
    bool current;
    int rank; /* the highest goes first when there is no room */
    int group;
};

/* The footer's hints, and the action whose key stands beside the first one's. */
static const struct {
    enum action action, other;
    int rank;
    int group;   /* groups stand apart where there is room */
    bool orders; /* tells the run what to do */
    bool walks;  /* makes steps or changes them: not where a guide does */
} hinted[] = {
    {ACTION_TOWERS, ACTION_NONE, 8, 0, false, false},
    {ACTION_WHY, ACTION_NONE, 9, 0, false, false},
    {ACTION_LAYERS, ACTION_NONE, 10, 0, false, false},
    {ACTION_DEVICES, ACTION_NONE, 11, 0, false, false},
    {ACTION_IMAGES, ACTION_NONE, 12, 0, false, false},
    {ACTION_SCALING, ACTION_NONE, 13, 0, false, false},
    {ACTION_LOG, ACTION_NONE, 7, 0, false, false},
    {ACTION_AGAIN, ACTION_NONE, 3, 1, true, false},
    {ACTION_CONFUSION, ACTION_NONE, 3, 1, false, false},
    {ACTION_WHY_NEXT, ACTION_WHY_BACK, 2, 1, false, true},
    {ACTION_WHY_RUN, ACTION_NONE, 3, 1, true, true},
    {ACTION_WHY_SCOPE, ACTION_NONE, 3, 1, false, false},
    {ACTION_WHY_DETAILS, ACTION_NONE, 5, 1, false, false},
    {ACTION_WHY_PRESENT, ACTION_NONE, 5, 1, false, false},
    {ACTION_WHY_APPLY, ACTION_WHY_RESTORE, 6, 1, true, true},
    {ACTION_PAUSE, ACTION_NONE, 2, 1, true, true},
    {ACTION_MORE_TOWERS, ACTION_FEWER_TOWERS, 4, 1, true, true},
    {ACTION_STEP, ACTION_NONE, 5, 1, true, true},
    {ACTION_PLAY, ACTION_NONE, 2, 1, false, false},
    {ACTION_BACK, ACTION_ON, 4, 1, false, false},
    {ACTION_FASTER, ACTION_SLOWER, 5, 1, false, false},
    {ACTION_NEXT_MARKER, ACTION_LAST_MARKER, 6, 1, false, false},
    {ACTION_PROMPT, ACTION_NONE, 3, 2, false, false},
    {ACTION_HELP, ACTION_NONE, 0, 2, false, false},
    {ACTION_LEAVE, ACTION_NONE, 1, 2, false, false},
};
enum { HINTS = sizeof hinted / sizeof *hinted };
/* From this rank on a hint may go before screens lose their names; and the rank of the hint for all of them.
 */
enum { SPARE_RANK = 5, SCREENS_RANK = 3 };

static const char *hint_label(const struct footer *footer, const struct key_binding *binding) {
    if (binding->action == ACTION_PAUSE && footer->paused)
        return "resume";
    if (binding->action == ACTION_PLAY && footer->playing)
        return "stop";
    return binding->label;
}

static int collect_hints(const struct footer *footer, struct hint hints[HINTS]) {
    int count = 0;
    for (int i = 0; i < HINTS; i++) {
        const struct key_binding *binding = keymap_binding(footer->keymap, hinted[i].action);
        bool shadowed =
            binding && keymap_action(footer->keymap, binding->keys[0], footer->where) != binding->action;
        if (shadowed || !binding || !keymap_means(binding, footer->where) ||
            (hinted[i].orders && !footer->commands) ||
            (hinted[i].walks && footer->guided && !footer->guide_done))
            continue;
        char name[16], other[16] = "";
        press_name(binding->keys[0], name);
        if (hinted[i].other != ACTION_NONE)
            press_name(keymap_binding(footer->keymap, hinted[i].other)->keys[0], other);
        struct hint *hint = &hints[count++];
        snprintf(hint->keys, sizeof hint->keys, "%s%s%s", name, *other ? " " : "", other);
        hint->label = hint_label(footer, binding);
        hint->current = binding->action == footer->current;
        hint->rank = hinted[i].rank;
        hint->group = hinted[i].group;
    }
    return count;
}

enum { GAP = 2 };

static int hints_cols(const struct hint *hints, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++)
        sum += (i ? GAP : 0) + text_width(hints[i].keys) + 1 + text_width(hints[i].label);
    return sum;
}

static bool is_screen(const struct hint *hint) {
    return hint->group == 0;
}

/* The least important hint, but for screens if so wanted; -1: none. */
static int least_important(const struct hint *hints, int count, bool screens) {
    int worst = -1;
    for (int i = 0; i < count; i++)
        if ((screens || !is_screen(&hints[i])) && (worst < 0 || hints[i].rank >= hints[worst].rank))
            worst = i;
    return worst;
}

static int drop(struct hint *hints, int count, int which) {
    memmove(hints + which, hints + which + 1, (size_t)(count - 1 - which) * sizeof *hints);
    return count - 1;
}

/* The keys of all screens in one hint, behind the one of the screen that is shown. */
static int gather_screens(struct hint *hints, int count) {
    struct hint all = {.label = "screens", .rank = SCREENS_RANK};
    int kept = 0, screens = 0;
    bool row = true; /* the keys are single characters that follow one another */
    char first = 0, last = 0;
    for (int i = 0; i < count; i++) {
        if (is_screen(&hints[i])) {
            const char *key = hints[i].keys;
            row = row && !key[1] && (!screens || key[0] == last + 1);
            first = screens++ ? first : key[0];
            last = key[0];
            snprintf(all.keys + strlen(all.keys), sizeof all.keys - strlen(all.keys), "%s", key);
            if (!hints[i].current)
                continue;
            hints[i].rank = SCREENS_RANK - 1;
        }
        hints[kept++] = hints[i];
    }
    if (screens < 2)
        return kept;
    if (row)
        snprintf(all.keys, sizeof all.keys, "%c-%c", first, last);
    int at = kept > 0 && is_screen(&hints[0]);
    memmove(hints + at + 1, hints + at, (size_t)(kept - at) * sizeof *hints);
    hints[at] = all;
    return kept + 1;
}

/* Where there is no room: one hint less if that is enough; else the screens together, and then the least
 * important go until the rest fits. */
static int fit_hints(struct hint *hints, int count, int room) {
    if (hints_cols(hints, count) <= room)
        return count;
    struct hint fewer[HINTS];
    int worst = least_important(hints, count, false);
    if (worst >= 0 && hints[worst].rank >= SPARE_RANK) {
        memcpy(fewer, hints, (size_t)count * sizeof *hints);
        if (hints_cols(fewer, drop(fewer, count, worst)) <= room)
            return drop(hints, count, worst);
    }
    count = gather_screens(hints, count);
    while (count > 0 && hints_cols(hints, count) > room)
        count = drop(hints, count, least_important(hints, count, true));
    return count;
}

static void draw_hints(const struct hint *hints, int count, int room, struct canvas *canvas, struct box box) {
    int spare = room - hints_cols(hints, count), apart = spare >= 8 ? 4 : 0;
    int col = box.col + (box.cols >= 24 ? 1 : 0);
    for (int i = 0; i < count; i++) {
        col += i > 0 && hints[i].group != hints[i - 1].group ? apart : 0;
        enum style label = hints[i].current ? STYLE_STRONG : STYLE_FAINT;
        col += canvas_text(canvas, box.row, col, room, STYLE_KEY, hints[i].keys) + 1;
        col += canvas_text(canvas, box.row, col, room, label, hints[i].label) + GAP;
    }
}

void footer_help(const struct keymap *keymap, struct canvas *canvas, struct box box) {
    struct hint hints[] = {{.keys = "up down", .label = "scroll", .rank = 1, .group = 1},
                           {.keys = "space", .label = "a page on", .rank = 2, .group = 1},
                           {.keys = "home end", .label = "first, last", .rank = 3, .group = 1},
                           {.label = "closes", .rank = 0, .group = 2}};
    int count = sizeof hints / sizeof *hints, room = box.cols - (box.cols >= 24 ? 2 : 0);
    char help[16], leave[16];
    press_name(keymap_binding(keymap, ACTION_HELP)->keys[0], help);
    press_name(keymap_binding(keymap, ACTION_LEAVE)->keys[0], leave);
    snprintf(hints[count - 1].keys, sizeof hints->keys, "%.12s %.12s esc", help, leave);
    while (count > 1 && hints_cols(hints, count) > room)
        count = drop(hints, count, least_important(hints, count, true));
    draw_hints(hints, count, room, canvas, box);
}

void footer_draw(const struct footer *footer, struct canvas *canvas, struct box box) {
    struct hint hints[HINTS];
    int margin = box.cols >= 24 ? 1 : 0, room = box.cols - 2 * margin;
    int control = text_width(footer->control);
    int count = collect_hints(footer, hints);
    /* Control is told if the vital keys stay. */
    if (control > 0 && control + 3 + 20 <= room) {
        canvas_text_right(canvas, box.row, box.col + margin + room, control, STYLE_PLAIN, footer->control);
        room -= control + 3;
    }
    count = fit_hints(hints, count, room);
    draw_hints(hints, count, room, canvas, box);
}

void footer_control(const struct run_state *state, bool watch, char *out, size_t size) {
    const struct event_control *control = &state->control.control;
    *out = 0;
    if (state->control.kind != EVENT_CONTROL)
        return;
    if (control->yours) {
        if (control->watchers > 0)
            snprintf(out, size, "%lld watching", (long long)control->watchers);
        return;
    }
    const char *user = control->holder_user, *terminal = control->holder_terminal;
    if (user)
        snprintf(out, size, "%s%s%s has control%s", user, terminal ? "@" : "", terminal ? terminal : "",
                 watch ? "" : ", c asks");
    else
        snprintf(out, size, "nobody has control%s", watch ? "" : ", c takes it");
}

void footer_budget(const struct budget *budget, struct canvas *canvas, struct box box) {
    char bytes[32] = "unknown", waiting[48] = "", cpu[64] = "";
    if (isfinite(budget->bytes_per_second))
        memory_words((size_t)budget->bytes_per_second, bytes);
    if (isfinite(budget->queue)) {
        char queue[32];
        snprintf(waiting, sizeof waiting, ", %s wait", memory_words((size_t)budget->queue, queue));
    }
    int margin = box.cols >= 24 ? 1 : 0;
    if (box.cols >= 110)
        snprintf(cpu, sizeof cpu, " (processor %.1f and %.1f)", budget->cpu.median, budget->cpu.most);
    canvas_print(canvas, box.row, box.col + margin, box.cols - 2 * margin, STYLE_FAINT,
                 "%s%s/s%s   drawn in %.1f ms, 99 %% in %.1f%s   %.0f events/s%s",
                 budget->quiet ? "quiet   " : "", bytes, box.cols >= 110 ? " written" : "",
                 budget->wall.median, budget->wall.most, cpu, budget->events_per_second, waiting);
}

void footer_record(const struct feed_status *about, struct canvas *canvas, struct box box) {
    char left[64], right[160], seconds[FORMAT_SIZE], all[FORMAT_SIZE];
    snprintf(left, sizeof left, "%s %g\u00d7", about->playing ? "\u25b8 playing" : "\u2016 stopped",
             about->speed);
    format_duration(seconds, about->seconds);
    format_duration(all, about->all);
    if (about->reading && isfinite(about->read))
        snprintf(right, sizeof right, "reading the record: %2.0f %%", 100 * about->read);
    else
        snprintf(right, sizeof right, "%s of %s", seconds, all);
    int margin = box.cols >= 24 ? 1 : 0, col = box.col + margin, end = box.col + box.cols - margin;
    canvas_text(canvas, box.row, col, end - col, about->playing ? STYLE_GOOD : STYLE_PLAIN, left);
    int width = text_width(right), from = col + 18, to = end - (width > 22 ? width : 22) - 2;
    if (col + text_width(left) + 2 + width <= end)
        canvas_text_right(canvas, box.row, end, width, STYLE_FAINT, right);
    double share = about->all > 0 ? about->seconds / about->all : 0;
    int done = (int)lround(share * (to - from));
    for (int i = 0; i < to - from; i++)
        canvas_put(canvas, box.row, from + i, i < done ? RUNE_HEAVY_LINE : RUNE_LINE,
                   i < done ? STYLE_PLAIN : STYLE_FAINT);
}
