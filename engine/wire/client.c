#include "engine/wire/client.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/printable.h"
#include "engine/wire/codec.h"
#include "engine/wire/command.h"
#include "engine/wire/lock.h"
#include "engine/wire/record.h"

enum { UNSENT = 4 * WIRE_COMMAND_MAX };

static const double RETRY_SECONDS = 0.2, LOOK_AGAIN_SECONDS = 1, ANSWER_SECONDS = 2, FOLLOW_SECONDS = 5;

struct client {
    struct live_run run;
    int folder; /* descriptor of its folder, which may be moved; -1: none */
    double followed_at;
    struct client_options options;
    char terminal[64];
    enum client_state state;
    int fd;
    bool greeted;   /* the engine's hello is here */
    bool idle;      /* the last client_next() found nothing */
    bool run_end;   /* the newest recorded event was run_end */
    bool finishing; /* the engine is gone: the rest of the record is read */
    double retry_at, connected_at;
    struct record_reader *reader;
    int64_t until;  /* the record is to be read up to this byte; -1: to its end; 0: nothing to read */
    int64_t offset; /* the record up to here is known */
    bool in_step;   /* offset follows the socket's lines exactly */
    int64_t synced; /* the last offset that the engine told */
    int64_t last_seq;
    unsigned next_id;
    size_t in_start, in_end, out_length;
    char in[2 * WIRE_LINE_MAX], out[UNSENT];
    bool elsewhere; /* the engine listens where this user can't reach it */
    char trouble[2000];
};

static void set_trouble(struct client *client, const char *text) {
    snprintf(client->trouble, sizeof client->trouble, "%s", text);
}

static const char *find_terminal(char *out, size_t size) {
    char path[64];
    for (int fd = 0; fd <= 2; fd++)
        if (ttyname_r(fd, path, sizeof path) == 0) {
            snprintf(out, size, "%s", !strncmp(path, "/dev/", 5) ? path + 5 : path);
            return out;
        }
    return NULL;
}

/* The run is where its folder is now. One that was removed is made again where it was. */
static void follow(struct client *client) {
    char path[PATH_MAX];
    struct live_run now;
    client->followed_at = clock_seconds();
    if (client->folder < 0 || !lock_folder_where(client->folder, path, sizeof path)) {
        if (client->folder >= 0)
            close(client->folder);
        client->folder = open(client->run.folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    } else if (strcmp(path, client->run.folder) != 0 && live_describe(path, &now) == STATUS_OK) {
        now.started = client->run.started;
        client->run = now;
    }
}

const struct live_run *client_run(struct client *client) {
    if (clock_seconds() - client->followed_at > FOLLOW_SECONDS)
        follow(client);
    return &client->run;
}

enum status client_open(const struct live_run *run, const struct client_options *options,
                        struct client **out) {
    struct client *client = calloc(1, sizeof *client);
    if (!client)
        return status_fail(STATUS_NO_MEMORY, "no memory to connect to run %s", run->name);
    client->run = *run;
    client->options = *options;
    if (options->terminal)
        snprintf(client->terminal, sizeof client->terminal, "%s", options->terminal);
    else
        find_terminal(client->terminal, sizeof client->terminal);
    client->options.terminal = client->terminal;
    client->fd = client->folder = -1;
    client->state = CLIENT_CONNECTING;
    follow(client);
    *out = client;
    return STATUS_OK;
}

static void disconnect(struct client *client) {
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    client->greeted = false;
    client->in_start = client->in_end = client->out_length = 0;
}

void client_close(struct client *client) {
    if (!client)
        return;
    disconnect(client);
    if (client->folder >= 0)
        close(client->folder);
    record_reader_close(client->reader);
    free(client);
}

/* ---- sending */

static void flush(struct client *client) {
    while (client->fd >= 0 && client->out_length > 0) {
        ssize_t bytes = send(client->fd, client->out, client->out_length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes <= 0)
            return; /* full for now, or gone: reading will tell */
        client->out_length -= (size_t)bytes;
        memmove(client->out, client->out + bytes, client->out_length);
    }
}

static enum status queue_line(struct client *client, const char *line, size_t length) {
    if (client->out_length + length > sizeof client->out)
        return status_fail(STATUS_BUSY, "run %s: its engine does not take commands now", client->run.name);
    memcpy(client->out + client->out_length, line, length);
    client->out_length += length;
    flush(client);
    client->idle = false;
    return STATUS_OK;
}

static enum status queue(struct client *client, json_t *object) {
    char line[WIRE_COMMAND_MAX];
    size_t length = object ? json_dumpb(object, line, sizeof line - 1, JSON_COMPACT) : 0;
    json_decref(object);
    if (length == 0 || length > sizeof line - 1)
        return status_fail(STATUS_NO_MEMORY, "no memory to send a line");
    line[length] = '\n';
    return queue_line(client, line, length + 1);
}

static enum status greet(struct client *client) {
    char terminal[sizeof client->terminal];
    text_printable(terminal, sizeof terminal, client->terminal);
    return queue(client,
                 json_pack("{s:s, s:i, s:s, s:s, s:b, s:b}", "client", client->options.program, "protocol",
                           WIRE_PROTOCOL, "version", TOWERSCOPE_VERSION, "terminal", terminal, "watch",
                           client->options.watch, "events", !client->options.commands_only));
}

static enum status may_send(const struct client *client) {
    if (client->options.watch)
        return status_fail(STATUS_REFUSED, "this console only watches (--watch)");
    if (client->fd < 0 || !client->greeted)
        return status_fail(STATUS_REFUSED, "run %s: not connected to its engine", client->run.name);
    return STATUS_OK;
}

static enum status send_command(struct client *client, const char *text, int64_t at, const char *screen,
                                char *id) {
    struct command command;
    STATUS_TRY(command_parse(text, &command));
    STATUS_TRY(may_send(client));
    snprintf(command.id, sizeof command.id, "%ld-%u", (long)getpid(), ++client->next_id);
    snprintf(command.screen, sizeof command.screen, "%s", screen ? screen : "");
    command.at = at;
    char line[WIRE_COMMAND_MAX];
    size_t length;
    STATUS_TRY(command_encode(&command, line, sizeof line, &length));
    STATUS_TRY(queue_line(client, line, length));
    if (id)
        memcpy(id, command.id, sizeof command.id);
    return STATUS_OK;
}

enum status client_send(struct client *client, const char *text, int64_t at, char *id) {
    return send_command(client, text, at, NULL, id);
}

enum status client_send_for(struct client *client, const char *text, const char *screen, char *id) {
    return send_command(client, text, WIRE_UNKNOWN_INT, screen, id);
}

enum status client_control(struct client *client, const char *what) {
    STATUS_TRY(may_send(client));
    return queue(client, json_pack("{s:s}", "control", what));
}

/* ---- connecting */

/* Read the record from where it is known up to `until`. */
static void start_reading(struct client *client, int64_t until) {
    client->until = until;
    client->state = CLIENT_READING;
    if (client->reader)
        (void)record_seek(client->reader, client->in_step ? client->offset : client->synced);
}

static void finish(struct client *client) {
    disconnect(client);
    if (client->options.commands_only) {
        client->state = CLIENT_CRASHED; /* or ended: who only sends commands does not ask */
        client->retry_at = clock_seconds() + LOOK_AGAIN_SECONDS;
        return;
    }
    client->finishing = true;
    start_reading(client, -1);
}

/* The connection is gone; whether the engine is, the lock knows. */
static void lose(struct client *client) {
    disconnect(client);
    client->until = 0;
    if (client->state != CLIENT_CONNECTING)
        client->state = CLIENT_LOST;
    client->retry_at = clock_seconds() + RETRY_SECONDS;
    follow(client);
    if (!lock_held(client->run.folder))
        finish(client);
}

/* Nobody listens where this user's live runs are, though the run is live: what its lock says of that. */
static bool listens_elsewhere(struct client *client) {
    struct lock_about about;
    char mine[PATH_MAX], home[PATH_MAX];
    lock_about(client->run.folder, &about);
    const char *name = client->run.name;
    if (about.user >= 0 && about.user != (long)geteuid()) {
        snprintf(client->trouble, sizeof client->trouble,
                 "run %s: its engine, process %ld, is of the user %s (%ld), who alone may send it commands: "
                 "ask them, or do it as that user (sudo -u)",
                 name, about.pid, about.user_name, about.user);
        return true;
    }
    if (about.says_where && !*about.live) {
        snprintf(client->trouble, sizeof client->trouble,
                 "run %s: its engine, process %ld, can't listen, so it takes no commands; its log or its "
                 "terminal says why; kill -TERM %ld saves and ends it",
                 name, about.pid, about.pid);
        return true;
    }
    if (!about.says_where || live_folder_path(mine, sizeof mine) != STATUS_OK || !strcmp(mine, about.live))
        return false; /* it is starting */
    snprintf(home, sizeof home, "%s", about.live);
    size_t length = strlen(home), tail = strlen("/towerscope/live");
    if (length > tail)
        home[length - tail] = 0;
    snprintf(
        client->trouble, sizeof client->trouble,
        "run %s: its engine, process %ld of the user %s, listens in %.500s and this user's live runs are in "
        "%.500s: set XDG_STATE_HOME=%.500s",
        name, about.pid, about.user_name, about.live, mine, home);
    return true;
}

bool client_elsewhere(const struct client *client) {
    return client->elsewhere;
}

static void try_to_connect(struct client *client) {
    follow(client);
    if (client->state == CLIENT_ENDED || client->state == CLIENT_CRASHED) {
        client->retry_at = clock_seconds() + LOOK_AGAIN_SECONDS;
        if (!lock_held(client->run.folder))
            return;
        client->state = CLIENT_CONNECTING; /* the run was resumed */
    }
    client->retry_at = clock_seconds() + RETRY_SECONDS;
    if (!lock_held(client->run.folder)) {
        finish(client);
        return;
    }
    enum status status = live_connect(&client->run, &client->fd);
    if (status != STATUS_OK) {
        client->fd = -1;
        set_trouble(client, status_text());
        client->elsewhere = status == STATUS_NOT_FOUND && listens_elsewhere(client);
        return;
    }
    client->connected_at = clock_seconds();
    if (greet(client) != STATUS_OK)
        lose(client);
}

/* ---- the record */

static enum status open_reader(struct client *client) {
    if (client->reader)
        return STATUS_OK;
    follow(client);
    return record_reader_open(client->run.folder, client->offset, &client->reader);
}

static void reading_is_done(struct client *client) {
    if (client->reader)
        client->offset = record_reader_offset(client->reader);
    client->until = 0;
    client->in_step = true;
    if (!client->finishing) {
        client->state = CLIENT_LIVE;
        return;
    }
    client->finishing = false;
    struct lock_about about;
    lock_about(client->run.folder, &about);
    client->state = client->run_end || about.ended >= 0 ? CLIENT_ENDED : CLIENT_CRASHED;
    client->retry_at = clock_seconds() + LOOK_AGAIN_SECONDS;
}

/* Note an event that is handed on; false: it was handed on before. */
static bool is_new(struct client *client, const struct event *event) {
    if (event->seq == 0)
        return true;
    if (event->seq <= client->last_seq)
        return false;
    client->in_step = client->in_step && event->seq == client->last_seq + 1;
    client->last_seq = event->seq;
    client->run_end = event->kind == EVENT_RUN_END;
    if (event->kind == EVENT_ALARM) /* so the engine says that it found the folder moved */
        follow(client);
    return true;
}

/* STATUS_BUSY: there is nothing more to read in the record. */
static enum status next_of_record(struct client *client, struct arena *arena, struct event *out) {
    enum status status = open_reader(client);
    while (status == STATUS_OK) {
        status = record_next(client->reader, client->until, arena, out);
        if (status == STATUS_OK && is_new(client, out))
            return STATUS_OK;
    }
    if (status == STATUS_NO_MEMORY)
        return status;
    if (status != STATUS_BUSY)
        set_trouble(client, status_text()); /* the record can't be read: what comes live is still shown */
    reading_is_done(client);
    return STATUS_BUSY;
}

static void read_until(struct client *client, int64_t offset) {
    client->state = CLIENT_LIVE;
    if (client->options.commands_only)
        return;
    bool known = offset <= (client->in_step ? client->offset : client->synced);
    if (!known)
        start_reading(client, offset);
    client->synced = offset;
}

/* ---- the socket */

static void take_hello(struct client *client, const struct event_hello *hello) {
    if (hello->protocol != WIRE_PROTOCOL) {
        char version[40];
        text_printable(version, sizeof version, hello->version ? hello->version : "?");
        snprintf(client->trouble, sizeof client->trouble,
                 "run %s: its engine is towerscope %s with protocol %lld, this is %s with protocol %d; use "
                 "the program "
                 "that started it. `towerscope ctl %s save` and `stop` work from any version",
                 client->run.name, version, (long long)hello->protocol, TOWERSCOPE_VERSION, WIRE_PROTOCOL,
                 client->run.name);
        client->state = CLIENT_MISMATCH;
        if (!client->options.commands_only)
            disconnect(client);
        client->greeted = client->fd >= 0;
        return;
    }
    client->greeted = true;
    client->trouble[0] = 0;
    read_until(client, hello->offset > 0 ? hello->offset : 0);
}

/* A line of the socket: STATUS_OK: *out is to be handed on; STATUS_BUSY: it is not. */
static enum status take_line(struct client *client, const char *line, size_t length, struct arena *arena,
                             struct event *out) {
    enum status status = event_decode(line, length, arena, out);
    if (status == STATUS_NO_MEMORY)
        return status;
    if (status != STATUS_OK ||
        (!client->greeted && client->state != CLIENT_MISMATCH && out->kind != EVENT_HELLO))
        return STATUS_BUSY;
    if (out->kind == EVENT_HELLO)
        take_hello(client, &out->hello);
    else if (out->kind == EVENT_GAP)
        read_until(client, out->gap.offset > 0 ? out->gap.offset : 0);
    else if (!is_new(client, out))
        return STATUS_BUSY;
    if (out->seq > 0)
        client->offset += (int64_t)length; /* the file has the same bytes */
    return STATUS_OK;
}

/* STATUS_OK: there is a line; STATUS_BUSY: none yet; others: the connection is gone. */
static enum status next_line(struct client *client, const char **line, size_t *length) {
    for (;;) {
        char *begin = client->in + client->in_start;
        size_t have = client->in_end - client->in_start;
        const char *newline = memchr(begin, '\n', have);
        if (newline) {
            *line = begin;
            *length = (size_t)(newline - begin) + 1;
            client->in_start += *length;
            return STATUS_OK;
        }
        if (have >= WIRE_LINE_MAX)
            return STATUS_IO; /* this is no engine */
        memmove(client->in, begin, have);
        client->in_start = 0;
        client->in_end = have;
        ssize_t bytes = recv(client->fd, client->in + have, sizeof client->in - have, MSG_DONTWAIT);
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return STATUS_BUSY;
        if (bytes <= 0)
            return STATUS_IO;
        client->in_end += (size_t)bytes;
    }
}

static enum status next_of_socket(struct client *client, struct arena *arena, struct event *out) {
    const char *line;
    size_t length;
    flush(client);
    while (client->fd >= 0) {
        enum status status = next_line(client, &line, &length);
        if (status == STATUS_BUSY)
            break;
        if (status != STATUS_OK) {
            lose(client);
            break;
        }
        status = take_line(client, line, length, arena, out);
        if (status != STATUS_BUSY)
            return status;
    }
    if (client->fd >= 0 && !client->greeted && clock_seconds() - client->connected_at > ANSWER_SECONDS)
        set_trouble(client, "the engine does not answer: is its process stopped?");
    return STATUS_BUSY;
}

enum status client_next(struct client *client, struct arena *arena, struct event *out) {
    for (;;) {
        enum status status = STATUS_BUSY;
        bool more = false; /* a change that is to be looked at before anything is waited for */
        if (client->until != 0) {
            status = next_of_record(client, arena, out);
            more = true;
        } else if (client->fd >= 0) {
            status = next_of_socket(client, arena, out);
            more = client->until != 0;
        } else if (client->state != CLIENT_MISMATCH && clock_seconds() >= client->retry_at) {
            try_to_connect(client);
            more = client->fd >= 0 || client->until != 0;
        }
        client->idle = status == STATUS_BUSY && !more;
        if (status != STATUS_BUSY || !more)
            return status;
    }
}

/* ---- asking */

enum client_state client_state(const struct client *client) {
    return client->state;
}

const char *client_trouble(const struct client *client) {
    return client->trouble;
}

int client_fd(const struct client *client) {
    return client->fd;
}

bool client_wants_write(const struct client *client) {
    return client->fd >= 0 && client->out_length > 0;
}

int client_wait(const struct client *client) {
    if (!client->idle)
        return 0;
    if (client->fd >= 0)
        return client->greeted ? -1 : 500;
    if (client->state == CLIENT_MISMATCH)
        return -1;
    double left = client->retry_at - clock_seconds();
    return left > 0 ? (int)(left * 1000) + 1 : 0;
}

void client_progress(const struct client *client, int64_t *taken, int64_t *all) {
    *taken = *all = 0;
    if (!client->reader)
        return;
    if (client->until == 0) {
        *taken = *all = client->offset;
        return;
    }
    *all = client->until > 0 ? client->until : record_reader_size(client->reader);
    *taken = record_reader_offset(client->reader);
}
