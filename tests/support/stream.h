/* Streams of events as a run would send them, made up: the same bytes for the same script. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_STREAM_H
#define TOWERSCOPE_TESTS_SUPPORT_STREAM_H

#include "engine/base/arena.h"
#include "engine/wire/event.h"
#include "engine/wire/state.h"

struct stream_script { /* zeros: a run of no towers and no steps that goes on */
    const char *run;
    int towers;
    int64_t steps;     /* step events to send */
    int64_t every;     /* steps between them; 0: 1 */
    int64_t planned;   /* 0: no limit */
    int64_t batch;     /* 0: 128 */
    int64_t towers_at; /* the towers change with this step; 0: never */
    int towers_to;
    int64_t pause_at;    /* paused after this step, by a command */
    int towers_paused;   /* the towers are changed in that pause; 0: they are not */
    int64_t alarm_at;    /* an alarm is raised with this step; a pause follows */
    int64_t nan_at;      /* this step's losses are not finite in the last tower */
    int64_t commands_at; /* three commands after this step, and three that screens sent by themselves */
    int64_t refused_at;  /* a command is refused after this step */
    int64_t stray_from;  /* the last tower's loss is off from this step on */
    int64_t eval_every, checkpoint_every;
    const char *applied;                  /* a wrong rule in force from the middle on */
    int64_t applied_after, applied_until; /* or by commands after these steps; 0: to the end */
    const char *device;                   /* "cpu": towers take turns on cpu 0 and cpu 1 */
    const char
        *frozen; /* the step after the last stands after this phase; "update": that one was taken apart */
    double momentum, clip_norm; /* of the update */
    double proof_differs;       /* relative differences of its proof; 0: of rounding */
    bool layers;                /* the layers are told after the last step */
    bool class_names;           /* the classes have names */
    bool confusion;             /* evaluations have a confusion matrix */
    bool unknown;               /* leave out what an engine may not know */
    bool ended;                 /* run_end at the end */
};

typedef enum status stream_sink(void *context, const struct event *event);

/* Send the whole script. Stops at the first failure of the sink. */
enum status stream_play(const struct stream_script *script, stream_sink *sink, void *context);

/* The state after it; NULL when there is no memory. */
struct run_state *stream_state(const struct stream_script *script);

/* Write it as a record (events.jsonl). */
enum status stream_write(const struct stream_script *script, const char *path);

#endif
