#include "tui/prompt.h"

#include <stdio.h>
#include <string.h>

#include "tui/keymap.h"

void prompt_begin(struct prompt *prompt, const char *text) {
    snprintf(prompt->text, sizeof prompt->text, "%s", text);
    prompt->cursor = (int)strlen(prompt->text);
    prompt->recalled = prompt->history_count;
    prompt->completion_count = 0;
    prompt->completion = -1;
}

static int before(const struct prompt *prompt, int at) {
    if (at > 0)
        at--;
    while (at > 0 && (prompt->text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

static int after(const struct prompt *prompt, int at) {
    if (prompt->text[at])
        at++;
    while ((prompt->text[at] & 0xc0) == 0x80)
        at++;
    return at;
}

static void cut(struct prompt *prompt, int from, int to) {
    memmove(prompt->text + from, prompt->text + to, strlen(prompt->text + to) + 1);
    prompt->cursor = from;
}

static void insert(struct prompt *prompt, int key) {
    char bytes[5];
    int n = rune_encode((uint32_t)key, bytes);
    size_t length = strlen(prompt->text);
    if (length + (size_t)n >= sizeof prompt->text)
        return;
    memmove(prompt->text + prompt->cursor + n, prompt->text + prompt->cursor,
            length - (size_t)prompt->cursor + 1);
    memcpy(prompt->text + prompt->cursor, bytes, (size_t)n);
    prompt->cursor += n;
}

static void recall(struct prompt *prompt, int direction) {
    int to = prompt->recalled + direction;
    if (to < 0 || to > prompt->history_count)
        return;
    if (prompt->recalled == prompt->history_count)
        memcpy(prompt->draft, prompt->text, sizeof prompt->draft);
    memcpy(prompt->text, to == prompt->history_count ? prompt->draft : prompt->history[to],
           sizeof prompt->text);
    prompt->recalled = to;
    prompt->cursor = (int)strlen(prompt->text);
}

static void remember(struct prompt *prompt) {
    if (prompt->text[strspn(prompt->text, " ")] == 0)
        return;
    if (prompt->history_count > 0 && !strcmp(prompt->history[prompt->history_count - 1], prompt->text))
        return;
    if (prompt->history_count == PROMPT_HISTORY) {
        memmove(prompt->history[0], prompt->history[1], sizeof prompt->history - sizeof prompt->history[0]);
        prompt->history_count--;
    }
    memcpy(prompt->history[prompt->history_count++], prompt->text, sizeof prompt->text);
}

/* Whether the only completion there was can be completed further ("set "). */
static bool goes_further(const struct prompt *prompt, prompt_complete *complete) {
    const char *any;
    return prompt->completion_count == 1 && prompt->completion == 0 && complete(prompt->text, &any, 1) > 0;
}

/* Tab: the first completion, then the next, and after the last what was typed. */
static void complete_next(struct prompt *prompt, prompt_complete *complete) {
    if (!complete)
        return;
    if (goes_further(prompt, complete))
        prompt->completion_count = 0;
    if (prompt->completion_count == 0) {
        memcpy(prompt->stem, prompt->text, sizeof prompt->stem);
        prompt->completion_count = complete(prompt->stem, prompt->completions,
                                            (int)(sizeof prompt->completions / sizeof *prompt->completions));
        prompt->completion = -1;
    }
    if (prompt->completion_count == 0)
        return;
    prompt->completion++;
    if (prompt->completion >= prompt->completion_count)
        prompt->completion = -1;
    const char *text = prompt->completion < 0 ? prompt->stem : prompt->completions[prompt->completion];
    snprintf(prompt->text, sizeof prompt->text, "%s", text);
    prompt->cursor = (int)strlen(prompt->text);
}

/* The word before the cursor, and the blanks behind it. */
static void cut_word(struct prompt *prompt) {
    int word = prompt->cursor;
    while (word > 0 && prompt->text[word - 1] == ' ')
        word--;
    while (word > 0 && prompt->text[word - 1] != ' ')
        word--;
    cut(prompt, word, prompt->cursor);
}

/* A key that changes the text, moves the cursor or goes through the history. */
static void edit(struct prompt *prompt, int key) {
    switch (key) {
    case PRESS_BACKSPACE:
    case PRESS_CONTROL('h'):
        cut(prompt, before(prompt, prompt->cursor), prompt->cursor);
        break;
    case PRESS_DELETE:
    case PRESS_CONTROL('d'):
        cut(prompt, prompt->cursor, after(prompt, prompt->cursor));
        break;
    case PRESS_LEFT:
        prompt->cursor = before(prompt, prompt->cursor);
        break;
    case PRESS_RIGHT:
        prompt->cursor = after(prompt, prompt->cursor);
        break;
    case PRESS_HOME:
    case PRESS_CONTROL('a'):
        prompt->cursor = 0;
        break;
    case PRESS_END:
    case PRESS_CONTROL('e'):
        prompt->cursor = (int)strlen(prompt->text);
        break;
    case PRESS_CONTROL('u'):
        cut(prompt, 0, prompt->cursor);
        break;
    case PRESS_CONTROL('k'):
        prompt->text[prompt->cursor] = 0;
        break;
    case PRESS_CONTROL('w'):
        cut_word(prompt);
        break;
    case PRESS_UP:
        recall(prompt, -1);
        break;
    case PRESS_DOWN:
        recall(prompt, 1);
        break;
    default:
        if (key >= PRESS_PASTED)
            insert(prompt, key - PRESS_PASTED);
        else if (key >= ' ' && key < 0x110000)
            insert(prompt, key);
    }
}

enum prompt_event prompt_key(struct prompt *prompt, int key, prompt_complete *complete) {
    if (key == PRESS_TAB) {
        complete_next(prompt, complete);
        return PROMPT_TYPING;
    }
    prompt->completion_count = 0;
    switch (key) {
    case PRESS_ENTER:
        remember(prompt);
        return PROMPT_ENTERED;
    case PRESS_ESCAPE:
    case PRESS_CONTROL('g'):
        return PROMPT_CANCELLED;
    case PRESS_BACKSPACE:
    case PRESS_CONTROL('h'):
        if (!*prompt->text)
            return PROMPT_CANCELLED;
        break;
    default:
        break;
    }
    edit(prompt, key);
    return PROMPT_TYPING;
}

void prompt_draw(const struct prompt *prompt, struct canvas *canvas, struct box box, const char *lead) {
    canvas_fill(canvas, box.row, box.col, box.cols, ' ', STYLE_PLAIN);
    int col = box.col + (box.cols >= 24 ? 1 : 0), end = box.col + box.cols;
    col += canvas_text(canvas, box.row, col, end - col, STYLE_KEY, lead);
    /* A line longer than the room shows the part around the cursor. */
    char head[PROMPT_TEXT];
    memcpy(head, prompt->text, (size_t)prompt->cursor);
    head[prompt->cursor] = 0;
    const char *from = prompt->text, *head_from = head;
    while (text_width(head_from) > end - col - 1 && *head_from) {
        rune_next(&head_from);
        rune_next(&from);
    }
    int used = canvas_text(canvas, box.row, col, end - col, STYLE_PLAIN, from);
    canvas->cursor_row = box.row;
    canvas->cursor_col = col + text_width(head_from);
    col += used + 3;
    /* Of the completions only the word that is completed. */
    const char *last = strrchr(prompt->stem, ' ');
    size_t known = last ? (size_t)(last + 1 - prompt->stem) : 0;
    for (int i = 0; i < prompt->completion_count && col < end; i++) {
        enum style style = i == prompt->completion ? STYLE_SELECTED : STYLE_FAINT;
        char word[PROMPT_TEXT];
        int length = snprintf(word, sizeof word, "%s", prompt->completions[i] + known);
        if (length > 0 && word[length - 1] == ' ')
            word[length - 1] = 0;
        col += canvas_text(canvas, box.row, col, end - col, style, word) + 2;
    }
}
