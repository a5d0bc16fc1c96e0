#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/wire/codec.h"
#include "engine/wire/record.h"

enum { BUFFER = 4 * WIRE_LINE_MAX, TAIL_LINES = 1024 };

struct record_reader {
    int fd;
    int64_t offset; /* of buffer[start] in the file */
    int64_t damaged;
    size_t start, end; /* what of the buffer is filled and not given out */
    bool skipping;     /* inside a line that is too long */
    char path[PATH_MAX];
    char buffer[BUFFER];
};

static enum status open_file(struct record_reader *reader, const char *path) {
    struct stat info;
    bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    int length = snprintf(reader->path, sizeof reader->path, folder ? "%s/%s" : "%s", path, RECORD_FILE);
    if (length < 0 || (size_t)length >= sizeof reader->path)
        return status_fail(STATUS_BAD_INPUT, "%s: the path is too long", path);
    reader->fd = open(reader->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (reader->fd < 0)
        return status_fail(errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s",
                           reader->path, strerror(errno));
    if (fstat(reader->fd, &info) != 0 || !S_ISREG(info.st_mode))
        return status_fail(STATUS_IO, "%s: expected a file", reader->path);
    return STATUS_OK;
}

enum status record_reader_open(const char *path, int64_t offset, struct record_reader **out) {
    struct record_reader *reader = malloc(sizeof *reader);
    if (!reader)
        return status_fail(STATUS_NO_MEMORY, "no memory to read the record");
    reader->fd = -1;
    reader->offset = offset;
    reader->damaged = 0;
    reader->start = reader->end = 0;
    reader->skipping = false;
    enum status status = open_file(reader, path);
    if (status != STATUS_OK) {
        record_reader_close(reader);
        return status;
    }
    *out = reader;
    return STATUS_OK;
}

void record_reader_close(struct record_reader *reader) {
    if (!reader)
        return;
    if (reader->fd >= 0)
        close(reader->fd);
    free(reader);
}

/* Read on behind what the buffer holds. STATUS_BUSY: the file ends here. */
static enum status fill(struct record_reader *reader) {
    if (reader->start > 0) {
        memmove(reader->buffer, reader->buffer + reader->start, reader->end - reader->start);
        reader->end -= reader->start;
        reader->start = 0;
    }
    ssize_t bytes;
    do
        bytes = pread(reader->fd, reader->buffer + reader->end, sizeof reader->buffer - reader->end,
                      reader->offset + (int64_t)reader->end);
    while (bytes < 0 && errno == EINTR);
    if (bytes < 0)
        return status_fail(STATUS_IO, "%s: can't be read: %s", reader->path, strerror(errno));
    if (bytes == 0) {
        /* A piece of a line is read again when it is whole: until then a resume may cut it off. */
        reader->end = 0;
        return STATUS_BUSY;
    }
    reader->end += (size_t)bytes;
    return STATUS_OK;
}

/* Step over a hole, of which there may be terabytes: it reads as zeros, and no line has a zero. Where the
 * file system knows of none, nothing happens. */
static void skip_hole(struct record_reader *reader) {
    off_t data = lseek(reader->fd, (off_t)reader->offset, SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        data = (off_t)record_reader_size(reader);
    if (data > reader->offset)
        reader->offset = data;
}

int64_t record_data_end(int fd, int64_t size) {
    for (off_t end = 0; end < size;) {
        off_t data = lseek(fd, end, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return end;
        off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
        if (hole <= end) /* not to be had here */
            break;
        end = hole;
    }
    return size;
}

static void take(struct record_reader *reader, size_t bytes) {
    reader->start += bytes;
    reader->offset += (int64_t)bytes;
}

/* Bytes of a byte order mark before the line that comes next: only the first has one, when some editor or
 * copy put it there. */
static size_t mark_bytes(const struct record_reader *reader, size_t bytes) {
    static const char mark[] = {'\xEF', '\xBB', '\xBF'};
    bool marked = reader->offset == 0 && bytes >= sizeof mark &&
                  !memcmp(reader->buffer + reader->start, mark, sizeof mark);
    return marked ? sizeof mark : 0;
}

enum status record_next_line(struct record_reader *reader, int64_t until, const char **line, size_t *length) {
    size_t searched = 0;
    for (;;) {
        if (until >= 0 && reader->offset >= until)
            return STATUS_BUSY;
        char *begin = reader->buffer + reader->start;
        size_t have = reader->end - reader->start;
        const char *newline = have > searched ? memchr(begin + searched, '\n', have - searched) : NULL;
        if (!newline) {
            searched = have;
            if (have >= WIRE_LINE_MAX) {
                reader->damaged += !reader->skipping;
                reader->skipping = true;
                take(reader, have);
                skip_hole(reader);
                searched = 0;
            }
            STATUS_TRY(fill(reader));
            continue;
        }
        size_t bytes = (size_t)(newline - begin) + 1, mark = mark_bytes(reader, bytes);
        if (until >= 0 && reader->offset + (int64_t)bytes > until)
            return STATUS_BUSY;
        take(reader, bytes);
        searched = 0;
        if (reader->skipping || bytes > WIRE_LINE_MAX) {
            reader->damaged += !reader->skipping;
            reader->skipping = false;
            continue;
        }
        *line = begin + mark;
        *length = bytes - mark;
        return STATUS_OK;
    }
}

enum status record_next(struct record_reader *reader, int64_t until, struct arena *arena, struct event *out) {
    const char *line;
    size_t length;
    for (;;) {
        STATUS_TRY(record_next_line(reader, until, &line, &length));
        enum status status = event_decode(line, length, arena, out);
        if (status != STATUS_BAD_INPUT)
            return status;
        reader->damaged++;
    }
}

int64_t record_reader_offset(const struct record_reader *reader) {
    return reader->offset;
}

int64_t record_reader_damaged(const struct record_reader *reader) {
    return reader->damaged;
}

int64_t record_reader_size(const struct record_reader *reader) {
    struct stat info;
    return fstat(reader->fd, &info) == 0 ? info.st_size : 0;
}

int64_t record_reader_torn(const struct record_reader *reader) {
    int64_t left = record_reader_size(reader) - reader->offset;
    return left > 0 ? left : 0;
}

enum status record_seek(struct record_reader *reader, int64_t offset) {
    if (offset < 0)
        return status_fail(STATUS_INTERNAL, "%s: no byte %lld", reader->path, (long long)offset);
    reader->offset = offset;
    reader->start = reader->end = 0;
    reader->skipping = false;
    return STATUS_OK;
}

enum status record_tail(struct record_reader *reader, int64_t lines, int64_t *offset) {
    char block[16384];
    int64_t end = record_data_end(reader->fd, record_reader_size(reader)), found = 0;
    int64_t least = end - (lines < TAIL_LINES ? lines + 1 : TAIL_LINES) * WIRE_LINE_MAX;
    while (end > 0 && end > least) {
        size_t length = end < (int64_t)sizeof block ? (size_t)end : sizeof block;
        if (pread(reader->fd, block, length, end - (int64_t)length) != (ssize_t)length)
            return status_fail(STATUS_IO, "%s: can't be read: %s", reader->path, strerror(errno));
        for (size_t i = length; i > 0; i--) /* the newline before the first line wanted is one more */
            if (block[i - 1] == '\n' && found++ == lines) {
                *offset = end - (int64_t)(length - i);
                return STATUS_OK;
            }
        end -= (int64_t)length;
    }
    *offset = end;
    return STATUS_OK;
}
