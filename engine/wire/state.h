/* The state of a run as seen from its events: a pure fold, state = apply(state, event). The console, `ls` and
 * the tests of the stream know a run by this and by nothing else. */
#ifndef TOWERSCOPE_ENGINE_WIRE_STATE_H
#define TOWERSCOPE_ENGINE_WIRE_STATE_H

#include "engine/wire/event.h"
#include "kernels/status.h"

/* Curves: one sample a step event that arrived. Samples are appended; after a resume or a rewind those beyond
 * the step gone back to are dropped, and so are the newest events that lie beyond it. */
struct state_curve_point {
    int64_t step;
    double loss, cross_entropy, grad_norm, grad_norm_mean;
    double loss_min, loss_max, grad_norm_max;
    int64_t first_tower; /* index into state.tower_points of tower_count entries */
    int32_t tower_count;
    uint8_t applied; /* 0: none; else state.rules[applied - 1] is the wrong rule that was in force */
};

/* More wrong rules than a run knows; a record with yet more of them names the rest "other". */
enum { STATE_RULES = 16, STATE_RULE_NAME = 32 };

struct state_tower_point {
    float loss, grad_norm; /* state_tower_value() */
};

/* A value of a tower's point as a number again: unknown, as of a tower without images, or not finite. */
double state_tower_value(float value);

enum state_marker_kind {
    MARKER_TOWERS,
    MARKER_COMMAND,
    MARKER_ALARM,
    MARKER_EVAL,
    MARKER_CHECKPOINT,
    MARKER_RESUME,
    MARKER_REWIND,
    MARKER_NOTE
};

struct state_marker {
    enum state_marker_kind kind;
    int64_t step;
    char *text; /* short: "towers 2→4" is written with plain "->" */
};

/* How the layers went: what the newest layers events told, the oldest first; further layers are left out. */
enum { STATE_LAYERS = 64, STATE_LAYERS_PAST = 48, STATE_PENDING = 16 };

struct state_layers_past {
    int count;
    int64_t step[STATE_LAYERS_PAST];
    bool wrong[STATE_LAYERS_PAST];                    /* a wrong rule was in force then */
    float grad_norm[STATE_LAYERS_PAST][STATE_LAYERS]; /* unknown: NaN */
};

enum event_level { LEVEL_INFO, LEVEL_WARNING, LEVEL_ERROR, LEVELS };

struct state_log_line {
    double time;
    int64_t step; /* unknown: WIRE_UNKNOWN_INT */
    enum event_kind kind;
    enum event_level level;
    bool quiet; /* only there because a screen of the console wanted something to draw */
    char *text; /* the event in words */
};

struct run_state {
    bool started, ended, crashed; /* crashed: set by state_crashed() when a stream ends without run_end */
    int64_t last_seq, events;
    int64_t missing;            /* seq numbers that were skipped over (a hole in the record) */
    int64_t at_step;            /* updates done, as last told by a step, state, rewind or resume; unknown */
    char phase[16];             /* last state event: starting, training, paused, ... */
    char rule[STATE_RULE_NAME]; /* the wrong rule in force from here on; "": none */
    /* Learning rate, images and towers of the next step, as last told by a step, a command or the start;
     * unknown. */
    double lr;
    int64_t batch, towers;
    double image_seconds; /* a step's time for one of its images, over the last tens of steps; unknown */
    int64_t timed_steps;  /* how many made it up, since the run started or was resumed */
    int64_t good_step;    /* a state to go back to that is known of: state_rewind() */
    double start_time, last_time; /* of the events */
    /* The newest of each; kind EVENT_NONE: none yet, or gone with a rewind. */
    struct event run_start, step, losses, layers, why, eval, control, run_end, step_phase;
    struct event alarm;   /* the newest of level warning or error */
    struct event command; /* the newest: pending, applied or refused */
    /* Persons' commands that have no answer yet, as last told, the oldest first; those beyond STATE_PENDING
     * are left out. Live only: a copy has none. */
    int64_t pending_count;
    struct event *pending;
    int64_t requests;      /* control events that told of one who asks */
    double best_precision; /* of the evaluations; unknown: none */
    int64_t best_step;
    int64_t device_count;
    struct event *devices; /* newest device event by device */
    int64_t images_count;
    struct event *images; /* image events of the newest step asked for */

    struct state_layers_past layers_past;

    int64_t point_count;
    struct state_curve_point *points;
    int64_t tower_point_count;
    struct state_tower_point *tower_points;
    int rule_count; /* wrong rules that were met */
    char rules[STATE_RULES][STATE_RULE_NAME];
    int64_t marker_count;
    struct state_marker *markers;
    int64_t log_count;
    struct state_log_line *log; /* bounded: the oldest go */
    int64_t log_dropped;

    struct state_memory *memory; /* owner of the above */
};

/* An empty state; NULL when there is no memory. Free with state_free (NULL is fine). */
struct run_state *state_new(void);
void state_free(struct run_state *state);

/* Fold one event in; the event's own memory may go afterwards. STATUS_NO_MEMORY leaves the state usable. */
enum status state_apply(struct run_state *state, const struct event *event);

/* The stream ended without run_end: `text` is what to tell (NULL: a default). */
enum status state_crashed(struct run_state *state, const char *text);

/* A copy for seeking in a replay; NULL when there is no memory. */
struct run_state *state_copy(const struct run_state *state);

/* An event in words, as the Log screen shows it, into `out` (cut to size). Returns its level. */
enum event_level event_words(const struct event *event, char *out, size_t size);

#endif
