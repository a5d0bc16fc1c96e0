/* The words of a command line, read by a table: options (`--name VALUE` or `--name=VALUE`) and the words that
 * are none. After `--` no word is an option. */
#ifndef TOWERSCOPE_CLI_ARGUMENTS_H
#define TOWERSCOPE_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/console.h"
#include "kernels/status.h"

/* An option. Exactly one of the four pointers says where its value goes, and so what it is. */
struct argument {
    const char *name;  /* with its dashes */
    const char *value; /* what it wants after it, in words: "a folder"; NULL with `flag` */
    bool *flag;        /* set true; takes no value */
    const char **text;
    int64_t *integer;
    double *real;
    double low, high; /* range of a number, both inclusive; high INFINITY: no limit */
};

struct argument_list {
    const char *command; /* "data show", for sentences */
    const struct argument *options;
    int option_count;
    const char *takes;  /* what the words are, for the sentence on one too many: "one record" */
    const char **words; /* [word_room] out: the words that are no options */
    int word_room, word_count;
    struct app_options *console; /* takes the options of the console too; NULL: no console */
};

/* Whether --help or -h is among the words. */
bool arguments_help(int argc, char **argv);

/* Read argv[1] on. STATUS_BAD_INPUT says which word is wrong, and what may stand there. */
enum status arguments_read(int argc, char **argv, struct argument_list *list);

#endif
