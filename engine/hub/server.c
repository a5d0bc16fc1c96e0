/* The hub's thread. */
#include "engine/hub/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/wire/codec.h"

/* Lines for people are written and sent at once; steps are gathered for this long, so that a fast run does
 * not wake everybody for each. */
static const double GATHER_SECONDS = 0.05;
enum { FEW_PEERS = 4, MOST_GATHERED = 4 };
static const double TICK_SECONDS = 0.5, GREETING_SECONDS = 5, FOREIGN_SECONDS = 2, STALLED_SECONDS = 10,
                    GOODBYE_SECONDS = 0.5;

void hub_tell(struct hub *hub, struct peer *peer, const struct event *event) {
    struct line *line = line_encode(event);
    double now = clock_seconds();
    if (!line)
        return;
    for (int i = 0; i < hub->peer_count; i++) {
        struct peer *to = hub->peers[i];
        bool wanted = peer ? to == peer : to->greeted && (to->events || event->kind == EVENT_COMMAND);
        if (wanted && !to->behind)
            peer_queue(to, line, now);
    }
    line_drop(line);
}

/* ---- the record */

static void write_line(struct hub *hub, const struct line *line) {
    if (line->seq == 0)
        return;
    enum status status = record_append(hub->record, line->text, line->length, line->seq);
    if (status == STATUS_OK || hub->record_failing)
        return;
    hub->record_failing = true; /* said once, and told again when it is over */
    hub_alarm(hub, "error", status_text());
}

static void retry_record(struct hub *hub) {
    if (hub->record_failing && record_retry(hub->record) == STATUS_OK) {
        char text[200] = "the record is written again, nothing is lost";
        if (record_lost(hub->record) > hub->lost_said)
            snprintf(text, sizeof text, "the record is written again; %lld of its events are lost",
                     (long long)(record_lost(hub->record) - hub->lost_said));
        hub->lost_said = record_lost(hub->record);
        hub->record_failing = false;
        hub_alarm(hub, "warning", text);
    }
}

/* Take what was emitted, write the record's part; returns whether something is urgent. After steps the thread
 * comes again by itself, until there were none. */
static bool take_queue(struct hub *hub, double now) {
    struct line_list taken;
    line_list_open(&taken);
    uint64_t told;
    while (read(hub->wake, &told, sizeof told) > 0)
        continue;
    pthread_mutex_lock(&hub->lock);
    line_list_move(&taken, &hub->queue);
    bool urgent = hub->urgent;
    hub->urgent = false;
    hub->busy = taken.first != NULL;
    if (taken.first)
        hub->next_take = now + GATHER_SECONDS;
    hub->coming = hub->next_take > now;
    pthread_mutex_unlock(&hub->lock);
    if (!taken.first)
        return urgent;
    for (struct line *line; (line = line_list_take(&taken));) {
        write_line(hub, line);
        line_list_add(&hub->ready, line);
    }
    pthread_mutex_lock(&hub->lock);
    hub->busy = false;
    pthread_cond_broadcast(&hub->written);
    pthread_mutex_unlock(&hub->lock);
    return urgent;
}

/* ---- the socket */

/* Tell in the lock file where the socket is, for those who look elsewhere. */
static void tell_where(struct hub *hub, bool listening) {
    char words[PATH_MAX + 8] = "live";
    if (!hub->options.lock)
        return;
    if (listening && live_folder_path(words + 5, sizeof words - 5) == STATUS_OK)
        words[4] = ' ';
    lock_tell(hub->options.lock, words);
}

enum status hub_listen(struct hub *hub) {
    if (hub->live_fd >= 0) { /* the folder itself may be gone, too */
        struct stat info;
        if (fstat(hub->live_fd, &info) != 0 || info.st_nlink == 0) {
            close(hub->live_fd);
            hub->live_fd = -1;
        }
    }
    int listener;
    if (hub->live_fd < 0)
        STATUS_TRY(live_folder_open(true, &hub->live_fd));
    live_prune(hub->live_fd);
    STATUS_TRY(live_enter(hub->live_fd, &hub->options.run));
    STATUS_TRY(live_listen(hub->live_fd, &hub->options.run, &listener));
    hub->socket_said = false;
    if (hub->listener >= 0)
        close(hub->listener);
    hub->listener = listener;
    tell_where(hub, true);
    return STATUS_OK;
}

static void listen_or_say(struct hub *hub) {
    if (hub_listen(hub) != STATUS_OK && !hub->socket_said) {
        hub_say(hub, "no console can attach: %s", status_text());
        hub->socket_said = true;
        tell_where(hub, false);
    }
}

/* Whether the names of the run are still there. */
static bool names_stand(struct hub *hub) {
    struct stat info;
    char name[32];
    if (hub->live_fd < 0 || hub->listener < 0)
        return false;
    snprintf(name, sizeof name, "%s.sock", hub->options.run.id);
    if (fstatat(hub->live_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(info.st_mode))
        return false;
    snprintf(name, sizeof name, "%s.run", hub->options.run.id);
    if (fstatat(hub->live_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    return fstat(hub->live_fd, &info) == 0 && info.st_nlink > 0;
}

/* ---- clients */

static void close_peer(struct hub *hub, int i) {
    struct peer *peer = hub->peers[i];
    if (peer->complaint) {
        struct event event = event_new(EVENT_ALARM);
        event.alarm.level = "error";
        event.alarm.text = peer->complaint;
        hub_say(hub, "a client is dropped: %s", peer->complaint);
        peer->gone = false;
        hub_tell(hub, peer, &event);
        peer_send(peer);
        peer->gone = true;
    }
    hub_control_left(hub, peer);
    hub->peers[i] = hub->peers[--hub->peer_count];
    peer_free(peer);
}

/* The first descriptor that is no client's: a save and the folder need some, however many clients come. */
static int most_descriptors(void) {
    enum { LEAST = 4, RESERVE = 32 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX)
        return INT_MAX;
    int all = (int)limit.rlim_cur, part = all / 8;
    return all - (part < LEAST ? LEAST : part > RESERVE ? RESERVE : part);
}

/* Make room for one more, on this descriptor: a client that has not said who it is goes, or one that has not
 * read for long. */
static bool make_room(struct hub *hub, int fd, double now) {
    if (hub->peer_count < HUB_PEERS && fd < hub->most_fds)
        return true;
    int worst = -1;
    for (int i = 0; i < hub->peer_count; i++) {
        const struct peer *peer = hub->peers[i];
        bool stalled = peer->behind && now - peer->behind_since > STALLED_SECONDS;
        if ((!peer->greeted || stalled) && (worst < 0 || peer->number < hub->peers[worst]->number))
            worst = i;
    }
    if (worst < 0)
        return false;
    close_peer(hub, worst);
    return true;
}

static void refuse(struct hub *hub, int fd, const char *why) {
    struct event event = event_new(EVENT_ALARM);
    event.alarm.level = "error";
    event.alarm.text = why;
    struct line *line = line_encode(&event);
    if (line && send(fd, line->text, line->length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        hub_say(hub, "a client could not be told");
    line_drop(line);
    hub_say(hub, "a client is refused: %s", why);
    close(fd);
}

static void accept_one(struct hub *hub, int fd, double now) {
    struct ucred credentials = {0};
    socklen_t size = sizeof credentials;
    char why[120];
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0 ||
        (credentials.uid != geteuid() && credentials.uid != 0)) {
        snprintf(why, sizeof why, "user %u does not own this run", (unsigned)credentials.uid);
        refuse(hub, fd, why);
        return;
    }
    if (!make_room(hub, fd, now)) {
        snprintf(why, sizeof why, "%d clients are attached already%s", hub->peer_count,
                 hub->peer_count < HUB_PEERS ? ", and this engine may open no more files (ulimit -n)" : "");
        refuse(hub, fd, why);
        return;
    }
    struct peer *peer = peer_new(fd, ++hub->connections, credentials.uid, now);
    if (!peer) {
        close(fd);
        return;
    }
    hub->peers[hub->peer_count++] = peer;
    hub_greet(hub, peer);
    peer_send(peer);
}

static void accept_all(struct hub *hub, double now) {
    for (int i = 0; i < HUB_PEERS; i++) {
        int fd = accept4(hub->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            hub->accept_said = false;
            accept_one(hub, fd, now);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
            hub->accept_again = now + 1; /* not at once: it would only fail again */
            if (!hub->accept_said)
                hub_say(hub, "no console can attach: %s; tried again each second", strerror(errno));
            hub->accept_said = true;
        }
        if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

static void hand_out(struct hub *hub, double now) {
    for (struct line *line; (line = line_list_take(&hub->ready)); line_drop(line))
        for (int i = 0; i < hub->peer_count; i++) {
            struct peer *peer = hub->peers[i];
            bool wanted =
                peer->greeted && (peer->events || line->kind == EVENT_COMMAND || line->kind == EVENT_RUN_END);
            if (wanted && !peer->behind)
                peer_queue(peer, line, now);
        }
}

/* For how long steps are gathered before they are sent: a crowd of consoles draws less often, and each
 * sending costs the hub and the console that takes it apart. */
static double gather_seconds(const struct hub *hub) {
    double crowd = fmax(1, (double)hub->peer_count / FEW_PEERS);
    return GATHER_SECONDS * fmin(crowd, MOST_GATHERED);
}

static void send_all(struct hub *hub, double now) {
    for (int i = 0; i < hub->peer_count; i++) {
        struct peer *peer = hub->peers[i];
        peer_send(peer);
        if (peer->behind && peer->count == 0 && !peer->gone) {
            hub_catch_up(hub, peer, now);
            peer_send(peer);
        }
    }
}

static void tick(struct hub *hub, double now) {
    hub->next_tick = now + TICK_SECONDS;
    retry_record(hub);
    hub_look_at_folder(hub);
    if (!names_stand(hub))
        listen_or_say(hub);
    hub_control_tick(hub, now);
    for (int i = 0; i < hub->peer_count; i++) {
        struct peer *peer = hub->peers[i];
        double silent = now - peer->connected;
        if (!peer->greeted && silent > GREETING_SECONDS)
            peer->gone = true, peer->complaint = "a client that does not say who it is";
        if (peer->foreign && silent > FOREIGN_SECONDS && strcmp(peer->program, "ctl") != 0)
            peer->gone = true;
    }
}

/* ---- the loop */

struct polled {
    struct pollfd fds[2 + HUB_PEERS];
    int first_peer, count;
};

/* What to wait for, and (returned) for how many milliseconds. */
static int prepare(struct hub *hub, struct polled *polled, double now) {
    double until = hub->next_tick;
    if (hub->ready.first && hub->next_send < until)
        until = hub->next_send;
    if (hub->coming && hub->next_take < until)
        until = hub->next_take;
    polled->fds[0] = (struct pollfd){.fd = hub->wake, .events = POLLIN};
    polled->fds[1] = (struct pollfd){.fd = now >= hub->accept_again ? hub->listener : -1, .events = POLLIN};
    polled->first_peer = polled->count = 2;
    for (int i = 0; i < hub->peer_count; i++) {
        struct peer *peer = hub->peers[i];
        double wait;
        short events = 0;
        if (peer_may_speak(peer, now, &wait))
            events |= POLLIN;
        else if (now + wait < until)
            until = now + wait;
        if (peer->count > 0)
            events |= POLLOUT;
        polled->fds[polled->count++] = (struct pollfd){.fd = peer->fd, .events = events};
    }
    double wait = until - now;
    return wait > 0 ? (int)(wait * 1000) + 1 : 0;
}

/* Read from those that spoke, or whose words waited for their turn. Peers keep their places meanwhile. */
static void hear_all(struct hub *hub, const struct polled *polled, double now) {
    for (int i = 0; i < polled->count - polled->first_peer; i++) {
        struct peer *peer = hub->peers[i];
        short events = polled->fds[polled->first_peer + i].revents;
        double wait;
        bool waiting = peer->in_length > 0 && memchr(peer->in, '\n', peer->in_length);
        if (((events & (POLLIN | POLLHUP | POLLERR)) || waiting) && peer_may_speak(peer, now, &wait))
            peer_read(peer, now, hub_take_line, hub);
        else if (events & (POLLHUP | POLLERR))
            peer->gone = true;
    }
}

static void drop_gone(struct hub *hub) {
    for (int i = hub->peer_count - 1; i >= 0; i--)
        if (hub->peers[i]->gone)
            close_peer(hub, i);
}

static bool is_closing(struct hub *hub) {
    pthread_mutex_lock(&hub->lock);
    bool closing = hub->closing && !hub->queue.first;
    if (hub->looks < hub->looks_wanted)
        hub->next_tick = 0; /* somebody waits for a look */
    pthread_mutex_unlock(&hub->lock);
    return closing;
}

/* The last words: clients have a moment to take them. */
static void say_goodbye(struct hub *hub) {
    double end = clock_seconds() + GOODBYE_SECONDS;
    for (;;) {
        struct pollfd fds[HUB_PEERS];
        nfds_t count = 0;
        double now = clock_seconds();
        hand_out(hub, now);
        send_all(hub, now);
        drop_gone(hub);
        for (int i = 0; i < hub->peer_count; i++)
            if (hub->peers[i]->count > 0)
                fds[count++] = (struct pollfd){.fd = hub->peers[i]->fd, .events = POLLOUT};
        if (count == 0 || now >= end)
            return;
        poll(fds, count, (int)((end - now) * 1000) + 1);
    }
}

static void *run(void *context) {
    struct hub *hub = context;
    pthread_setname_np(pthread_self(), "hub");
    while (!is_closing(hub)) {
        struct polled polled;
        double now = clock_seconds();
        int wait = prepare(hub, &polled, now);
        if (poll(polled.fds, (nfds_t)polled.count, wait) < 0 && errno != EINTR)
            hub_say(hub, "poll: %s", strerror(errno));
        now = clock_seconds();
        hear_all(hub, &polled, now);
        bool urgent = take_queue(hub, now);
        if (hub->ready.first && (urgent || now >= hub->next_send)) {
            hand_out(hub, now);
            hub->next_send = now + gather_seconds(hub);
        }
        if (polled.fds[1].revents & POLLIN)
            accept_all(hub, now);
        if (now >= hub->next_tick)
            tick(hub, now);
        send_all(hub, now);
        drop_gone(hub);
    }
    pthread_mutex_lock(&hub->lock);
    hub->ended = true;
    pthread_cond_broadcast(&hub->written);
    pthread_mutex_unlock(&hub->lock);
    say_goodbye(hub);
    return NULL;
}

/* ---- opening and closing */

static void free_hub(struct hub *hub) {
    for (int i = 0; i < hub->peer_count; i++)
        peer_free(hub->peers[i]);
    for (struct line *line; (line = line_list_take(&hub->queue));)
        line_drop(line);
    for (struct line *line; (line = line_list_take(&hub->ready));)
        line_drop(line);
    record_writer_close(hub->record);
    arena_free(&hub->arena);
    const int fds[] = {hub->wake, hub->command_fd, hub->listener, hub->live_fd, hub->news_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    pthread_cond_destroy(&hub->written);
    pthread_mutex_destroy(&hub->lock);
    pthread_mutex_destroy(&hub->command_lock);
    free(hub);
}

/* The thread takes no signals: they are the training thread's. */
static int start_thread(struct hub *hub) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&hub->thread, NULL, run, hub);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

enum status hub_open(const struct hub_options *options, struct hub **out) {
    struct hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return status_fail(STATUS_NO_MEMORY, "no memory for the hub");
    hub->options = *options;
    hub->most_fds = most_descriptors();
    if (hub->options.control_seconds == 0)
        hub->options.control_seconds = HUB_CONTROL_SECONDS;
    hub->listener = hub->live_fd = hub->news_fd = -1;
    memcpy(hub->folder, options->run.folder, sizeof hub->folder);
    hub->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    hub->command_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&hub->lock, NULL);
    pthread_mutex_init(&hub->command_lock, NULL);
    pthread_cond_init(&hub->written, NULL);
    line_list_open(&hub->queue);
    line_list_open(&hub->ready);
    hub->summary = (struct hub_summary){.state = "starting",
                                        .planned = WIRE_UNKNOWN_INT,
                                        .towers = WIRE_UNKNOWN_INT,
                                        .loss = wire_unknown(),
                                        .good_step = WIRE_UNKNOWN_INT,
                                        .good_loss = wire_unknown(),
                                        .lr = wire_unknown(),
                                        .images_per_second = wire_unknown()};
    enum status status = STATUS_OK;
    if (hub->wake < 0 || hub->command_fd < 0)
        status = status_fail(STATUS_IO, "no descriptor for the hub: %s", strerror(errno));
    if (status == STATUS_OK)
        status = record_writer_open(options->run.folder, &hub->record);
    if (status == STATUS_OK) {
        hub->last_seq = record_last_seq(hub->record);
        if (options->must_listen)
            status = hub_listen(hub);
        else
            listen_or_say(hub);
    }
    if (status == STATUS_OK) {
        int error = start_thread(hub);
        if (error)
            status = status_fail(STATUS_IO, "no thread for the hub: %s", strerror(error));
    }
    if (status != STATUS_OK) {
        if (hub->live_fd >= 0)
            live_leave(hub->live_fd, &options->run);
        free_hub(hub);
        return status;
    }
    *out = hub;
    return STATUS_OK;
}

double hub_processor_seconds(const struct hub *hub) {
    clockid_t clock;
    struct timespec t;
    if (pthread_getcpuclockid(hub->thread, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return (double)NAN;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void hub_close(struct hub *hub) {
    static const uint64_t one = 1;
    if (!hub)
        return;
    pthread_mutex_lock(&hub->lock);
    hub->closing = true;
    pthread_cond_broadcast(&hub->written);
    pthread_mutex_unlock(&hub->lock);
    if (write(hub->wake, &one, sizeof one) < 0)
        hub_say(hub, "the hub can't be woken: %s", strerror(errno));
    pthread_join(hub->thread, NULL);
    if (hub->live_fd >= 0)
        live_leave(hub->live_fd, &hub->options.run);
    free_hub(hub);
}
