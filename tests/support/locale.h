/* A locale whose numbers have a comma, on a machine that has none. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_LOCALE_H
#define TOWERSCOPE_TESTS_SUPPORT_LOCALE_H

#include <stdbool.h>

/* From here on printf() writes 0,5 (in LC_NUMERIC alone), until setlocale(LC_ALL, "C"). False: such a locale
 * can't be made for this C library. */
bool locale_with_comma(void);

#endif
