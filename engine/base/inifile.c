#include "engine/base/inifile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct reader {
    struct inifile *ini;
    const char *rest;  /* what is not read yet */
    int line;          /* of the one handed to inih last */
    const char *value; /* of a line too long for inih: taken here; else NULL */
    struct inifile_section *section;
    struct inifile_pair **last; /* where the section's next setting goes */
    enum status status;
};

static bool blank(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!isspace((unsigned char)text[i]))
            return false;
    return true;
}

static bool name_is_plain(const char *name, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("_-.", name[i]))
            return false;
    return length > 0 && length <= INIFILE_NAME_MAX;
}

static enum status open_section(struct reader *r, const char *line, size_t length) {
    struct inifile *ini = r->ini;
    const char *end = memchr(line, ']', length);
    if (!end)
        return status_fail(STATUS_BAD_INPUT, "%s:%d: the section \"%.*s\" has no ]", ini->file, r->line,
                           (int)length, line);
    const char *name = line + 1;
    size_t size = (size_t)(end - name), after = (size_t)(line + length - end) - 1;
    if (size == 0)
        return status_fail(STATUS_BAD_INPUT, "%s:%d: the section [] has no name", ini->file, r->line);
    if (!name_is_plain(name, size))
        return status_fail(STATUS_BAD_INPUT,
                           "%s:%d: \"%.*s\" can't name a section: expected 1 to %d letters, digits or _ - .",
                           ini->file, r->line, (int)size, name, INIFILE_NAME_MAX);
    const char *words = end + 1;
    while (after > 0 && isspace((unsigned char)*words))
        words++, after--;
    if (after > 0 && *words != ';' && *words != '#')
        return status_fail(STATUS_BAD_INPUT,
                           "%s:%d: \"%.*s\" after the section's ]: put it on a line of its own", ini->file,
                           r->line, (int)after, words);
    struct inifile_section **place = &ini->sections;
    for (; *place; place = &(*place)->next)
        if (strlen((*place)->name) == size && memcmp((*place)->name, name, size) == 0)
            return status_fail(STATUS_BAD_INPUT,
                               "%s:%d: the section [%s] is there already, at line %d: names must differ",
                               ini->file, r->line, (*place)->name, (*place)->line);
    struct inifile_section *section = arena_alloc(&ini->arena, sizeof *section);
    char *copy = section ? arena_alloc(&ini->arena, size + 1) : NULL;
    if (!copy)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to read it", ini->file);
    memcpy(copy, name, size);
    section->name = copy;
    section->line = r->line;
    *place = section;
    r->section = section;
    r->last = &section->pairs;
    return STATUS_OK;
}

/* inih cuts lines at 200 bytes. A longer `key = value` is handed to it without the value, which is kept here.
 */
static enum status take_long_value(struct reader *r, const char *line, size_t length, size_t *handed) {
    const char *equals = memchr(line, '=', length);
    bool comment = *line == '#' || *line == ';' || *line == '[';
    if (comment || !equals || equals - line > INIFILE_LINE_MAX - 1 || length > INIFILE_VALUE_MAX)
        return status_fail(STATUS_BAD_INPUT, "%s:%d: the line has %zu bytes: at most %d are read",
                           r->ini->file, r->line, length,
                           comment || !equals ? INIFILE_LINE_MAX : INIFILE_VALUE_MAX);
    const char *from = equals + 1, *to = line + length;
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    char *value = arena_alloc(&r->ini->arena, (size_t)(to - from) + 1);
    if (!value)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to read it", r->ini->file);
    memcpy(value, from, (size_t)(to - from));
    r->value = value;
    *handed = (size_t)(equals + 1 - line);
    return STATUS_OK;
}

static enum status check_line(struct reader *r, const char *line, size_t length, size_t *handed) {
    *handed = length;
    r->value = NULL;
    if (blank(line, length)) {
        *handed = 0;
        return STATUS_OK;
    }
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < ' ' && line[i] != '\t' && !(line[i] == '\r' && i == length - 1))
            return status_fail(STATUS_BAD_INPUT,
                               "%s:%d: byte %d is a control character: is this a text file?", r->ini->file,
                               r->line, (unsigned char)line[i]);
    if (isspace((unsigned char)*line))
        return status_fail(STATUS_BAD_INPUT,
                           "%s:%d: the line begins with a space: settings don't go over lines", r->ini->file,
                           r->line);
    if (length > INIFILE_LINE_MAX)
        return take_long_value(r, line, length, handed);
    return *line == '[' ? open_section(r, line, length) : STATUS_OK;
}

/* One line for inih, as fgets would give it; NULL at the end of the text or at a fault. */
static char *next_line(char *out, int size, void *context) {
    struct reader *r = context;
    if (r->status != STATUS_OK || !*r->rest)
        return NULL;
    const char *line = r->rest;
    size_t length = strcspn(line, "\n"), handed;
    r->rest = line + length + (line[length] == '\n');
    r->line++;
    if (length > 0 && line[length - 1] == '\r')
        length--;
    r->status = check_line(r, line, length, &handed);
    if (r->status != STATUS_OK)
        return NULL;
    snprintf(out, (size_t)size, "%.*s\n", (int)handed, line);
    return out;
}

static int take_pair(void *context, const char *section, const char *key, const char *value) {
    (void)section; /* inih cuts long names; the reader knows the section */
    struct reader *r = context;
    if (r->status != STATUS_OK)
        return 0;
    struct inifile *ini = r->ini;
    if (!name_is_plain(key, strlen(key))) {
        r->status = status_fail(
            STATUS_BAD_INPUT, "%s:%d: \"%s\" can't name a setting: expected 1 to %d letters, digits or _ - .",
            ini->file, r->line, key, INIFILE_NAME_MAX);
        return 0;
    }
    for (const struct inifile_pair *p = r->section->pairs; p; p = p->next)
        if (strcmp(p->key, key) == 0) {
            r->status = status_fail(STATUS_BAD_INPUT, "%s:%d: %s is given already, at line %d", ini->file,
                                    r->line, key, p->line);
            return 0;
        }
    struct inifile_pair *pair = arena_alloc(&ini->arena, sizeof *pair);
    if (pair) {
        pair->key = arena_string(&ini->arena, key);
        pair->value = r->value ? r->value : arena_string(&ini->arena, value);
        pair->line = r->line;
    }
    if (!pair || !pair->key || !pair->value) {
        r->status = status_fail(STATUS_NO_MEMORY, "%s: no memory to read it", ini->file);
        return 0;
    }
    *r->last = pair;
    r->last = &pair->next;
    return 1;
}

enum status inifile_parse(const char *file, const char *text, struct inifile *out) {
    *out = (struct inifile){.file = file};
    struct inifile_section *first = arena_alloc(&out->arena, sizeof *first);
    if (!first)
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to read it", file);
    first->name = "";
    out->sections = first;
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0) /* a byte order mark */
        text += 3;
    struct reader r = {.ini = out, .rest = text, .section = first, .last = &first->pairs};
    int line = ini_parse_stream(next_line, &r, take_pair, &r);
    /* inih goes on after a line it can't read; such a line before our own fault is the first one. */
    if (line > 0 && (r.status == STATUS_OK || line < r.line))
        r.status = status_fail(STATUS_BAD_INPUT, "%s:%d: expected [section] or key = value", file, line);
    else if (line < 0 && r.status == STATUS_OK)
        r.status = status_fail(STATUS_NO_MEMORY, "%s: no memory to read it", file);
    if (r.status != STATUS_OK)
        inifile_free(out);
    return r.status;
}

/* Whom to tell that nothing comes. */
struct waiting {
    void (*waits)(void *context);
    void *context;
};

/* All that can be read from fd, in growing memory; `first` bytes are expected. */
static enum status read_all(int fd, const char *path, size_t first, struct waiting waiting, char **text) {
    enum { TOLD_AFTER_MS = 1000 };
    size_t have = 0, room = first + 1; /* one byte more shows the end */
    *text = malloc(room + 1);
    while (*text) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        int ready = poll(&polled, 1, waiting.waits ? TOLD_AFTER_MS : -1);
        if (ready == 0) {
            waiting.waits(waiting.context);
            waiting.waits = NULL;
            continue;
        }
        ssize_t got = ready < 0 ? -1 : read(fd, *text + have, room - have);
        if (got < 0 && errno == EAGAIN)
            continue;
        if (got < 0 && errno == EINTR)
            return status_fail(STATUS_INTERRUPTED, "%s: interrupted before its end was read", path);
        if (got < 0)
            return status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
        have += (size_t)got;
        if (have > INIFILE_BYTES_MAX)
            return status_fail(STATUS_BAD_INPUT, "%s: more than %d bytes: expected a text of at most that",
                               path, INIFILE_BYTES_MAX);
        (*text)[have] = 0;
        if (got == 0)
            return strlen(*text) == have
                       ? STATUS_OK
                       : status_fail(STATUS_BAD_INPUT, "%s: a zero byte in it: is this a text file?", path);
        if (have < room)
            continue;
        room *= 2;
        char *more = realloc(*text, room + 1);
        if (!more)
            break;
        *text = more;
    }
    return status_fail(STATUS_NO_MEMORY, "%s: no memory to read it", path);
}

static enum status load(const char *path, bool any, struct waiting waiting, char **text) {
    *text = NULL;
    /* a FIFO must not block: poll() can be interrupted */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return status_fail(errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path,
                           strerror(errno));
    enum status status = STATUS_OK;
    struct stat about;
    if (fstat(fd, &about) != 0)
        status = status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
    else if (any ? S_ISDIR(about.st_mode) : !S_ISREG(about.st_mode))
        status = status_fail(STATUS_BAD_INPUT, "%s: not a file", path);
    else if (about.st_size > INIFILE_BYTES_MAX)
        status = status_fail(STATUS_BAD_INPUT, "%s: %lld bytes: expected a text of at most %d", path,
                             (long long)about.st_size, INIFILE_BYTES_MAX);
    else
        status = read_all(fd, path, (size_t)about.st_size, waiting, text);
    close(fd);
    if (status != STATUS_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

enum status inifile_load(const char *path, char **text) {
    return load(path, false, (struct waiting){0}, text);
}

enum status inifile_load_any(const char *path, void (*waits)(void *context), void *context, char **text) {
    return load(path, true, (struct waiting){waits, context}, text);
}

void inifile_free(struct inifile *ini) {
    arena_free(&ini->arena);
    *ini = (struct inifile){0};
}

struct inifile_pair *inifile_find(struct inifile_section *section, const char *key) {
    for (struct inifile_pair *p = section->pairs; p; p = p->next)
        if (strcmp(p->key, key) == 0) {
            p->used = true;
            return p;
        }
    return NULL;
}
