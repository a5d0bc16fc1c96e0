/* A record, played. It is read once from front to end, a slice between two frames, so that the first screen
 * comes at once and the rest fills in; on the way every event's place is noted and now and then a copy of the
 * state is kept. To go to a place is to take the last copy before it and fold the few events between. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/wire/record.h"
#include "tui/feed.h"
#include "tui/format.h"

/* Bytes of the record between two copies: folding them takes a few hundredths of a second. */
static const int64_t COPY_BYTES = 1500000;
/* Where nothing happens for longer (a pause, a night between two runs), it is played as if it were this long.
 * The bar and the clock beside it tell the time that playing takes at the run's own pace, so that both say
 * the same. */
static const double LONGEST_GAP = 2;
/* Who was held up (^Z, a terminal that takes nothing) plays on from where it was, in seconds. */
static const double LONGEST_FRAME = 1;

#define THE_END INT64_MAX /* as a step to go to */

enum { COPIES = 128 }; /* when there are more, every other one goes */

struct entry {
    int64_t offset;     /* where the event's line begins */
    double played;      /* seconds of playing up to the event */
    int64_t step;       /* of a step event, else WIRE_UNKNOWN_INT */
    bool marker, phase; /* phase: of a step that was walked */
};

struct copy {
    int64_t entry; /* events that are folded in */
    struct run_state *state;
};

struct replay {
    struct feed base;
    bool live;
    struct record_reader *indexer, *player;
    struct arena arena;
    struct entry *entries;
    int64_t count, capacity;
    double last_time;        /* of the last entry, as its event tells it */
    struct run_state *whole; /* all events that are noted, folded */
    struct copy copies[COPIES];
    int copy_count;
    int64_t copy_bytes, last_copy; /* bytes between copies, offset of the last */
    bool read;                     /* to the end as it was */
    double looked_at;              /* when the end was last looked for */
    int64_t at;                    /* events folded into base.state */
    bool crashed;                  /* base.state was told of the missing end */
    bool playing;
    double speed, time, played_at; /* how far it is played, and when it was so */
    int64_t wanted;                /* a step to go to as soon as it is read; WIRE_UNKNOWN_INT: none */
    char missed[128];              /* why it is not the one that is shown; "": it is, or was left since */
};

static const double speeds[] = {0.25, 0.5, 1, 2, 4, 10, 25, 100};
enum { SPEEDS = 8 };

/* ---- reading it all */

static bool is_marker(const struct event *event) {
    switch (event->kind) {
    case EVENT_COMMAND:
        return !event->command.screen;
    case EVENT_TOWERS:
    case EVENT_EVAL:
    case EVENT_REWIND:
    case EVENT_NOTE:
        return true;
    case EVENT_ALARM:
        return !event->alarm.level || strcmp(event->alarm.level, "info") != 0;
    case EVENT_RUN_START:
        return event->run_start.resumed_from != WIRE_UNKNOWN_INT;
    default:
        return false;
    }
}

static enum status note(struct replay *replay, const struct event *event, int64_t offset) {
    if (replay->count == replay->capacity) {
        int64_t capacity = replay->capacity ? 2 * replay->capacity : 4096;
        struct entry *entries = realloc(replay->entries, (size_t)capacity * sizeof *entries);
        if (!entries)
            return status_fail(STATUS_NO_MEMORY, "no memory to go through the record");
        replay->entries = entries;
        replay->capacity = capacity;
    }
    double played = 0, time = isfinite(event->time) ? event->time : replay->last_time;
    if (replay->count > 0) /* a clock that was set back takes no time */
        played =
            replay->entries[replay->count - 1].played + fmin(fmax(time - replay->last_time, 0), LONGEST_GAP);
    replay->last_time = time;
    replay->entries[replay->count++] = (struct entry){
        .offset = offset,
        .played = played,
        .step = event->kind == EVENT_STEP ? event->step.step : WIRE_UNKNOWN_INT,
        .marker = is_marker(event),
        .phase = event->kind == EVENT_PHASE,
    };
    return STATUS_OK;
}

/* Keep a copy of the whole as it is now. Without memory for it, seeking is slower and nothing else. */
static void keep_copy(struct replay *replay, int64_t offset) {
    if (replay->copy_count == COPIES) {
        for (int i = 0; i < COPIES; i++)
            if (i % 2)
                state_free(replay->copies[i].state);
            else
                replay->copies[i / 2] = replay->copies[i];
        replay->copy_count = COPIES / 2;
        replay->copy_bytes *= 2;
    }
    struct run_state *state = state_copy(replay->whole);
    replay->last_copy = offset;
    if (state)
        replay->copies[replay->copy_count++] = (struct copy){replay->count, state};
}

/* Note and fold one more event. STATUS_BUSY: the record ends here. */
static enum status read_one(struct replay *replay) {
    struct event event;
    int64_t offset = record_reader_offset(replay->indexer);
    enum status status = record_next(replay->indexer, -1, &replay->arena, &event);
    if (status == STATUS_OK)
        status = note(replay, &event, offset);
    if (status == STATUS_OK)
        status = state_apply(replay->whole, &event);
    arena_reset(&replay->arena);
    if (status == STATUS_OK && record_reader_offset(replay->indexer) - replay->last_copy > replay->copy_bytes)
        keep_copy(replay, record_reader_offset(replay->indexer));
    return status;
}

/* ---- playing */

static enum status play_one(struct replay *replay) {
    struct event event;
    enum status status = record_next(replay->player, -1, &replay->arena, &event);
    if (status == STATUS_OK) {
        status = state_apply(replay->base.state, &event);
        replay->at++;
    }
    arena_reset(&replay->arena);
    return status;
}

/* Bring the shown state to just after event `target` - 1. */
static enum status go_to(struct replay *replay, int64_t target) {
    target = target < 0 ? 0 : target > replay->count ? replay->count : target;
    const struct copy *from = NULL;
    for (int i = 0; i < replay->copy_count; i++)
        if (replay->copies[i].entry <= target)
            from = &replay->copies[i];
    bool forward = target >= replay->at && !replay->crashed && (!from || from->entry <= replay->at);
    if (!forward) {
        struct run_state *state = from ? state_copy(from->state) : state_new();
        if (!state)
            return status_fail(STATUS_NO_MEMORY, "no memory to go there");
        state_free(replay->base.state);
        replay->base.state = state;
        replay->base.generation++;
        replay->at = from ? from->entry : 0;
        replay->crashed = false;
        if (replay->at < replay->count)
            STATUS_TRY(record_seek(replay->player, replay->entries[replay->at].offset));
    } else if (replay->at > 0 && target > replay->at) {
        replay->base.generation++; /* a leap: what is shown changes at once, not with the next figures */
    }
    while (replay->at < target)
        STATUS_TRY(play_one(replay));
    if (replay->count > 0)
        replay->time = replay->entries[replay->at > 0 ? replay->at - 1 : 0].played;
    return STATUS_OK;
}

/* How long all of it takes that is read. */
static double whole_time(const struct replay *replay) {
    return replay->count > 0 ? replay->entries[replay->count - 1].played : 0;
}

/* By a share of the whole time, and by one event at least. */
static enum status go_by(struct replay *replay, double share) {
    double time = replay->at > 0 ? replay->entries[replay->at - 1].played : 0;
    time += share * whole_time(replay);
    int64_t low = 0, high = replay->count; /* the events up to that time */
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (replay->entries[middle].played <= time)
            low = middle + 1;
        else
            high = middle;
    }
    if (share > 0)
        return go_to(replay, low > replay->at ? low : replay->at + 1);
    return go_to(replay, low < replay->at ? low : replay->at - 1);
}

/* The end of a record that says no end is a crash, if nobody writes it any more. */
static void meet_the_end(struct replay *replay) {
    if (replay->at < replay->count || !replay->read || replay->live)
        return;
    replay->playing = false;
    if (!replay->base.state->ended && !replay->base.state->crashed && replay->count > 0) {
        state_crashed(replay->base.state,
                      "the record ends here without an end: the engine crashed or was killed");
        replay->crashed = true;
    }
}

static enum status play(struct replay *replay, double now, double end, bool *more) {
    double passed = fmin(now - replay->played_at, LONGEST_FRAME);
    replay->played_at = now;
    if (!replay->playing)
        return STATUS_OK;
    if (replay->at < replay->count) /* not beyond what is read */
        replay->time += passed * replay->speed;
    while (replay->at < replay->count) {
        if (replay->entries[replay->at].played > replay->time)
            return STATUS_OK;
        STATUS_TRY(play_one(replay));
        if (clock_seconds() > end) {
            *more = true;
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

static enum status no_step(const struct replay *replay, int64_t step) {
    int64_t last = 0;
    for (int64_t i = 0; i < replay->count; i++)
        last = replay->entries[i].step > last ? replay->entries[i].step : last;
    char wanted[FORMAT_SIZE], most[FORMAT_SIZE];
    format_count(wanted, step);
    format_count(most, last);
    return status_fail(STATUS_NOT_FOUND, "there is no step %s: the record has steps 0 to %s", wanted, most);
}

static enum status find_step(struct replay *replay, int64_t step) {
    if (step == THE_END && replay->read)
        return go_to(replay, replay->count);
    for (int64_t i = 0; i < replay->count; i++)
        if (replay->entries[i].step != WIRE_UNKNOWN_INT && replay->entries[i].step >= step)
            return go_to(replay, i + 1);
    if (replay->read)
        return no_step(replay, step);
    replay->wanted = step;
    return STATUS_OK;
}

static enum status pump(struct feed *feed, double now, double budget, bool *more) {
    struct replay *replay = (struct replay *)feed;
    double end = now + budget;
    enum status status = STATUS_OK;
    *more = false;
    if (replay->read && replay->live && now - replay->looked_at > 1)
        replay->read = false;
    while (!replay->read) {
        status = read_one(replay);
        if (status == STATUS_BUSY) {
            replay->read = true;
            replay->looked_at = now;
            break;
        }
        STATUS_TRY(status);
        if (clock_seconds() > end) {
            *more = true;
            break;
        }
    }
    if (replay->wanted != WIRE_UNKNOWN_INT) {
        int64_t wanted = replay->wanted;
        replay->wanted = WIRE_UNKNOWN_INT;
        status = find_step(replay, wanted);
        if (status != STATUS_NOT_FOUND)
            return status;
        snprintf(replay->missed, sizeof replay->missed, "%s", status_text());
        STATUS_TRY(go_to(replay, replay->count));
    }
    STATUS_TRY(play(replay, now, clock_seconds() + budget, more));
    meet_the_end(replay);
    return STATUS_OK;
}

/* ---- moving */

static enum status move_to_marker(struct replay *replay, int direction, bool phases) {
    /* The marker that is shown is the event just folded: at - 1. */
    for (int64_t i = direction > 0 ? replay->at : replay->at - 2; i >= 0 && i < replay->count; i += direction)
        if (replay->entries[i].marker || (phases && replay->entries[i].phase))
            return go_to(replay, i + 1);
    return status_fail(STATUS_NOT_FOUND, "no %s %s here", phases ? "phase or marker" : "marker",
                       direction > 0 ? "after" : "before");
}

static void change_speed(struct replay *replay, double amount) {
    int notch = 0;
    while (notch < SPEEDS - 1 && speeds[notch] < replay->speed * 0.999)
        notch++;
    notch += amount > 0 ? 1 : -1;
    replay->speed = speeds[notch < 0 ? 0 : notch >= SPEEDS ? SPEEDS - 1 : notch];
}

static enum status move(struct feed *feed, enum feed_move move, double amount) {
    struct replay *replay = (struct replay *)feed;
    enum status status = STATUS_OK;
    *replay->missed = 0;
    switch (move) {
    case MOVE_PLAY:
        if (!replay->playing && replay->read && replay->at == replay->count)
            status = go_to(replay, 0);
        replay->playing = !replay->playing;
        break;
    case MOVE_SPEED:
        change_speed(replay, amount);
        break;
    case MOVE_SHARE:
        status = go_by(replay, amount);
        break;
    case MOVE_BEGIN:
        status = go_to(replay, 0);
        break;
    case MOVE_END:
        status = find_step(replay, THE_END);
        break;
    case MOVE_STEP:
        status = find_step(replay, (int64_t)amount);
        break;
    case MOVE_MARKER:
    case MOVE_PHASE:
        status = move_to_marker(replay, amount > 0 ? 1 : -1, move == MOVE_PHASE);
        break;
    }
    if (status == STATUS_OK)
        meet_the_end(replay);
    return status;
}

static void status_of(const struct feed *feed, struct feed_status *out) {
    const struct replay *replay = (const struct replay *)feed;
    memset(out, 0, sizeof *out);
    out->replay = true;
    out->playing = replay->playing;
    out->speed = replay->speed;
    out->reading = !replay->read;
    int64_t size = record_reader_size(replay->indexer), torn = record_reader_torn(replay->indexer);
    int64_t damaged = record_reader_damaged(replay->indexer);
    out->read = size > 0 ? (double)record_reader_offset(replay->indexer) / (double)size : 1;
    out->seconds = replay->at > 0 ? replay->entries[replay->at - 1].played : 0;
    out->all = whole_time(replay);
    if (*replay->missed)
        snprintf(out->trouble, sizeof out->trouble, "%s", replay->missed);
    else if (replay->read && damaged > 0)
        snprintf(out->trouble, sizeof out->trouble, "%lld line%s of the record can't be read",
                 (long long)damaged, damaged == 1 ? "" : "s");
    else if (replay->read && torn > 0 && !replay->live)
        snprintf(out->trouble, sizeof out->trouble,
                 "the record's last line is torn (%lld bytes) and left out", (long long)torn);
}

static int fd(const struct feed *feed) {
    (void)feed;
    return -1;
}

static bool wants_write(const struct feed *feed) {
    (void)feed;
    return false;
}

static double wait_seconds(const struct feed *feed, double now) {
    const struct replay *replay = (const struct replay *)feed;
    (void)now;
    if (!replay->read)
        return 0;
    if (replay->playing && replay->at < replay->count)
        return fmax(0, (replay->entries[replay->at].played - replay->time) / replay->speed);
    return replay->live ? 1 : 1e9;
}

static void close_replay(struct feed *feed) {
    struct replay *replay = (struct replay *)feed;
    for (int i = 0; i < replay->copy_count; i++)
        state_free(replay->copies[i].state);
    state_free(replay->whole);
    state_free(feed->state);
    record_reader_close(replay->indexer);
    record_reader_close(replay->player);
    arena_free(&replay->arena);
    free(replay->entries);
    free(replay);
}

static const struct feed_ops ops = {pump, fd,   wants_write, wait_seconds, status_of,
                                    NULL, NULL, move,        close_replay, NULL};

static enum status open_replay(struct replay *replay, const char *path) {
    replay->base.state = state_new();
    replay->whole = state_new();
    if (!replay->base.state || !replay->whole)
        return status_fail(STATUS_NO_MEMORY, "no memory for the console");
    STATUS_TRY(record_reader_open(path, 0, &replay->indexer));
    STATUS_TRY(record_reader_open(path, 0, &replay->player));
    enum status status = read_one(replay);
    if (status == STATUS_BUSY)
        return status_fail(STATUS_BAD_INPUT, "%s: there is no event in it; is it a run's events.jsonl?",
                           path);
    return status;
}

enum status feed_replay(const char *path, const struct replay_options *options, struct feed **out) {
    struct replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return status_fail(STATUS_NO_MEMORY, "no memory for the console");
    replay->base.ops = &ops;
    replay->base.generation = 1;
    replay->copy_bytes = COPY_BYTES;
    replay->live = options->live;
    replay->speed = options->speed > 0 ? options->speed : 1;
    replay->wanted = options->at;
    replay->playing = options->at == WIRE_UNKNOWN_INT;
    replay->played_at = clock_seconds();
    enum status status = open_replay(replay, path);
    if (status != STATUS_OK) {
        close_replay(&replay->base);
        return status;
    }
    *out = &replay->base;
    return STATUS_OK;
}
