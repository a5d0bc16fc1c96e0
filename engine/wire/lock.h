/* The lock of a run folder: whoever holds it owns the run. That, and not a process number or a socket file,
 * is what "live" means. Two open-file-description locks, on FOLDER/lock and on the folder itself: the system
 * drops them when their holder is gone, however it went; a holder that is only stopped keeps them. The one on
 * the folder stands when somebody removes the file, and goes where the folder is moved to.
 *
 * The lock file holds the holder's process number, for people. FOLDER/owner tells more, a word and its value
 * a line:
 *
 *     process 12345
 *     user 1000 ada
 *     live /home/ada/.local/state/towerscope/live     where its socket is; "live" alone: it can't listen;
 *                                                     "ended 370": it ended in order, at step 370
 */
#ifndef TOWERSCOPE_ENGINE_WIRE_LOCK_H
#define TOWERSCOPE_ENGINE_WIRE_LOCK_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/status.h"

struct lock {
    int folder; /* descriptor of the run's folder: it is the same folder wherever it is moved to; -1: none */
    int file;   /* of the lock file; -1: none */
};

/* Take the lock of a run folder; the descriptors are close-on-exec. STATUS_BUSY: somebody holds it, the
 * sentence says who; STATUS_IO. Nothing is held then. */
enum status lock_take(const char *folder, struct lock *out);

/* Give it back. The file is never unlinked. Nothing held is fine. */
void lock_give(struct lock *lock);

/* For the holder: what the file tells after the owner: "live PATH", "ended STEP", "" for nothing. That it
 * can't be written is no reason not to own the run; the file keeps its place on the disk, so that a full one
 * takes it. */
void lock_tell(const struct lock *lock, const char *words);

/* ---- for the holder: does all of it still stand? */

enum lock_state {
    LOCK_STANDS,
    LOCK_FILE_LOST,    /* somebody removed or replaced the lock file: lock_mend() */
    LOCK_FOLDER_MOVED, /* the folder is not at `path`, but somewhere: lock_where() */
    LOCK_FOLDER_LOST   /* somebody removed the folder */
};

/* Three looks at inodes. `path`: where the folder was last known to be. */
enum lock_state lock_look(const struct lock *lock, const char *path);

/* Where the folder is now, into out[size]; false: not known. */
bool lock_where(const struct lock *lock, char *out, size_t size);

/* The same of any descriptor of a folder, for whoever wants to follow it. */
bool lock_folder_where(int folder, char *out, size_t size);

/* Make the lock file again and hold it. `path` is for the sentence. STATUS_BUSY:
 * somebody who tried to take it has it at this moment. */
enum status lock_mend(struct lock *lock, const char *path);

/* ---- for others */

/* Whether somebody holds the lock; never takes it. A folder without a lock file may be held. */
bool lock_held(const char *folder);

struct lock_about {
    long pid;            /* of the holder, or of the last one; 0: not known */
    long user;           /* -1: not known */
    char user_name[40];  /* "" */
    bool says_where;     /* the holder said where it listens */
    char live[PATH_MAX]; /* there; "": it can't listen */
    int64_t ended;       /* the last holder ended in order, at this step; -1: it did not say so */
};

/* What FOLDER/owner says, whether somebody holds the lock or not. Nothing is known of one that can't be read.
 */
void lock_about(const char *folder, struct lock_about *out);

/* The holder's process number as written in the lock file; 0: not known. */
long lock_holder(const char *folder);

#endif
