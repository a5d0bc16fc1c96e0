#include "engine/wire/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/printable.h"
#include "engine/base/text.h"
#include "engine/wire/compare.h"
#include "engine/wire/curve.h"
#include "engine/wire/state_layers.h"
#include "engine/wire/state_log.h"
#include "engine/wire/state_rule.h"

enum { SCORES = 4000, DEVICES = 256, IMAGES = 256, TOWERS = 4096 };

struct score {
    int64_t step;
    double precision;
};

struct kept_event { /* what one of the newest events points to */
    struct arena arena;
};

struct state_memory {
    struct kept_event kept[EVENT_KINDS], devices[DEVICES], images[IMAGES], pending[STATE_PENDING];
    struct event device_events[DEVICES], image_events[IMAGES], pending_events[STATE_PENDING];
    struct kept_event kept_good;
    /* The newest step that was told before a state that a rewind may go back to was passed. */
    struct event good;
    struct curve curve;
    struct state_marker markers[STATE_MARKERS];
    struct state_log_line log[STATE_LOG_LINES];
    struct score scores[SCORES];
    int64_t score_count;
};

static enum status no_memory(void) {
    return status_fail(STATUS_NO_MEMORY, "no memory to keep the state of the run");
}

/* What of the curves the reader of the state sees. */
static void show_curve(struct run_state *state) {
    const struct curve *curve = &state->memory->curve;
    state->points = curve->points;
    state->tower_points = curve->tower_points;
    state->point_count = curve->point_count;
    state->tower_point_count = curve->tower_point_count;
}

struct run_state *state_new(void) {
    struct run_state *state = calloc(1, sizeof *state);
    struct state_memory *memory = calloc(1, sizeof *memory);
    if (!state || !memory || curve_open(&memory->curve) != STATUS_OK) {
        free(memory);
        free(state);
        return NULL;
    }
    state->memory = memory;
    state->markers = memory->markers;
    state->log = memory->log;
    state->devices = memory->device_events;
    state->images = memory->image_events;
    state->pending = memory->pending_events;
    state->best_precision = state->start_time = state->last_time = wire_unknown();
    state->best_step = state->at_step = state->batch = state->towers = state->good_step = WIRE_UNKNOWN_INT;
    state->lr = state->image_seconds = wire_unknown();
    show_curve(state);
    return state;
}

static void free_kept(struct kept_event *kept, int count) {
    for (int i = 0; i < count; i++)
        arena_free(&kept[i].arena);
}

void state_free(struct run_state *state) {
    if (!state)
        return;
    struct state_memory *memory = state->memory;
    free_kept(memory->kept, EVENT_KINDS);
    free_kept(memory->devices, DEVICES);
    free_kept(memory->images, IMAGES);
    free_kept(memory->pending, STATE_PENDING);
    free_kept(&memory->kept_good, 1);
    state_log_free(state);
    curve_close(&memory->curve);
    free(memory);
    free(state);
}

/* ---- curves and scores */

static double known_or(double value, double other) {
    return wire_is_unknown(value) ? other : value;
}

/* A float has no room for what tells unknown from not a number; no loss or norm is -infinity. */
static float tower_value(double value) {
    return wire_is_unknown(value) ? -INFINITY : (float)value;
}

double state_tower_value(float value) {
    return value == -INFINITY ? wire_unknown() : (double)value;
}

static enum status fold_point(struct run_state *state, const struct event *event) {
    const struct event_step *e = &event->step;
    struct curve *curve = &state->memory->curve;
    if (e->step == WIRE_UNKNOWN_INT)
        return STATUS_OK;
    if (curve->point_count > 0 && e->step <= curve->points[curve->point_count - 1].step) {
        if (event->seq == 0) /* a live step that the record has overtaken */
            return STATUS_OK;
        curve_drop(curve, e->step - 1);
    }
    int64_t towers = e->tower_count < TOWERS ? e->tower_count : TOWERS;
    struct state_tower_point tower_points[TOWERS];
    for (int64_t i = 0; i < towers; i++)
        tower_points[i] =
            (struct state_tower_point){tower_value(e->towers[i].loss), tower_value(e->towers[i].grad_norm)};
    struct state_curve_point point = {
        .step = e->step,
        .loss = e->loss,
        .cross_entropy = e->cross_entropy,
        .grad_norm = e->grad_norm,
        .grad_norm_mean = e->grad_norm_mean,
        .loss_min = known_or(e->loss_min, e->loss),
        .loss_max = known_or(e->loss_max, e->loss),
        .grad_norm_max = known_or(e->grad_norm_max, e->grad_norm),
        .tower_count = (int32_t)towers,
        .applied = state_rule_number(state, e->applied),
    };
    return curve_append(curve, &point, tower_points);
}

static void find_best(struct run_state *state) {
    const struct state_memory *memory = state->memory;
    state->best_precision = wire_unknown();
    state->best_step = WIRE_UNKNOWN_INT;
    for (int64_t i = 0; i < memory->score_count; i++)
        if (wire_is_unknown(state->best_precision) || memory->scores[i].precision > state->best_precision) {
            state->best_precision = memory->scores[i].precision;
            state->best_step = memory->scores[i].step;
        }
}

static void fold_score(struct run_state *state, const struct event_eval *e) {
    struct state_memory *memory = state->memory;
    if (!isfinite(e->precision) || !(isfinite(e->loss) || wire_is_unknown(e->loss)))
        return;                          /* never the best */
    if (memory->score_count == SCORES) { /* of two neighbours the better stays */
        for (int64_t i = 0; i < SCORES / 2; i++) {
            const struct score *pair = &memory->scores[2 * i];
            memory->scores[i] = pair[pair[1].precision > pair[0].precision];
        }
        memory->score_count = SCORES / 2;
    }
    memory->scores[memory->score_count++] = (struct score){e->step, e->precision};
    find_best(state);
}

/* ---- the newest of each kind */

/* Where the newest event of a kind is kept; 0: nowhere. */
static const size_t slots[EVENT_KINDS] = {
    [EVENT_RUN_START] = offsetof(struct run_state, run_start),
    [EVENT_STEP] = offsetof(struct run_state, step),
    [EVENT_LOSSES] = offsetof(struct run_state, losses),
    [EVENT_LAYERS] = offsetof(struct run_state, layers),
    [EVENT_WHY] = offsetof(struct run_state, why),
    [EVENT_EVAL] = offsetof(struct run_state, eval),
    [EVENT_CONTROL] = offsetof(struct run_state, control),
    [EVENT_RUN_END] = offsetof(struct run_state, run_end),
    [EVENT_PHASE] = offsetof(struct run_state, step_phase),
    [EVENT_COMMAND] = offsetof(struct run_state, command),
    [EVENT_ALARM] = offsetof(struct run_state, alarm),
};

static struct event *slot_of(struct run_state *state, int kind) {
    return slots[kind] ? (struct event *)(void *)((char *)state + slots[kind]) : NULL;
}

static enum status keep(const struct event *event, struct event *slot, struct kept_event *kept) {
    slot->kind = EVENT_NONE;
    arena_reset(&kept->arena);
    return event_copy(event, &kept->arena, slot);
}

/* A collection too long for one line comes in several events of one step: towers in rising order. */
static enum status keep_losses(struct run_state *state, const struct event *event) {
    struct event *slot = &state->losses;
    struct kept_event *kept = &state->memory->kept[EVENT_LOSSES];
    const struct event_losses *more = &event->losses, *have = &slot->losses;
    bool continues = slot->kind && have->step == more->step && have->tower_count > 0 &&
                     more->tower_count > 0 &&
                     more->towers[0].tower > have->towers[have->tower_count - 1].tower;
    if (!continues)
        return keep(event, slot, kept);
    struct event copy;
    STATUS_TRY(event_copy(event, &kept->arena, &copy));
    size_t a = (size_t)have->tower_count, b = (size_t)more->tower_count;
    struct event_losses_tower *all = arena_array(&kept->arena, a + b, sizeof *all);
    if (!all)
        return no_memory();
    memcpy(all, have->towers, a * sizeof *all);
    memcpy(all + a, copy.losses.towers, b * sizeof *all);
    slot->seq = event->seq;
    slot->losses.towers = all;
    slot->losses.tower_count = (int64_t)(a + b);
    return STATUS_OK;
}

static enum status keep_device(struct run_state *state, const struct event *event) {
    int64_t i = 0;
    const char *name = event->device.device ? event->device.device : "";
    while (i < state->device_count &&
           strcmp(state->devices[i].device.device ? state->devices[i].device.device : "", name))
        i++;
    if (i == DEVICES)
        return STATUS_OK;
    STATUS_TRY(keep(event, &state->devices[i], &state->memory->devices[i]));
    if (i == state->device_count)
        state->device_count++;
    return STATUS_OK;
}

static enum status keep_images(struct run_state *state, const struct event *event) {
    const struct event_images *e = &event->images;
    if (state->images_count > 0 && state->images[0].images.step != e->step)
        state->images_count = 0;
    int64_t i = 0;
    while (i < state->images_count &&
           (state->images[i].images.tower != e->tower || state->images[i].images.first != e->first))
        i++;
    if (i == IMAGES)
        return STATUS_OK;
    STATUS_TRY(keep(event, &state->images[i], &state->memory->images[i]));
    if (i == state->images_count)
        state->images_count++;
    return STATUS_OK;
}

/* A command of a person's that is told to be pending joins the others, or says how far it is; its answer
 * takes it away. */
static enum status fold_pending(struct run_state *state, const struct event *event) {
    const struct event_command *e = &event->command;
    struct state_memory *memory = state->memory;
    int64_t i = 0, count = state->pending_count;
    while (i < count && !(text_is(state->pending[i].command.id, e->id ? e->id : "") &&
                          text_is(state->pending[i].command.from, e->from ? e->from : "")))
        i++;
    if (text_is(e->status, "pending")) {
        if (i == STATE_PENDING || e->screen || !e->id || !e->from)
            return STATUS_OK;
        state->pending_count = i < count ? count : i; /* without memory for it: not there */
        STATUS_TRY(keep(event, &state->pending[i], &memory->pending[i]));
        state->pending_count = i < count ? count : i + 1;
    } else if (i < count) {
        struct kept_event gone = memory->pending[i];
        size_t after = (size_t)(count - i - 1);
        memmove(&state->pending[i], &state->pending[i + 1], after * sizeof *state->pending);
        memmove(&memory->pending[i], &memory->pending[i + 1], after * sizeof *memory->pending);
        memory->pending[--state->pending_count] = gone;
    }
    return STATUS_OK;
}

/* The last step that was told before one that a rewind may go back to is passed. */
static enum status keep_good(struct run_state *state, const struct event_step *next) {
    const struct event *last = &state->step;
    if (!last->kind || last->step.applied || next->applied || last->step.step < 1 || next->step < 1 ||
        (last->step.step - 1) / GOOD_EVERY == (next->step - 1) / GOOD_EVERY)
        return STATUS_OK;
    return keep(last, &state->memory->good, &state->memory->kept_good);
}

static enum status keep_newest(struct run_state *state, const struct event *event) {
    switch (event->kind) {
    case EVENT_LOSSES:
        return keep_losses(state, event);
    case EVENT_DEVICE:
        return keep_device(state, event);
    case EVENT_IMAGES:
        return keep_images(state, event);
    case EVENT_ALARM:
        if (text_is(event->alarm.level, "info"))
            return STATUS_OK;
        break;
    case EVENT_STEP: /* a live step that came late tells nothing new */
        if (event->seq == 0 && state->step.kind && event->step.step < state->step.step.step)
            return STATUS_OK;
        STATUS_TRY(keep_good(state, &event->step));
        if (event->step.applied && state->step.kind && !state->step.step.applied)
            STATUS_TRY(keep(&state->step, &state->memory->good, &state->memory->kept_good));
        break;
    case EVENT_CONTROL:
        state->requests += event->control.asking_user != NULL;
        break;
    case EVENT_STATE:
        snprintf(state->phase, sizeof state->phase, "%s", event->state.state ? event->state.state : "");
        return STATUS_OK;
    default:
        break;
    }
    struct event *slot = slot_of(state, event->kind);
    return slot ? keep(event, slot, &state->memory->kept[event->kind]) : STATUS_OK;
}

/* ---- going back */

/* Of the newest events, those that lie beyond `step` go; the step before the wrong rule comes back. */
static void drop_newest(struct run_state *state, int64_t step) {
    static const enum event_kind dropped[] = {EVENT_STEP,   EVENT_PHASE, EVENT_LOSSES,
                                              EVENT_LAYERS, EVENT_WHY,   EVENT_EVAL};
    struct state_memory *memory = state->memory;
    if (memory->good.kind && memory->good.step.step > step)
        memory->good.kind = EVENT_NONE;
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
        struct event *slot = slot_of(state, dropped[i]);
        if (slot->kind && event_step(slot) != WIRE_UNKNOWN_INT && event_step(slot) > step)
            slot->kind = EVENT_NONE;
    }
    if (!state->step.kind && memory->good.kind) /* without memory for it: none */
        (void)keep(&memory->good, &state->step, &memory->kept[EVENT_STEP]);
    if (state->images_count > 0 && state->images[0].images.step > step)
        state->images_count = 0;
}

/* The run went back to `step`: what lies beyond has not happened. */
static void go_back(struct run_state *state, int64_t step) {
    struct state_memory *memory = state->memory;
    curve_drop(&memory->curve, step);
    state_markers_drop(state, step);
    state_layers_drop(state, step);
    int64_t kept = 0;
    for (int64_t i = 0; i < memory->score_count; i++)
        if (memory->scores[i].step <= step)
            memory->scores[kept++] = memory->scores[i];
    memory->score_count = kept;
    find_best(state);
    drop_newest(state, step);
}

/* ---- folding */

static enum status start(struct run_state *state, const struct event *event) {
    int64_t from = event->run_start.resumed_from;
    if (from == WIRE_UNKNOWN_INT) {
        if (!state->started)
            state->start_time = event->time;
    } else {
        if (state->started && !state->ended && !state->crashed)
            STATUS_TRY(state_log_end(state, "the run ended without a word: it crashed or was killed"));
        go_back(state, from);
        if (!state->started)
            state->start_time = event->time;
    }
    state->started = true;
    state->ended = state->crashed = false;
    state->run_end.kind = EVENT_NONE;
    state->device_count = state->pending_count = 0;
    state->timed_steps = 0;
    state->phase[0] = 0;
    return STATUS_OK;
}

/* What the next step takes: what the last one took, unless a command changed it since. */
static void note_settings(struct run_state *state, const struct event *event) {
    double lr = wire_unknown();
    int64_t batch = WIRE_UNKNOWN_INT, towers = WIRE_UNKNOWN_INT;
    if (event->kind == EVENT_RUN_START) {
        lr = event->run_start.lr;
        batch = event->run_start.batch;
        towers = event->run_start.towers;
    } else if (event->kind == EVENT_STEP && !state_late(state, event)) {
        lr = event->step.lr;
        batch = event->step.images;
        towers = event->step.tower_count;
    } else if (event->kind == EVENT_TOWERS) {
        towers = event->towers.to;
    } else if (event->kind == EVENT_COMMAND && text_is(event->command.status, "applied")) {
        lr = event->command.lr;
        batch = event->command.batch;
    }
    state->lr = wire_is_unknown(lr) ? state->lr : lr;
    state->batch = batch == WIRE_UNKNOWN_INT ? state->batch : batch;
    state->towers = towers == WIRE_UNKNOWN_INT ? state->towers : towers;
}

/* The first step, which plans and allocates, counts only until there is a second one. */
static void note_time(struct run_state *state, const struct event_step *e) {
    static const double weight = 0.05;
    if (!(e->seconds > 0) || !isfinite(e->seconds) || !(e->images > 0))
        return;
    double now = e->seconds / (double)e->images, n = (double)state->timed_steps++;
    double part = n * weight < 1 && n > 0 ? 1 / n : weight;
    state->image_seconds = n > 0 ? (1 - part) * state->image_seconds + part * now : now;
}

/* Where the run stands. */
static void note_step(struct run_state *state, const struct event *event) {
    int64_t step = WIRE_UNKNOWN_INT;
    if (event->kind == EVENT_STEP || event->kind == EVENT_STATE || event->kind == EVENT_RUN_END)
        step = event_step(event);
    else if (event->kind == EVENT_REWIND)
        step = event->rewind.to;
    else if (event->kind == EVENT_RUN_START)
        step = event->run_start.resumed_from;
    if (step != WIRE_UNKNOWN_INT)
        state->at_step = step;
}

static enum status fold(struct run_state *state, const struct event *event) {
    if (event->kind == EVENT_RUN_START)
        STATUS_TRY(start(state, event));
    if (event->kind == EVENT_HELLO) /* another connection: who holds control comes with it */
        state->control.kind = EVENT_NONE;
    STATUS_TRY(state_log_fold(state, event));
    if (event->kind == EVENT_STEP)
        STATUS_TRY(fold_point(state, event));
    if (event->kind == EVENT_REWIND && event->rewind.to != WIRE_UNKNOWN_INT)
        go_back(state, event->rewind.to);
    if (event->kind == EVENT_EVAL)
        fold_score(state, &event->eval);
    state_rule_fold(state, event);
    note_settings(state, event);
    if (event->kind == EVENT_STEP && !state_late(state, event))
        note_time(state, &event->step);
    note_step(state, event);
    STATUS_TRY(state_markers_fold(state, event));
    if (event->kind == EVENT_LAYERS)
        state_layers_fold(state, &event->layers);
    if (event->kind == EVENT_COMMAND)
        STATUS_TRY(fold_pending(state, event));
    STATUS_TRY(keep_newest(state, event));
    if (event->kind == EVENT_RUN_END)
        state->ended = true;
    return STATUS_OK;
}

enum status state_apply(struct run_state *state, const struct event *event) {
    if (event->seq > 0) {
        if (event->seq <= state->last_seq)
            return STATUS_OK; /* seen: file and socket overlap */
        state->missing += event->seq - state->last_seq - 1;
        state->last_seq = event->seq;
    }
    state->events++;
    enum status status = fold(state, event);
    show_curve(state);
    if (isfinite(event->time))
        state->last_time = event->time;
    return status;
}

enum status state_crashed(struct run_state *state, const char *text) {
    if (state->crashed || state->ended)
        return STATUS_OK;
    state->crashed = true;
    state->control.kind = EVENT_NONE;
    char clean[512];
    text_printable(clean, sizeof clean,
                   text ? text : "the engine is gone without saying so: it crashed or was killed");
    return state_log_end(state, clean);
}

/* ---- copying */

static bool copy_events(struct run_state *copy, const struct run_state *state) {
    for (int kind = 0; kind < EVENT_KINDS; kind++) {
        const struct event *from = (const void *)((const char *)state + slots[kind]);
        if (slots[kind] && from->kind &&
            keep(from, slot_of(copy, kind), &copy->memory->kept[kind]) != STATUS_OK)
            return false;
    }
    const struct event *good = &state->memory->good;
    if (good->kind && keep(good, &copy->memory->good, &copy->memory->kept_good) != STATUS_OK)
        return false;
    for (; copy->device_count < state->device_count; copy->device_count++) {
        int64_t i = copy->device_count;
        if (keep(&state->devices[i], &copy->devices[i], &copy->memory->devices[i]) != STATUS_OK)
            return false;
    }
    for (; copy->images_count < state->images_count; copy->images_count++) {
        int64_t i = copy->images_count;
        if (keep(&state->images[i], &copy->images[i], &copy->memory->images[i]) != STATUS_OK)
            return false;
    }
    return true;
}

struct run_state *state_copy(const struct run_state *state) {
    struct run_state *copy = calloc(1, sizeof *copy);
    struct state_memory *memory = calloc(1, sizeof *memory);
    if (!copy || !memory) {
        free(memory);
        free(copy);
        return NULL;
    }
    *copy = *state;
    copy->memory = memory;
    copy->markers = memory->markers;
    copy->log = memory->log;
    copy->devices = memory->device_events;
    copy->images = memory->image_events;
    copy->pending = memory->pending_events;
    copy->marker_count = copy->log_count = copy->device_count = copy->images_count = copy->pending_count = 0;
    for (int kind = 0; kind < EVENT_KINDS; kind++) {
        struct event *slot = slot_of(copy, kind);
        if (slot)
            slot->kind = EVENT_NONE;
    }
    memory->curve = curve_share(&state->memory->curve);
    memcpy(memory->scores, state->memory->scores,
           (size_t)state->memory->score_count * sizeof *memory->scores);
    memory->score_count = state->memory->score_count;
    show_curve(copy);
    if (!state_log_copy(copy, state) || !copy_events(copy, state)) {
        state_free(copy);
        return NULL;
    }
    return copy;
}
