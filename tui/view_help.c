#include "tui/view_help.h"

#include <stdio.h>
#include <string.h>

#include "engine/wire/command.h"

bool help_view_act(struct help_view *view, enum action action) {
    switch (action) {
    case ACTION_UP:
        view->scroll--;
        return true;
    case ACTION_DOWN:
        view->scroll++;
        return true;
    case ACTION_PAGE_UP:
        view->scroll -= view->page;
        return true;
    case ACTION_PAGE_DOWN:
        view->scroll += view->page;
        return true;
    case ACTION_HOME:
        view->scroll = 0;
        return true;
    case ACTION_END:
        view->scroll = 1 << 20;
        return true;
    default:
        return false;
    }
}

/* A column of the page. Lines are counted from the top of the whole page; those outside the box only count.
 */
struct page {
    struct canvas *canvas;
    struct box box;
    int scroll, line, key_cols;
};

static void put(struct page *page, enum style key_style, const char *key, const char *text) {
    int cols = page->box.cols, key_cols = *text ? page->key_cols : cols, room = cols - key_cols - 2;
    do {
        int row = page->line++ - page->scroll;
        char part[256];
        size_t bytes = room > 0 ? text_fit(text, room) : 0;
        snprintf(part, sizeof part, "%.*s", (int)bytes, text);
        text += bytes;
        if (row >= 0 && row < page->box.rows) {
            row += page->box.row;
            canvas_text(page->canvas, row, page->box.col, key_cols, key_style, key);
            canvas_text(page->canvas, row, page->box.col + key_cols + 2, room + 1, STYLE_PLAIN, part);
        }
        key = "";
        if (bytes == 0)
            return;
    } while (*text);
}

static void put_head(struct page *page, const char *text) {
    if (page->line > 0)
        put(page, STYLE_PLAIN, "", "");
    put(page, STYLE_STRONG, text, "");
}

static void put_keys(struct page *page, const struct keymap *keymap, unsigned where) {
    static const char *const heads[KEY_GROUPS] = {
        "screens",    "the run", "the Why screen", "the Images screen",
        "the record", "curves",  "moving",         "console"};
    for (int group = 0; group < KEY_GROUPS; group++) {
        bool begun = false;
        for (int i = 0; i < keymap->count; i++) {
            const struct key_binding *binding = &keymap->bindings[i];
            if (!(binding->where & where) || (int)binding->group != group)
                continue;
            if (!begun)
                put_head(page, heads[group]);
            begun = true;
            char names[64] = "", name[16];
            for (int k = 0; k < 3; k++) {
                press_name(binding->keys[k], name);
                if (*name)
                    snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? " " : "",
                             name);
            }
            put(page, STYLE_KEY, names, binding->sentence);
        }
    }
}

static void put_commands(struct page *page) {
    put_head(page, "commands to the run, typed after :");
    const char *sentence, *usage;
    for (int i = 0; (usage = command_usage(i, &sentence)) != NULL; i++) {
        if (text_width(usage) > page->key_cols) { /* a long one stands above its sentence */
            put(page, STYLE_KEY, usage, "");
            put(page, STYLE_KEY, " ", sentence);
        } else {
            put(page, STYLE_KEY, usage, sentence);
        }
    }
}

void help_view_draw(struct help_view *view, struct canvas *canvas, const struct keymap *keymap,
                    unsigned where, struct box body) {
    if (body.rows <= 0)
        return;
    bool beside = body.cols >= 110 && (where & WHERE_LIVE);
    int margin = body.cols >= 24 ? 1 : 0, width = body.cols - 2 * margin, half = beside ? 62 : width;
    struct box left = {body.row, body.col + margin, body.rows, half};
    struct box right = {body.row, left.col + half, body.rows, beside ? width - half : width};
    int most = 0;
    canvas_clip(canvas, body);
    /* Once to count, with every line out of sight; then as scrolled. */
    for (int pass = 0; pass < 2; pass++) {
        int scroll = pass ? view->scroll : 1 << 24;
        struct page keys = {canvas, left, scroll, 0, width >= 50 ? 9 : 6};
        struct page commands = {canvas, beside ? right : left, scroll, 0, width >= 50 ? 18 : 10};
        put_keys(&keys, keymap, where);
        commands.line = beside ? 0 : keys.line;
        if (where & WHERE_LIVE)
            put_commands(&commands);
        most = keys.line > commands.line ? keys.line : commands.line;
        most = most > body.rows ? most - body.rows : 0;
        view->scroll = view->scroll > most ? most : view->scroll < 0 ? 0 : view->scroll;
    }
    view->page = body.rows > 1 ? body.rows - 1 : 1;
    if (most > 0)
        canvas_print(canvas, body.row, body.col + body.cols - 12, 11, STYLE_FAINT, "%3d %% seen",
                     100 * (view->scroll + body.rows) / (most + body.rows));
    canvas_clip(canvas, canvas_whole(canvas));
}
