#include "cli/arguments.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"

enum { NAMES = 32 }; /* options of one command that are offered as the nearest */

bool arguments_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return true;
    return false;
}

static enum status unknown_option(const struct argument_list *list, const char *word) {
    const char *names[NAMES];
    int count = 0;
    for (int i = 0; i < list->option_count && count < NAMES; i++)
        names[count++] = list->options[i].name;
    const char *near = text_near(word, names, count);
    if (near)
        return status_fail(STATUS_BAD_INPUT, "%s has no option \"%s\"; the nearest is %s", list->command,
                           word, near);
    return status_fail(STATUS_BAD_INPUT, "%s has no option \"%s\"; towerscope %s --help lists them",
                       list->command, word, list->command);
}

static const struct argument *find(const struct argument_list *list, const char *word, size_t length) {
    for (int i = 0; i < list->option_count; i++)
        if (strlen(list->options[i].name) == length && !strncmp(list->options[i].name, word, length))
            return &list->options[i];
    return NULL;
}

static enum status out_of_range(const struct argument *option, const char *text) {
    char range[80];
    if (isinf(option->high))
        snprintf(range, sizeof range, "from %.15g on", option->low);
    else
        snprintf(range, sizeof range, "from %.15g to %.15g", option->low, option->high);
    return status_fail(STATUS_BAD_INPUT, "%s: expected a %snumber %s, found \"%s\"", option->name,
                       option->integer ? "whole " : "", range, text);
}

static enum status set_value(const struct argument *option, const char *text) {
    int64_t integer;
    double real;
    if (option->text) {
        if (!*text)
            return status_fail(STATUS_BAD_INPUT, "%s is empty; it wants %s", option->name, option->value);
        *option->text = text;
    } else if (option->integer) {
        if (!text_integer(text, &integer) || (double)integer < option->low || (double)integer > option->high)
            return out_of_range(option, text);
        *option->integer = integer;
    } else {
        if (!text_real(text, &real) || !(real >= option->low && real <= option->high))
            return out_of_range(option, text);
        *option->real = real;
    }
    return STATUS_OK;
}

/* One option at argv[*i]; moves *i to its value. */
static enum status read_option(int argc, char **argv, int *i, const struct argument_list *list) {
    const char *word = argv[*i], *equals = strchr(word, '=');
    const struct argument *option = find(list, word, equals ? (size_t)(equals - word) : strlen(word));
    if (!option)
        return unknown_option(list, word);
    if (option->flag && equals)
        return status_fail(STATUS_BAD_INPUT, "%s takes no value, found \"%s\"", option->name, equals + 1);
    if (option->flag) {
        *option->flag = true;
        return STATUS_OK;
    }
    if (!equals && *i + 1 >= argc)
        return status_fail(STATUS_BAD_INPUT, "%s wants %s after it", option->name, option->value);
    return set_value(option, equals ? equals + 1 : argv[++*i]);
}

enum status arguments_read(int argc, char **argv, struct argument_list *list) {
    bool options_end = false;
    list->word_count = 0;
    for (int i = 1; i < argc; i++) {
        bool taken = false;
        if (!options_end && list->console)
            STATUS_TRY(console_option(list->console, argc, argv, &i, &taken));
        if (taken)
            continue;
        if (!options_end && !strcmp(argv[i], "--"))
            options_end = true;
        else if (!options_end && argv[i][0] == '-' && argv[i][1])
            STATUS_TRY(read_option(argc, argv, &i, list));
        else if (list->word_count == list->word_room)
            return status_fail(STATUS_BAD_INPUT, "%s takes %s, and \"%s\" is one too many", list->command,
                               list->takes, argv[i]);
        else
            list->words[list->word_count++] = argv[i];
    }
    return STATUS_OK;
}
