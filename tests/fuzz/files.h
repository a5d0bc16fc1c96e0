/* For fuzz targets that read files: a folder whose files are memory. */
#ifndef TOWERSCOPE_TESTS_FUZZ_FILES_H
#define TOWERSCOPE_TESTS_FUZZ_FILES_H

#include <stddef.h>

/* The process's folder, made at the first call. It goes away at exit. */
const char *fuzz_folder(void);

/* Make `name` of the folder hold these bytes: it is a link to a file in memory. */
void fuzz_put(const char *name, const void *bytes, size_t size);

/* The path of a file of the folder, in memory that lasts until the next call. */
const char *fuzz_path(const char *name);

/* Take all files away. */
void fuzz_clear(void);

#endif
