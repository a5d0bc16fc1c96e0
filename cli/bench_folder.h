/* A folder for what towerscope bench writes: the records of its runs. */
#ifndef TOWERSCOPE_CLI_BENCH_FOLDER_H
#define TOWERSCOPE_CLI_BENCH_FOLDER_H

#include "kernels/status.h"

struct bench_folder {
    char path[512]; /* "": not made */
};

/* Make one in $TMPDIR, else /tmp. From then on this process keeps its live runs there, too ($XDG_STATE_HOME
 * is set): they are not the user's. To be called while the process has one thread. */
enum status bench_folder_make(struct bench_folder *out);

/* Remove it with all that is in it. */
void bench_folder_remove(struct bench_folder *folder);

#endif
