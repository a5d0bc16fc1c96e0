/* What `--resume` goes on from: the newest checkpoint of a run and its settings, with those given now over
 * them. */
#ifndef TOWERSCOPE_CLI_RESUME_H
#define TOWERSCOPE_CLI_RESUME_H

#include "cli/run_folder.h"
#include "engine/train/checkpoint.h"

struct resume_record {   /* what a run's record says of it */
    int64_t saved;       /* the step saved last; -1: of none */
    int64_t seed, train; /* of its newest start: training images; unknown */
    char model[MODEL_NAME_MAX];
};

struct resume {
    char checkpoint[PATH_MAX + 80]; /* path; "": there is none, and the run begins again */
    struct checkpoint_about about;  /* of the checkpoint */
    struct resume_record record;
    bool only_values;              /* for an evaluation: where the run stands in its data does not matter */
    bool has_config;               /* config.ini is there */
    bool model_given, begin_again; /* with this --resume */
    char notes[2600];              /* what changed since, beside the settings: parts of a sentence; "" */
    struct settings settings;      /* of the checkpoint, else of config.ini, with the given ones over them */
};

/* Look into the folder of a run; its lock is held. STATUS_BAD_INPUT: the newest checkpoint is damaged; the
 * sentence says so and what to do. STATUS_REFUSED: the record says that a checkpoint was saved and there is
 * none (--begin-again asks for it all the same). Free with resume_free(), also after a failure. */
enum status resume_find(const struct run_folder *folder, const struct settings *given, struct resume *out);
void resume_free(struct resume *resume);

/* Add to the notes. */
void resume_note(struct resume *resume, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Path of the checkpoints of a run into out[size]. */
void resume_checkpoints(const struct run_folder *folder, char *out, size_t size);

#endif
