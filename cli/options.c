#include "cli/options.h"

#include <string.h>

#include "engine/base/text.h"
#include "engine/wire/live.h"

/* Options that are no settings of a run. */
enum { OPTION_CONFIG, OPTION_SET, OPTION_SCRIPT, OPTION_HELP, OPTIONS };

static const struct {
    const char *name, *value, *sentence;
} extra[OPTIONS] = {
    [OPTION_CONFIG] = {"config", "FILE", "read settings from an INI file first (key = value)"},
    [OPTION_SET] = {"set", "KEY=VALUE", "the same as --KEY VALUE"},
    [OPTION_SCRIPT] = {"script", "FILE", "commands by step, a line each: @120 towers 4"},
    [OPTION_HELP] = {"help", "", "this list"},
};

void options_help(FILE *file) {
    settings_help(file);
    for (int i = 0; i < OPTIONS; i++) {
        char option[64];
        snprintf(option, sizeof option, "--%s%s%s", extra[i].name, *extra[i].value ? " " : "",
                 extra[i].value);
        fprintf(file, "  %-28s %s\n", option, extra[i].sentence);
    }
}

bool options_given(const struct run_options *options, const char *key) {
    int count;
    const struct setting_key *keys = settings_keys(&count);
    const struct setting_key *found = settings_find(key);
    return found && (options->settings.given >> (found - keys) & 1);
}

enum status options_unknown(const char *where, const char *option, const char *const *names, int count) {
    const char *near = text_near(option, names, count);
    return status_fail(STATUS_BAD_INPUT, "%sthere is no option --%s%s%s", where, option,
                       near ? "; the nearest is --" : "", near ? near : "");
}

static enum status unknown_option(const char *name) {
    int count;
    const struct setting_key *keys = settings_keys(&count);
    const char *names[64 + OPTIONS];
    for (int i = 0; i < count; i++)
        names[i] = keys[i].key;
    for (int i = 0; i < OPTIONS; i++)
        names[count + i] = extra[i].name;
    return options_unknown("", name, names, count + OPTIONS);
}

static enum status copy_text(char *to, size_t size, const char *option, const char *value) {
    if (!*value)
        return status_fail(STATUS_BAD_INPUT, "%s is empty", option);
    if (strlen(value) >= size)
        return status_fail(STATUS_BAD_INPUT, "%s: \"%s\" is longer than %zu bytes", option, value, size - 1);
    memcpy(to, value, strlen(value) + 1);
    return STATUS_OK;
}

struct reading {
    struct settings file, flags;
    struct run_options *out;
};

static enum status set_pair(struct reading *r, const char *pair) {
    char key[64];
    const char *equals = strchr(pair, '=');
    if (!equals || equals == pair || (size_t)(equals - pair) >= sizeof key)
        return status_fail(STATUS_BAD_INPUT, "--set: \"%s\" is not KEY=VALUE", pair);
    memcpy(key, pair, (size_t)(equals - pair));
    key[equals - pair] = 0;
    return settings_set(&r->flags, "--set", key, equals + 1);
}

static enum status read_extra(struct reading *r, int which, const char *value) {
    switch (which) {
    case OPTION_CONFIG:
        if (!*value)
            return status_fail(STATUS_BAD_INPUT, "--config is empty; give the path of a file of settings");
        return settings_read(&r->file, value);
    case OPTION_SET:
        return set_pair(r, value);
    case OPTION_SCRIPT:
        return copy_text(r->out->script, sizeof r->out->script, "--script", value);
    default:
        r->out->help = true;
        return STATUS_OK;
    }
}

static bool wants_value(const struct setting_key *key, int which) {
    return key ? key->type != SETTING_FLAG : *extra[which].value != 0;
}

/* One option at argv[*i]; moves *i past its value. */
static enum status read_option(struct reading *r, int argc, char **argv, int *i) {
    char name[64], where[72];
    const char *word = argv[*i] + 2, *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), word);
    snprintf(where, sizeof where, "--%s", name);
    const struct setting_key *key = settings_find(name);
    int which = 0;
    while (!key && which < OPTIONS && strcmp(name, extra[which].name) != 0)
        which++;
    if (!key && which == OPTIONS)
        return unknown_option(name);
    const char *value = equals ? equals + 1 : NULL;
    if (!value && wants_value(key, which)) {
        if (*i + 1 >= argc)
            return status_fail(STATUS_BAD_INPUT, "%s needs a value: %s %s", where, where,
                               key ? key->value : extra[which].value);
        value = argv[++*i];
    }
    if (key)
        return settings_set(&r->flags, where, key->key, value ? value : "yes");
    return read_extra(r, which, value);
}

enum status options_read_word(int argc, char **argv, struct run_options *out, char *word, size_t size) {
    *out = (struct run_options){0};
    *word = 0;
    struct reading r = {.out = out};
    settings_clear(&r.file);
    settings_clear(&r.flags);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-h"))
            out->help = true;
        else if (!strncmp(argv[i], "--", 2) && argv[i][2])
            STATUS_TRY(read_option(&r, argc, argv, &i));
        else if (argv[i][0] == '-')
            return status_fail(STATUS_BAD_INPUT, "there is no option %s; options begin with two dashes",
                               argv[i]);
        else if (*word)
            return status_fail(STATUS_BAD_INPUT, "two run names, \"%s\" and \"%s\"; one is enough", word,
                               argv[i]);
        else
            STATUS_TRY(copy_text(word, size, "the name", argv[i]));
    }
    struct settings environment;
    settings_clear(&environment);
    STATUS_TRY(settings_environment(&environment));
    STATUS_TRY(settings_check(&r.file, "the config file"));
    STATUS_TRY(settings_check(&r.flags, "the command line"));
    if (*r.file.runs && *environment.runs && !*r.flags.runs && strcmp(r.file.runs, environment.runs) != 0)
        snprintf(
            out->note, sizeof out->note,
            "TOWERSCOPE_RUNS is %s: it goes before runs = %s of the config file (--runs goes before both)",
            environment.runs, r.file.runs);
    out->settings = r.file;
    settings_overlay(&out->settings, &environment);
    settings_overlay(&out->settings, &r.flags);
    return STATUS_OK;
}

enum status options_read(int argc, char **argv, struct run_options *out) {
    char word[1024]; /* too long a name is for run_name_check() to refuse */
    STATUS_TRY(options_read_word(argc, argv, out, word, sizeof word));
    if (*word)
        STATUS_TRY(run_name_check(word));
    snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, word);
    if (out->settings.resume && !*word && !out->help)
        return status_fail(STATUS_BAD_INPUT, "--resume needs the NAME of the run that is to go on");
    return STATUS_OK;
}

enum status options_only(const struct run_options *options, const char *command, const char *const *keys,
                         int count) {
    int all;
    const struct setting_key *table = settings_keys(&all);
    for (int i = 0; i < all; i++) {
        bool wanted = !(options->settings.given >> i & 1);
        for (int k = 0; k < count && !wanted; k++)
            wanted = !strcmp(keys[k], table[i].key);
        if (!wanted) {
            char where[80];
            snprintf(where, sizeof where, "%s: ", command);
            return options_unknown(where, table[i].key, keys, count);
        }
    }
    return STATUS_OK;
}
