/* What `--resume` goes on from: the newest checkpoint of a run and its settings, with those given now over
 * them. */
#ifndef TOWERSCOPE_CLI_RESUME_H
#define TOWERSCOPE_CLI_RESUME_H

#include "cli/run_folder.h"
#include "engine/train/checkpoint.h"

struct resume {
    char checkpoint[PATH_MAX + 80]; /* path; "": the run ended before its first one and begins again */
    struct checkpoint_about about;  /* of the checkpoint */
    bool only_values;               /* for an evaluation: where the run stands in its data does not matter */
    bool has_config;                /* config.ini is there */
    struct settings settings;       /* of the checkpoint, else of config.ini, with the given ones over them */
};

/* Look into the folder of a run; its lock is held. STATUS_BAD_INPUT: the newest checkpoint is damaged; the
 * sentence says so and what to do. Free with resume_free(), also after a failure. */
enum status resume_find(const struct run_folder *folder, const struct settings *given, struct resume *out);
void resume_free(struct resume *resume);

/* Path of the checkpoints of a run into out[size]. */
void resume_checkpoints(const struct run_folder *folder, char *out, size_t size);

#endif
