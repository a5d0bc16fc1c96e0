/* One line to type in: editing, completion, history. Pure: keys in, text out. */
#ifndef TOWERSCOPE_TUI_PROMPT_H
#define TOWERSCOPE_TUI_PROMPT_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/canvas.h"

enum { PROMPT_TEXT = 256, PROMPT_HISTORY = 64 };

enum prompt_event { PROMPT_TYPING, PROMPT_ENTERED, PROMPT_CANCELLED };

struct prompt {
    char text[PROMPT_TEXT];
    int cursor;                                /* byte where the next character goes */
    char history[PROMPT_HISTORY][PROMPT_TEXT]; /* oldest first */
    int history_count, recalled;               /* recalled: history_count is the line being typed */
    char draft[PROMPT_TEXT];
    const char *completions[16];
    int completion_count, completion; /* completion -1: what was typed */
    char stem[PROMPT_TEXT];           /* what was typed when completing began */
};

/* Completions of a text, as command_complete of engine/wire/command.h. */
typedef int prompt_complete(const char *text, const char **out, int max);

/* Begin an empty line; the history stays. */
void prompt_begin(struct prompt *prompt, const char *text);

/* One key. PROMPT_ENTERED: `text` holds the line, which is now in the history (if not blank). */
enum prompt_event prompt_key(struct prompt *prompt, int key, prompt_complete *complete);

/* Draw it after `lead` (":" or "/ "), with the completions behind it, and place the cursor. */
void prompt_draw(const struct prompt *prompt, struct canvas *canvas, struct box box, const char *lead);

#endif
