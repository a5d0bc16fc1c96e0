/* The training loop over towers: what a step is (load, forward, losses, backward, average, update), what a
 * command does at a step boundary, and the events that tell of both.
 *
 * One thread owns a trainer and calls everything here; towers run on the device's workers. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_TRAINER_H
#define TOWERSCOPE_ENGINE_TRAIN_TRAINER_H

#include "datasets/dataset.h"
#include "engine/model/model.h"
#include "engine/train/settings.h"
#include "engine/wire/command.h"
#include "engine/wire/event.h"

struct trainer;

/* Where events go. seq and time are filled by the receiver; `recorded` says whether the event belongs to the
 * record (else it is live only). The event's memory is the trainer's and lasts until emit returns. */
struct trainer_sink {
    void (*emit)(void *context, const struct event *event, bool recorded);
    void *context;
};

struct trainer_options {
    struct settings settings;
    const char *run_name, *run_folder; /* run_folder NULL: nothing is stored */
    const struct dataset *data;        /* outlives the trainer */
    const struct model *model;         /* outlives the trainer */
    struct device_handle device;       /* outlives the trainer */
    struct trainer_sink sink;
};

/* Plans, allocates (sizes in an info alarm event first), initialises or resumes. */
enum status trainer_open(const struct trainer_options *options, struct trainer **out);
void trainer_close(struct trainer *trainer);

/* run_start, state, losses ...: before the first step. */
enum status trainer_begin(struct trainer *trainer);

/* One whole step. STATUS_NON_FINITE has been dealt with (rewound and paused): it is not returned. */
enum status trainer_step(struct trainer *trainer);

/* Apply a command at this boundary: emits `command` (applied or refused) and what follows from it.
 * STATUS_OK also when it was refused. */
enum status trainer_command(struct trainer *trainer, const struct command *command);

/* What the loop should do next. */
bool trainer_paused(const struct trainer *trainer);
bool trainer_finished(const struct trainer *trainer); /* planned steps done, or stopped */
int64_t trainer_steps(const struct trainer *trainer); /* updates done */

/* Evaluation on the whole test set with the averaged parameters; emits `eval`. */
enum status trainer_evaluate(struct trainer *trainer);

/* Save (when due) and say goodbye: run_end with `reason` (done, stopped, failed). */
enum status trainer_end(struct trainer *trainer, const char *reason, const char *text);

/* The parameters and friends, read only, for tests: flat host copies of `count` floats. */
enum status trainer_read(struct trainer *trainer, const char *what /* "parameters", "average", "gradient" */,
                         float *out, size_t count);

#endif
