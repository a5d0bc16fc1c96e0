/* The parts of `towerscope data`. */
#ifndef TOWERSCOPE_CLI_DATA_H
#define TOWERSCOPE_CLI_DATA_H

#include <stdint.h>

/* An option with a whole number: `--name N`. */
struct data_option {
    const char *name; /* with its dashes */
    int64_t *value;
    int64_t low, high;
};

/* Read the arguments after argv[0]: options of the table (ends with a NULL name), flags (set true), and
 * exactly one other word, or NULL in *path. `texts`: options with a word. --help prints `help`. Returns -1 to
 * go on, or the exit code to leave with (a message has been printed). */
struct data_text {
    const char *name;
    const char **value;
};
struct data_flag {
    const char *name;
    int *value;
};
struct data_arguments {
    const struct data_option *options;
    const struct data_text *texts; /* NULL: none; these three end with a NULL name */
    const struct data_flag *flags; /* NULL: none */
    const char *help;
    const char *path_word; /* "PATH": asked for when it is missing */
    const char *path;      /* result */
};
int data_arguments(int argc, char **argv, struct data_arguments *arguments);

int data_show(int argc, char **argv);
int data_order(int argc, char **argv);

#endif
