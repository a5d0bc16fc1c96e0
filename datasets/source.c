#include "datasets/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    CHUNK = 128 * 1024,
    PEEK = 512,
    GZ_RATIO = 1032, /* deflate's limit: 258 bytes from two bits, RFC 1951 */
};

struct source {
    char *path;
    int fd;
    int64_t file_size, file_read; /* as stat said; as read so far */
    bool compressed, stream_ended, z_open;
    z_stream z;
    enum status failed; /* a fault of the gz stream, told once the bytes before it are handed out */
    char fault[256];
    size_t peeked, peek_used;
    unsigned char peek[PEEK];
    unsigned char chunk[CHUNK];
};

/* The first folder on the way to `path` that this user may not enter; false when that isn't the reason. */
static bool closed_folder(const char *path, char folder[PATH_MAX]) {
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t length = (size_t)(slash - path);
        if (length >= PATH_MAX)
            return false;
        memcpy(folder, path, length);
        folder[length] = 0;
        if (access(folder, X_OK) != 0 && errno == EACCES)
            return true;
    }
    return false;
}

enum status source_system_failure(const char *what, const char *path, int error) {
    char other[PATH_MAX];
    struct stat info;
    if (error == ENOENT && lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        ssize_t length = readlink(path, other, sizeof other - 1);
        other[length < 0 ? 0 : length] = 0;
        return status_fail(STATUS_IO, "%s is a broken link: %s does not exist", path, other);
    }
    if (error == ENOENT)
        return status_fail(STATUS_NOT_FOUND, "%s does not exist", path);
    if (error == EACCES && closed_folder(path, other))
        return status_fail(STATUS_IO, "cannot %s %s: no permission to enter the folder %s", what, path,
                           other);
    if (error == EACCES)
        return status_fail(STATUS_IO, "cannot %s %s: no permission (its mode does not let this user read it)",
                           what, path);
    if (error == ENOTDIR)
        return status_fail(STATUS_IO, "cannot %s %s: a part of this path is a file, not a folder", what,
                           path);
    return status_fail(STATUS_IO, "cannot %s %s: %s", what, path, strerror(error));
}

/* read() until `size` bytes, the end or an error. */
static enum status read_file(struct source *s, void *to, size_t size, size_t *got) {
    *got = 0;
    while (*got < size) {
        ssize_t n = read(s->fd, (char *)to + *got, size - *got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return source_system_failure("read", s->path, errno);
        if (n == 0)
            break;
        *got += (size_t)n;
        s->file_read += n;
    }
    return STATUS_OK;
}

static void gz_fault(struct source *s, const char *text) {
    s->failed = STATUS_BAD_INPUT;
    snprintf(s->fault, sizeof s->fault, "%s", text);
}

/* Take the next compressed bytes into the inflater; after the end of a gz member, the next one or the file's
 * end. */
static enum status gz_refill(struct source *s) {
    if (s->z.avail_in == 0) {
        size_t got;
        STATUS_TRY(read_file(s, s->chunk, CHUNK, &got));
        s->z.next_in = s->chunk;
        s->z.avail_in = (uInt)got;
    }
    return STATUS_OK;
}

/* One call of the inflater's worth of bytes; *got 0 at the end of the data or at a fault. */
static enum status gz_read(struct source *s, void *to, size_t size, size_t *got) {
    *got = 0;
    s->z.next_out = to;
    s->z.avail_out = size > UINT_MAX ? UINT_MAX : (uInt)size;
    uInt wanted = s->z.avail_out;
    while (s->z.avail_out == wanted && s->failed == STATUS_OK) {
        STATUS_TRY(gz_refill(s));
        if (s->stream_ended) {
            if (s->z.avail_in == 0)
                return STATUS_OK;
            if (s->z.next_in[0] != 0x1f) {
                gz_fault(s, "bytes that are not gz follow its end");
                break;
            }
            inflateReset(&s->z); /* gz files may be joined end to end */
            s->stream_ended = false;
        }
        if (s->z.avail_in == 0) {
            gz_fault(s, "it ends in the middle of its compressed data");
            break;
        }
        int rc = inflate(&s->z, Z_NO_FLUSH);
        if (rc == Z_STREAM_END)
            s->stream_ended = true;
        else if (rc == Z_MEM_ERROR)
            return status_fail(STATUS_NO_MEMORY, "%s: no memory to expand it", s->path);
        else if (rc != Z_OK && rc != Z_BUF_ERROR)
            gz_fault(s, s->z.msg ? s->z.msg : "its compressed data are damaged");
    }
    *got = wanted - s->z.avail_out;
    return STATUS_OK;
}

static enum status read_more(struct source *s, void *to, size_t size, size_t *got) {
    if (!s->compressed)
        return read_file(s, to, size, got);
    *got = 0;
    while (*got < size) {
        size_t n;
        STATUS_TRY(gz_read(s, (char *)to + *got, size - *got, &n));
        if (n == 0)
            break;
        *got += n;
    }
    return STATUS_OK;
}

static enum status told_fault(const struct source *s) {
    return status_fail(s->failed,
                       "%s is a damaged gz file of %" PRId64
                       " bytes: %s; it is cut short or was changed, get it again",
                       s->path, s->file_size, s->fault);
}

enum status source_read(struct source *s, void *to, size_t size, size_t *got) {
    size_t ready = s->peeked - s->peek_used;
    size_t first = ready < size ? ready : size;
    memcpy(to, s->peek + s->peek_used, first);
    s->peek_used += first;
    *got = first;
    if (first < size) {
        size_t rest;
        STATUS_TRY(read_more(s, (char *)to + first, size - first, &rest));
        *got += rest;
    }
    return *got < size && s->failed != STATUS_OK ? told_fault(s) : STATUS_OK;
}

const unsigned char *source_peek(const struct source *s, size_t *size) {
    *size = s->peeked - s->peek_used;
    return s->peek + s->peek_used;
}

enum status source_finish(struct source *s) {
    unsigned char extra;
    size_t got;
    STATUS_TRY(source_read(s, &extra, 1, &got));
    if (got == 0)
        return STATUS_OK;
    if (s->compressed)
        return status_fail(STATUS_BAD_INPUT,
                           "%s expands to more bytes than its header promises; get it again", s->path);
    int64_t promised = s->file_read - (int64_t)(s->peeked - s->peek_used) - 1;
    return status_fail(STATUS_BAD_INPUT,
                       "%s holds %" PRId64 " bytes, %" PRId64 " more than the %" PRId64
                       " that are expected; get it again",
                       s->path, s->file_size, s->file_size - promised, promised);
}

int64_t source_at_most(const struct source *s) {
    int64_t ready = (int64_t)(s->peeked - s->peek_used);
    if (!s->compressed)
        return s->file_size - s->file_read + ready;
    if (s->file_size > INT64_MAX / GZ_RATIO - ready)
        return INT64_MAX;
    return s->file_size * GZ_RATIO;
}

/* Fill the peek buffer, having seen in its first bytes whether the file is compressed. */
static enum status look(struct source *s) {
    size_t got;
    STATUS_TRY(read_file(s, s->chunk, PEEK, &got));
    if (got == 0)
        return status_fail(STATUS_BAD_INPUT, "%s is empty (0 bytes); get it again", s->path);
    s->compressed = got >= 3 && s->chunk[0] == 0x1f && s->chunk[1] == 0x8b && s->chunk[2] == 8;
    if (!s->compressed) {
        memcpy(s->peek, s->chunk, got);
        s->peeked = got;
        return STATUS_OK;
    }
    s->z.next_in = s->chunk;
    s->z.avail_in = (uInt)got;
    if (inflateInit2(&s->z, 15 + 16) != Z_OK) /* 16: gz header and trailer, checked by zlib */
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to expand it", s->path);
    s->z_open = true;
    STATUS_TRY(read_more(s, s->peek, PEEK, &s->peeked));
    return s->peeked == 0 && s->failed != STATUS_OK ? told_fault(s) : STATUS_OK;
}

enum status source_open(const char *path, struct source **out) {
    *out = NULL;
    struct source *s = calloc(1, sizeof *s);
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return status_fail(STATUS_NO_MEMORY, "%s: no memory to read it", path);
    }
    enum status status = STATUS_OK;
    struct stat info;
    /* NONBLOCK: a pipe must not hold us up */
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (s->fd < 0 || fstat(s->fd, &info) != 0)
        status = source_system_failure("open", path, errno);
    else if (S_ISDIR(info.st_mode))
        status = status_fail(STATUS_IO, "%s is a folder where a file is expected", path);
    else if (!S_ISREG(info.st_mode))
        status = status_fail(STATUS_IO, "%s is a pipe or device, not a file", path);
    else {
        s->file_size = info.st_size;
        status = look(s);
    }
    if (status != STATUS_OK) {
        source_close(s);
        return status;
    }
    *out = s;
    return STATUS_OK;
}

void source_close(struct source *s) {
    if (!s)
        return;
    if (s->z_open)
        inflateEnd(&s->z);
    if (s->fd >= 0)
        close(s->fd);
    free(s->path);
    free(s);
}

bool source_compressed(const struct source *s) {
    return s->compressed;
}

int64_t source_file_size(const struct source *s) {
    return s->file_size;
}

const char *source_looks_like(const unsigned char *bytes, size_t size) {
    size_t i = 0;
    if (size >= 3 && !memcmp(bytes, "\xef\xbb\xbf", 3))
        i = 3;
    while (i < size && (bytes[i] == ' ' || (bytes[i] >= '\t' && bytes[i] <= '\r')))
        i++;
    if (i < size && bytes[i] == '<')
        return " (it begins with '<': it looks like a web page, the answer of a server that did not give the "
               "file)";
    if (size >= 2 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5)
        return " (it begins like a Python pickle: this is the Python edition, the binary edition is wanted)";
    if (size >= 262 && !memcmp(bytes + 257, "ustar", 5))
        return " (it is a tar archive: unpack it with tar xf and give the folder)";
    if (size >= 7 && !memcmp(bytes, "version", 7))
        return " (it looks like a pointer of git-lfs: fetch the file itself)";
    if (size >= 4 && !memcmp(bytes, "PK\3\4", 4))
        return " (it is a zip archive: unpack it and give the folder)";
    static const struct {
        const char *bytes;
        size_t size;
        const char *words;
    } kinds[] = {
        {"\x1f\x8b", 2, " (it is compressed twice with gz: expand it once)"},
        {"BZh", 3, " (it is compressed with bzip2: expand it with bunzip2)"},
        {"\xfd"
         "7zXZ",
         5, " (it is compressed with xz: expand it with unxz)"},
        {"\x28\xb5\x2f\xfd", 4, " (it is compressed with zstd: expand it with unzstd)"},
        {"7z\xbc\xaf\x27\x1c", 6, " (it is a 7z archive: unpack it and give the folder)"},
        {"\x93NUMPY", 6, " (it is an array of NumPy)"},
        {"\x89HDF", 4, " (it is an HDF5 file)"},
        {"\x89PNG\r\n\x1a\n", 8, " (it is a PNG picture)"},
        {"\xff\xd8\xff", 3, " (it is a JPEG picture)"},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (size >= kinds[k].size && !memcmp(bytes, kinds[k].bytes, kinds[k].size))
            return kinds[k].words;
    return "";
}
