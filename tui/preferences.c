#include "tui/preferences.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void preferences_default(struct preferences *preferences) {
    *preferences = (struct preferences){.number_interval = 0.5, .plot_interval = 0.2, .synchronized = true};
}

double preferences_smoothing(int64_t smoothing, const char **word) {
    static const double weights[SMOOTHINGS] = {0, 0.8, 0.95, 0.99};
    static const char *const words[SMOOTHINGS] = {"raw", "smooth 5", "smooth 20", "smooth 100"};
    if (smoothing < 0 || smoothing >= SMOOTHINGS)
        smoothing = 0;
    if (word)
        *word = words[smoothing];
    return weights[smoothing];
}

enum key_type { KEY_FLAG, KEY_CHOICE, KEY_WHOLE, KEY_SECONDS };

/* Choices are listed in the order of their enumeration, "off" before "on". */
static const struct preference {
    const char *key, *values;
    enum key_type type;
    size_t offset;
    double low, high;
} keys[] = {
    {"log-scale", "off|on", KEY_FLAG, offsetof(struct preferences, log_scale), 0, 0},
    {"smoothing", "0 to 3", KEY_WHOLE, offsetof(struct preferences, smoothing), 0, SMOOTHINGS - 1},
    {"window", "0 (all) or steps", KEY_WHOLE, offsetof(struct preferences, window), 0, 1e12},
    {"theme", "auto|dark|light", KEY_CHOICE, offsetof(struct preferences, theme), 0, 0},
    {"palette", "safe|bright|grey", KEY_CHOICE, offsetof(struct preferences, palette), 0, 0},
    {"glyphs", "auto|ascii|block|braille", KEY_CHOICE, offsetof(struct preferences, glyphs), 0, 0},
    {"number-interval", "0.1 to 60 seconds", KEY_SECONDS, offsetof(struct preferences, number_interval), 0.1,
     60},
    {"plot-interval", "0.05 to 60 seconds", KEY_SECONDS, offsetof(struct preferences, plot_interval), 0.05,
     60},
    {"synchronized", "off|on", KEY_FLAG, offsetof(struct preferences, synchronized), 0, 0},
};
enum { KEYS = sizeof keys / sizeof *keys };

const char *preferences_key(int i, const char **values) {
    if (i < 0 || i >= KEYS)
        return NULL;
    if (values)
        *values = keys[i].values;
    return keys[i].key;
}

/* Which of "a|b|c" a value is; -1: none. */
static int choice(const char *values, const char *value) {
    size_t length = strlen(value);
    for (int n = 0;; n++) {
        size_t word = strcspn(values, "|");
        if (word == length && !strncmp(values, value, length))
            return n;
        if (!values[word])
            return -1;
        values += word + 1;
    }
}

static bool set(struct preferences *preferences, const struct preference *key, const char *value) {
    void *at = (char *)preferences + key->offset;
    char *end;
    if (key->type == KEY_FLAG || key->type == KEY_CHOICE) {
        int n = choice(key->values, value);
        if (n >= 0 && key->type == KEY_FLAG)
            *(bool *)at = n == 1;
        else if (n >= 0) /* enumerations that begin with 0 */
            memcpy(at, &n, sizeof(enum theme));
        return n >= 0;
    }
    double number = strtod(value, &end);
    if (end == value || *end || !(number >= key->low && number <= key->high) ||
        (key->type == KEY_WHOLE && floor(number) < number))
        return false;
    if (key->type == KEY_SECONDS)
        *(double *)at = number;
    else
        *(int64_t *)at = (int64_t)number;
    return true;
}

enum status preferences_set(struct preferences *preferences, const char *where, const char *key,
                            const char *value) {
    for (int i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].key, key))
            continue;
        if (!set(preferences, &keys[i], value))
            return status_fail(STATUS_BAD_INPUT, "%s: %s is %s, not \"%s\"", where, key, keys[i].values,
                               value);
        return STATUS_OK;
    }
    char list[256] = "";
    for (int i = 0; i < KEYS; i++) {
        strncat(list, i ? ", " : "", sizeof list - strlen(list) - 1);
        strncat(list, keys[i].key, sizeof list - strlen(list) - 1);
    }
    return status_fail(STATUS_BAD_INPUT, "%s: the console has no setting \"%s\"; it has %s", where, key,
                       list);
}
