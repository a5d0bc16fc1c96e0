/* What happened, in words: the lines of the log, and the markers of the curves. */
#include "engine/wire/state_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/base/text.h"
#include "engine/wire/compare.h"

static enum status no_memory(void) {
    return status_fail(STATUS_NO_MEMORY, "no memory to keep the log of the run");
}

/* ---- the log */

static enum status add_log(struct run_state *state, struct state_log_line line, const char *text) {
    char *copy = strdup(text);
    if (!copy)
        return no_memory();
    if (state->log_count == STATE_LOG_LINES) { /* the oldest quarter goes, so that moving is rare */
        enum { GONE = STATE_LOG_LINES / 4 };
        for (int i = 0; i < GONE; i++)
            free(state->log[i].text);
        memmove(state->log, state->log + GONE, (STATE_LOG_LINES - GONE) * sizeof *state->log);
        state->log_count -= GONE;
        state->log_dropped += GONE;
    }
    line.text = copy;
    state->log[state->log_count++] = line;
    return STATUS_OK;
}

enum status state_log_end(struct run_state *state, const char *text) {
    struct state_log_line line = {
        state->last_time, WIRE_UNKNOWN_INT, EVENT_RUN_END, LEVEL_ERROR, false, NULL};
    return add_log(state, line, text);
}

/* The step that a line of the log stands beside. */
static int64_t step_of(const struct event *event) {
    return event->kind == EVENT_RUN_START ? event->run_start.resumed_from : event_step(event);
}

/* Whether an event makes a line of the log. Steps and measurements don't; neither does "saving" before
 * "saved". */
static bool is_logged(const struct run_state *state, const struct event *event) {
    switch (event->kind) {
    case EVENT_WHY: /* one that is walked; of a run that trains on they would push everything else out */
        return !text_is(state->phase, "training");
    case EVENT_RUN_START:
    case EVENT_EVAL:
    case EVENT_TOWERS:
    case EVENT_CHECKPOINT:
    case EVENT_REWIND:
    case EVENT_NOTE:
    case EVENT_ALARM:
    case EVENT_RUN_END:
        return true;
    case EVENT_COMMAND:
        return !text_is(event->command.status, "pending");
    case EVENT_CONTROL: {
        const char *before = state->control.kind ? state->control.control.holder_user : NULL;
        const char *after = event->control.holder_user;
        return (before && after) ? strcmp(before, after) != 0 : before != after;
    }
    case EVENT_STATE:
        if (text_is(event->state.state, "training"))
            return text_is(state->phase, "paused") || text_is(state->phase, "starting");
        /* an evaluation or a save in a pause ends in the same pause */
        if (text_is(state->phase, "evaluating") || text_is(state->phase, "saving"))
            return false;
        return (text_is(event->state.state, "paused") || text_is(event->state.state, "starting")) &&
               !text_is(event->state.state, state->phase);
    default:
        return false;
    }
}

enum status state_log_fold(struct run_state *state, const struct event *event) {
    if (!is_logged(state, event))
        return STATUS_OK;
    char text[512];
    enum event_level level = event_words(event, text, sizeof text);
    bool quiet = level == LEVEL_INFO && (event->kind == EVENT_WHY ||
                                         (event->kind == EVENT_COMMAND && event->command.screen != NULL));
    struct state_log_line line = {event->time, step_of(event), event->kind, level, quiet, NULL};
    return add_log(state, line, text);
}

/* ---- markers */

static enum status add_marker(struct run_state *state, enum state_marker_kind kind, int64_t step,
                              const char *text) {
    if (step == WIRE_UNKNOWN_INT)
        return STATUS_OK;
    char clean[80];
    text_printable(clean, sizeof clean, text);
    char *copy = strdup(clean);
    if (!copy)
        return no_memory();
    if (state->marker_count == STATE_MARKERS) {
        enum { GONE = STATE_MARKERS / 4 };
        for (int i = 0; i < GONE; i++)
            free(state->markers[i].text);
        memmove(state->markers, state->markers + GONE, (STATE_MARKERS - GONE) * sizeof *state->markers);
        state->marker_count -= GONE;
    }
    state->markers[state->marker_count++] = (struct state_marker){kind, step, copy};
    return STATUS_OK;
}

static enum status mark_command(struct run_state *state, const struct event_command *command) {
    /* These are told by an event, and so a marker, of their own, or change nothing. */
    static const char *const others[] = {"towers", "note",  "save",   "eval",    "status",
                                         "images", "phase", "why on", "why off", NULL};
    if (!text_is(command->status, "applied") || !command->text || command->screen)
        return STATUS_OK;
    for (int i = 0; others[i]; i++)
        if (text_begins(command->text, others[i]))
            return STATUS_OK;
    return add_marker(state, MARKER_COMMAND, command->step, command->text);
}

enum status state_markers_fold(struct run_state *state, const struct event *event) {
    char text[80], count[28];
    switch (event->kind) {
    case EVENT_RUN_START:
        if (event->run_start.resumed_from == WIRE_UNKNOWN_INT)
            return STATUS_OK;
        return add_marker(state, MARKER_RESUME, event->run_start.resumed_from, "resumed");
    case EVENT_TOWERS:
        snprintf(text, sizeof text, "towers %" PRId64 "->%" PRId64, event->towers.from, event->towers.to);
        return add_marker(state, MARKER_TOWERS, event->towers.step, text);
    case EVENT_COMMAND:
        return mark_command(state, &event->command);
    case EVENT_ALARM:
        if (text_is(event->alarm.level, "info"))
            return STATUS_OK;
        return add_marker(state, MARKER_ALARM, event->alarm.step,
                          event->alarm.text ? event->alarm.text : "alarm");
    case EVENT_EVAL:
        snprintf(text, sizeof text, "precision %.1f %%", 100 * event->eval.precision);
        return add_marker(state, MARKER_EVAL, event->eval.step, text);
    case EVENT_CHECKPOINT:
        return add_marker(state, MARKER_CHECKPOINT, event->checkpoint.step, "saved");
    case EVENT_REWIND:
        snprintf(text, sizeof text, "back to %s", text_count(event->rewind.to, count));
        return add_marker(state, MARKER_REWIND, event->rewind.to, text);
    case EVENT_NOTE:
        return add_marker(state, MARKER_NOTE, event->note.step, event->note.text ? event->note.text : "");
    default:
        return STATUS_OK;
    }
}

void state_markers_drop(struct run_state *state, int64_t step) {
    int64_t kept = 0;
    for (int64_t i = 0; i < state->marker_count; i++)
        if (state->markers[i].step <= step)
            state->markers[kept++] = state->markers[i];
        else
            free(state->markers[i].text);
    state->marker_count = kept;
}

/* ---- both */

bool state_log_copy(struct run_state *copy, const struct run_state *state) {
    for (; copy->marker_count < state->marker_count; copy->marker_count++) {
        struct state_marker *marker = &copy->markers[copy->marker_count];
        *marker = state->markers[copy->marker_count];
        if (!(marker->text = strdup(marker->text)))
            return false;
    }
    for (; copy->log_count < state->log_count; copy->log_count++) {
        struct state_log_line *line = &copy->log[copy->log_count];
        *line = state->log[copy->log_count];
        if (!(line->text = strdup(line->text)))
            return false;
    }
    return true;
}

void state_log_free(struct run_state *state) {
    for (int64_t i = 0; i < state->marker_count; i++)
        free(state->markers[i].text);
    for (int64_t i = 0; i < state->log_count; i++)
        free(state->log[i].text);
}
