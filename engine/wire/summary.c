#include "engine/wire/summary.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/printable.h"
#include "engine/wire/lock.h"
#include "engine/wire/record.h"
#include "engine/wire/state.h"

/* What an event says of the number of towers from here on; else `before`. */
static int64_t towers_after(const struct event *event, int64_t before) {
    switch (event->kind) {
    case EVENT_RUN_START:
        return event->run_start.towers;
    case EVENT_STEP:
        return event->step.tower_count > 0 ? event->step.tower_count : before;
    case EVENT_TOWERS:
        return event->towers.to;
    default:
        return before;
    }
}

/* Fold the last `lines` lines; *towers: as the last of them leave it; *whole: that was all of the record. */
static enum status fold_tail(struct record_reader *reader, int64_t lines, struct run_state *state,
                             int64_t *towers, bool *whole) {
    int64_t offset;
    struct arena arena = {0};
    struct event event;
    STATUS_TRY(record_tail(reader, lines, &offset));
    STATUS_TRY(record_seek(reader, offset));
    enum status status;
    while ((status = record_next(reader, -1, &arena, &event)) == STATUS_OK) {
        *towers = towers_after(&event, *towers);
        (void)state_apply(state, &event);
        arena_reset(&arena);
    }
    arena_free(&arena);
    *whole = offset == 0;
    return status == STATUS_BUSY ? STATUS_OK : status;
}

/* Without run_end in its record a run crashed, unless its engine left word that the disk did not take that.
 */
static bool ended_in_order(const struct run_state *state, const char *folder) {
    struct lock_about about;
    if (state->ended)
        return true;
    lock_about(folder, &about);
    return about.ended >= 0;
}

static void take_state(const struct run_state *state, struct run_summary *out) {
    const struct event_step *step = &state->step.step;
    if (out->live)
        snprintf(out->state, sizeof out->state, "%s",
                 state->events == 0               ? "starting"
                 : !*state->phase                 ? "training"
                 : !strcmp(state->phase, "ended") ? "ending" /* its engine still holds the folder */
                                                  : state->phase);
    else
        snprintf(out->state, sizeof out->state, "%s",
                 ended_in_order(state, out->folder) ? "ended"
                 : state->events == 0               ? "empty"
                                                    : "crashed");
    out->time = state->last_time;
    out->step = state->at_step;
    if (!state->step.kind)
        return;
    out->loss = step->loss;
}

enum status run_summary_read(const struct live_run *run, struct run_summary *out) {
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", run->name);
    snprintf(out->folder, sizeof out->folder, "%s", run->folder);
    snprintf(out->state, sizeof out->state, run->live ? "starting" : "empty");
    out->live = run->live;
    out->step = out->towers = out->saved = WIRE_UNKNOWN_INT;
    out->loss = out->time = wire_unknown();
    struct record_reader *reader;
    enum status status = record_reader_open(run->folder, 0, &reader);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    STATUS_TRY(status);
    bool whole = false;
    /* Most often a few lines tell all; evaluations, layers and losses may stand between them and the last
     * step. */
    for (int64_t lines = 32; lines <= 8192 && !whole && status == STATUS_OK; lines *= 16) {
        struct run_state *state = state_new();
        if (!state) {
            status = status_fail(STATUS_NO_MEMORY, "no memory to look at run %s", run->name);
            break;
        }
        status = fold_tail(reader, lines, state, &out->towers, &whole);
        if (status == STATUS_OK)
            take_state(state, out);
        whole = whole || (state->step.kind && (*state->phase || !run->live));
        state_free(state);
    }
    record_reader_close(reader);
    return status;
}

static json_t *summary_json(const struct run_summary *s) {
    char folder[PATH_MAX];
    text_utf8(folder, sizeof folder, s->folder);
    json_t *object = json_pack("{s:s, s:s, s:b, s:s}", "name", s->name, "state", s->state, "live", s->live,
                               "folder", folder);
    if (!object)
        return NULL;
    if (s->step != WIRE_UNKNOWN_INT)
        json_object_set_new(object, "step", json_integer(s->step));
    if (s->saved != WIRE_UNKNOWN_INT)
        json_object_set_new(object, "saved", json_integer(s->saved));
    if (s->towers != WIRE_UNKNOWN_INT)
        json_object_set_new(object, "towers", json_integer(s->towers));
    if (!wire_is_unknown(s->loss))
        json_object_set_new(object, "loss", isfinite(s->loss) ? json_real(s->loss) : json_null());
    if (isfinite(s->time))
        json_object_set_new(object, "time", json_real(s->time));
    return object;
}

char *run_summaries_json(const struct run_summary *summaries, int count) {
    json_t *list = json_array();
    for (int i = 0; list && i < count; i++)
        if (json_array_append_new(list, summary_json(&summaries[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    char *text = list ? json_dumps(list, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(list);
    return text;
}
