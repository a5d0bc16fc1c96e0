#include "engine/wire/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char LOCK_FILE[] = "lock", OWNER_FILE[] = "owner", DELETED[] = " (deleted)";

/* ---- what the files tell */

static ssize_t read_text(const char *folder, const char *file, char *out, size_t size) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, file);
    if (length < 0 || (size_t)length >= sizeof path)
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    ssize_t bytes = read(fd, out, size - 1);
    close(fd);
    out[bytes > 0 ? bytes : 0] = 0;
    return bytes;
}

static void take_word(char *line, struct lock_about *out) {
    if (!strncmp(line, "process ", 8)) {
        out->pid = strtol(line + 8, NULL, 10);
    } else if (!strncmp(line, "user ", 5)) {
        char *end;
        out->user = strtol(line + 5, &end, 10);
        snprintf(out->user_name, sizeof out->user_name, "%s", *end == ' ' ? end + 1 : "");
    } else if (!strncmp(line, "live", 4) && (line[4] == ' ' || !line[4])) {
        out->says_where = true;
        snprintf(out->live, sizeof out->live, "%s", line[4] ? line + 5 : "");
    } else if (!strncmp(line, "ended ", 6)) {
        out->ended = strtoll(line + 6, NULL, 10);
    }
}

void lock_about(const char *folder, struct lock_about *out) {
    char text[PATH_MAX + 256];
    *out = (struct lock_about){.user = -1, .ended = -1};
    if (read_text(folder, OWNER_FILE, text, sizeof text) <= 0)
        return;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        take_word(line, out);
}

long lock_holder(const char *folder) {
    char text[32];
    long pid = read_text(folder, LOCK_FILE, text, sizeof text) > 0 ? strtol(text, NULL, 10) : 0;
    return pid > 0 ? pid : 0;
}

/* Written over what is there, and cut only then: on a full disk its place would be gone. */
static void write_over(int fd, const char *text, int length) {
    if (pwrite(fd, text, (size_t)length, 0) == length && ftruncate(fd, length) != 0)
        return;
}

void lock_tell(const struct lock *lock, const char *words) {
    char text[PATH_MAX + 256], names[1024];
    struct passwd entry, *user = NULL;
    if (getpwuid_r(geteuid(), &entry, names, sizeof names, &user) != 0)
        user = NULL;
    int length = snprintf(text, sizeof text, "process %ld\nuser %ld %.39s\n%s%s", (long)getpid(),
                          (long)geteuid(), user ? user->pw_name : "", words, *words ? "\n" : "");
    if (length < 0 || (size_t)length >= sizeof text)
        return;
    int fd = openat(lock->folder, OWNER_FILE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0)
        return;
    write_over(fd, text, length);
    close(fd);
}

/* ---- holding it */

static bool set_lock(int fd, short type) {
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

/* Whether another than this descriptor has a lock on the file or folder. */
static bool others_hold(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

static enum status busy(const char *folder) {
    long pid = lock_holder(folder);
    if (pid)
        return status_fail(STATUS_BUSY, "%s: the run is live, process %ld owns it", folder, pid);
    return status_fail(STATUS_BUSY, "%s: the run is live, another process owns it", folder);
}

/* The file in the folder, locked. */
static enum status take_file(int folder, const char *path, int *out) {
    int fd = openat(folder, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0)
        return status_fail(STATUS_IO, "%s/%s: %s; who goes on with a run holds this file", path, LOCK_FILE,
                           strerror(errno));
    if (set_lock(fd, F_WRLCK)) {
        *out = fd;
        return STATUS_OK;
    }
    int error = errno;
    close(fd);
    if (error == EAGAIN || error == EACCES)
        return busy(path);
    return status_fail(STATUS_IO, "%s/%s: this file system gives no lock: %s", path, LOCK_FILE,
                       strerror(error));
}

/* The run has not begun again: how it ended before holds until it has. */
static void keep_ended(const struct lock *lock, const char *folder) {
    struct lock_about about;
    char words[40] = "";
    lock_about(folder, &about);
    if (about.ended >= 0)
        snprintf(words, sizeof words, "ended %lld", (long long)about.ended);
    lock_tell(lock, words);
}

static void write_holder(int fd) {
    char text[32];
    write_over(fd, text, snprintf(text, sizeof text, "%ld\n", (long)getpid()));
}

enum status lock_take(const char *folder, struct lock *out) {
    *out = (struct lock){.folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .file = -1};
    if (out->folder < 0)
        return status_fail(STATUS_IO, "%s: %s", folder, strerror(errno));
    enum status status = take_file(out->folder, folder, &out->file);
    /* A folder can't be opened for writing, so its lock is one that several may have: who has the file asks
     * whether somebody had the folder before. Where folders can't be locked, the file alone decides. */
    if (status == STATUS_OK && others_hold(out->folder))
        status = busy(folder);
    if (status == STATUS_OK) {
        (void)set_lock(out->folder, F_RDLCK);
        write_holder(out->file);
        keep_ended(out, folder);
        return STATUS_OK;
    }
    lock_give(out);
    return status;
}

void lock_give(struct lock *lock) {
    if (lock->file >= 0)
        close(lock->file);
    if (lock->folder >= 0)
        close(lock->folder);
    *lock = (struct lock){-1, -1};
}

bool lock_held(const char *folder) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, LOCK_FILE);
    if (length < 0 || (size_t)length >= sizeof path)
        return false;
    const char *const both[] = {path, folder};
    const int flags[] = {O_NONBLOCK, O_DIRECTORY};
    bool held = false;
    for (int i = 0; i < 2 && !held; i++) {
        int fd = open(both[i], O_RDONLY | O_CLOEXEC | flags[i]);
        if (fd < 0)
            continue;
        held = others_hold(fd);
        close(fd);
    }
    return held;
}

/* ---- does it stand? */

static bool same_inode(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool lock_folder_where(int folder, char *out, size_t size) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0 || path[0] != '/' || (size_t)length >= size)
        return false;
    path[length] = 0;
    struct stat there, here;
    if (stat(path, &there) != 0 || fstat(folder, &here) != 0 || !same_inode(&there, &here))
        return false;
    memcpy(out, path, (size_t)length + 1);
    return true;
}

bool lock_where(const struct lock *lock, char *out, size_t size) {
    return lock_folder_where(lock->folder, out, size);
}

/* Whether the folder has no name any more: most file systems count its names, the others say it in /proc. */
static bool removed(const struct lock *lock, const struct stat *folder) {
    char link[64], path[PATH_MAX];
    if (folder->st_nlink == 0)
        return true;
    snprintf(link, sizeof link, "/proc/self/fd/%d", lock->folder);
    ssize_t length = readlink(link, path, sizeof path - 1), tail = sizeof DELETED - 1;
    if (length <= tail)
        return false;
    path[length] = 0;
    struct stat there;
    return !strcmp(path + length - tail, DELETED) && stat(path, &there) != 0;
}

enum lock_state lock_look(const struct lock *lock, const char *path) {
    struct stat folder, there, file;
    if (fstat(lock->folder, &folder) != 0)
        return LOCK_STANDS; /* not to be known */
    if (stat(path, &there) != 0 || !same_inode(&there, &folder))
        return removed(lock, &folder) ? LOCK_FOLDER_LOST : LOCK_FOLDER_MOVED;
    if (lock->file < 0 || fstatat(lock->folder, LOCK_FILE, &there, AT_SYMLINK_NOFOLLOW) != 0 ||
        fstat(lock->file, &file) != 0 || !same_inode(&there, &file))
        return LOCK_FILE_LOST;
    return LOCK_STANDS;
}

enum status lock_mend(struct lock *lock, const char *path) {
    int file;
    STATUS_TRY(take_file(lock->folder, path, &file));
    if (lock->file >= 0)
        close(lock->file);
    lock->file = file;
    write_holder(file);
    return STATUS_OK;
}
