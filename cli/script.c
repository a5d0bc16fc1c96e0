#include "cli/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/inifile.h"
#include "engine/base/text.h"

static enum status read_line(const char *path, int number, char *line, struct command *out) {
    char *words = line + strspn(line, " \t");
    words[strcspn(words, "\r\n")] = 0;
    char *rest = words + strcspn(words, " \t");
    bool more = *rest != 0;
    *rest = 0;
    int64_t step;
    if (words[0] != '@' || !text_integer(words + 1, &step) || step < 0)
        return status_fail(STATUS_BAD_INPUT,
                           "%s:%d: a line is @STEP COMMAND, as in \"@120 towers 4\"; this begins with \"%s\"",
                           path, number, words);
    if (!more)
        return status_fail(STATUS_BAD_INPUT, "%s:%d: no command after %s", path, number, words);
    if (command_parse(rest + 1, out) != STATUS_OK)
        return status_prefix(STATUS_BAD_INPUT, "%s:%d: ", path, number);
    out->at = step;
    snprintf(out->id, sizeof out->id, "script:%d", number);
    snprintf(out->from, sizeof out->from, "script");
    return STATUS_OK;
}

static int by_step(const void *a, const void *b) {
    const struct command *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return atoi(x->id + strlen("script:")) - atoi(y->id + strlen("script:"));
}

static enum status read_lines(const char *path, char *text, struct script *script) {
    static const char mark[] = "\xEF\xBB\xBF"; /* a byte order mark */
    int number = 0, room = 0;
    text += strncmp(text, mark, sizeof mark - 1) == 0 ? sizeof mark - 1 : 0;
    for (char *line = text, *end; line && *line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = 0;
        number++;
        const char *return_at = strchr(line, '\r');
        if (return_at && return_at[1])
            return status_fail(
                STATUS_BAD_INPUT,
                "%s:%d: a carriage return within a line, which would hide what follows it: end lines "
                "with a line feed",
                path, number);
        if (strchr("#\r", line[strspn(line, " \t")]))
            continue; /* a comment or an empty line */
        if (script->count == room) {
            room = room ? 2 * room : 16;
            struct command *more = realloc(script->commands, (size_t)room * sizeof *more);
            if (!more)
                return status_fail(STATUS_NO_MEMORY, "%s: no memory for %d commands", path, room);
            script->commands = more;
        }
        STATUS_TRY(read_line(path, number, line, &script->commands[script->count]));
        script->count++;
    }
    if (script->count)
        qsort(script->commands, (size_t)script->count, sizeof *script->commands, by_step);
    return STATUS_OK;
}

enum status script_read(const char *path, void (*waits)(void *context), void *context, struct script *out) {
    *out = (struct script){0};
    char *text;
    STATUS_TRY(inifile_load_any(path, waits, context, &text));
    enum status status = read_lines(path, text, out);
    free(text);
    if (status != STATUS_OK)
        script_free(out);
    return status;
}

void script_free(struct script *script) {
    free(script->commands);
    *script = (struct script){0};
}

int script_skip(struct script *script, int64_t steps, char *words, size_t size) {
    enum { MORE = 32 }; /* for how many are not named */
    int skipped = 0, named = 0;
    size_t used = 0;
    *words = 0;
    for (; script->next < script->count && script->commands[script->next].at < steps; skipped++) {
        const struct command *command = &script->commands[script->next++];
        size_t room = size > used + MORE ? size - used - MORE : 0;
        int length = named < skipped ? -1
                                     : snprintf(words + used, room, "%s@%lld %s", named ? "; " : "",
                                                (long long)command->at, command->text);
        if (length < 0 || (size_t)length >= room)
            words[used] = 0;
        else
            used += (size_t)length, named++;
    }
    if (named < skipped)
        snprintf(words + used, size - used, "%s%d more", named ? " and " : "", skipped - named);
    return skipped;
}

bool script_due(const struct script *script, int64_t steps) {
    return script->next < script->count && script->commands[script->next].at <= steps;
}

const struct command *script_take(struct script *script, int64_t steps) {
    return script_due(script, steps) ? &script->commands[script->next++] : NULL;
}
