/* INI text read into a list of sections and their settings, with the line of each.
 *
 * inih reads the lines; this counts them and refuses what inih would silently accept: indented lines (they
 * would continue the line before), a section or a key that stands twice, words after a section's `]`, lines
 * and names that would be cut. `#` or `;` begin a comment line, ` ;` one after a value. */
#ifndef TOWERSCOPE_ENGINE_BASE_INIFILE_H
#define TOWERSCOPE_ENGINE_BASE_INIFILE_H

#include "engine/base/arena.h"
#include "kernels/status.h"

#define INIFILE_LINE_MAX  190          /* bytes of a line with a comment or a section */
#define INIFILE_VALUE_MAX 1023         /* bytes of a line `key = value`: paths may be long */
#define INIFILE_NAME_MAX  47           /* bytes of a section's or key's name */
#define INIFILE_BYTES_MAX (256 * 1024) /* a larger file is refused before it is read */

struct inifile_pair {
    const char *key, *value; /* value may be "" */
    int line;                /* from 1 */
    bool used;               /* for the reader's own use: false */
    struct inifile_pair *next;
};

struct inifile_section {
    const char *name; /* "" for the settings before the first section */
    int line;         /* 0 for that one */
    struct inifile_pair *pairs;
    struct inifile_section *next;
};

struct inifile {
    struct arena arena;               /* everything below lives in it */
    const char *file;                 /* for messages */
    struct inifile_section *sections; /* in the order of the file, empty ones too; the first is always "" */
};

/* Parse text; `file` begins every message: "FILE:LINE: ...". STATUS_BAD_INPUT, STATUS_NO_MEMORY; *out is
 * empty then. Free with inifile_free(). */
enum status inifile_parse(const char *file, const char *text, struct inifile *out);

/* The whole of a file as text, NUL-terminated, to free(). STATUS_NOT_FOUND, STATUS_IO, STATUS_BAD_INPUT (too
 * large, not a regular file, a NUL byte in it). */
enum status inifile_load(const char *path, char **text);

/* The same of anything that can be read, as a pipe: its end is waited for. `waits` (NULL: nobody) is called
 * once when nothing came for a second. STATUS_INTERRUPTED: a signal came. */
enum status inifile_load_any(const char *path, void (*waits)(void *context), void *context, char **text);

void inifile_free(struct inifile *ini);

/* The setting of that name in a section, or NULL; it is marked used. */
struct inifile_pair *inifile_find(struct inifile_section *section, const char *key);

#endif
