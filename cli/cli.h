/* The subcommands of towerscope: one file each, one row in main.c's table. Only cli/ prints and exits. */
#ifndef TOWERSCOPE_CLI_CLI_H
#define TOWERSCOPE_CLI_CLI_H

#include "kernels/status.h"

/* Exit codes of the contract. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_REFUSED = 3,
    EXIT_NOT_FOUND = 4,
    EXIT_INTERRUPTED = 130
};

struct subcommand {
    const char *name;
    int (*main)(int argc, char **argv); /* argv[0] is the subcommand's name; returns an exit code */
    const char *sentence;               /* for `towerscope --help`; NULL: not listed */
};

/* Print "towerscope: <sentence of the last failure>" to stderr and give the exit code that fits the status.
 */
int cli_fail(enum status status);

int command_attach(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_ctl(int argc, char **argv);
int command_data(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_engine(int argc, char **argv);
int command_eval(int argc, char **argv);
int command_lesson(int argc, char **argv);
int command_ls(int argc, char **argv);
int command_protocol(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_run(int argc, char **argv);
int command_train(int argc, char **argv);

#endif
