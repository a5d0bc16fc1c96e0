/* Commands by step: a file of lines like `@120 towers 4`, so that a session can be repeated. */
#ifndef TOWERSCOPE_CLI_SCRIPT_H
#define TOWERSCOPE_CLI_SCRIPT_H

#include "engine/wire/command.h"

struct script {
    struct command *commands; /* by step, those of one step in the order of the file */
    int count;
    int next; /* the first that was not taken yet */
};

/* Read and check all of it. '#' begins a comment line. Errors: "FILE:LINE: ...". Free with script_free. */
enum status script_read(const char *path, struct script *out);
void script_free(struct script *script);

/* For a run that is resumed: leave out what it did before step `steps`. */
void script_skip(struct script *script, int64_t steps);

/* Whether script_take() has one. */
bool script_due(const struct script *script, int64_t steps);

/* The next command that takes effect after step `steps` or earlier, or NULL. */
const struct command *script_take(struct script *script, int64_t steps);

#endif
