#include "engine/wire/command.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/base/text.h"
#include "engine/wire/event.h"

enum { WORDS = 8, TOWERS_MOST = 1024, STEPS_MOST = 1000000 };
#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

struct words {
    char text[256]; /* cut at the spaces */
    char *word[WORDS];
    int count;                /* one more than WORDS: there were more */
    const char *rest_of_line; /* the text after the first word, single spaces */
};

static const char *const kind_names[COMMAND_KINDS] = {"pause", "resume", "step",   "phase", "towers",
                                                      "set",   "save",   "eval",   "why",   "restore",
                                                      "note",  "images", "status", "stop"};

static const struct setting {
    const char *name;
    double low, high;
    bool open_high, integer;
} settings[COMMAND_SETTINGS] = {
    [SETTING_LR] = {"lr", 0, 1e30, false, false},
    [SETTING_MOMENTUM] = {"momentum", 0, 1, true, false},
    [SETTING_WEIGHT_DECAY] = {"weight-decay", 0, 1000, false, false},
    [SETTING_CLIP_NORM] = {"clip-norm", 0, 1e30, false, false},
    [SETTING_BATCH] = {"batch", 1, 1048576, false, true},
    [SETTING_EVAL_EVERY] = {"eval-every", 0, 1e12, false, true},
    [SETTING_CHECKPOINT_EVERY] = {"checkpoint-every", 0, 1e12, false, true},
};

static const char *const rule_names[] = {"unscoped",        "sum",        "last",        "print-last",
                                         "decay-per-tower", "plain-mean", "clip-before", "no-average"};

/* ---- words */

static void split(const char *text, struct words *words) {
    size_t length = strlen(text);
    memcpy(words->text, text, length + 1);
    words->count = 0;
    for (char *s = words->text; *s && words->count <= WORDS; words->count++) {
        char *end = strchrnul(s, ' ');
        if (words->count < WORDS)
            words->word[words->count] = s;
        s = *end ? end + 1 : end;
        *end = 0;
    }
    const char *space = strchr(text, ' ');
    words->rest_of_line = space ? space + 1 : "";
}

/* Printable, single spaces, no space at either end. */
static enum status normalise(const char *text, char *out, size_t size) {
    char clean[1024];
    for (const char *s = text, *at = s; *s; at = s)
        if (text_next(&s) < 0)
            return status_fail(
                STATUS_BAD_INPUT,
                "a command is UTF-8, and byte %d of this one, 0x%02X, is not: type it where the locale "
                "is UTF-8, or put it through iconv",
                (int)(at - text) + 1, (unsigned char)*at);
    if (strlen(text) >= sizeof clean || text_printable(clean, sizeof clean, text) >= sizeof clean - 1)
        return status_fail(STATUS_BAD_INPUT, "a command of more than %zu characters", size - 1);
    size_t length = 0;
    for (const char *s = clean; *s; s++) {
        if (*s == ' ' && (length == 0 || s[1] == ' ' || s[1] == 0))
            continue;
        if (length + 1 >= size)
            return status_fail(STATUS_BAD_INPUT, "a command of more than %zu characters", size - 1);
        out[length++] = *s;
    }
    out[length] = 0;
    return STATUS_OK;
}

static int find(const char *word, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (!strcmp(word, names[i]))
            return i;
    return -1;
}

/* The index of `word` among names, or -1 with a sentence that names the nearest, or all when none is near. */
static int choose(const char *word, const char *const *names, int count, const char *what) {
    int i = find(word, names, count);
    if (i >= 0)
        return i;
    const char *near = text_near(word, names, count);
    char all[256];
    text_list(all, sizeof all, names, count);
    if (near)
        status_fail(STATUS_BAD_INPUT, "no %s \"%s\"; the nearest is \"%s\"", what, word, near);
    else
        status_fail(STATUS_BAD_INPUT, "no %s \"%s\"; there are %s", what, word, all);
    return -1;
}

/* A setting is changed by "set": its bare name is no command. */
static bool names_setting(const char *word) {
    for (int i = 0; i < COMMAND_SETTINGS; i++)
        if (!strcmp(word, settings[i].name))
            return true;
    return false;
}

static enum status usage(enum command_kind kind, const char *found) {
    return status_fail(STATUS_BAD_INPUT, "%s: expected \"%s\", found \"%s\"", kind_names[kind],
                       command_usage((int)kind, NULL), found);
}

static enum status whole(const char *what, const char *word, int64_t low, int64_t high, int64_t *out) {
    int64_t value;
    if (!text_integer(word, &value))
        return status_fail(STATUS_BAD_INPUT, "%s: \"%s\" is no whole number (%" PRId64 " to %" PRId64 ")",
                           what, word, low, high);
    if (value < low || value > high)
        return status_fail(STATUS_BAD_INPUT, "%s: %" PRId64 " is out of range, %" PRId64 " to %" PRId64, what,
                           value, low, high);
    *out = value;
    return STATUS_OK;
}

/* ---- one function per form */

static enum status parse_set(const struct words *words, struct command *out) {
    if (words->count != 3)
        return usage(COMMAND_SET, out->text);
    const char *names[COMMAND_SETTINGS];
    for (int i = 0; i < COMMAND_SETTINGS; i++)
        names[i] = settings[i].name;
    int i = choose(words->word[1], names, COMMAND_SETTINGS, "setting");
    if (i < 0)
        return STATUS_BAD_INPUT;
    const struct setting *setting = &settings[i];
    double value;
    int64_t integer;
    if (setting->integer) {
        STATUS_TRY(
            whole(setting->name, words->word[2], (int64_t)setting->low, (int64_t)setting->high, &integer));
        value = (double)integer;
    } else if (!text_real(words->word[2], &value)) {
        return status_fail(STATUS_BAD_INPUT, "%s: \"%s\" is no number", setting->name, words->word[2]);
    }
    if (!(value >= setting->low && value <= setting->high) || (setting->open_high && value >= setting->high))
        return status_fail(STATUS_BAD_INPUT, "%s: %s is out of range, %g to %s%g", setting->name,
                           words->word[2], setting->low, setting->open_high ? "less than " : "",
                           setting->high);
    out->setting = (enum command_setting)i;
    out->value = value;
    return STATUS_OK;
}

static enum status parse_why(const struct words *words, struct command *out) {
    static const char *const forms[] = {"on", "off", "apply", "restore"};
    if (words->count < 2)
        return usage(COMMAND_WHY, out->text);
    int form = choose(words->word[1], forms, COUNT(forms), "form of why");
    if (form < 0)
        return STATUS_BAD_INPUT;
    out->why = (enum command_why)form;
    if (form == WHY_APPLY) {
        if (words->count != 3)
            return usage(COMMAND_WHY, out->text);
        int rule = choose(words->word[2], rule_names, COUNT(rule_names), "rule");
        if (rule < 0)
            return STATUS_BAD_INPUT;
        snprintf(out->name, sizeof out->name, "%s", rule_names[rule]);
        return STATUS_OK;
    }
    if (form == WHY_RESTORE && words->count == 3 && !strcmp(words->word[2], "--rewind")) {
        out->rewind = true;
        return STATUS_OK;
    }
    return words->count == 2 ? STATUS_OK : usage(COMMAND_WHY, out->text);
}

static enum status parse_note(const struct words *words, struct command *out) {
    if (words->count < 2)
        return usage(COMMAND_NOTE, out->text);
    if (strlen(words->rest_of_line) >= sizeof out->note)
        return status_fail(STATUS_BAD_INPUT, "note: a text of %zu bytes, at most %zu",
                           strlen(words->rest_of_line), sizeof out->note - 1);
    snprintf(out->note, sizeof out->note, "%s", words->rest_of_line);
    return STATUS_OK;
}

/* No word, or the one flag. */
static enum status parse_flag(const struct words *words, const char *flag, bool *given, struct command *out) {
    *given = words->count == 2 && !strcmp(words->word[1], flag);
    return words->count == 1 || *given ? STATUS_OK : usage(out->kind, out->text);
}

static enum status parse_words(const struct words *words, struct command *out) {
    switch (out->kind) {
    case COMMAND_STEP:
        out->count = 1;
        if (words->count > 2)
            return usage(out->kind, out->text);
        return words->count == 1 ? STATUS_OK : whole("step", words->word[1], 1, STEPS_MOST, &out->count);
    case COMMAND_PHASE:
        if (words->count != 2 || (strcmp(words->word[1], "next") && strcmp(words->word[1], "run")))
            return usage(out->kind, out->text);
        out->run = !strcmp(words->word[1], "run");
        return STATUS_OK;
    case COMMAND_TOWERS:
        if (words->count != 2)
            return usage(out->kind, out->text);
        return whole("towers", words->word[1], 1, TOWERS_MOST, &out->count);
    case COMMAND_SET:
        return parse_set(words, out);
    case COMMAND_EVAL:
        return parse_flag(words, "--confusion", &out->confusion, out);
    case COMMAND_WHY:
        return parse_why(words, out);
    case COMMAND_RESTORE:
        return parse_flag(words, "--rewind", &out->rewind, out);
    case COMMAND_NOTE:
        return parse_note(words, out);
    case COMMAND_IMAGES:
        if (words->count < 2 || words->count > 3)
            return usage(out->kind, out->text);
        STATUS_TRY(whole("images", words->word[1], 0, TOWERS_MOST - 1, &out->count));
        return words->count == 2 ? STATUS_OK : whole("images", words->word[2], 0, 1048576, &out->first);
    case COMMAND_STATUS:
        return parse_flag(words, "--json", &out->json, out);
    case COMMAND_STOP:
        return parse_flag(words, "--discard", &out->discard, out);
    case COMMAND_PAUSE:
    case COMMAND_RESUME:
    case COMMAND_SAVE:
    case COMMAND_KINDS:
        break;
    }
    return words->count == 1 ? STATUS_OK : usage(out->kind, out->text);
}

enum status command_parse(const char *text, struct command *out) {
    struct command command = {.at = WIRE_UNKNOWN_INT};
    STATUS_TRY(normalise(text, command.text, sizeof command.text));
    struct words words;
    split(command.text, &words);
    if (words.count == 0) {
        char all[256];
        text_list(all, sizeof all, kind_names, COMMAND_KINDS);
        return status_fail(STATUS_BAD_INPUT, "an empty command; there are %s", all);
    }
    if (names_setting(words.word[0]))
        return status_fail(STATUS_BAD_INPUT, "no command \"%s\"; it is a setting: set %s VALUE",
                           words.word[0], words.word[0]);
    int kind = choose(words.word[0], kind_names, COMMAND_KINDS, "command");
    if (kind < 0)
        return STATUS_BAD_INPUT;
    command.kind = (enum command_kind)kind;
    STATUS_TRY(parse_words(&words, &command));
    *out = command;
    return STATUS_OK;
}

/* ---- as JSON */

static bool take_text(const json_t *object, const char *key, char *out, size_t size) {
    const json_t *value = json_object_get(object, key);
    if (value && !json_is_string(value))
        return false;
    text_printable(out, size, value ? json_string_value(value) : "");
    return true;
}

static enum status decode_object(const json_t *object, struct command *out) {
    const json_t *text = json_object_get(object, "command"), *at = json_object_get(object, "at");
    struct command command;
    if (!json_is_string(text))
        return status_fail(STATUS_BAD_INPUT, "a line without \"command\"");
    if (at && (!json_is_integer(at) || json_integer_value(at) < 0 || json_integer_value(at) > WIRE_INT_MAX))
        return status_fail(STATUS_BAD_INPUT, "\"at\": expected a step");
    STATUS_TRY(command_parse(json_string_value(text), &command));
    if (!take_text(object, "id", command.id, sizeof command.id) ||
        !take_text(object, "from", command.from, sizeof command.from) ||
        !take_text(object, "screen", command.screen, sizeof command.screen))
        return status_fail(STATUS_BAD_INPUT, "\"id\", \"from\" and \"screen\": expected a text");
    if (at)
        command.at = json_integer_value(at);
    *out = command;
    return STATUS_OK;
}

enum status command_decode(const char *line, size_t length, struct command *out) {
    if (length > WIRE_COMMAND_MAX)
        return status_fail(STATUS_BAD_INPUT, "a line of %zu bytes; a command has at most %d", length,
                           WIRE_COMMAND_MAX);
    json_error_t error;
    json_t *object = json_loadb(line, length, 0, &error);
    if (!json_is_object(object)) {
        json_decref(object);
        return status_fail(STATUS_BAD_INPUT, "not a JSON object");
    }
    enum status status = decode_object(object, out);
    json_decref(object);
    return status;
}

enum status command_encode(const struct command *command, char *out, size_t size, size_t *length) {
    json_t *object = json_pack("{s:s}", "command", command->text);
    bool whole_object = object != NULL;
    if (command->id[0])
        whole_object = whole_object && json_object_set_new(object, "id", json_string(command->id)) == 0;
    if (command->from[0])
        whole_object = whole_object && json_object_set_new(object, "from", json_string(command->from)) == 0;
    if (command->screen[0])
        whole_object =
            whole_object && json_object_set_new(object, "screen", json_string(command->screen)) == 0;
    if (command->at != WIRE_UNKNOWN_INT)
        whole_object = whole_object && json_object_set_new(object, "at", json_integer(command->at)) == 0;
    size_t bytes = whole_object && size > 0 ? json_dumpb(object, out, size - 1, JSON_COMPACT) : 0;
    json_decref(object);
    if (!whole_object)
        return status_fail(STATUS_BAD_INPUT, "a command that can't be written: not UTF-8, or no memory");
    if (bytes == 0 || bytes + 1 > size)
        return status_fail(STATUS_BAD_INPUT, "a command of %zu bytes; there is room for %zu", bytes + 1,
                           size);
    out[bytes] = '\n';
    *length = bytes + 1;
    return STATUS_OK;
}

bool command_of_any_version(enum command_kind kind) {
    return kind == COMMAND_SAVE || kind == COMMAND_STOP || kind == COMMAND_PAUSE || kind == COMMAND_RESUME ||
           kind == COMMAND_STATUS;
}

/* ---- help and completion */

static const struct form {
    const char *usage, *sentence;
} forms[COMMAND_KINDS] = {
    [COMMAND_PAUSE] = {"pause", "stop after this step and wait"},
    [COMMAND_RESUME] = {"resume", "go on"},
    [COMMAND_STEP] = {"step [N]", "N steps, then wait"},
    [COMMAND_PHASE] = {"phase next|run", "one phase of a step, or the rest of it"},
    [COMMAND_TOWERS] = {"towers N", "split the same batch over N towers"},
    [COMMAND_SET] = {"set KEY VALUE",
                     "lr, momentum, weight-decay, clip-norm, batch, eval-every, checkpoint-every"},
    [COMMAND_SAVE] = {"save", "write a checkpoint now"},
    [COMMAND_EVAL] = {"eval [--confusion]", "evaluate on the test set now"},
    [COMMAND_WHY] = {"why on|off|apply NAME|restore [--rewind]",
                     "look into the averaging, or train under a wrong rule"},
    [COMMAND_RESTORE] = {"restore [--rewind]",
                         "take a wrong rule back; --rewind: and go back to the last good state"},
    [COMMAND_NOTE] = {"note TEXT", "words into the record"},
    [COMMAND_IMAGES] = {"images TOWER [FIRST]", "images of a tower's shard"},
    [COMMAND_STATUS] = {"status [--json]", "where the run stands"},
    [COMMAND_STOP] = {"stop [--discard]",
                      "save and end the run; --discard: end it also when it can't be saved"},
};

const char *command_usage(int i, const char **sentence) {
    if (i < 0 || i >= COMMAND_KINDS)
        return NULL;
    if (sentence)
        *sentence = forms[i].sentence;
    return forms[i].usage;
}

/* Those of `lines` that go on where the text ends. */
static int complete_from(const char *const *lines, int count, const char *text, const char **out, int max) {
    int found = 0;
    size_t length = strlen(text);
    for (int i = 0; i < count && found < max; i++)
        if (!strncmp(lines[i], text, length) && lines[i][length])
            out[found++] = lines[i];
    return found;
}

int command_complete(const char *text, const char **out, int max) {
    static const char *const words[] = {"pause", "resume", "step",    "phase ", "towers ", "set ",   "save",
                                        "eval",  "why ",   "restore", "note ",  "images ", "status", "stop"};
    static const char *const lines[] = {"pause",
                                        "resume",
                                        "step",
                                        "phase next",
                                        "phase run",
                                        "towers ",
                                        "set lr ",
                                        "set momentum ",
                                        "set weight-decay ",
                                        "set clip-norm ",
                                        "set batch ",
                                        "set eval-every ",
                                        "set checkpoint-every ",
                                        "save",
                                        "eval",
                                        "eval --confusion",
                                        "why on",
                                        "why off",
                                        "why apply unscoped",
                                        "why apply sum",
                                        "why apply last",
                                        "why apply print-last",
                                        "why apply decay-per-tower",
                                        "why apply plain-mean",
                                        "why apply clip-before",
                                        "why apply no-average",
                                        "why restore",
                                        "why restore --rewind",
                                        "restore",
                                        "restore --rewind",
                                        "note ",
                                        "images ",
                                        "status",
                                        "stop",
                                        "stop --discard"};
    /* as long as the first word is typed, only first words: all of them have room */
    int found = strchr(text, ' ') ? 0 : complete_from(words, COUNT(words), text, out, max);
    return found ? found : complete_from(lines, COUNT(lines), text, out, max);
}
