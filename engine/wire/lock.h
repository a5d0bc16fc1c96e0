/* The lock of a run folder: whoever holds it owns the run. That, and not a process number or a socket file,
 * is what "live" means. An open-file-description lock on FOLDER/lock: the system drops it when its holder is
 * gone, however it went; a holder that is only stopped keeps it. */
#ifndef TOWERSCOPE_ENGINE_WIRE_LOCK_H
#define TOWERSCOPE_ENGINE_WIRE_LOCK_H

#include <stdbool.h>

#include "kernels/status.h"

/* Take the lock of a run folder; *out is the descriptor to keep open (close-on-exec), closing it gives the
 * lock back. The file is never unlinked; it tells the holder's process number. STATUS_BUSY: somebody holds
 * it, the sentence says who; STATUS_IO. */
enum status lock_take(const char *folder, int *out);

/* Whether somebody holds the lock; never takes it. A folder without a lock file is not locked. */
bool lock_held(const char *folder);

/* The holder's process number as written in the lock file; 0: not known. */
long lock_holder(const char *folder);

#endif
