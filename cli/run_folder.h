/* The folder of a run, RUNS/NAME: made once, exclusively, after everything else was checked. */
#ifndef TOWERSCOPE_CLI_RUN_FOLDER_H
#define TOWERSCOPE_CLI_RUN_FOLDER_H

#include <limits.h>

#include "engine/train/settings.h"
#include "engine/wire/live.h"

struct run_folder {
    char name[RUN_NAME_MAX + 1];
    char path[PATH_MAX]; /* RUNS/NAME, or where it was moved to */
    int fd;              /* descriptor of it, wherever it is moved to; -1: not held */
};

/* Refuse a name that is taken before anything expensive is done. `runs`: the folder of all runs. */
enum status run_folder_check(const char *runs, const char *name);

/* Make it. name "": a readable one is made up; whether it is free is for mkdir to decide. STATUS_REFUSED: the
 * name is taken. */
enum status run_folder_make(const char *runs, const char *name, struct run_folder *out);

/* The folder of a run that is there. STATUS_NOT_FOUND: there is none of that name. */
enum status run_folder_find(const char *runs, const char *name, struct run_folder *out);

/* STATUS_NOT_FOUND: the folder has files, and none of them is of a run, so that none must be begun in it. An
 * empty one is right: it is that of a run that was killed as it began. */
enum status run_folder_is_run(const struct run_folder *folder);

/* Write config.ini into the folder, which is held, unless it says just that. What was there before is whole
 * until the new one is. */
enum status run_folder_config(const struct run_folder *folder, const struct settings *settings);

/* Take a folder away again that was made a moment ago, before the run began. */
void run_folder_unmake(const struct run_folder *folder);

#endif
