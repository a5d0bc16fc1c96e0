/* Commands by step: a file of lines like `@120 towers 4`, so that a session can be repeated. */
#ifndef TOWERSCOPE_CLI_SCRIPT_H
#define TOWERSCOPE_CLI_SCRIPT_H

#include "engine/wire/command.h"

struct script {
    struct command *commands; /* by step, those of one step in the order of the file */
    int count;
    int next; /* the first that was not taken yet */
};

/* Read and check all of it. '#' begins a comment line. `waits` (NULL: nobody) is called once when nothing
 * came from a pipe for a second. Errors: "FILE:LINE: ...". Free with script_free. */
enum status script_read(const char *path, void (*waits)(void *context), void *context, struct script *out);
void script_free(struct script *script);

/* For a run that is resumed: leave out the commands before step `steps`. How many there are; into words[size]
 * which, as far as they fit: "@1 towers 4; @5 note hello and 3 more". */
int script_skip(struct script *script, int64_t steps, char *words, size_t size);

/* Whether script_take() has one. */
bool script_due(const struct script *script, int64_t steps);

/* The next command that takes effect after step `steps` or earlier, or NULL. */
const struct command *script_take(struct script *script, int64_t steps);

#endif
