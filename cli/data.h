/* The parts of `towerscope data`. */
#ifndef TOWERSCOPE_CLI_DATA_H
#define TOWERSCOPE_CLI_DATA_H

#include "cli/arguments.h"

/* What a part of data is called with: its options, and one word. */
struct data_part {
    const char *command; /* "data show" */
    const char *help;
    const char *word; /* what the one word is: "PATH" */
    const struct argument *options;
    int option_count;
};

/* Read a part's arguments; *word: the one. Returns -1 to go on, or the exit code to leave with: the help or a
 * message has been printed. */
int data_arguments(int argc, char **argv, const struct data_part *part, const char **word);

int data_show(int argc, char **argv);
int data_order(int argc, char **argv);

#endif
