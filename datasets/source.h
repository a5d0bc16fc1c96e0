/* The bytes of one data file, plain or gz, read once from front to back.
 *
 * Whether a file is compressed is seen in its first bytes, whatever its name says. Messages begin with the
 * path. */
#ifndef TOWERSCOPE_DATASETS_SOURCE_H
#define TOWERSCOPE_DATASETS_SOURCE_H

#include <stdint.h>

#include "kernels/status.h"

struct source;

/* Open a regular file for reading. STATUS_NOT_FOUND when nothing is there; STATUS_IO with the true cause when
 * it can't be read (permission, broken link, a folder, a device); STATUS_BAD_INPUT for an empty file. */
enum status source_open(const char *path, struct source **out);
void source_close(struct source *source); /* NULL is fine */

/* Whether what is read comes out of gz. */
bool source_compressed(const struct source *source);

/* Size of the file itself, as the system says. */
int64_t source_file_size(const struct source *source);

/* The most bytes that can still come: exact for a plain file, the format's limit for gz. What a header
 * promises is held against this before memory is asked for. */
int64_t source_at_most(const struct source *source);

/* Read up to `size` bytes; fewer (in *got) only at the end of the data. A gz stream that is cut or damaged is
 * STATUS_BAD_INPUT, once the bytes before the damage have been handed out. */
enum status source_read(struct source *source, void *to, size_t size, size_t *got);

/* The first bytes without reading past them: at most 512, and fewer only when the file is shorter. For gz the
 * expanded ones. */
const unsigned char *source_peek(const struct source *source, size_t *size);

/* Read to the end and check it: STATUS_BAD_INPUT when bytes are left over or a gz trailer is missing or
 * wrong. */
enum status source_finish(struct source *source);

/* What the first bytes look like to a person who expected something else: " (it looks like a web page: ...)"
 * or "". */
const char *source_looks_like(const unsigned char *bytes, size_t size);

/* Name the true cause why a path can't be used, from errno, as a failure: a broken link and its target, the
 * folder that may not be entered, ... `what` is "open", "read". */
enum status source_system_failure(const char *what, const char *path, int error);

#endif
