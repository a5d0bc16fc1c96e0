#include "engine/wire/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/wire/codec.h"

enum { WAITING_BYTES = 16 << 20, TAIL_LINES = 64 };

struct waiting_line {
    char *line;
    size_t length;
    int64_t seq;
};

struct record_writer {
    char path[PATH_MAX];
    int fd, folder;
    bool regular; /* not a device or a pipe */
    int64_t offset, last_seq, lost;
    struct waiting_line *waiting; /* a ring */
    size_t room, first, count, bytes;
};

/* ---- opening to write */

/* The offset after the last newline before `size`. */
static enum status last_line_end(int fd, const char *path, int64_t size, int64_t *out) {
    char block[65536];
    for (int64_t end = record_data_end(fd, size); end > 0;) {
        size_t length = end < (int64_t)sizeof block ? (size_t)end : sizeof block;
        if (pread(fd, block, length, end - (int64_t)length) != (ssize_t)length)
            return status_fail(STATUS_IO, "%s: can't be read: %s", path, strerror(errno));
        const char *newline = memrchr(block, '\n', length);
        if (newline) {
            *out = end - (int64_t)length + (newline - block) + 1;
            return STATUS_OK;
        }
        end -= (int64_t)length;
    }
    *out = 0;
    return STATUS_OK;
}

/* The number of the record's last line: read, or counted on from the last one that can be read. */
static enum status find_last_seq(struct record_writer *writer) {
    struct record_reader *reader;
    int64_t offset, damaged = 0;
    STATUS_TRY(record_reader_open(writer->path, 0, &reader));
    enum status status = record_tail(reader, TAIL_LINES, &offset);
    if (status == STATUS_OK)
        status = record_seek(reader, offset);
    struct arena arena = {0};
    struct event event;
    const char *line;
    size_t length;
    while (status == STATUS_OK && (status = record_next_line(reader, -1, &line, &length)) == STATUS_OK) {
        if (event_decode(line, length, &arena, &event) == STATUS_OK && event.seq > 0) {
            writer->last_seq = event.seq;
            damaged = 0;
        } else {
            damaged++;
        }
        arena_reset(&arena);
    }
    arena_free(&arena);
    record_reader_close(reader);
    if (status != STATUS_BUSY)
        return status;
    if (writer->last_seq == 0)
        return status_fail(STATUS_BAD_INPUT, "%s: its last lines are no events of a run; move the file away",
                           writer->path);
    writer->last_seq += damaged;
    return STATUS_OK;
}

static enum status prepare(struct record_writer *writer) {
    struct stat info;
    /* O_NONBLOCK: a pipe in its place must not hold us up */
    writer->fd =
        openat(writer->folder, RECORD_FILE, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
    if (writer->fd < 0 || fstat(writer->fd, &info) != 0)
        return status_fail(STATUS_IO, "%s: %s", writer->path, strerror(errno));
    writer->regular = S_ISREG(info.st_mode);
    if (!writer->regular && !S_ISCHR(info.st_mode))
        return status_fail(
            STATUS_BAD_INPUT,
            "%s is a pipe or a socket; a file is expected: move it away, or put the record back",
            writer->path);
    if (!writer->regular || info.st_size == 0)
        return STATUS_OK;
    STATUS_TRY(last_line_end(writer->fd, writer->path, info.st_size, &writer->offset));
    if (writer->offset < info.st_size && ftruncate(writer->fd, writer->offset) != 0)
        return status_fail(STATUS_IO, "%s: can't cut its torn last line off: %s", writer->path,
                           strerror(errno));
    return writer->offset > 0 ? find_last_seq(writer) : STATUS_OK;
}

enum status record_writer_open(const char *folder, struct record_writer **out) {
    struct record_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return status_fail(STATUS_NO_MEMORY, "no memory to write the record");
    writer->fd = -1;
    writer->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum status status = STATUS_OK;
    if (writer->folder < 0)
        status = status_fail(STATUS_IO, "%s: %s", folder, strerror(errno));
    if (status == STATUS_OK && (size_t)snprintf(writer->path, sizeof writer->path, "%s/%s", folder,
                                                RECORD_FILE) >= sizeof writer->path)
        status = status_fail(STATUS_BAD_INPUT, "%s: the path is too long", folder);
    if (status == STATUS_OK)
        status = prepare(writer);
    if (status != STATUS_OK) {
        record_writer_close(writer);
        return status;
    }
    *out = writer;
    return STATUS_OK;
}

void record_writer_close(struct record_writer *writer) {
    if (!writer)
        return;
    if (writer->count > 0)
        (void)record_retry(writer); /* the last try: what fails now is lost with the process */
    for (size_t i = 0; i < writer->count; i++)
        free(writer->waiting[(writer->first + i) % writer->room].line);
    free(writer->waiting);
    if (writer->fd >= 0) {
        fdatasync(writer->fd);
        close(writer->fd);
    }
    if (writer->folder >= 0)
        close(writer->folder);
    free(writer);
}

/* ---- when somebody removed it */

static const char ASIDE[] = RECORD_FILE ".tmp";

/* What was written so far, into another file. */
static enum status copy_lines(const struct record_writer *writer, int to, const char *path) {
    char block[65536];
    for (int64_t done = 0; done < writer->offset;) {
        size_t wanted =
            writer->offset - done < (int64_t)sizeof block ? (size_t)(writer->offset - done) : sizeof block;
        ssize_t bytes = pread(writer->fd, block, wanted, done);
        if (bytes > 0)
            bytes = write(to, block, (size_t)bytes);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes <= 0)
            return status_fail(STATUS_IO, "%s: can't be written again: %s", path,
                               strerror(bytes < 0 ? errno : EIO));
        done += bytes; /* what was read and not written is read again */
    }
    return fdatasync(to) == 0
               ? STATUS_OK
               : status_fail(STATUS_IO, "%s: can't be written again: %s", path, strerror(errno));
}

static enum status restore_in(struct record_writer *writer, int folder, const char *path, int *out) {
    (void)unlinkat(folder, ASIDE, 0); /* of one who was killed at this */
    int fd = openat(folder, ASIDE, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return status_fail(STATUS_IO, "%s: can't be made again: %s", path, strerror(errno));
    enum status status = copy_lines(writer, fd, path);
    /* a link takes no place that is taken */
    bool placed = status == STATUS_OK &&
                  (linkat(folder, ASIDE, folder, RECORD_FILE, 0) == 0 ||
                   (errno != EEXIST && renameat2(folder, ASIDE, folder, RECORD_FILE, RENAME_NOREPLACE) == 0));
    if (status == STATUS_OK && !placed)
        status = errno == EEXIST
                     ? status_fail(STATUS_REFUSED, "%s: something else lies in its place: move it away", path)
                     : status_fail(STATUS_IO, "%s: can't be made again: %s", path, strerror(errno));
    (void)unlinkat(folder, ASIDE, 0);
    if (status == STATUS_OK)
        *out = fd;
    else
        close(fd);
    return status;
}

enum status record_restore(struct record_writer *writer, int folder_fd, const char *folder) {
    char path[PATH_MAX];
    int fd = -1, own = fcntl(folder_fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0 || (size_t)snprintf(path, sizeof path, "%s/%s", folder, RECORD_FILE) >= sizeof path) {
        if (own >= 0)
            close(own);
        return status_fail(STATUS_IO, "%s: the record can't be made again here", folder);
    }
    enum status status = restore_in(writer, own, path, &fd);
    if (status != STATUS_OK) {
        close(own);
        return status;
    }
    close(writer->fd);
    close(writer->folder);
    writer->fd = fd;
    writer->folder = own;
    memcpy(writer->path, path, sizeof path);
    return STATUS_OK;
}

void record_moved(struct record_writer *writer, const char *folder) {
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, RECORD_FILE) < sizeof path)
        memcpy(writer->path, path, sizeof path);
}

/* ---- writing */

/* One whole line, or nothing. */
static enum status put(struct record_writer *writer, const char *line, size_t length, int64_t seq) {
    size_t done = 0;
    while (done < length) {
        ssize_t bytes = write(writer->fd, line + done, length - done);
        if (bytes > 0) {
            done += (size_t)bytes;
            continue;
        }
        if (bytes < 0 && errno == EINTR)
            continue;
        int error = bytes < 0 ? errno : ENOSPC;
        if (done > 0 && writer->regular && ftruncate(writer->fd, writer->offset) != 0) {
            /* The piece stays: end it, so that only this line is damaged. It is tried again whole. */
            if (write(writer->fd, "\n", 1) == 1)
                writer->offset += (int64_t)done + 1;
        }
        return status_fail(STATUS_IO, "%s: can't be written: %s; %zu lines wait for space", writer->path,
                           strerror(error), writer->count + 1);
    }
    writer->offset += (int64_t)length;
    writer->last_seq = seq;
    return STATUS_OK;
}

static void drop_oldest(struct record_writer *writer) {
    struct waiting_line *line = &writer->waiting[writer->first];
    writer->bytes -= line->length;
    free(line->line);
    writer->first = (writer->first + 1) % writer->room;
    writer->count--;
}

static bool grow(struct record_writer *writer) {
    size_t room = writer->room ? 2 * writer->room : 64;
    struct waiting_line *ring = malloc(room * sizeof *ring);
    if (!ring)
        return false;
    for (size_t i = 0; i < writer->count; i++)
        ring[i] = writer->waiting[(writer->first + i) % writer->room];
    free(writer->waiting);
    writer->waiting = ring;
    writer->room = room;
    writer->first = 0;
    return true;
}

static void keep_waiting(struct record_writer *writer, const char *line, size_t length, int64_t seq) {
    while (writer->count > 0 && writer->bytes + length > WAITING_BYTES) {
        drop_oldest(writer);
        writer->lost++;
    }
    char *copy = malloc(length);
    if (!copy || (writer->count == writer->room && !grow(writer))) {
        free(copy);
        writer->lost++;
        return;
    }
    memcpy(copy, line, length);
    writer->waiting[(writer->first + writer->count++) % writer->room] =
        (struct waiting_line){copy, length, seq};
    writer->bytes += length;
}

enum status record_retry(struct record_writer *writer) {
    while (writer->count > 0) {
        const struct waiting_line *line = &writer->waiting[writer->first];
        STATUS_TRY(put(writer, line->line, line->length, line->seq));
        drop_oldest(writer);
    }
    return STATUS_OK;
}

enum status record_append(struct record_writer *writer, const char *line, size_t length, int64_t seq) {
    enum status status = writer->count > 0 ? STATUS_IO : put(writer, line, length, seq);
    if (status != STATUS_OK)
        keep_waiting(writer, line, length, seq);
    return status;
}

int64_t record_last_seq(const struct record_writer *writer) {
    return writer->last_seq;
}

int64_t record_offset(const struct record_writer *writer) {
    return writer->offset;
}

int64_t record_lost(const struct record_writer *writer) {
    return writer->lost;
}

bool record_unlinked(const struct record_writer *writer) {
    struct stat here, there;
    if (!writer->regular || fstat(writer->fd, &here) != 0)
        return false;
    return here.st_nlink == 0 || fstatat(writer->folder, RECORD_FILE, &there, 0) != 0 ||
           there.st_ino != here.st_ino || there.st_dev != here.st_dev;
}

/* Through a descriptor of its own: the writer's is that of another thread. */
enum status record_sync(int folder_fd) {
    int fd = openat(folder_fd, RECORD_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return STATUS_OK;
    bool there = fd >= 0 && (fdatasync(fd) == 0 || errno == EINVAL) && fsync(folder_fd) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    return there ? STATUS_OK
                 : status_fail(STATUS_IO, RECORD_FILE ": can't be brought to the disk: %s", strerror(error));
}

const char *record_waiting(const struct record_writer *writer, int64_t i, size_t *length, int64_t *seq) {
    if (i < 0 || (uint64_t)i >= writer->count)
        return NULL;
    const struct waiting_line *line = &writer->waiting[(writer->first + (size_t)i) % writer->room];
    *length = line->length;
    *seq = line->seq;
    return line->line;
}
