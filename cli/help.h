/* The text of --help, folded to the terminal that it is read on. */
#ifndef TOWERSCOPE_CLI_HELP_H
#define TOWERSCOPE_CLI_HELP_H

#include <stdio.h>

/* Print what `write` writes, to standard output; gives EXIT_DONE. Lines that are too long go on below the
 * column where their second part begins ("  --name VALUE    what it does"), and unindented lines are
 * refilled. Columns: the terminal's, at most 110; where there is no terminal, 79, for a pager. */
int help_print(void (*write)(FILE *to));

/* The same with a text, to any file. */
void help_text(const char *text, FILE *to);

/* Fold `text` for `columns` columns. */
void help_fold(const char *text, int columns, FILE *to);

#endif
