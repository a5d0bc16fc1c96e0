/* A lesson at work: its lines one by one, its run in this very process, events folded as they come. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lesson.h"
#include "engine/base/clock.h"
#include "engine/base/text.h"
#include "engine/wire/command.h"

static void emit(void *context, const struct event *event, bool recorded) {
    struct lesson *lesson = context;
    struct event copy = *event;
    (void)recorded;
    copy.seq = ++lesson->seq;
    copy.time = clock_wall();
    if (lesson->status == STATUS_OK)
        lesson->status = state_apply(lesson->state, &copy);
}

static enum status wrong(const struct lesson *lesson, const char *what, const char *line) {
    return status_fail(STATUS_INTERNAL, "lesson %s, line %d: %s: %s", lesson->name, lesson->line, what, line);
}

/* ---- lines */

static enum status start_run(struct lesson *lesson, char *words) {
    struct settings settings;
    settings_clear(&settings);
    static const char *const always[][2] = {{"data", "generated"},     {"model", "mlp"}, {"eval-every", "0"},
                                            {"checkpoint-every", "0"}, {"seed", "1"},    {"steps", "1000"},
                                            {"distort", "off"}};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        STATUS_TRY(settings_set(&settings, lesson->name, always[i][0], always[i][1]));
    char *place;
    for (char *word = strtok_r(words, " ", &place); word; word = strtok_r(NULL, " ", &place)) {
        char *equals = strchr(word, '=');
        if (!equals)
            return wrong(lesson, "a setting is KEY=VALUE", word);
        *equals = 0;
        STATUS_TRY(settings_set(&settings, lesson->name, word, equals + 1));
    }
    session_close(&lesson->session);
    struct run_state *state = state_new();
    if (!state)
        return status_fail(STATUS_NO_MEMORY, "no memory for a lesson");
    state_free(lesson->state);
    lesson->state = state;
    lesson->generation++;
    lesson->seq = 0;
    struct trainer_options options = {.settings = settings, .run_name = lesson->name, .sink = {emit, lesson}};
    STATUS_TRY(session_open(&options, NULL, &lesson->session));
    trainer_begin(lesson->session.trainer);
    return lesson_command(lesson, "pause", NULL, NULL);
}

enum status lesson_command(struct lesson *lesson, const char *text, const char *screen, const char *id) {
    struct command command;
    if (!lesson->session.trainer)
        return status_fail(STATUS_REFUSED, "the lesson has not begun");
    STATUS_TRY(command_parse(text, &command));
    snprintf(command.id, sizeof command.id, "%s", id ? id : "lesson");
    snprintf(command.from, sizeof command.from, "lesson");
    snprintf(command.screen, sizeof command.screen, "%s", screen ? screen : "");
    STATUS_TRY(trainer_command(lesson->session.trainer, &command, NULL));
    return lesson->status;
}

static enum status do_command(struct lesson *lesson, const char *text) {
    STATUS_TRY(lesson_command(lesson, text, NULL, NULL));
    const struct event_command *answer = &lesson->state->command.command;
    if (answer->status && strcmp(answer->status, "applied") != 0)
        return wrong(lesson, "refused", answer->reason ? answer->reason : text);
    return STATUS_OK;
}

static enum status do_steps(struct lesson *lesson, const char *text) {
    int64_t steps;
    if (!text_integer(text, &steps) || steps < 1 || !lesson->session.trainer)
        return wrong(lesson, "step N", text);
    for (int64_t i = 0; i < steps; i++)
        STATUS_TRY(trainer_step(lesson->session.trainer));
    STATUS_TRY(trainer_settle(lesson->session.trainer));
    return lesson->status;
}

static enum status keep(struct lesson *lesson, char *words) {
    char *space = strchr(words, ' ');
    if (!space || space - words >= (long)sizeof lesson->keep[0].name)
        return wrong(lesson, "keep NAME FIGURE", words);
    *space = 0;
    int i = 0;
    while (i < lesson->kept && strcmp(lesson->keep[i].name, words) != 0)
        i++;
    if (i == LESSON_KEPT)
        return wrong(lesson, "too many figures are kept", words);
    double value;
    STATUS_TRY(lesson_figure(lesson, space + 1, &value, NULL));
    snprintf(lesson->keep[i].name, sizeof lesson->keep[i].name, "%s", words);
    lesson->keep[i].value = value;
    lesson->kept = i == lesson->kept ? i + 1 : lesson->kept;
    return STATUS_OK;
}

static enum status check(struct lesson *lesson, char *words) {
    double a, b;
    char *at = strpbrk(words, "<>="), sign = at ? *at : 0;
    if (!at || at == words || at[-1] != ' ' || at[1] != ' ')
        return wrong(lesson, "check FIGURE < FIGURE", words);
    at[-1] = 0;
    STATUS_TRY(lesson_figure(lesson, words, &a, NULL));
    STATUS_TRY(lesson_figure(lesson, at + 2, &b, NULL));
    bool holds = sign == '<' ? a < b : sign == '>' ? !(a <= b) : fabs(a - b) <= 1e-3 * fabs(b);
    return holds ? STATUS_OK
                 : status_fail(STATUS_INTERNAL, "lesson %s, line %d: %s (%g) %c %s (%g) does not hold",
                               lesson->name, lesson->line, words, a, sign, at + 2, b);
}

/* ---- parts */

/* The next line, or NULL; those that go on with it are joined to it. */
static char *take_line(struct lesson *lesson) {
    char *line = lesson->next;
    if (!line || !*line)
        return NULL;
    char *end = strchr(line, '\n');
    lesson->line++;
    while (end && end[1] == ' ') {
        *end = ' ';
        lesson->line++;
        end = strchr(end + 1, '\n');
    }
    lesson->next = end ? end + 1 : NULL;
    if (end)
        *end = 0;
    return line;
}

/* Blanks in a row become one. */
static void squeeze(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from != ' ' || to == text || to[-1] != ' ')
            *to++ = *from;
    *to = 0;
}

static enum status do_line(struct lesson *lesson, char *line, bool *said) {
    char *rest = strchr(line, ' ');
    size_t length = rest ? (size_t)(rest - line) : strlen(line);
    rest = rest ? rest + strspn(rest, " ") : line + length;
    char word[8];
    snprintf(word, sizeof word, "%.*s", (int)length, line);
    if (!*line || *line == '#' || !strcmp(word, "title"))
        return STATUS_OK;
    if (!strcmp(word, "run"))
        return start_run(lesson, rest);
    if (!strcmp(word, "step"))
        return do_steps(lesson, rest);
    if (!strcmp(word, "do"))
        return do_command(lesson, rest);
    if (!strcmp(word, "keep"))
        return keep(lesson, rest);
    if (!strcmp(word, "check"))
        return check(lesson, rest);
    if (!strcmp(word, "key")) {
        snprintf(lesson->keys, sizeof lesson->keys, "%s", rest);
        return STATUS_OK;
    }
    if (strcmp(word, "say") != 0)
        return wrong(lesson, "not a line of a lesson", line);
    squeeze(rest);
    *said = true;
    return lesson_fill(lesson, rest, lesson->said, sizeof lesson->said);
}

enum status lesson_next(struct lesson *lesson) {
    bool said = false;
    lesson->keys[0] = 0;
    while (!said) {
        char *line = take_line(lesson);
        if (!line) {
            lesson->done = true;
            return STATUS_OK;
        }
        STATUS_TRY(do_line(lesson, line, &said));
    }
    lesson->part++;
    return STATUS_OK;
}

void lesson_title(const char *text, char *out, size_t size) {
    snprintf(out, size, "%.*s", (int)(strcspn(text, "\n") - 6), text + 6); /* "title " comes first */
}

enum status lesson_restart(struct lesson *lesson) {
    char *text = strdup(lesson->source);
    struct run_state *state = state_new();
    if (!text || !state) {
        free(text);
        state_free(state);
        return status_fail(STATUS_NO_MEMORY, "no memory for a lesson");
    }
    lesson_close(lesson);
    lesson->text = lesson->next = text;
    lesson->state = state;
    lesson->generation++;
    lesson->seq = 0;
    lesson->line = lesson->part = lesson->kept = 0;
    lesson->status = STATUS_OK;
    lesson->done = false;
    return STATUS_OK;
}

enum status lesson_open(const char *name, struct lesson *out) {
    const char *names[32];
    int count = 0;
    *out = (struct lesson){.name = name};
    for (const struct lesson_source *s = lesson_sources; s->name && count < 32; s++) {
        names[count++] = s->name;
        if (strcmp(s->name, name) != 0)
            continue;
        out->source = s->text;
        STATUS_TRY(lesson_restart(out));
        for (const char *at = s->text; (at = strstr(at, "\nsay ")) != NULL; at++)
            out->parts++;
        return STATUS_OK;
    }
    const char *near = text_near(name, names, count);
    return status_fail(STATUS_NOT_FOUND, "there is no lesson \"%s\"%s%s; towerscope lesson lists them", name,
                       near ? "; the nearest is " : "", near ? near : "");
}

void lesson_close(struct lesson *lesson) {
    session_close(&lesson->session);
    state_free(lesson->state);
    free(lesson->text);
    lesson->state = NULL;
    lesson->text = NULL;
}
