#include "tui/keymap.h"

#include <stdio.h>
#include <string.h>

#include "tui/canvas.h"

static const struct key_binding defaults[] = {
    {ACTION_GUIDE_ON, /* before those of the screens, which have the same keys */
     GROUP_GUIDE,
     {PRESS_ENTER, 'n'},
     WHERE_LIVE | WHERE_GUIDED,
     "page-on",
     NULL,
     "the next page"},
    {ACTION_GUIDE_BACK,
     GROUP_GUIDE,
     {'b', PRESS_BACKSPACE},
     WHERE_LIVE | WHERE_GUIDED,
     "page-back",
     NULL,
     "back a page: its run is made again, the same"},
    {ACTION_TOWERS,
     GROUP_SCREENS,
     {'1'},
     WHERE_BOTH,
     "towers-screen",
     "Towers",
     "the towers side by side, and the curves"},
    {ACTION_WHY,
     GROUP_SCREENS,
     {'2'},
     WHERE_BOTH,
     "why-screen",
     "Why",
     "a step taken apart: losses, scope, gradients, average"},
    {ACTION_LAYERS,
     GROUP_SCREENS,
     {'3'},
     WHERE_BOTH,
     "layers-screen",
     "Layers",
     "norms and updates, layer by layer"},
    {ACTION_DEVICES,
     GROUP_SCREENS,
     {'4'},
     WHERE_BOTH,
     "devices-screen",
     "Devices",
     "the devices, and a step as bars"},
    {ACTION_IMAGES,
     GROUP_SCREENS,
     {'5'},
     WHERE_BOTH,
     "images-screen",
     "Images",
     "a shard as pictures; left, right, up, down"},
    {ACTION_SCALING,
     GROUP_SCREENS,
     {'6'},
     WHERE_BOTH,
     "scaling-screen",
     "Scaling",
     "what more towers would give"},
    {ACTION_LOG, GROUP_SCREENS, {'7'}, WHERE_BOTH, "log-screen", "Log", "what happened, in words"},
    {ACTION_PAUSE, GROUP_RUN, {' '}, WHERE_LIVE, "pause", "pause", "pause the run, or let it go on"},
    {ACTION_MORE_TOWERS,
     GROUP_RUN,
     {'+', '='},
     WHERE_LIVE,
     "more-towers",
     "towers",
     "one tower more, from the next step"},
    {ACTION_FEWER_TOWERS,
     GROUP_RUN,
     {'-', '_'},
     WHERE_LIVE,
     "fewer-towers",
     NULL,
     "one tower fewer, from the next step"},
    {ACTION_STEP, GROUP_RUN, {'s'}, WHERE_LIVE, "step", "step", "one step, then pause"},
    {ACTION_PROMPT,
     GROUP_CONSOLE,
     {':'},
     WHERE_BOTH,
     "prompt",
     "command",
     "type a command; tab completes, up recalls"},
    {ACTION_STOP,
     GROUP_RUN,
     {'Q'},
     WHERE_LIVE,
     "stop",
     NULL,
     "stop the run: it saves, then ends (asks first)"},
    {ACTION_WHY_NEXT,
     GROUP_WHY,
     {'n'},
     WHERE_BOTH | WHERE_ON_WHY,
     "next-phase",
     "next",
     "freeze the next step; its next phase"},
    {ACTION_WHY_BACK,
     GROUP_WHY,
     {'b'},
     WHERE_BOTH | WHERE_ON_WHY,
     "phase-back",
     "back",
     "look back at the phase before"},
    {ACTION_WHY_RUN,
     GROUP_WHY,
     {PRESS_ENTER},
     WHERE_LIVE | WHERE_ON_WHY,
     "run-step",
     "run",
     "run what is left of the step, stay frozen"},
    {ACTION_WHY_SCOPE,
     GROUP_WHY,
     {'o'},
     WHERE_BOTH | WHERE_ON_WHY,
     "scope",
     "scope",
     "take the scope away; left and right move it"},
    {ACTION_WHY_DETAILS,
     GROUP_WHY,
     {'d'},
     WHERE_BOTH | WHERE_ON_WHY,
     "details",
     "details",
     "the selected wrong way: formula and more words"},
    {ACTION_WHY_PRESENT,
     GROUP_WHY,
     {'v'},
     WHERE_BOTH | WHERE_ON_WHY,
     "presenter",
     "present",
     "for a room: fewer numbers, whole sentences"},
    {ACTION_WHY_APPLY,
     GROUP_WHY,
     {'a'},
     WHERE_LIVE | WHERE_ON_WHY,
     "apply",
     "apply",
     "train on under the selected wrong way (asks first)"},
    {ACTION_WHY_RESTORE,
     GROUP_WHY,
     {'r'},
     WHERE_LIVE | WHERE_ON_WHY,
     "restore",
     NULL,
     "back to the right way, from here on"},
    {ACTION_WHY_REWIND,
     GROUP_WHY,
     {'R'},
     WHERE_LIVE | WHERE_ON_WHY,
     "rewind",
     NULL,
     "back to the right way, and to the step before (asks first)"},
    {ACTION_AGAIN,
     GROUP_IMAGES,
     {'i'},
     WHERE_LIVE | WHERE_ON_IMAGES,
     "ask-again",
     "ask again",
     "ask for the images of now"},
    {ACTION_CONFUSION,
     GROUP_IMAGES,
     {'m'},
     WHERE_BOTH | WHERE_ON_IMAGES,
     "confusion",
     "confusion",
     "the confusion matrix; evaluates if there is none"},
    {ACTION_PLAY, GROUP_RECORD, {' '}, WHERE_REPLAY, "play", "play", "play, or stop playing"},
    {ACTION_BACK, GROUP_RECORD, {','}, WHERE_REPLAY, "back", "seek", "back by 1 %"},
    {ACTION_ON, GROUP_RECORD, {'.'}, WHERE_REPLAY, "on", NULL, "on by 1 %"},
    {ACTION_FAR_BACK, GROUP_RECORD, {'<'}, WHERE_REPLAY, "far-back", NULL, "back by 10 %"},
    {ACTION_FAR_ON, GROUP_RECORD, {'>'}, WHERE_REPLAY, "far-on", NULL, "on by 10 %"},
    {ACTION_BEGIN, GROUP_RECORD, {PRESS_HOME}, WHERE_REPLAY, "begin", NULL, "to the beginning"},
    {ACTION_FINISH, GROUP_RECORD, {PRESS_END}, WHERE_REPLAY, "finish", NULL, "to the end"},
    {ACTION_FASTER, GROUP_RECORD, {'+', '='}, WHERE_REPLAY, "faster", "speed", "faster, up to 100 times"},
    {ACTION_SLOWER, GROUP_RECORD, {'-', '_'}, WHERE_REPLAY, "slower", NULL, "slower, down to a quarter"},
    {ACTION_NEXT_MARKER,
     GROUP_RECORD,
     {'n'},
     WHERE_REPLAY,
     "next-marker",
     "marker",
     "to the next change of towers, command, alarm or evaluation"},
    {ACTION_LAST_MARKER, GROUP_RECORD, {'p'}, WHERE_REPLAY, "last-marker", NULL, "to the one before"},
    {ACTION_CONTROL,
     GROUP_RUN,
     {'c'},
     WHERE_LIVE,
     "control",
     NULL,
     "ask for control, or give it to who asks"},
    {ACTION_LOG_SCALE, GROUP_CURVES, {'y'}, WHERE_BOTH, "log-scale", NULL, "linear or logarithmic"},
    {ACTION_SMOOTH,
     GROUP_CURVES,
     {'e'},
     WHERE_BOTH,
     "smooth",
     NULL,
     "moving average: off, 5, 20, 100 samples"},
    {ACTION_WINDOW,
     GROUP_CURVES,
     {'w'},
     WHERE_BOTH,
     "window",
     NULL,
     "all steps, or 10 000, 1 000, 100: the last, or around the cursor"},
    {ACTION_PLOT, GROUP_CURVES, {'g'}, WHERE_BOTH, "other-plot", NULL, "the other plot, where one has room"},
    {ACTION_LEFT,
     GROUP_CURVES,
     {PRESS_LEFT},
     WHERE_BOTH,
     "left",
     NULL,
     "a cursor with exact values; move it back"},
    {ACTION_RIGHT,
     GROUP_CURVES,
     {PRESS_RIGHT},
     WHERE_BOTH,
     "right",
     NULL,
     "move the cursor on; past the end it goes"},
    {ACTION_UP, GROUP_MOVING, {PRESS_UP, 'k'}, WHERE_BOTH, "up", NULL, "scroll up"},
    {ACTION_DOWN, GROUP_MOVING, {PRESS_DOWN, 'j'}, WHERE_BOTH, "down", NULL, "scroll down"},
    {ACTION_PAGE_UP, GROUP_MOVING, {PRESS_PAGE_UP}, WHERE_BOTH, "page-up", NULL, "a page up"},
    {ACTION_PAGE_DOWN, GROUP_MOVING, {PRESS_PAGE_DOWN}, WHERE_BOTH, "page-down", NULL, "a page down"},
    {ACTION_HOME, GROUP_MOVING, {PRESS_HOME}, WHERE_LIVE, "home", NULL, "to the first"},
    {ACTION_END, GROUP_MOVING, {PRESS_END}, WHERE_LIVE, "end", NULL, "to the last, and follow"},
    {ACTION_FILTER,
     GROUP_MOVING,
     {'/'},
     WHERE_BOTH,
     "filter",
     NULL,
     "only some towers (0,2 or 4-7), or lines with a word"},
    {ACTION_DISMISS,
     GROUP_CONSOLE,
     {PRESS_ESCAPE, 'x'},
     WHERE_BOTH,
     "dismiss",
     NULL,
     "take away message, cursor, filter"},
    {ACTION_REPAINT,
     GROUP_CONSOLE,
     {PRESS_CONTROL('l')},
     WHERE_BOTH,
     "repaint",
     NULL,
     "draw the whole screen again"},
    {ACTION_HELP, GROUP_CONSOLE, {'?', 'h'}, WHERE_BOTH, "help", "help", "this page; again to close it"},
    {ACTION_LEAVE, GROUP_CONSOLE, {'q'}, WHERE_BOTH, "leave", "leave", "leave the console; the run goes on"},
};

/* What some do otherwise where there is no run to command. */
static const struct {
    enum action action;
    unsigned where;
    const char *sentence;
} elsewhere[] = {
    {ACTION_WHY_NEXT, WHERE_REPLAY, "on to the next phase that was walked, or to the next marker"},
    {ACTION_WHY_BACK, WHERE_REPLAY, "back to the phase or marker before"},
    {ACTION_CONFUSION, WHERE_REPLAY, "the confusion matrix of the last evaluation"},
    {ACTION_LEAVE, WHERE_REPLAY, "leave the console"},
    {ACTION_LEAVE, WHERE_GUIDED, "leave the lesson, and its run ends"},
};

static const struct {
    int key;
    const char *name;
} names[] = {
    {' ', "space"},
    {PRESS_TAB, "tab"},
    {PRESS_ENTER, "enter"},
    {PRESS_ESCAPE, "esc"},
    {PRESS_BACKSPACE, "backspace"},
    {PRESS_UP, "up"},
    {PRESS_DOWN, "down"},
    {PRESS_LEFT, "left"},
    {PRESS_RIGHT, "right"},
    {PRESS_PAGE_UP, "pgup"},
    {PRESS_PAGE_DOWN, "pgdn"},
    {PRESS_HOME, "home"},
    {PRESS_END, "end"},
    {PRESS_DELETE, "delete"},
};

void keymap_default(struct keymap *keymap) {
    keymap->count = (int)(sizeof defaults / sizeof *defaults);
    memcpy(keymap->bindings, defaults, sizeof defaults);
}

bool keymap_means(const struct key_binding *binding, unsigned where) {
    unsigned screens = binding->where & WHERE_SCREENS;
    return (binding->where & where & WHERE_BOTH) && (!screens || screens & where);
}

const char *keymap_sentence(const struct key_binding *binding, unsigned where) {
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (elsewhere[i].action == binding->action && elsewhere[i].where & where)
            return elsewhere[i].sentence;
    return binding->sentence;
}

enum action keymap_action(const struct keymap *keymap, int key, unsigned where) {
    enum action found = ACTION_NONE;
    for (int i = 0; i < keymap->count && key != PRESS_NONE; i++)
        for (int k = 0; k < 3; k++) {
            const struct key_binding *binding = &keymap->bindings[i];
            if (binding->keys[k] != key || !keymap_means(binding, where))
                continue;
            if (binding->where & WHERE_SCREENS)
                return binding->action;
            found = found == ACTION_NONE ? binding->action : found;
        }
    return found;
}

const struct key_binding *keymap_binding(const struct keymap *keymap, enum action action) {
    for (int i = 0; i < keymap->count; i++)
        if (keymap->bindings[i].action == action)
            return &keymap->bindings[i];
    return NULL;
}

void press_name(int key, char out[16]) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].key == key) {
            snprintf(out, 16, "%s", names[i].name);
            return;
        }
    if (key > 0 && key < 32)
        snprintf(out, 16, "^%c", key + 64);
    else if (key > 32 && key < 0x110000)
        rune_encode((uint32_t)key, out);
    else
        *out = 0;
}

int press_named(const char *name) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].name, name))
            return names[i].key;
    if (name[0] == '^' && name[1] && !name[2])
        return PRESS_CONTROL(name[1]);
    uint32_t rune = rune_next(&name);
    return rune > 32 && rune != 0xfffd && *name == 0 ? (int)rune : PRESS_NONE;
}

static bool has_key(const struct key_binding *binding) {
    return binding->keys[0] || binding->keys[1] || binding->keys[2];
}

/* Whether two actions can't both have a key that one of them is given: where both mean something. On a screen
 * of its own an action may share it only as it did from the start. */
static bool collide(const struct key_binding *a, const struct key_binding *b, bool vital) {
    unsigned screens_a = a->where & WHERE_SCREENS, screens_b = b->where & WHERE_SCREENS;
    if (!(a->where & b->where & WHERE_BOTH))
        return false;
    return vital || !screens_a || !screens_b || (screens_a & screens_b);
}

static bool holds(const struct key_binding *binding, int key) {
    return binding->keys[0] == key || binding->keys[1] == key || binding->keys[2] == key;
}

static void take_key(struct key_binding *binding, int key) {
    int kept = 0, keys[3] = {0};
    for (int k = 0; k < 3; k++)
        if (binding->keys[k] != key && binding->keys[k] != PRESS_NONE)
            keys[kept++] = binding->keys[k];
    memcpy(binding->keys, keys, sizeof keys);
}

enum status keymap_set(struct keymap *keymap, const char *action, const char *key_text) {
    int key = press_named(key_text);
    if (!key)
        return status_fail(STATUS_BAD_INPUT,
                           "no key \"%s\"; a key is a character, ^L, or a name such as space, up, pgdn",
                           key_text);
    struct key_binding *binding = NULL;
    for (int i = 0; i < keymap->count; i++)
        if (!strcmp(keymap->bindings[i].name, action))
            binding = &keymap->bindings[i];
    if (!binding)
        return status_fail(STATUS_BAD_INPUT,
                           "no action \"%s\" to give the key %s to; the help (?) names them at its end",
                           action, key_text);
    struct keymap changed = *keymap;
    for (int i = 0; i < changed.count; i++) {
        struct key_binding *other = &changed.bindings[i];
        bool vital =
            other->action == ACTION_LEAVE || other->action == ACTION_PROMPT || other->action == ACTION_HELP;
        bool shared = other != &changed.bindings[binding - keymap->bindings] && holds(binding, key);
        if (shared || !collide(other, binding, vital))
            continue;
        take_key(other, key);
        if (vital && other->action != binding->action && !has_key(other))
            return status_fail(STATUS_BAD_INPUT,
                               "the key %s is the only one of \"%s\": give that another first", key_text,
                               other->name);
    }
    struct key_binding *target = &changed.bindings[binding - keymap->bindings];
    target->keys[0] = key;
    target->keys[1] = target->keys[2] = PRESS_NONE;
    *keymap = changed;
    return STATUS_OK;
}
