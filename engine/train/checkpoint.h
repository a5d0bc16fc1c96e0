/* Checkpoints: all it takes to go on with a run, or to evaluate its network, in one safetensors file. What is
 * in it is written down in engine/train/CHECKPOINT.md.
 *
 * A file is written aside, synced, renamed, and its folder synced: at every moment the files called
 * step-N.safetensors are whole. One writer per folder: the run's lock sees to that. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_CHECKPOINT_H
#define TOWERSCOPE_ENGINE_TRAIN_CHECKPOINT_H

#include <limits.h>

#include "engine/train/snapshot.h"
#include "engine/wire/event.h"

#define CHECKPOINT_FORMAT "towerscope checkpoint 1"

/* ---- one file */

/* What a checkpoint says of itself before its tensors are looked at. */
struct checkpoint_about {
    char model[MODEL_NAME_MAX];
    char *model_text; /* the model file */
    int64_t step;
    double precision;         /* of an evaluation at that step; NaN: there was none */
    struct settings settings; /* in force when it was saved */
};

/* STATUS_BAD_INPUT: no safetensors file, damaged, or no checkpoint; STATUS_NOT_FOUND, STATUS_IO,
 * STATUS_NO_MEMORY. Free with checkpoint_about_free(), also after a failure. */
enum status checkpoint_look(const char *path, struct checkpoint_about *out);
void checkpoint_about_free(struct checkpoint_about *about);

/* A checkpoint read back: the snapshot's tensors lie in memory of its own. */
struct checkpoint {
    struct snapshot snapshot;
    float *values;
};

/* Read a checkpoint for a model. STATUS_BAD_INPUT names the first tensor whose type or shape differs from the
 * model's, with both, or that is missing or not expected; STATUS_NON_FINITE the first that holds a NaN or an
 * infinity. Memory is asked for when all of that is known. Free with checkpoint_free(), also after a failure.
 */
enum status checkpoint_read(const char *path, const struct model *model, struct checkpoint *out);
void checkpoint_free(struct checkpoint *checkpoint);

/* ---- the folder of a run */

struct checkpoint_folder {
    bool held;           /* it is the folder "checkpoints" of the folder `run`, wherever that is moved to */
    int run;             /* descriptor of the run's folder, when held */
    char path[PATH_MAX]; /* RUNS/NAME/checkpoints, for sentences and events when held; made by the first save
                          */
    char last[PATH_MAX + 64]; /* path of the last save */
};

/* Save as step-NNNNNNNN.safetensors and fill *out but for the step (its path is `last`). Afterwards the
 * newest snapshot->settings.keep files stay, and the best one: that of the highest precision, the newest of
 * equal ones. Those of later steps, which the run went back from, are renamed
 * step-NNNNNNNN.rewound.safetensors and left alone. STATUS_NON_FINITE, STATUS_IO, STATUS_NO_SPACE,
 * STATUS_NO_MEMORY: what was there before is untouched. */
enum status checkpoint_save(struct checkpoint_folder *folder, const struct snapshot *snapshot,
                            struct event_checkpoint *out);

/* Whether the checkpoint of a step lies in the folder. */
bool checkpoint_there(const struct checkpoint_folder *folder, int64_t step);

/* Path of the newest checkpoint into out[size]. STATUS_NOT_FOUND: there is none. */
enum status checkpoint_newest(const char *folder, char *out, size_t size);

/* Its step; -1: there is none, or the folder can't be read. */
int64_t checkpoint_newest_step(const char *folder);

#endif
