/* Where live runs are found: $XDG_STATE_HOME/towerscope/live, one folder for a user, whatever folder runs are
 * in.
 *
 * A run's entry is a link ID.run to its folder and a socket ID.sock; ID is made from the folder's path, so
 * that it is short whatever the path. Entries of runs that ended in order are removed; one whose run is not
 * locked was left by a crash. */
#ifndef TOWERSCOPE_ENGINE_WIRE_LIVE_H
#define TOWERSCOPE_ENGINE_WIRE_LIVE_H

#include <limits.h>
#include <stdbool.h>

#include "kernels/status.h"

enum { RUN_NAME_MAX = 64 }; /* letters of a run's name */

struct live_run {
    char name[RUN_NAME_MAX + 1]; /* of the run: the last part of its path */
    char id[17];
    char folder[PATH_MAX]; /* of the run, absolute */
    double started;        /* seconds since 1970 */
    bool live;             /* the run is locked; false: left by a crash */
};

/* Whether `name` may name a run: [A-Za-z0-9._-]{1,64}, no dot or dash first. STATUS_BAD_INPUT says what is
 * wrong. */
enum status run_name_check(const char *name);

/* Open the folder of live runs; with `create` it is made (0700, whatever the umask). *out is a descriptor of
 * the folder. STATUS_NOT_FOUND: there is none; STATUS_REFUSED: it is a link, no folder, or somebody else's;
 * STATUS_IO. */
enum status live_folder_open(bool create, int *out);

/* The path of that folder, for people. */
enum status live_folder_path(char *out, size_t size);

/* All entries, newest first, in memory of the caller (free it); *count of them. No folder: none. */
enum status live_list(struct live_run **out, int *count);

/* The run called `name`: a name or a path of its folder. NULL: the newest one that is live. Looked for in
 * `runs` (a folder of run folders, may be NULL) first, then among the entries; two live entries of that name
 * are refused with both paths (STATUS_BAD_INPUT). STATUS_NOT_FOUND: no such run that is live. */
enum status live_find(const char *name, const char *runs, struct live_run *out);

/* Fill *out for a run's folder (made absolute). STATUS_NOT_FOUND: no such folder; STATUS_BAD_INPUT: its name.
 */
enum status live_describe(const char *folder, struct live_run *out);

/* For the engine: make the run's entry / remove it and the socket. `live_fd` is the folder of live runs. */
enum status live_enter(int live_fd, const struct live_run *run);
void live_leave(int live_fd, const struct live_run *run);

/* Take entries away whose run's folder is gone. */
void live_prune(int live_fd);

/* A listening socket ID.sock, mode 0600 whatever the umask, close-on-exec, not blocking. A dead socket in its
 * place is replaced (the caller holds the run's lock, so it is dead); anything that is no socket is left
 * alone and refused. */
enum status live_listen(int live_fd, const struct live_run *run, int *out);

/* A connected socket to a run, not blocking, close-on-exec. STATUS_NOT_FOUND: nobody listens;
 * STATUS_BUSY: too many are waiting there. */
enum status live_connect(const struct live_run *run, int *out);

#endif
