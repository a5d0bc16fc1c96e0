#include "engine/wire/live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/printable.h"
#include "engine/wire/lock.h"

enum status run_name_check(const char *name) {
    size_t length = strlen(name);
    char shown[80];
    text_printable(shown, sizeof shown, name);
    if (length < 1 || length > RUN_NAME_MAX)
        return status_fail(STATUS_BAD_INPUT, "run name \"%s\": %zu characters, expected 1 to %d", shown,
                           length, RUN_NAME_MAX);
    if (name[0] == '.' || name[0] == '-')
        return status_fail(STATUS_BAD_INPUT, "run name \"%s\": it can't begin with a dot or a dash", shown);
    if (strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != length)
        return status_fail(STATUS_BAD_INPUT, "run name \"%s\": expected letters, digits, '.', '_' and '-'",
                           shown);
    return STATUS_OK;
}

/* ---- the folder */

static enum status state_home(char *out, size_t size) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length;
    if (state && state[0] == '/') {
        length = snprintf(out, size, "%s", state);
    } else {
        const struct passwd *user = home && home[0] == '/' ? NULL : getpwuid(geteuid());
        if (user)
            home = user->pw_dir;
        if (!home || home[0] != '/')
            return status_fail(STATUS_NOT_FOUND, "no home folder is known: set HOME or XDG_STATE_HOME");
        length = snprintf(out, size, "%s/.local/state", home);
    }
    if (length < 0 || (size_t)length >= size)
        return status_fail(STATUS_BAD_INPUT, "the path of the state folder is too long");
    return STATUS_OK;
}

enum status live_folder_path(char *out, size_t size) {
    STATUS_TRY(state_home(out, size));
    size_t length = strlen(out);
    if ((size_t)snprintf(out + length, size - length, "/towerscope/live") >= size - length)
        return status_fail(STATUS_BAD_INPUT, "the path of the state folder is too long");
    return STATUS_OK;
}

#define CANNOT_MAKE                                                                                          \
    "%s: can't make this folder, where consoles find live runs: %s; XDG_STATE_HOME names another place"

static enum status make_parents(const char *path) {
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *s = part + 1;; s++) {
        if (*s != '/' && *s)
            continue;
        char kept = *s;
        *s = 0;
        if (mkdir(part, 0700) == 0)
            chmod(part, 0700); /* the umask may have taken bits */
        else if (errno != EEXIST)
            return status_fail(STATUS_IO, CANNOT_MAKE, part, strerror(errno));
        *s = kept;
        if (!kept)
            return STATUS_OK;
    }
}

/* Open the folder NAME inside `parent`, ours alone; `shown` is its path for messages. */
static enum status open_own(int parent, const char *name, const char *shown, bool create, mode_t forbidden,
                            int *out) {
    int why = 0; /* it could not be made */
    if (create && mkdirat(parent, name, 0700) == 0)
        fchmodat(parent, name, 0700, 0); /* the umask may have taken bits */
    else if (create && errno != EEXIST)
        why = errno;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENOENT && why)
            return status_fail(STATUS_IO, CANNOT_MAKE, shown, strerror(why));
        if (errno == ENOENT)
            return status_fail(STATUS_NOT_FOUND, "%s: there is no such folder", shown);
        if (errno == ELOOP || errno == ENOTDIR)
            return status_fail(STATUS_REFUSED,
                               "%s is a link or no folder; expected a folder of your own: move it away",
                               shown);
        return status_fail(STATUS_IO, "%s: %s", shown, strerror(errno));
    }
    struct stat info;
    enum status status = STATUS_OK;
    if (fstat(fd, &info) != 0)
        status = status_fail(STATUS_IO, "%s: %s", shown, strerror(errno));
    else if (info.st_uid != geteuid())
        status = status_fail(STATUS_REFUSED, "%s belongs to user %u; expected a folder of your own", shown,
                             (unsigned)info.st_uid);
    else if ((info.st_mode & forbidden) && fchmod(fd, (info.st_mode & 07777) & ~forbidden) != 0)
        status = status_fail(STATUS_REFUSED, "%s can be entered by others and that can't be changed: %s",
                             shown, strerror(errno));
    if (status != STATUS_OK) {
        close(fd);
        return status;
    }
    *out = fd;
    return STATUS_OK;
}

enum status live_folder_open(bool create, int *out) {
    char path[PATH_MAX], shown[PATH_MAX + 32];
    STATUS_TRY(state_home(path, sizeof path));
    if (create)
        STATUS_TRY(make_parents(path));
    int home = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (home < 0)
        return status_fail(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path, strerror(errno));
    int own = -1;
    snprintf(shown, sizeof shown, "%s/towerscope", path);
    enum status status = open_own(home, "towerscope", shown, create, 0022, &own);
    if (status == STATUS_OK) {
        snprintf(shown, sizeof shown, "%s/towerscope/live", path);
        status = open_own(own, "live", shown, create, 0077, out);
        close(own);
    }
    close(home);
    return status;
}

/* ---- entries */

/* FNV-1a, 64 bits: Fowler, Noll, Vo; draft-eastlake-fnv. */
static uint64_t hash_path(const char *path) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const unsigned char *s = (const unsigned char *)path; *s; s++)
        hash = (hash ^ *s) * UINT64_C(0x100000001b3);
    return hash;
}

static void entry_name(const struct live_run *run, const char *ending, char out[32]) {
    snprintf(out, 32, "%s.%s", run->id, ending);
}

/* Fill from an absolute path. */
static bool describe_path(const char *path, struct live_run *out) {
    const char *name = strrchr(path, '/');
    if (!name || strlen(path) >= sizeof out->folder || run_name_check(name + 1) != STATUS_OK)
        return false;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", name + 1);
    snprintf(out->folder, sizeof out->folder, "%s", path);
    snprintf(out->id, sizeof out->id, "%016" PRIx64, hash_path(path));
    return true;
}

enum status live_describe(const char *folder, struct live_run *out) {
    char path[PATH_MAX];
    struct stat info;
    if (!realpath(folder, path) || stat(path, &info) != 0)
        return status_fail(errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s",
                           folder, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return status_fail(STATUS_NOT_FOUND, "%s is not a run's folder", folder);
    if (!describe_path(path, out))
        return status_prefix(STATUS_BAD_INPUT, "%s: ", path);
    out->started = (double)info.st_mtim.tv_sec;
    out->live = lock_held(path);
    return STATUS_OK;
}

static int newest_first(const void *a, const void *b) {
    const struct live_run *x = a, *y = b;
    if (x->started != y->started)
        return x->started < y->started ? 1 : -1;
    return strcmp(x->id, y->id);
}

/* Read the entry `link`; false: it is none. */
static bool read_entry(int fd, const char *link, struct live_run *out) {
    char target[PATH_MAX], expected[32];
    size_t length = strlen(link);
    if (length != 16 + 4 || strcmp(link + 16, ".run"))
        return false;
    ssize_t bytes = readlinkat(fd, link, target, sizeof target - 1);
    if (bytes <= 0)
        return false;
    target[bytes] = 0;
    if (!describe_path(target, out))
        return false;
    entry_name(out, "run", expected);
    struct stat info;
    if (strcmp(expected, link) || fstatat(fd, link, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    out->started = (double)info.st_mtim.tv_sec + (double)info.st_mtim.tv_nsec * 1e-9;
    out->live = lock_held(out->folder);
    return true;
}

enum status live_list(struct live_run **out, int *count) {
    *out = NULL;
    *count = 0;
    int fd;
    enum status status = live_folder_open(false, &fd);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    STATUS_TRY(status);
    DIR *folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        return status_fail(STATUS_IO, "the folder of live runs: %s", strerror(errno));
    }
    struct live_run *runs = NULL;
    int room = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (*count == room) {
            struct live_run *more = realloc(runs, (size_t)(room + 16) * sizeof *runs);
            if (!more) {
                free(runs);
                closedir(folder);
                *count = 0;
                return status_fail(STATUS_NO_MEMORY, "no memory to list the live runs");
            }
            runs = more;
            room += 16;
        }
        if (read_entry(dirfd(folder), entry->d_name, &runs[*count]))
            ++*count;
    }
    closedir(folder);
    if (*count > 0)
        qsort(runs, (size_t)*count, sizeof *runs, newest_first);
    *out = runs;
    return STATUS_OK;
}

static enum status not_live(const char *name) {
    return status_fail(STATUS_NOT_FOUND, "no live run \"%s\"; `towerscope ls` shows the runs there are",
                       name);
}

static enum status find_entry(const char *name, struct live_run *out) {
    struct live_run *runs;
    int count, found = -1;
    STATUS_TRY(live_list(&runs, &count));
    enum status status = STATUS_OK;
    for (int i = 0; i < count && status == STATUS_OK; i++) {
        if (!runs[i].live || (name && strcmp(runs[i].name, name)))
            continue;
        if (found < 0)
            found = i;
        else if (name)
            status = status_fail(STATUS_BAD_INPUT,
                                 "two live runs are called \"%s\": %.300s and %.300s; give the path", name,
                                 runs[found].folder, runs[i].folder);
    }
    if (status == STATUS_OK && found < 0)
        status = name ? not_live(name)
                      : status_fail(STATUS_NOT_FOUND, "no run is live; `towerscope run` starts one");
    if (status == STATUS_OK)
        *out = runs[found];
    free(runs);
    return status;
}

enum status live_find(const char *name, const char *runs, struct live_run *out) {
    if (!name)
        return find_entry(NULL, out);
    if (strchr(name, '/')) {
        STATUS_TRY(live_describe(name, out));
        return out->live ? STATUS_OK : not_live(out->folder);
    }
    STATUS_TRY(run_name_check(name));
    char path[PATH_MAX];
    if (runs && (size_t)snprintf(path, sizeof path, "%s/%s", runs, name) < sizeof path &&
        live_describe(path, out) == STATUS_OK && out->live)
        return STATUS_OK;
    return find_entry(name, out);
}

enum status live_enter(int live_fd, const struct live_run *run) {
    char name[32];
    struct stat info;
    entry_name(run, "run", name);
    if (fstatat(live_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISLNK(info.st_mode))
            return status_fail(STATUS_REFUSED, "%s in the folder of live runs is no link; move it away",
                               name);
        if (unlinkat(live_fd, name, 0) != 0)
            return status_fail(STATUS_IO, "the folder of live runs: %s: %s", name, strerror(errno));
    }
    if (symlinkat(run->folder, live_fd, name) != 0)
        return status_fail(STATUS_IO, "the folder of live runs: %s: %s", name, strerror(errno));
    return STATUS_OK;
}

void live_leave(int live_fd, const struct live_run *run) {
    char name[32];
    struct stat info;
    entry_name(run, "run", name);
    if (fstatat(live_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode))
        unlinkat(live_fd, name, 0);
    entry_name(run, "sock", name);
    if (fstatat(live_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(info.st_mode))
        unlinkat(live_fd, name, 0);
}

void live_prune(int live_fd) {
    int fd = openat(live_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(folder));) {
        struct live_run run;
        struct stat info;
        if (read_entry(live_fd, entry->d_name, &run) && stat(run.folder, &info) != 0 && errno == ENOENT)
            live_leave(live_fd, &run);
    }
    closedir(folder);
}

/* ---- the socket */

/* Through the descriptor of its folder the address is short, however long the folder's path. */
static void socket_address(int live_fd, const struct live_run *run, struct sockaddr_un *out) {
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s.sock", live_fd, run->id);
}

static int new_socket(void) {
    return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

enum status live_listen(int live_fd, const struct live_run *run, int *out) {
    char name[32];
    entry_name(run, "sock", name);
    struct stat info;
    if (fstatat(live_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISSOCK(info.st_mode))
            return status_fail(STATUS_REFUSED, "%s in the folder of live runs is no socket; move it away",
                               name);
        if (unlinkat(live_fd, name, 0) != 0)
            return status_fail(STATUS_IO, "the folder of live runs: %s: %s", name, strerror(errno));
    }
    struct sockaddr_un address;
    socket_address(live_fd, run, &address);
    int fd = new_socket();
    if (fd < 0)
        return status_fail(STATUS_IO, "no socket: %s", strerror(errno));
    /* The mode of the descriptor becomes the mode of the name, so that it is never open to others. */
    if (fchmod(fd, 0600) != 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        fchmodat(live_fd, name, 0600, 0) != 0 || listen(fd, 256) != 0) {
        int error = errno;
        close(fd);
        return status_fail(STATUS_IO, "the run's socket %s: %s", name, strerror(error));
    }
    *out = fd;
    return STATUS_OK;
}

enum status live_connect(const struct live_run *run, int *out) {
    int folder;
    STATUS_TRY(live_folder_open(false, &folder));
    struct sockaddr_un address;
    socket_address(folder, run, &address);
    int fd = new_socket();
    int connected = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
    int error = errno;
    close(folder);
    if (connected == 0) {
        *out = fd;
        return STATUS_OK;
    }
    if (fd >= 0)
        close(fd);
    /* EAGAIN: its queue of connections is full; it is there */
    return status_fail(error == ENOENT || error == ECONNREFUSED ? STATUS_NOT_FOUND
                       : error == EAGAIN                        ? STATUS_BUSY
                                                                : STATUS_IO,
                       "run %s: its engine can't be reached: %s", run->name, strerror(error));
}
