/* The training loop over towers: what a step is (load, forward, losses, backward, average, update), what a
 * command does at a step boundary, and the events that tell of both.
 *
 * One thread owns a trainer and calls everything here; towers run on the device's workers. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_TRAINER_H
#define TOWERSCOPE_ENGINE_TRAIN_TRAINER_H

#include "datasets/dataset.h"
#include "engine/model/model.h"
#include "engine/model/net.h"
#include "engine/train/settings.h"
#include "engine/train/snapshot.h"
#include "engine/wire/command.h"
#include "engine/wire/event.h"

struct trainer;

/* Where events go. seq and time are filled by the receiver; `recorded` says whether the event belongs to the
 * record (else it is live only). The event's memory is the trainer's and lasts until emit returns. */
struct trainer_sink {
    void (*emit)(void *context, const struct event *event, bool recorded);
    void *context;
};

/* Where checkpoints go. save() writes the snapshot (which it may keep nothing of) and fills path, bytes and
 * seconds of the event; the trainer then emits it. there() says whether what was saved at a step still is;
 * NULL: it is. save NULL: nothing is stored. */
struct trainer_store {
    enum status (*save)(void *context, const struct snapshot *snapshot, struct event_checkpoint *out);
    bool (*there)(void *context, int64_t step);
    void *context;
};

/* Who is asked while something takes long; any of them may be NULL. */
struct trainer_patience {
    /* Now and then during evaluations: true makes them end early. */
    bool (*interrupted)(void *context);
    /* When `made` of the `of` towers that the start or a command asks for have their memory, which can take a
     * minute where they are many: false gives that up, and all stays as it was. */
    bool (*making)(void *context, int made, int of);
    void *context;
};

struct trainer_options {
    struct settings settings; /* may be incomplete: the model's defaults and the program's fill it in */
    const char *run_name;
    const struct dataset *data;  /* outlives the trainer */
    const struct model *model;   /* outlives the trainer; read without an override of the weight decay */
    struct device_handle device; /* outlives the trainer */
    struct trainer_sink sink;
    struct trainer_store store;
    const struct snapshot *resume; /* where to go on, or NULL: read during trainer_open() only */
    /* What changed beside the settings since then, a sentence; NULL: nothing known. */
    const char *resume_notes;
    struct trainer_patience patience;
};

/* Bytes of a trainer, each known before it was allocated. */
struct trainer_sizes {
    int towers, workers;
    size_t tower_bytes;  /* of each tower: activations, their gradients, the shard, and its gradient */
    size_t worker_bytes; /* scratch of each worker */
    size_t shared_bytes; /* parameters, average, slots, last good state, what kernels derive from them */
    size_t evaluation_bytes;
    size_t total_bytes;
};

/* Checks, plans, allocates, initialises or takes the snapshot up. Nothing is emitted. STATUS_BAD_INPUT:
 * settings, model and data don't go together; STATUS_UNSUPPORTED: not on this device; STATUS_REFUSED: a
 * resume that would be another run; STATUS_NO_MEMORY; STATUS_INTERRUPTED: given up by patience.making. Free
 * with trainer_close() (NULL is fine). */
enum status trainer_open(const struct trainer_options *options, struct trainer **out);
void trainer_close(struct trainer *trainer);

struct trainer_sizes trainer_sizes(const struct trainer *trainer);

/* The settings with every default filled in, as they were at the start; the trainer's. */
const struct settings *trainer_settings(const struct trainer *trainer);

/* run_start, an info alarm with the sizes, state: before the first step. */
void trainer_begin(struct trainer *trainer);

/* One whole step, and what is due after it (evaluation, checkpoint). STATUS_NON_FINITE has been dealt with
 * (rewound and paused): it is not returned. An asynchronous device is given the step, and the events are
 * those of the one before, so that it does not wait for the host; where something is due, at a pause and at
 * the end they are there at once. */
enum status trainer_step(struct trainer *trainer);

/* Wait for the steps that are queued, and emit their events; every other call that needs it does it itself. A
 * step that failed pauses the run, as in trainer_step(). */
enum status trainer_settle(struct trainer *trainer);

/* Apply a command at this boundary: emits `command` (applied or refused) and what follows from it.
 * STATUS_OK also when it was refused: *refused (may be NULL) tells. A failure is one of the device. */
enum status trainer_command(struct trainer *trainer, const struct command *command, bool *refused);

/* Where a resumed run goes on and which settings changed, in words; "" for a new run. */
const char *trainer_resumed(const struct trainer *trainer);

/* What the loop should do next. */
bool trainer_paused(const struct trainer *trainer);
bool trainer_finished(const struct trainer *trainer); /* planned steps done, or stopped */
bool trainer_stopped(const struct trainer *trainer);  /* by the command */
int64_t trainer_steps(const struct trainer *trainer); /* updates done, or queued */
/* The level "error" alarm that paused the run, "" when there is none. */
const char *trainer_fault(const struct trainer *trainer);

/* The net of an evaluation on that many test images: the batch that all of them go through in, and its lanes.
 */
struct net_options trainer_evaluation_net(struct device_handle device, int64_t test_images);

/* Evaluation on the whole test set, with the moving averages where there are any; emits `eval`. confusion:
 * with the matrix of labels and predictions. STATUS_INTERRUPTED: given up. */
enum status trainer_evaluate(struct trainer *trainer, bool confusion);

/* Save now, unless this very step is saved already; emits `checkpoint`, or an alarm when it failed (the
 * failure is returned too; of those in a row for one reason the 1st, 10th, 100th ... are told). STATUS_OK
 * without a store. */
enum status trainer_save(struct trainer *trainer);

/* Pause with an alarm of level "error": something befell the run from outside. trainer_fault() is `text`. */
void trainer_halt(struct trainer *trainer, const char *text);

/* What a done run still does: evaluate, when that is due at the end, and save. Done already: nothing. */
enum status trainer_finish(struct trainer *trainer);

/* trainer_finish() when `reason` is "done", else save, unless the run was stopped with --discard; and say
 * goodbye: run_end with `reason` (done, stopped, failed). */
enum status trainer_end(struct trainer *trainer, const char *reason, const char *text);

/* The parameters and friends, read only, for tests: flat host copies into out[count], count the model's
 * flat_count. `what`: "parameters", "average" (the moving average), "gradient" (the last step's averaged
 * gradient), "velocity". STATUS_NOT_FOUND: this run has none; STATUS_BAD_INPUT: another name or count. */
enum status trainer_read(struct trainer *trainer, const char *what, float *out, size_t count);

#endif
