/* A trainer's inside, shared by the files of engine/train and by nobody else. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_INTERNAL_H
#define TOWERSCOPE_ENGINE_TRAIN_INTERNAL_H

#include "datasets/loader.h"
#include "engine/train/towers.h"
#include "engine/train/trainer.h"

enum { LAYERS_EVERY = 100, GOOD_EVERY = 100 };

/* What all towers share. Flat buffers of the device. */
struct shared {
    struct span values, gradient, velocity, average; /* velocity and average: {NULL, 0} when not used */
    struct span prepared;                            /* what the plans derive from `values` */
    size_t flat_bytes;
    bool stale;                                       /* `values` changed since `prepared` was made */
    double *norms2, *update_norms2, *gradient_norms2; /* by parameter tensor */
};

/* The last good state: a copy to go back to. */
struct good_state {
    bool valid;
    struct progress progress;
    struct noise_scale noise;
    struct running running;
    struct span values, velocity, average;
};

/* What one step came to. */
struct step_result {
    int64_t images;
    double lr, cross_entropy, weight_decay, loss, grad_norm, grad_norm_mean, update_ratio;
    double seconds, waited, average_seconds, update_seconds; /* waited: for the loader */
    bool cosines, layers; /* dots and the layers' figures were worked out */
};

/* A value that is not finite, where it was found. tower -1: in the whole. */
struct fault {
    int tower;
    char tensor[MODEL_NAME_MAX + 32];
    char text[256];
};

/* Evaluation: a batch for each worker; see evaluate.c. */
struct evaluation {
    struct net *net;
    int images, workers;
    struct span prepared;
    struct evaluation_worker *worker;
    double *losses;       /* [test images] */
    int32_t *predictions; /* [test images]; -1: a score is not finite */
    int64_t *confusion;   /* [classes][classes] */
    size_t bytes;
};

/* Memory the events are built in; see report.c. */
struct report {
    struct event_step_tower *towers;
    struct event_losses_tower *losses;
    struct event_term *terms;
    struct event_layer *layers;
};

struct trainer {
    struct trainer_options options;
    struct settings settings; /* in force */
    struct settings started;  /* at the start */
    struct device_info info;
    struct segment *segments; /* the model's, with the weight decay in force */
    struct schedule schedule;
    struct progress progress;
    int64_t resumed_from;     /* -1: a new run */
    char resumed_words[1600]; /* trainer_resumed() */
    int64_t planned;          /* steps; -1: no end, or one in epochs */
    struct shared shared;
    struct nets nets;
    struct towers *towers;
    struct loader *loader;
    int64_t loader_batch;             /* images of its full batches */
    struct loader_place loader_place; /* of the batch it hands out next */
    unsigned distortions;
    float *host_losses; /* [losses_room]: of the step's images */
    int64_t losses_room;
    struct noise_scale noise;
    struct running running;
    struct good_state good;
    struct step_result result;
    struct fault fault;
    struct evaluation evaluation;
    struct report report;
    bool paused, stopped;
    bool losses_due;          /* the next step tells its collection */
    bool record_next;         /* the next step is recorded whatever its number: a command took effect */
    bool step_recorded;       /* the step at work is one of those */
    int64_t single;           /* steps until the run pauses; 0: it does not */
    int64_t evaluated, saved; /* step of the last; -1: none */
    double precision;         /* of the last evaluation */
    double best;              /* the highest of those that were due; -1: none */
    size_t buffer_bytes, shared_bytes, prepared_bytes;
};

/* ---- shared.c: what all towers share */

enum status buffer_new(struct trainer *t, size_t bytes, struct span *out);
void buffer_free(struct trainer *t, struct span *span); /* an empty one is fine */

/* Allocate, and initialise from the seed or from options.resume. t->towers is there already: its plans say
 * how much they prepare. */
enum status shared_open(struct trainer *t, size_t prepared_bytes);
void shared_close(struct trainer *t);

/* Wait for what was queued on the device. */
enum status trainer_wait(struct trainer *t);

/* Work out the shared norms from the parameters in the device's own order of sums; marks `prepared` stale. */
enum status trainer_norms(struct trainer *t);

/* Derive `prepared` from `values` with the plans of `net`. */
enum status trainer_prepare(struct trainer *t, struct net *net, struct span values, struct span prepared);

/* Replace every weight decay of the model that is not 0. STATUS_REFUSED: it has none. */
enum status trainer_weight_decay(struct trainer *t, double value);

/* ---- reshape.c */

/* The global batch under the settings' rule with that many towers. */
int64_t trainer_batch(const struct settings *settings, int64_t towers);

/* Make towers, batch and place as asked: plans, memory, loader. On failure everything is as it was. */
enum status trainer_reshape(struct trainer *t, const struct settings *settings, struct loader_place place);

/* ---- step.c */

/* All phases of a step, counters included. STATUS_NON_FINITE: nothing was changed but what the fault names,
 * t->fault tells where. */
enum status step_run(struct trainer *t);

/* Steps of an epoch with the batch in force. */
int64_t steps_per_epoch(const struct trainer *t);

/* ---- evaluate.c */

enum status evaluation_open(struct trainer *t);
void evaluation_close(struct trainer *t);

/* ---- resume.c */

/* Take a snapshot's state over, when there is one, with the settings that were changed for it; the settings
 * are complete. STATUS_REFUSED: another seed or other data: that would be another run. */
enum status resume_take_up(struct trainer *t);

/* Say where the run goes on and which settings changed, old and new. */
void resume_report(struct trainer *t);

/* ---- good.c */

enum status good_open(struct trainer *t);
void good_close(struct trainer *t);
enum status good_take(struct trainer *t);

/* Back to the last good state and pause: alarm, rewind, state. */
enum status good_rewind(struct trainer *t, const char *reason);

/* ---- report.c */

/* Room for the events of `towers` towers. On failure the old room stays. */
enum status report_room(struct trainer *t, const struct towers *towers);
void report_close(struct trainer *t);

void report_run_start(struct trainer *t);
void report_sizes(struct trainer *t);
void report_step(struct trainer *t, bool recorded);
void report_losses(struct trainer *t);
void report_layers(struct trainer *t);
void report_state(struct trainer *t, const char *state);
void report_alarm(struct trainer *t, const char *level, int64_t step, int64_t tower, const char *tensor,
                  const char *text);
void report_emit(struct trainer *t, const struct event *event, bool recorded);

#endif
