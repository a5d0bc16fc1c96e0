#include "tui/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/inifile.h"
#include "engine/wire/command.h"

void config_path(char *out, size_t size) {
    const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    *out = 0;
    if (folder && *folder == '/')
        snprintf(out, size, "%s/towerscope/config.ini", folder);
    else if (home && *home == '/')
        snprintf(out, size, "%s/.config/towerscope/config.ini", home);
}

static enum status take_section(const char *file, const struct inifile_section *section,
                                struct preferences *preferences, struct keymap *keymap) {
    bool console = !strcmp(section->name, "console"), keys = !strcmp(section->name, "keys");
    if (!console && !keys && (*section->name || section->pairs))
        return status_fail(STATUS_BAD_INPUT, "%s:%d: expected the sections [console] and [keys], found [%s]",
                           file, section->line ? section->line : section->pairs->line, section->name);
    for (const struct inifile_pair *pair = section->pairs; pair; pair = pair->next) {
        char where[512];
        snprintf(where, sizeof where, "%s:%d", file, pair->line);
        if (console)
            STATUS_TRY(preferences_set(preferences, where, pair->key, pair->value));
        else if (keymap_set(keymap, pair->key, pair->value) != STATUS_OK)
            return status_prefix(STATUS_BAD_INPUT, "%s: ", where);
    }
    return STATUS_OK;
}

enum status config_read(const char *path, struct preferences *preferences, struct keymap *keymap) {
    char *text;
    struct inifile ini;
    struct preferences new_preferences = *preferences;
    struct keymap new_keymap = *keymap;
    enum status status = *path ? inifile_load(path, &text) : STATUS_NOT_FOUND;
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    STATUS_TRY(status);
    status = inifile_parse(path, text, &ini);
    free(text);
    for (const struct inifile_section *s = ini.sections; status == STATUS_OK && s; s = s->next)
        status = take_section(path, s, &new_preferences, &new_keymap);
    inifile_free(&ini);
    if (status == STATUS_OK) {
        *preferences = new_preferences;
        *keymap = new_keymap;
    }
    return status;
}

static bool has_key(const struct key_binding *binding, int key) {
    return binding->keys[0] == key || binding->keys[1] == key || binding->keys[2] == key;
}

/* Give the key, and say which actions lost it. */
static enum status change_key(struct keymap *keymap, const char *name, const char *key_text, char *said,
                              size_t size) {
    struct keymap before = *keymap;
    STATUS_TRY(keymap_set(keymap, name, key_text));
    int key = press_named(key_text), length = snprintf(said, size, "key %s = %s", name, key_text);
    bool first = true;
    for (int i = 0; i < keymap->count; i++) {
        if (!has_key(&before.bindings[i], key) || has_key(&keymap->bindings[i], key) || length >= (int)size)
            continue;
        length += snprintf(said + length, size - (size_t)length, "%s%s", first ? ", taken from " : " and ",
                           before.bindings[i].name);
        first = false;
    }
    return STATUS_OK;
}

enum status config_line(const char *text, struct preferences *preferences, struct keymap *keymap, bool *taken,
                        char *said, size_t size) {
    char word[16], name[48], value[64], rest[2];
    int words = sscanf(text, "%15s %47s %63s %1s", word, name, value, rest);
    *taken = true;
    *said = 0;
    if (words >= 1 && !strcmp(word, "key"))
        return words == 3 ? change_key(keymap, name, value, said, size)
                          : status_fail(STATUS_BAD_INPUT, "expected key ACTION KEY, as in: key pause p");
    for (int i = 0; words >= 2 && !strcmp(word, "set"); i++) {
        const char *values, *key = preferences_key(i, &values);
        if (!key)
            break;
        if (strcmp(key, name))
            continue;
        if (words != 3)
            return status_fail(STATUS_BAD_INPUT, "expected set %s VALUE: %s", name, values);
        STATUS_TRY(preferences_set(preferences, "set", name, value));
        snprintf(said, size, "%s = %s", name, value);
        return STATUS_OK;
    }
    *taken = false;
    return STATUS_OK;
}

int config_complete(const char *text, const char **out, int max) {
    static const char *const own[] = {"quit", "help", "budget", "goto ", "key "};
    static char lines[16][64];
    size_t length = strlen(text);
    int count = 0;
    for (size_t i = 0; i < sizeof own / sizeof *own && count < max; i++)
        if (length > 0 && !strncmp(own[i], text, length) && own[i][length])
            out[count++] = own[i];
    count += command_complete(text, out + count, max - count);
    for (int i = 0; i < 16 && count < max && length >= 4; i++) {
        const char *key = preferences_key(i, NULL);
        if (!key)
            break;
        snprintf(lines[i], sizeof lines[i], "set %s ", key);
        if (!strncmp(lines[i], text, length) && lines[i][length])
            out[count++] = lines[i];
    }
    return count;
}
