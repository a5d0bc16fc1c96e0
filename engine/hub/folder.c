/* Does what the run has on the disk still stand? While it is live somebody may move its folder or remove it,
 * or its lock, or its record. A descriptor of the folder is held, so all goes on in a folder that was moved;
 * a folder that is gone is made again, with the lock, so that the run can be reached, and with the whole
 * record, which can still be read. Its checkpoints are gone: the training thread is told. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/hub/internal.h"

enum { PLACES = 10 };

static void give_news(struct hub *hub, enum hub_news news) {
    static const uint64_t one = 1;
    int fd = fcntl(hub->options.lock->folder, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_lock(&hub->lock);
    if (hub->news_fd >= 0)
        close(hub->news_fd);
    hub->news_fd = fd;
    memcpy(hub->news_path, hub->folder, sizeof hub->news_path);
    if (atomic_load(&hub->news) != HUB_RESTORED) /* that one is still to be heard */
        atomic_store(&hub->news, news);
    pthread_mutex_unlock(&hub->lock);
    if (write(hub->command_fd, &one, sizeof one) < 0)
        return; /* full: it is readable */
}

/* The run is at another path from now on, and entered there when its name is one that can be asked for. */
static bool settle(struct hub *hub, const char *path) {
    struct live_run now;
    memcpy(hub->folder, path, strlen(path) + 1);
    bool named = live_describe(path, &now) == STATUS_OK;
    if (!named)
        return false;
    /* held: another run is there now, and the entry its own */
    if (strcmp(now.id, hub->options.run.id) != 0 && hub->live_fd >= 0 && !lock_held(hub->options.run.folder))
        live_leave(hub->live_fd, &hub->options.run);
    now.started = hub->options.run.started;
    hub->options.run = now;
    if (hub_listen(hub) != STATUS_OK)
        hub_say(hub, "no console can attach: %s", status_text());
    return true;
}

static void take_move(struct hub *hub) {
    char path[PATH_MAX], text[2 * PATH_MAX + 200], was[PATH_MAX];
    if (!lock_where(hub->options.lock, path, sizeof path)) {
        if (!hub->folder_said)
            hub_alarm(hub, "error", "the run's folder was moved to where it can't be seen; it is written on");
        hub->folder_said = true;
        return;
    }
    memcpy(was, hub->folder, sizeof was);
    bool named = settle(hub, path);
    record_moved(hub->record, path);
    hub->folder_said = false;
    snprintf(text, sizeof text, "the run's folder was moved from %s to %s: all goes on there%s", was, path,
             named ? "" : ", but no new console can attach: that is no name of a run");
    hub_alarm(hub, "warning", text);
    give_news(hub, HUB_MOVED);
}

static bool make_parents(const char *path) {
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *s = strchr(part + 1, '/'); s; s = strchr(s + 1, '/')) {
        *s = 0;
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return false;
        *s = '/';
    }
    return true;
}

/* A new folder where the old one was, or beside it when something else lies there by now. */
static enum status make_place(const char *was, char path[PATH_MAX]) {
    for (int i = 0; i < PLACES; i++) {
        int length = i == 0   ? snprintf(path, PATH_MAX, "%s", was)
                     : i == 1 ? snprintf(path, PATH_MAX, "%s-rescued", was)
                              : snprintf(path, PATH_MAX, "%s-rescued-%d", was, i);
        if (length < 0 || length >= PATH_MAX)
            break;
        if (make_parents(path) && mkdir(path, 0755) == 0)
            return STATUS_OK;
        if (errno != EEXIST)
            return status_fail(STATUS_IO, "%s: can't be made again: %s", path, strerror(errno));
    }
    return status_fail(STATUS_IO, "%s: can't be made again: something else lies there", was);
}

static enum status make_again(struct hub *hub, char path[PATH_MAX]) {
    struct lock lock;
    STATUS_TRY(make_place(hub->folder, path));
    enum status status = lock_take(path, &lock);
    if (status == STATUS_OK)
        status = record_restore(hub->record, lock.folder, path);
    if (status != STATUS_OK) {
        lock_give(&lock);
        static const char *const files[] = {"lock", "owner"};
        char file[PATH_MAX + 8];
        for (int i = 0; i < 2; i++) {
            snprintf(file, sizeof file, "%s/%s", path, files[i]);
            (void)unlink(file);
        }
        (void)rmdir(path);
        return status;
    }
    lock_give(hub->options.lock);
    *hub->options.lock = lock;
    return STATUS_OK;
}

static void take_loss(struct hub *hub) {
    char path[PATH_MAX], was[PATH_MAX], text[2 * PATH_MAX + 200];
    memcpy(was, hub->folder, sizeof was);
    if (make_again(hub, path) != STATUS_OK) {
        if (!hub->folder_said) {
            snprintf(text, sizeof text, "somebody removed the run's folder: %s; this is tried again",
                     status_text());
            hub_alarm(hub, "error", text);
        }
        hub->folder_said = true;
        return;
    }
    (void)settle(hub, path);
    hub->folder_said = false;
    if (!strcmp(was, path))
        snprintf(text, sizeof text,
                 "somebody removed the run's folder %s: it is made again, with the whole record", was);
    else
        snprintf(text, sizeof text,
                 "somebody removed the run's folder %s and something else lies there: it is made again as "
                 "%s, with the "
                 "whole record",
                 was, path);
    hub_alarm(hub, "warning", text);
    give_news(hub, HUB_RESTORED);
}

static void take_lost_file(struct hub *hub) {
    char text[PATH_MAX + 200];
    if (lock_mend(hub->options.lock, hub->folder) == STATUS_OK) {
        hub->lock_said = false;
        snprintf(text, sizeof text,
                 "somebody removed %s/lock: it is made again; the run was held by its folder", hub->folder);
        hub_alarm(hub, "warning", text);
    } else if (!hub->lock_said) {
        snprintf(text, sizeof text, "somebody removed the run's lock: %s; the run is held by its folder",
                 status_text());
        hub_alarm(hub, "error", text);
        hub->lock_said = true;
    }
}

static void look_at_record(struct hub *hub) {
    char text[PATH_MAX + 300];
    if (!record_unlinked(hub->record))
        return;
    if (record_restore(hub->record, hub->options.lock->folder, hub->folder) == STATUS_OK) {
        hub->record_said = false;
        hub_alarm(hub, "warning",
                  "somebody removed or renamed " RECORD_FILE
                  " of this run: it is made again, with all its lines");
    } else if (!hub->record_said) {
        hub->record_said = true;
        snprintf(
            text, sizeof text,
            "somebody removed or renamed the record: %s; what can't be kept now is lost when the run ends",
            status_text());
        hub_alarm(hub, "error", text);
    }
}

void hub_look_at_folder(struct hub *hub) {
    pthread_mutex_lock(&hub->lock);
    int64_t wanted = hub->looks_wanted;
    pthread_mutex_unlock(&hub->lock);
    if (hub->options.lock) {
        enum lock_state state = lock_look(hub->options.lock, hub->folder);
        if (state == LOCK_FOLDER_MOVED)
            take_move(hub);
        else if (state == LOCK_FOLDER_LOST)
            take_loss(hub);
        else if (state == LOCK_FILE_LOST)
            take_lost_file(hub);
        if (state != LOCK_FOLDER_LOST)
            look_at_record(hub);
    }
    pthread_mutex_lock(&hub->lock);
    hub->looks = wanted;
    pthread_cond_broadcast(&hub->written);
    pthread_mutex_unlock(&hub->lock);
}

/* ---- for the training thread */

enum hub_news hub_news(struct hub *hub, int *fd, char *path, size_t size) {
    enum hub_news news = atomic_load(&hub->news);
    if (news == HUB_NO_NEWS)
        return news;
    pthread_mutex_lock(&hub->lock);
    news = atomic_exchange(&hub->news, HUB_NO_NEWS);
    *fd = hub->news_fd;
    hub->news_fd = -1;
    snprintf(path, size, "%s", hub->news_path);
    pthread_mutex_unlock(&hub->lock);
    return news;
}

void hub_look(struct hub *hub) {
    static const uint64_t one = 1;
    pthread_mutex_lock(&hub->lock);
    int64_t mine = ++hub->looks_wanted;
    bool woken = write(hub->wake, &one, sizeof one) > 0 || errno == EAGAIN; /* full: it is awake */
    while (woken && hub->looks < mine && !hub->ended)
        pthread_cond_wait(&hub->written, &hub->lock);
    pthread_mutex_unlock(&hub->lock);
}
