/* Makes one call of the program fail: linked in by --wrap (Makefile), so that every call of our own code to
 * these functions comes here first.
 *
 *   TOWERSCOPE_FAULT=KIND@PLACE[:N][+]  fail the N-th (first) call of that kind from that place; +: all from
 * there on TOWERSCOPE_FAULT_LIST=FILE          at the end write "KIND PLACE COUNT", a line for each place
 * that was come by
 *   TOWERSCOPE_FAULT_ORDER=FILE         "sync NAME" or "rename NAME", a line for each such call as it comes
 *   TOWERSCOPE_CLOCK_JUMPS=A,B          every fiftieth look at the wall's clock moves it by A, then B, then A
 * seconds ...
 *
 * A place is the chain of callers as a number, the same in every run of one build, so that a sweep tries
 * every way in which a call is reached and is not disturbed by threads taking turns. */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

enum kind { ALLOCATE, WRITE, SYNC, RENAME, POLL, ACCEPT, OPEN, KINDS };
static const char *const kind_names[KINDS] = {"allocate", "write",  "sync", "rename",
                                              "poll",     "accept", "open"};

enum { PLACES = 1 << 14, DEPTH = 24, CALLERS = 7 };

static struct {
    int kind; /* -1: none */
    uint64_t place;
    long number;
    bool onward;
    _Atomic long seen;
} fault = {.kind = -1};

static struct {
    _Atomic uint64_t place; /* kind in the lowest bits; 0: free */
    _Atomic long count;
} places[PLACES];
static const char *list_path;
static atomic_bool ready;
static _Thread_local bool inside;

extern const char __executable_start, etext;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
FILE *__real_open_memstream(char **text, size_t *size);
ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __real_rename(const char *from, const char *to);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __real_poll(struct pollfd *fds, nfds_t count, int milliseconds);
int __real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __real_open(const char *path, int flags, ...);
int __real_openat(int folder, const char *path, int flags, ...);
int __real_clock_gettime(clockid_t clock, struct timespec *out);
FILE *__real_fopen(const char *path, const char *mode);

/* ---- places */

static uint64_t this_place(void) {
    void *callers[DEPTH];
    int count = backtrace(callers, DEPTH), used = 0;
    uint64_t place = 1469598103934665603u;
    for (int i = 2; i < count && used < CALLERS; i++) {
        const char *at = callers[i];
        if (at < &__executable_start || at >= &etext)
            continue; /* of a library: another address in each run */
        place = (place ^ (uint64_t)(at - &__executable_start)) * 1099511628211u;
        used++;
    }
    return place;
}

static void count_place(uint64_t place) {
    for (uint64_t i = place % PLACES, tried = 0; tried < PLACES; i = (i + 1) % PLACES, tried++) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&places[i].place, &there, place) || there == place) {
            atomic_fetch_add(&places[i].count, 1);
            return;
        }
    }
}

static void write_list(void) {
    FILE *file = list_path ? __real_fopen(list_path, "w") : NULL;
    if (!file)
        return;
    for (int i = 0; i < PLACES; i++)
        if (places[i].place)
            fprintf(file, "%s %llx %ld\n", kind_names[places[i].place % KINDS],
                    (unsigned long long)places[i].place, (long)places[i].count);
    fclose(file);
}

static void write_trace(void) {
    const char *path = getenv("TOWERSCOPE_FAULT_TRACE");
    FILE *file = path ? __real_fopen(path, "w") : NULL;
    void *callers[DEPTH];
    int count = backtrace(callers, DEPTH);
    if (!file)
        return;
    for (int i = 3; i < count; i++)
        if ((const char *)callers[i] >= &__executable_start && (const char *)callers[i] < &etext)
            fprintf(file, "0x%lx ", (unsigned long)((const char *)callers[i] - &__executable_start - 1));
    fclose(file);
}

static bool failing(long seen) {
    if (seen == fault.number) {
        inside = true;
        write_trace();
        inside = false;
    }
    return seen == fault.number || (fault.onward && seen > fault.number);
}

/* Of calls whose order matters. name NULL: the file that is open as fd. */
static void tell_order(enum kind kind, const char *name, int fd) {
    const char *path = getenv("TOWERSCOPE_FAULT_ORDER");
    char link[40], target[PATH_MAX], line[PATH_MAX + 20];
    if (!path)
        return;
    if (!name) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        const char *slash = strrchr(target, '/');
        name = slash ? slash + 1 : target;
    }
    int length = snprintf(line, sizeof line, "%s %s\n", kind_names[kind], name);
    int file = __real_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) {
        (void)!__real_write(file, line, (size_t)length);
        close(file);
    }
}

/* Whether this call is the one to fail. */
static bool fails(enum kind kind) {
    if (!ready || inside || (!list_path && fault.kind != (int)kind))
        return false;
    int saved = errno;
    inside = true;
    uint64_t place = this_place() / KINDS * KINDS + (uint64_t)kind;
    inside = false;
    errno = saved;
    if (list_path)
        count_place(place);
    if (fault.kind != (int)kind || place != fault.place)
        return fault.kind == (int)kind && fault.onward && fault.seen >= fault.number;
    return failing(atomic_fetch_add(&fault.seen, 1) + 1);
}

static void free_json(void *memory) {
    free(memory);
}

static void *allocate_json(size_t size) {
    return fails(ALLOCATE) ? NULL : __real_malloc(size);
}

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("TOWERSCOPE_FAULT");
    char kind[16] = "", onward = 0;
    unsigned long long place;
    void *callers[DEPTH];
    list_path = getenv("TOWERSCOPE_FAULT_LIST");
    backtrace(callers, DEPTH); /* the first call allocates */
    json_set_alloc_funcs(allocate_json, free_json);
    if (text && sscanf(text, "%15[a-z]@%llx:%ld%c", kind, &place, &fault.number, &onward) >= 3)
        for (int i = 0; i < KINDS; i++)
            if (!strcmp(kind, kind_names[i])) {
                fault.kind = i;
                fault.place = place;
                fault.onward = onward == '+';
            }
    atexit(write_list);
    ready = true;
}

/* ---- the calls */

#define FAIL(kind, error, result)                                                                            \
    if (fails(kind)) {                                                                                       \
        errno = error;                                                                                       \
        return result;                                                                                       \
    }

void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
    FAIL(ALLOCATE, ENOMEM, NULL)
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
    FAIL(ALLOCATE, ENOMEM, NULL)
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size) {
    FAIL(ALLOCATE, ENOMEM, NULL)
    return __real_realloc(old, size);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size) {
    return fails(ALLOCATE) ? ENOMEM : __real_posix_memalign(out, alignment, size);
}

char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) {
    FAIL(ALLOCATE, ENOMEM, NULL)
    return __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t size);
char *__wrap_strndup(const char *text, size_t size) {
    FAIL(ALLOCATE, ENOMEM, NULL)
    return __real_strndup(text, size);
}

int __wrap_asprintf(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **out, const char *format, ...) {
    FAIL(ALLOCATE, ENOMEM, -1)
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(out, format, arguments);
    va_end(arguments);
    return length;
}

FILE *__wrap_open_memstream(char **text, size_t *size);
FILE *__wrap_open_memstream(char **text, size_t *size) {
    FAIL(ALLOCATE, ENOMEM, NULL)
    return __real_open_memstream(text, size);
}

/* A write to a file finds the disk full, one to anybody else finds nobody there. */
static int write_error(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? ENOSPC : EPIPE;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size) {
    FAIL(WRITE, write_error(fd), -1)
    return __real_write(fd, bytes, size);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    FAIL(WRITE, write_error(fd), -1)
    return __real_pwrite(fd, bytes, size, offset);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags) {
    FAIL(WRITE, EPIPE, -1)
    return __real_send(fd, bytes, size, flags);
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd) {
    tell_order(SYNC, NULL, fd);
    FAIL(SYNC, EIO, -1)
    return __real_fsync(fd);
}

int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd) {
    tell_order(SYNC, NULL, fd);
    FAIL(SYNC, EIO, -1)
    return __real_fdatasync(fd);
}

int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to) {
    tell_order(RENAME, to, -1);
    FAIL(RENAME, EIO, -1)
    return __real_rename(from, to);
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to) {
    tell_order(RENAME, to, -1);
    FAIL(RENAME, EIO, -1)
    return __real_renameat(from_fd, from, to_fd, to);
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int milliseconds);
int __wrap_poll(struct pollfd *fds, nfds_t count, int milliseconds) {
    FAIL(POLL, ENOMEM, -1)
    return __real_poll(fds, count, milliseconds);
}

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit, const sigset_t *mask) {
    FAIL(POLL, ENOMEM, -1)
    return __real_ppoll(fds, count, limit, mask);
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags) {
    FAIL(ACCEPT, EMFILE, -1)
    return __real_accept4(fd, address, size, flags);
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    FAIL(OPEN, EMFILE, -1)
    return __real_open(path, flags, mode);
}

int __wrap_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    FAIL(OPEN, EMFILE, -1)
    return __real_openat(folder, path, flags, mode);
}

FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode) {
    FAIL(OPEN, EMFILE, NULL)
    return __real_fopen(path, mode);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out) {
    static _Atomic long looks;
    const char *jumps = getenv("TOWERSCOPE_CLOCK_JUMPS");
    long first, second;
    int result = __real_clock_gettime(clock, out);
    if (clock != CLOCK_REALTIME || !jumps || sscanf(jumps, "%ld,%ld", &first, &second) != 2)
        return result;
    long turns = atomic_fetch_add(&looks, 1) / 50;
    out->tv_sec += (turns + 1) / 2 * first + turns / 2 * second;
    return result;
}
