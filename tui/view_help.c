#include "tui/view_help.h"

#include <stdio.h>
#include <string.h>

#include "engine/wire/command.h"
#include "tui/preferences.h"
#include "tui/scroll.h"

bool help_view_act(struct help_view *view, enum action action) {
    return scroll_act(&view->scroll, view->page, action);
}

/* The page is written line by line, then cut into one or two columns. */
enum { LINES = 240 };

struct help_line {
    char key[48], text[128];
    enum style key_style;
    int key_cols;
    bool head; /* a column may begin here */
};

struct help_page {
    struct help_line lines[LINES];
    int count, cols; /* of a column */
};

static struct help_line *add_line(struct help_page *page, enum style style, int key_cols) {
    /* A page that is full loses what is too much. */
    struct help_line *line = &page->lines[page->count < LINES ? page->count++ : LINES - 1];
    *line = (struct help_line){.key_style = style, .key_cols = key_cols};
    return line;
}

static void put_head(struct help_page *page, const char *text) {
    struct help_line *line;
    if (page->count > 0)
        add_line(page, STYLE_PLAIN, 0);
    line = add_line(page, STYLE_STRONG, page->cols);
    line->head = true;
    snprintf(line->key, sizeof line->key, "%s", text);
}

/* A key and what it does, on as many lines as it takes. A key that is too wide stands above. */
static void put(struct help_page *page, int key_cols, const char *key, const char *text) {
    int room = page->cols - key_cols - 2;
    struct help_line *line = add_line(page, STYLE_KEY, key_cols);
    snprintf(line->key, sizeof line->key, "%s", key);
    if (text_width(key) > key_cols) {
        line->key_cols = page->cols;
        line = add_line(page, STYLE_KEY, key_cols);
    }
    while (*text && room > 0) {
        size_t bytes = text_fit(text, room);
        snprintf(line->text, sizeof line->text, "%.*s", (int)bytes, text);
        text += bytes;
        if (*text)
            line = add_line(page, STYLE_KEY, key_cols);
    }
}

/* The keys that have this meaning where the help was opened, or none there; whether it is worth a line. */
static bool key_names(const struct keymap *keymap, const struct key_binding *binding, unsigned where,
                      char *out, size_t size) {
    bool elsewhere = false;
    *out = 0;
    for (int k = 0; k < 3; k++) {
        char name[16];
        press_name(binding->keys[k], name);
        enum action here = keymap_action(keymap, binding->keys[k], where);
        if (!*name)
            continue;
        if (here != ACTION_NONE && here != binding->action)
            elsewhere = true;
        else
            snprintf(out + strlen(out), size - strlen(out), "%s%s", *out ? " " : "", name);
    }
    return *out || !elsewhere;
}

/* Keys of other screens are told too, those of a tour only in one. */
static bool is_told(const struct key_binding *binding, unsigned where) {
    return (binding->where & where & WHERE_BOTH) &&
           !(binding->where & WHERE_GUIDED && !(where & WHERE_GUIDED));
}

static void put_keys(struct help_page *page, const struct keymap *keymap, unsigned where) {
    static const char *const heads[KEY_GROUPS] = {
        "the lesson", "screens", "the run", "the Why screen", "the Images screen",
        "the record", "curves",  "moving",  "console"};
    for (int group = 0; group < KEY_GROUPS; group++) {
        bool begun = false;
        for (int i = 0; i < keymap->count; i++) {
            const struct key_binding *binding = &keymap->bindings[i];
            if (!is_told(binding, where) || (int)binding->group != group)
                continue;
            char names[64];
            if (!key_names(keymap, binding, where, names, sizeof names))
                continue;
            if (!begun)
                put_head(page, heads[group]);
            begun = true;
            put(page, page->cols >= 50 ? 9 : 6, names, keymap_sentence(binding, where));
        }
    }
}

static void put_commands(struct help_page *page) {
    put_head(page, "commands to the run, typed after :");
    const char *sentence, *usage;
    for (int i = 0; (usage = command_usage(i, &sentence)) != NULL; i++)
        put(page, page->cols >= 50 ? 18 : 10, usage, sentence);
}

/* What the curves show without words. */
static void put_marks(struct help_page *page) {
    static const char *const marks[][2] = {
        {"\u25be", "a change, by a command or an alarm; a line goes down from it"},
        {"\u25b4", "values beyond the axis"},
        {"\u00d7", "values that are not finite; on a logarithmic axis, below: not positive"},
    };
    put_head(page, "marks on the curves");
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        put(page, page->cols >= 50 ? 9 : 6, marks[i][0], marks[i][1]);
}

/* For the eye that adds up. */
static void put_figures(struct help_page *page) {
    put_head(page, "figures");
    put(page, 0, "", "each is rounded by itself: a sum may differ from its parts by one in the last digit");
}

/* What the console does itself, and the names by which its keys are changed. */
static void put_own(struct help_page *page, const struct keymap *keymap, unsigned where) {
    int key_cols = page->cols >= 50 ? 20 : 10;
    char line[64];
    const char *key, *values;
    put_head(page, "commands to the console, typed after :");
    for (int i = 0; (key = preferences_key(i, &values)) != NULL; i++) {
        snprintf(line, sizeof line, "set %s", key);
        put(page, key_cols, line, values);
    }
    put(page, key_cols, "key ACTION KEY", "another key for an action, as in: key pause p");
    put(page, key_cols, "budget", "what the console costs; again to hide it");
    if (where & WHERE_REPLAY)
        put(page, key_cols, "goto STEP", "to that step of the record");
    put(page, key_cols, "help", "this page");
    put(page, key_cols, "quit", "leave the console");
    put_head(page, "actions, for key ACTION KEY");
    char names[ACTIONS * 20] = "";
    for (int i = 0; i < keymap->count; i++)
        if (is_told(&keymap->bindings[i], where)) {
            size_t length = strlen(names);
            snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "",
                     keymap->bindings[i].name);
        }
    put(page, 0, "", names);
}

/* Where the second column begins: the first group that leaves at least as much before it. */
static int cut_page(const struct help_page *page) {
    int cut = page->count;
    for (int i = page->count - 1; i > 0; i--)
        if (page->lines[i].head && 2 * i >= page->count)
            cut = i;
    return cut;
}

static void draw_column(struct canvas *canvas, const struct help_page *page, int from, int to, int scroll,
                        struct box box) {
    for (int i = from + scroll, row = 0; i < to && row < box.rows; i++, row++) {
        const struct help_line *line = &page->lines[i];
        canvas_text(canvas, box.row + row, box.col, line->key_cols, line->key_style, line->key);
        canvas_text(canvas, box.row + row, box.col + line->key_cols + 2, page->cols - line->key_cols - 1,
                    STYLE_PLAIN, line->text);
    }
}

void help_view_draw(struct help_view *view, struct canvas *canvas, const struct keymap *keymap,
                    unsigned where, struct box body) {
    if (body.rows <= 0)
        return;
    bool two = body.cols >= 110;
    int margin = body.cols >= 24 ? 1 : 0, width = body.cols - 2 * margin;
    struct help_page page;
    page.count = 0;
    page.cols = two ? (width - 3) / 2 : width;
    put_keys(&page, keymap, where);
    put_marks(&page);
    put_figures(&page);
    if (where & WHERE_LIVE)
        put_commands(&page);
    put_own(&page, keymap, where);
    int cut = two ? cut_page(&page) : page.count;
    int rows = cut > page.count - cut ? cut : page.count - cut, last = body.row + body.rows - 1;
    if (rows > body.rows && body.rows > 3) /* the last line says how much of it was seen */
        body.rows--;
    int most = rows > body.rows ? rows - body.rows : 0;
    view->scroll = scroll_within(view->scroll, most);
    view->page = body.rows > 1 ? body.rows - 1 : 1;
    struct box left = {body.row, body.col + margin, body.rows, page.cols};
    struct box right = {body.row, left.col + page.cols + 3, body.rows, page.cols};
    canvas_clip(canvas, body);
    draw_column(canvas, &page, 0, cut, view->scroll, left);
    draw_column(canvas, &page, cut, page.count, view->scroll, right);
    canvas_clip(canvas, canvas_whole(canvas));
    if (most > 0 && last >= body.row + body.rows)
        canvas_print(canvas, last, body.col + body.cols - 12, 11, STYLE_FAINT, "%3d %% seen",
                     100 * (view->scroll + body.rows) / rows);
}
