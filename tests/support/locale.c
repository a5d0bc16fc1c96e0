#include "tests/support/locale.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The file that localedef writes for glibc: a magic number with the category, and six values by their
 * offsets. */
struct numeric {
    uint32_t magic, values, offsets[6];
    char point[2], thousands[1], grouping[1];
    uint32_t wide_point, wide_thousands;
    char codeset[8];
};

bool locale_with_comma(void) {
    const struct numeric numeric = {.magic = 0x20031115 ^ LC_NUMERIC,
                                    .values = 6,
                                    .offsets = {32, 34, 35, 36, 40, 44},
                                    .point = ",",
                                    .wide_point = ',',
                                    .codeset = "UTF-8"};
    const char *tmp = getenv("TEST_TMP");
    char folder[800], path[900];
    snprintf(folder, sizeof folder, "%s/comma", tmp ? tmp : "/tmp");
    snprintf(path, sizeof path, "%s/LC_NUMERIC", folder);
    (void)mkdir(folder, 0700);
    FILE *file = fopen(path, "wb");
    if (!file)
        return false;
    bool written = fwrite(&numeric, sizeof numeric, 1, file) == 1;
    if (fclose(file) != 0 || !written)
        return false;
    setenv("LOCPATH", tmp ? tmp : "/tmp", 1);
    return setlocale(LC_NUMERIC, "comma") && !strcmp(localeconv()->decimal_point, ",");
}
