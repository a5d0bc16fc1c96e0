/* The reader of a stream's lines, and the fold of what they say: any bytes give a state that holds together,
 * what was read once is written and read again as it is, and both ways to read a line give the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/wire/codec.h"
#include "engine/wire/quick.h"
#include "engine/wire/state.h"
#include "tests/support/events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Written, read and written again: the same line. */
static void check_round_trip(const struct event *event, struct arena *arena) {
    char *first, *second;
    size_t length, again;
    struct event back;
    if (event->kind == EVENT_NONE || event_encode(event, arena, &first, &length) != STATUS_OK)
        return; /* not known, or longer than a line once it is written in full */
    if (event_decode(first, length, arena, &back) != STATUS_OK ||
        event_encode(&back, arena, &second, &again) != STATUS_OK || again != length ||
        memcmp(first, second, length) != 0)
        abort();
}

/* The short way gives what the long one does, or nothing. In memory of the line's own size, so that a read
 * beyond its end is seen. */
static void check_both_ways(const uint8_t *data, size_t length, struct arena *arena) {
    struct event quick, json;
    char *line = malloc(length);
    if (!line)
        return;
    memcpy(line, data, length);
    if (event_decode_quick(line, length, arena, &quick) &&
        (event_decode_json(line, length, arena, &json) != STATUS_OK || !events_equal(&quick, &json, NULL)))
        abort();
    free(line);
}

static void check_state(const struct run_state *state) {
    for (int64_t i = 1; i < state->point_count; i++)
        if (state->points[i].step <= state->points[i - 1].step)
            abort();
    if (state->point_count > 0) {
        const struct state_curve_point *last = &state->points[state->point_count - 1];
        if (last->first_tower + last->tower_count != state->tower_point_count)
            abort();
    }
    for (int64_t i = 0; i < state->log_count; i++)
        for (const unsigned char *s = (const unsigned char *)state->log[i].text; *s; s++)
            if (*s < 0x20 || *s == 0x7f)
                abort(); /* a terminal would obey it */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct run_state *state = state_new(), *copy = NULL;
    struct arena arena = {0};
    if (!state)
        return 0;
    for (size_t at = 0; at < size;) {
        const uint8_t *newline = memchr(data + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - (data + at)) + 1 : size - at;
        struct event event;
        check_both_ways(data + at, length, &arena);
        if (event_decode((const char *)data + at, length, &arena, &event) == STATUS_OK) {
            check_round_trip(&event, &arena);
            if (state_apply(state, &event) != STATUS_OK)
                abort();
            if (!copy)
                copy = state_copy(state);
            else if (state_apply(copy, &event) != STATUS_OK)
                abort();
        }
        arena_reset(&arena);
        at += length;
    }
    check_state(state);
    if (copy && (copy->point_count != state->point_count || copy->log_count != state->log_count))
        abort();
    state_free(state);
    state_free(copy);
    arena_free(&arena);
    return 0;
}
