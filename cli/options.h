/* The command line of `run` and `train`: every setting of the table as --KEY VALUE, and a few words more. */
#ifndef TOWERSCOPE_CLI_OPTIONS_H
#define TOWERSCOPE_CLI_OPTIONS_H

#include "engine/train/settings.h"

struct run_options {
    struct settings settings; /* file < environment < flags; what nobody gave is not filled in */
    char name[65];            /* of the run; "" when not given */
    char script[1024];        /* "" when not given */
    bool help;
};

/* Read argv[1..]. STATUS_BAD_INPUT, STATUS_NOT_FOUND (the config file): wrong usage, nothing was done. */
enum status options_read(int argc, char **argv, struct run_options *out);

/* The options, for --help. */
void options_help(FILE *file);

/* Whether a flag of that name was given ("log-every"). */
bool options_given(const struct run_options *options, const char *key);

#endif
