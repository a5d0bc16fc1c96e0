#include "kernels/cuda/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILE_MOST = 1 << 20, LINE = 4096 };

struct kept {
    char path[PATH_MAX], gpu[96];
    char *text; /* the file's, ending in 0 */
};

/* ---- lines */

struct line {
    char text[LINE];
    size_t length;
    bool whole; /* all of it found room */
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(line->text + line->length, sizeof line->text - line->length, format, arguments);
    va_end(arguments);
    line->whole = line->whole && more >= 0 && (size_t)more < sizeof line->text - line->length;
    if (line->whole)
        line->length += (size_t)more;
}

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t check_of(const char *text, size_t length) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3;
    return hash;
}

/* All that a choice hangs on. */
static struct line key_of(const struct kept *kept, const struct conv_request *r, enum conv_pass pass,
                          bool fused) {
    const struct op *op = r->op;
    const struct op_window *w = &op->window;
    struct line key = {.whole = true};
    add(&key, "%zu %s pass %d %d precision %d bias %d relu %d images %d in %d %d %d out %d %d %d",
        cudnnGetVersion(), kept->gpu, (int)pass, fused, (int)r->precision, r->bias, r->relu, r->images,
        op->in.h, op->in.w, op->in.c, op->out.h, op->out.w, op->out.c);
    add(&key, " window %d %d stride %d pads %d %d %d %d engine", w->kernel_h, w->kernel_w, w->stride,
        w->pad_top, w->pad_left, w->pad_bottom, w->pad_right);
    return key;
}

/* The numbers behind the key: engine, how many knobs, each one's kind and setting. */
static bool read_choice(const char *at, struct engine_choice *out) {
    int used;
    *out = (struct engine_choice){0};
    if (sscanf(at, "%" SCNd64 " %d%n", &out->number, &out->knobs, &used) != 2 || out->knobs < 0 ||
        out->knobs > ENGINE_KNOBS)
        return false;
    for (int i = 0; i < out->knobs; i++) {
        int type;
        at += used;
        if (sscanf(at, "%d %" SCNd64 "%n", &type, &out->value[i], &used) != 2)
            return false;
        out->type[i] = (cudnnBackendKnobType_t)type;
    }
    return true;
}

/* A line ends in " check" and 16 hexadecimal digits. */
static bool is_good(const char *line, size_t length) {
    char check[32];
    if (length < 23)
        return false;
    snprintf(check, sizeof check, " check %016" PRIx64, check_of(line, length - 23));
    return !memcmp(check, line + length - 23, 23);
}

bool kept_find(const struct kept *kept, const struct conv_request *request, enum conv_pass pass, bool fused,
               struct engine_choice *out) {
    if (!kept)
        return false;
    const struct line key = key_of(kept, request, pass, fused);
    for (const char *at = kept->text; key.whole && *at;) {
        size_t length = strcspn(at, "\n");
        if (length > key.length && !memcmp(at, key.text, key.length) && is_good(at, length) &&
            read_choice(at + key.length, out))
            return true;
        at += length + (at[length] == '\n');
    }
    return false;
}

/* ---- the file */

static int open_file(const char *path, int flags) {
    struct stat status;
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

static size_t read_file(const char *path, char *to, size_t room) {
    size_t length = 0;
    int fd = open_file(path, O_RDONLY);
    if (fd < 0)
        return 0;
    for (ssize_t more; length < room; length += (size_t)more)
        if ((more = read(fd, to + length, room - length)) <= 0)
            break;
    close(fd);
    return length;
}

struct kept *kept_open(const char *path, const char *gpu) {
    struct kept *kept = calloc(1, sizeof *kept);
    char *text = malloc(FILE_MOST + 1);
    if (!kept || !text || strlen(path) >= sizeof kept->path || strlen(gpu) >= sizeof kept->gpu) {
        free(kept);
        free(text);
        return NULL;
    }
    memcpy(kept->path, path, strlen(path) + 1);
    memcpy(kept->gpu, gpu, strlen(gpu) + 1);
    size_t length = read_file(path, text, FILE_MOST);
    text[length] = 0;
    char *less = realloc(text, length + 1);
    kept->text = less ? less : text;
    return kept;
}

void kept_close(struct kept *kept) {
    if (!kept)
        return;
    free(kept->text);
    free(kept);
}

/* For appending; the last folder on its path is made where only that is missing, and a file that has grown
 * out of bounds is begun anew. */
static int open_to_add(const char *path) {
    char folder[PATH_MAX];
    struct stat status;
    int fd = open_file(path, O_WRONLY | O_CREAT | O_APPEND);
    if (fd < 0 && errno == ENOENT) {
        snprintf(folder, sizeof folder, "%s", path);
        char *slash = strrchr(folder, '/');
        if (!slash || slash == folder)
            return -1;
        *slash = 0;
        if (mkdir(folder, 0700) != 0)
            return -1;
        fd = open_file(path, O_WRONLY | O_CREAT | O_APPEND);
    }
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > FILE_MOST - LINE && ftruncate(fd, 0) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void kept_add(const struct kept *kept, const struct conv_request *request, enum conv_pass pass, bool fused,
              const struct engine_choice *choice) {
    if (!kept)
        return;
    struct line line = key_of(kept, request, pass, fused);
    add(&line, " %" PRId64 " %d", choice->number, choice->knobs);
    for (int i = 0; i < choice->knobs; i++)
        add(&line, " %d %" PRId64, (int)choice->type[i], choice->value[i]);
    uint64_t check = check_of(line.text, line.length);
    add(&line, " check %016" PRIx64 "\n", check);
    int fd = line.whole ? open_to_add(kept->path) : -1;
    if (fd < 0)
        return;
    char edge[] = "\n"; /* whatever the file ends with */
    const struct iovec parts[] = {{edge, 1}, {line.text, line.length}};
    ssize_t written = writev(fd, parts, 2);
    (void)written; /* what is not there is measured again */
    close(fd);
}
