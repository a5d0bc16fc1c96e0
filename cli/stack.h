/* Room for what a command calls, whatever limit the shell has put on stacks. */
#ifndef TOWERSCOPE_CLI_STACK_H
#define TOWERSCOPE_CLI_STACK_H

/* command(argc, argv), where there is stack enough for it: here, or (`ulimit -s` is small) in a thread of its
 * own. From then on every thread, a library's too, gets enough. -1: no such thread could be had;
 * status_text() says why. */
int stack_run(int (*command)(int argc, char **argv), int argc, char **argv);

#endif
