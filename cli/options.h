/* The command line of `run`, `train` and their like: every setting of the table as --KEY VALUE, and a few
 * words more. */
#ifndef TOWERSCOPE_CLI_OPTIONS_H
#define TOWERSCOPE_CLI_OPTIONS_H

#include "engine/train/settings.h"
#include "engine/wire/live.h"

struct run_options {
    struct settings settings;    /* file < environment < flags; what nobody gave is not filled in */
    char name[RUN_NAME_MAX + 1]; /* of the run; "" when not given */
    char script[1024];           /* "" when not given */
    char note[1200];             /* what was given and does not count, for stderr; "" */
    bool help;
};

/* Read argv[1..]. STATUS_BAD_INPUT, STATUS_NOT_FOUND (the config file): wrong usage, nothing was done. */
enum status options_read(int argc, char **argv, struct run_options *out);

/* The same for a command whose one word is anything, a path for example: it goes into word[size]. */
enum status options_read_word(int argc, char **argv, struct run_options *out, char *word, size_t size);

/* STATUS_BAD_INPUT when a setting was given that is not among keys[count]: `command` takes only those. */
enum status options_only(const struct run_options *options, const char *command, const char *const *keys,
                         int count);

/* The refusal of --`option`, with the nearest of names[count] when one is near; `where`: "doctor: ", or "".
 */
enum status options_unknown(const char *where, const char *option, const char *const *names, int count);

/* The options, for --help. */
void options_help(FILE *file);

/* Whether a flag of that name was given ("log-every"). */
bool options_given(const struct run_options *options, const char *key);

#endif
