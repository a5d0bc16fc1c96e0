/* Commands to a run, as JSON lines with an id: {"command":"towers 4","id":"7","at":120}. The text is what a
 * person types at the prompt, in `ctl` and in a script; one parser reads all three. */
#ifndef TOWERSCOPE_ENGINE_WIRE_COMMAND_H
#define TOWERSCOPE_ENGINE_WIRE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/status.h"

#define WIRE_COMMAND_MAX 4096 /* bytes of a line to the engine, newline included */

enum command_kind {
    COMMAND_PAUSE,
    COMMAND_RESUME,
    COMMAND_STEP,
    COMMAND_PHASE,
    COMMAND_TOWERS,
    COMMAND_SET,
    COMMAND_SAVE,
    COMMAND_EVAL,
    COMMAND_WHY,
    COMMAND_RESTORE,
    COMMAND_NOTE,
    COMMAND_IMAGES,
    COMMAND_STATUS,
    COMMAND_STOP,
    COMMAND_KINDS
};

enum command_setting {
    SETTING_LR,
    SETTING_MOMENTUM,
    SETTING_WEIGHT_DECAY,
    SETTING_CLIP_NORM,
    SETTING_BATCH,
    SETTING_EVAL_EVERY,
    SETTING_CHECKPOINT_EVERY,
    COMMAND_SETTINGS
};

enum command_why { WHY_ON, WHY_OFF, WHY_APPLY, WHY_RESTORE };

struct command {
    enum command_kind kind;
    char id[40], from[64]; /* from: "user@terminal", "ctl", "script" */
    char screen[16];       /* of the console that sent it by itself; "": none did */
    char text[256];        /* as typed, single spaces */
    int64_t at;            /* take effect after this step; WIRE_UNKNOWN_INT: the next boundary */
    int64_t count;         /* step N, towers N, images TOWER (its first image in `first`) */
    int64_t first;
    bool run;                     /* phase run (else: next) */
    bool rewind, confusion, json; /* why restore --rewind, eval --confusion, status --json */
    bool discard;                 /* stop --discard */
    enum command_setting setting;
    double value; /* set KEY VALUE */
    enum command_why why;
    char name[32]; /* why apply NAME */
    char note[200];
};

/* Read a command from words, which are UTF-8. STATUS_BAD_INPUT with a sentence that names the nearest command
 * or the range; ranges are checked here, what depends on the run's state is checked by the engine. */
enum status command_parse(const char *text, struct command *out);

/* One JSON line of a client. A missing id is made up as "". */
enum status command_decode(const char *line, size_t length, struct command *out);

/* The line for the socket, newline included, into out[size]. */
enum status command_encode(const struct command *command, char *out, size_t size, size_t *length);

/* Whether a client and an engine of different versions may use it: it keeps its meaning in all of them. */
bool command_of_any_version(enum command_kind kind);

/* For completion and help: the words of command i ("towers N"), one sentence on it; NULL past the end. */
const char *command_usage(int i, const char **sentence);

/* Completions of `text` (whole command lines in static memory; one that wants more ends in a blank), at most
 * `max`; their first words alone while that word is typed. */
int command_complete(const char *text, const char **out, int max);

#endif
