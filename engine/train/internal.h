/* A trainer's inside, shared by the files of engine/train and by nobody else. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_INTERNAL_H
#define TOWERSCOPE_ENGINE_TRAIN_INTERNAL_H

#include "datasets/loader.h"
#include "engine/train/machine.h"
#include "engine/train/rules.h"
#include "engine/train/towers.h"
#include "engine/train/trainer.h"

/* An asynchronous device times the steps TIMED_FIRST, TIMED_FIRST + TIMED_EVERY ...: it takes more launches.
 */
enum { TIMED_FIRST = 5, TIMED_EVERY = 10 };

/* The phases of a step, in order. A step that is frozen stands before one of them. */
enum step_phase {
    PHASE_LOAD, /* nothing is done yet: the step's boundary */
    PHASE_FORWARD,
    PHASE_LOSSES,
    PHASE_BACKWARD,
    PHASE_AVERAGE,
    PHASE_UPDATE,
    STEP_PHASES
};

struct why;   /* why.c: what the view of a frozen step needs */
struct apart; /* apart.c: each tower's own parameters */

/* What a resumed run is told of where it goes on; resume.c. */
struct resumed {
    int64_t from;       /* the step; -1: a new run */
    char words[2000];   /* trainer_resumed() */
    char warning[3000]; /* what a person may not expect of it; "" */
};

/* What all towers share: flat buffers of the device, and sums of squares by parameter tensor; shared.c. */
struct shared {
    struct span values, gradient, velocity, average; /* velocity and average: {NULL, 0} when not used */
    struct span prepared;                            /* what the plans derive from `values` */
    size_t flat_bytes;                               /* of each flat buffer */
    size_t bytes;                                    /* of all these, and of the last good state */
    bool stale;                                      /* `values` changed since `prepared` was made */
    double *norms2, *update_norms2, *gradient_norms2;
    double *next_norms2; /* norms2 after the update that is queued */
};

/* The last good state: a copy to go back to; good.c. */
struct good_state {
    bool valid;
    struct progress progress;
    struct noise_scale noise;
    struct running running;
    struct span values, velocity, average;
};

/* Where images come from; moved by reshape.c and step.c. */
struct loading {
    struct loader *loader;
    int64_t full;              /* images of its full batches */
    struct loader_place place; /* of the batch it hands out next */
    unsigned distortions;      /* enum distortion */
    const struct batch *batch; /* of the step at hand, until the next one begins; see trainer_pixels() */
};

/* What one step came to. */
struct step_result {
    int64_t images;
    double lr, cross_entropy, weight_decay, loss, grad_norm, grad_norm_mean, update_ratio;
    double average_norm2;                            /* of the right average, whatever rule is in force */
    double seconds, average_seconds, update_seconds; /* the latter two NaN: not known apart */
    bool cosines, layers;                            /* dots and the layers' figures were worked out */
    bool timed;                                      /* by an asynchronous device */
};

/* The step at hand; step.c. */
struct step {
    enum step_phase phase; /* that comes next */
    bool recorded;         /* it is one that is recorded */
    bool kept_back;        /* the last step is not one, and what it came to is still there */
    struct step_result result;
    float *losses; /* [losses_room]: of its images, on the host */
    int64_t losses_room;
    double average_lap, update_lap; /* seconds by the device's clock, of the last timed step; or NaN */
};

/* A step that is queued on an asynchronous device, and that nobody was told of yet. */
struct queued_step {
    struct step_result result;
    struct progress after; /* the counters when it is done */
    bool recorded;
    double began; /* on the clock */
};

/* Those steps, each behind a mark of the device: all other counters and figures are those before the first of
 * them; step.c. */
struct step_queue {
    struct queued_step steps[DEVICE_MARKS];
    int count;
    double norm2;   /* the average's |.|^2 of the one whose mark was reached last */
    double settled; /* when that was, on the clock */
};

/* How the towers' gradients are combined; wrong.c. */
struct rules {
    enum rule in_force;       /* RULE_RIGHT: none of the wrong ones */
    struct segment *segments; /* [parameters]: see rule_segments() */
    struct apart *apart;      /* NULL unless RULE_NO_AVERAGE is in force */
};

/* A value that is not finite, where it was found, or another reason to pause; faults.c. tower -1: in the
 * whole. */
struct fault {
    int tower;
    char tensor[MODEL_NAME_MAX + 32];
    char text[600]; /* "": none */
};

/* A batch for each worker, and what the last evaluation came to; evaluate.c. */
struct evaluation {
    struct net *net;
    int images, batches, workers; /* of a batch, in all, at once */
    struct span prepared;
    struct evaluation_worker *worker;
    double *losses;       /* [test images] */
    int32_t *predictions; /* [test images]; -1: a score is not finite */
    int64_t *confusion;   /* [classes][classes] */
    size_t bytes;
    int64_t step; /* of the last one; -1: none */
    double precision;
    double best; /* the highest of those that were due; -1: none */
};

/* What came of saving; save.c. */
struct saving {
    int64_t step;     /* of the last; -1: none */
    int64_t failures; /* in a row, for this reason */
    char reason[120];
};

/* Memory the events are built in, and what is due to be told; report.c. */
struct report {
    struct event_step_tower *towers;
    struct event_losses_tower *losses;
    struct event_term *terms;
    struct event_layer *layers;
    bool starting;    /* it was told that the run starts, and no step has been made since */
    bool losses_due;  /* the next step tells its collection */
    bool record_next; /* the next step is recorded whatever its number: a command took effect */
};

/* Whether the run goes on; commands.c. */
struct run {
    bool paused, stopped;
    bool discard;   /* stopped, and not to be saved */
    bool lost;      /* the device failed: the counters are those of the last good state */
    int64_t single; /* steps until the run pauses; 0: it does not */
};

struct trainer {
    struct trainer_options options;
    struct settings settings; /* in force */
    struct settings started;  /* at the start */
    int64_t planned;          /* steps; -1: no end, or one in epochs */
    struct machine machine;
    struct segment *segments; /* the model's, with the weight decay in force */
    struct schedule schedule;
    struct progress progress;
    struct noise_scale noise;
    struct running running;
    struct resumed resumed;
    struct shared shared;
    struct good_state good;
    struct nets nets;
    struct towers *towers;
    struct loading loading;
    struct step step;
    struct step_queue queue;
    struct rules rules;
    struct why *why; /* NULL: the view is closed */
    struct fault fault;
    struct evaluation evaluation;
    struct saving saving;
    struct report report;
    struct run run;
};

/* ---- shared.c: what all towers share */

/* Allocate, and initialise from the seed or from options.resume. prepared_bytes: what the towers' plans
 * derive from the parameters. */
enum status shared_open(struct trainer *t, size_t prepared_bytes);
void shared_close(struct shared *shared, struct machine *machine);

/* Copy a flat buffer to the host: flat_count floats. Works after the device failed, as far as it still
 * answers. */
enum status shared_to_host(const struct trainer *t, struct span from, float *to);

/* Work out the shared norms from the parameters in the device's own order of sums; marks `prepared` stale. */
enum status trainer_norms(struct trainer *t);

/* Replace every weight decay of the model that is not 0. STATUS_REFUSED: it has none. */
enum status trainer_weight_decay(struct trainer *t, double value);

/* ---- save.c */

/* Whether this very step is saved, and still there. */
bool trainer_is_saved(const struct trainer *t);

/* ---- trainer.c */

/* The step at hand up to the phase `until` (not included), with its events; STEP_PHASES: trainer_step(). */
enum status trainer_advance(struct trainer *t, enum step_phase until);

/* ---- reshape.c */

/* Make towers, batch and place as asked: plans, memory, loader. On failure everything is as it was; that is
 * STATUS_INTERRUPTED when it was given up by options.patience.making. */
enum status trainer_reshape(struct trainer *t, const struct settings *settings, struct loader_place place);

/* ---- step.c */

/* Run what is left of the step at hand up to the phase `until` (not included); STEP_PHASES: all of it,
 * counters included, so that t->step.phase is PHASE_LOAD again. STATUS_NON_FINITE: nothing was changed but
 * what the fault names, t->fault tells where. */
enum status step_run(struct trainer *t, enum step_phase until);

/* Whether the step at hand, up to that phase, can be queued as a whole. */
bool step_queues(const struct trainer *t, enum step_phase until);

/* How many images the next step will have. */
int64_t step_images(const struct trainer *t);

/* Queue a step behind those that are. */
enum status step_queue(struct trainer *t);

/* Wait for the first of the queued steps, counters included. STATUS_NON_FINITE: as of step_run(); those
 * behind it are given up. */
enum status step_settle(struct trainer *t);

/* A frozen step begins again: it has changed nothing yet. Its images come again, whatever changes meanwhile.
 */
enum status step_take_back(struct trainer *t);

/* See to it that t->loading.batch->pixels holds pictures first .. first + images - 1 of the step at hand, or
 * of the last one. */
void trainer_pixels(struct trainer *t, int64_t first, int64_t images);

/* Steps of an epoch with the batch in force. */
int64_t steps_per_epoch(const struct trainer *t);

/* ---- average.c: what the towers' results come to */

/* Arguments of the device's update with the step's gradient, shared parameters and slots. */
struct update_args step_update_args(struct trainer *t);

/* The factor by which a combined gradient of that norm is clipped. clip_norm 0: there is no limit. */
double clip_scale(double clip_norm, double norm);

/* Cross-entropies from the images' losses, the step's collection, and what each tower's scope makes of it. */
void step_losses(struct trainer *t);

/* Arguments of the device's combine with the towers' gradients; the average's |.|^2 comes to *average_norm2.
 */
struct combine_args step_combine_args(struct trainer *t, double *average_norm2);

/* The figures from what combine() found out. STATUS_NON_FINITE: t->fault. */
enum status step_average_figures(struct trainer *t, double average_norm2);

/* Average the towers' gradients by the rule in force, and wait for it; with its figures. */
enum status step_average(struct trainer *t);

/* The figures from what update() found out. STATUS_NON_FINITE: t->fault. */
enum status step_update_figures(struct trainer *t);

/* Update the shared parameters, or each tower's own, and wait for it; with its figures. */
enum status step_update(struct trainer *t);

/* ---- faults.c: what is not finite, and where. STATUS_NON_FINITE fills t->fault. */

/* After the losses: the first tower whose loss is not finite, and the earliest tensor that shows it. */
enum status fault_losses(struct trainer *t);

/* After the average: the first tower whose gradient is not finite, or the average itself. */
enum status fault_gradients(struct trainer *t, double average_norm2);

/* After the update: the first parameter, or change of one, that is not finite. */
enum status fault_parameters(struct trainer *t);

/* ---- wrong.c: a wrong rule in force */

/* The figures of the step at hand that rules are made from; after the losses. */
struct rule_step rule_step_of(const struct trainer *t);

/* Parameter tensors with every weight decay taken `decay` times, into out[count]. */
void segments_with_decay(const struct segment *segments, int count, double decay, struct segment *out);

/* The run's with every weight decay taken `decay` times; valid until the next call. */
const struct segment *rule_segments(struct trainer *t, double decay);

/* What the rule in force makes of the losses: the one it prints, and the towers' totals without a scope. */
void rule_losses(struct trainer *t);

/* The averaged gradient again, by the rule in force; `right`: the arguments of the right one. */
enum status rule_average(struct trainer *t, const struct combine_args *right);

/* Towers that never average set out, or start again, from the shared parameters. Where they were apart
 * already and the memory for it is no longer there, they average from now on, and the sentence says so. */
enum status rule_set_out(struct trainer *t);

/* From the next step on. Takes the last good state first. */
enum status rule_apply(struct trainer *t, enum rule rule);

/* Back to the right way. */
void rule_restore(struct trainer *t);

/* ---- apart.c: towers that never average, under RULE_NO_AVERAGE */

/* Copies of the shared parameters and slots for each tower. STATUS_NO_MEMORY names the bytes. */
enum status apart_open(struct trainer *t);
void apart_close(struct trainer *t);

/* What tower k computes with on that worker: parameters of its own, or the shared ones. */
struct net_operands apart_operands(const struct trainer *t, int k, int worker);

/* Derive every tower's prepared parameters; nothing to do when they are shared. */
enum status apart_prepare(struct trainer *t, struct net *net);

/* Each tower's own update; then the shared parameters are their mean. */
enum status apart_update(struct trainer *t);

/* Distance between the towers: sqrt(mean_k |w_k - mean|^2) / |mean|; unknown when they share. */
double apart_spread(const struct trainer *t);

/* ---- why.c */

/* Open the view; says in words[size] what the proof takes, or why there is none. Open already: only the
 * words. */
enum status why_open(struct trainer *t, char *words, size_t size);
void why_close(struct trainer *t);

/* Work out proof and alternatives of the step at hand and emit `why`; after its average, before its update.
 */
enum status why_report(struct trainer *t);
enum status why_gradients(struct trainer *t); /* the towers' alone, before they are averaged */

/* ---- images.c */

/* Emit at most 8 images of tower k's shard of the step at hand, or of the last one, from its image `first`.
 */
enum status images_report(struct trainer *t, int64_t k, int64_t first);

/* ---- evaluate.c */

/* Plan and allocate what evaluations of `count` test images need, so that none fails for want of memory
 * later. Close it after a failure too. */
enum status evaluation_open(struct evaluation *evaluation, const struct model *model, struct machine *machine,
                            int64_t count);
void evaluation_close(struct evaluation *evaluation, struct machine *machine);

/* ---- resume.c */

/* Take a snapshot's state over, when there is one, with the settings that were changed for it; the settings
 * are complete. STATUS_REFUSED: another seed or other data: that would be another run. */
enum status resume_take_up(struct trainer *t);

/* Say where the run goes on and which settings changed, old and new. */
void resume_report(struct trainer *t);

/* ---- good.c */

/* Memory for a copy of what all towers share, which is there by now. Close it after a failure too. */
enum status good_open(struct good_state *good, const struct shared *shared, struct machine *machine);
void good_close(struct good_state *good, struct machine *machine);

/* What is now becomes the last good state. */
enum status good_take(struct trainer *t);

/* Back to the last good state and pause: alarm, rewind, state. */
enum status good_rewind(struct trainer *t, const char *reason);

/* The device failed (status_text() says how): alarm and pause. Nothing runs on it any more; what can still be
 * saved is the last good state, which no step that was under way has touched. */
enum status good_lost(struct trainer *t);

/* ---- report.c */

/* Room for the events of those towers and of that many layers. On failure the old room stays. */
enum status report_room(struct report *report, const struct towers *towers, int layers);
void report_close(struct report *report);

/* Emit an event about the trainer as it is: of the step that was just done, or (report_losses, report_phase)
 * of the one at hand. report_sizes() is an alarm of level info. tower -1 and tensor NULL: of none. */
void report_run_start(struct trainer *t);
void report_sizes(struct trainer *t);
void report_step(struct trainer *t, bool recorded);
void report_losses(struct trainer *t, int64_t step);
void report_phase(struct trainer *t, const char *phase);
void report_layers(struct trainer *t);
void report_state(struct trainer *t, const char *state);
void report_alarm(struct trainer *t, const char *level, int64_t step, int64_t tower, const char *tensor,
                  const char *text);

/* Hand an event to the sink; `recorded`: it is part of the record. */
void report_emit(struct trainer *t, const struct event *event, bool recorded);

#endif
