/* What keys do. One table serves the dispatcher, the footer and the help, so that they can't disagree. */
#ifndef TOWERSCOPE_TUI_KEYMAP_H
#define TOWERSCOPE_TUI_KEYMAP_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/status.h"

/* Keys as term.c gives them: a Unicode character, a control character, or one of these. */
enum press {
    PRESS_NONE = 0,
    PRESS_TAB = 9,
    PRESS_ENTER = 10,
    PRESS_ESCAPE = 27,
    PRESS_BACKSPACE = 127,
    PRESS_UP = 0x200000,
    PRESS_DOWN,
    PRESS_LEFT,
    PRESS_RIGHT,
    PRESS_PAGE_UP,
    PRESS_PAGE_DOWN,
    PRESS_HOME,
    PRESS_END,
    PRESS_DELETE,
    PRESS_RESIZE,
    PRESS_PASTED = 0x400000 /* and on: this, and a character that was pasted */
};
#define PRESS_CONTROL(letter) ((letter)&0x1f)

enum action {
    ACTION_NONE,
    /* screens */
    ACTION_TOWERS,
    ACTION_WHY,
    ACTION_LAYERS,
    ACTION_DEVICES,
    ACTION_IMAGES,
    ACTION_SCALING,
    ACTION_LOG,
    ACTION_HELP,
    /* the run */
    ACTION_PAUSE,
    ACTION_MORE_TOWERS,
    ACTION_FEWER_TOWERS,
    ACTION_STEP,
    ACTION_STOP,
    ACTION_CONTROL,
    /* the screen */
    ACTION_PROMPT,
    ACTION_FILTER,
    ACTION_UP,
    ACTION_DOWN,
    ACTION_LEFT,
    ACTION_RIGHT,
    ACTION_PAGE_UP,
    ACTION_PAGE_DOWN,
    ACTION_HOME,
    ACTION_END,
    ACTION_LOG_SCALE,
    ACTION_SMOOTH,
    ACTION_WINDOW,
    ACTION_PLOT,
    ACTION_DISMISS,
    ACTION_REPAINT,
    ACTION_LEAVE,
    /* the Why screen */
    ACTION_WHY_NEXT,
    ACTION_WHY_BACK,
    ACTION_WHY_RUN,
    ACTION_WHY_SCOPE,
    ACTION_WHY_DETAILS,
    ACTION_WHY_PRESENT,
    ACTION_WHY_APPLY,
    ACTION_WHY_RESTORE,
    ACTION_WHY_REWIND,
    /* the Images screen */
    ACTION_AGAIN,
    ACTION_CONFUSION,
    /* a guided tour */
    ACTION_GUIDE_ON,
    ACTION_GUIDE_BACK,
    /* a record */
    ACTION_PLAY,
    ACTION_BACK,
    ACTION_ON,
    ACTION_FAR_BACK,
    ACTION_FAR_ON,
    ACTION_BEGIN,
    ACTION_FINISH,
    ACTION_FASTER,
    ACTION_SLOWER,
    ACTION_NEXT_MARKER,
    ACTION_LAST_MARKER,
    ACTIONS
};

/* Where a key means something: on a live run, on a record, or both; and, with one of WHERE_SCREENS, only
 * there, where it goes before what the key means elsewhere. */
enum {
    WHERE_LIVE = 1,
    WHERE_REPLAY = 2,
    WHERE_BOTH = 3,
    WHERE_ON_WHY = 4,
    WHERE_ON_IMAGES = 8,
    WHERE_GUIDED = 16, /* on every screen of a guided tour */
    WHERE_SCREENS = WHERE_ON_WHY | WHERE_ON_IMAGES | WHERE_GUIDED,
};

enum key_group {
    GROUP_GUIDE,
    GROUP_SCREENS,
    GROUP_RUN,
    GROUP_WHY,
    GROUP_IMAGES,
    GROUP_RECORD,
    GROUP_CURVES,
    GROUP_MOVING,
    GROUP_CONSOLE,
    KEY_GROUPS
};

struct key_binding {
    enum action action;
    enum key_group group; /* of the help */
    int keys[3];          /* 0: none */
    unsigned where;
    const char *name;     /* for config.ini: "pause" */
    const char *label;    /* a word or two for the footer; NULL: not there */
    const char *sentence; /* for the help, of a live run */
};

struct keymap {
    struct key_binding bindings[ACTIONS];
    int count;
};

void keymap_default(struct keymap *keymap);

/* Whether a binding means something there. */
bool keymap_means(const struct key_binding *binding, unsigned where);

/* What it does there, in words. */
const char *keymap_sentence(const struct key_binding *binding, unsigned where);

/* What a key does there; ACTION_NONE: nothing. */
enum action keymap_action(const struct keymap *keymap, int key, unsigned where);

const struct key_binding *keymap_binding(const struct keymap *keymap, enum action action);

/* A key as a person reads it: "space", "+", "^L", "up". At most 15 bytes into out[16]. */
void press_name(int key, char out[16]);

/* A key from such a name; 0: there is none. */
int press_named(const char *name);

/* Give an action another key ("pause", "p"); the key is taken from whatever had it where both mean something.
 * STATUS_BAD_INPUT: no such action or key, or it would leave an action of `leave`, `help` or `prompt` without
 * any. */
enum status keymap_set(struct keymap *keymap, const char *action, const char *key);

#endif
