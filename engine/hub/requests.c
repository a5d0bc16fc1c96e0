/* What clients say, and what they are told. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/printable.h"
#include "engine/hub/internal.h"

/* ---- what a client missed */

/* Without this line the client would miss something and not know of it: it has to come again. */
static void let_go(struct peer *peer) {
    peer->gone = true;
    peer->complaint = "the engine has no memory for this client now; it may come again";
}

/* The lines that the disk did not take are in no file: a client gets them from memory. */
static void queue_waiting(struct hub *hub, struct peer *peer, double now) {
    size_t length;
    int64_t seq;
    const char *text;
    for (int64_t i = 0; (text = record_waiting(hub->record, i, &length, &seq)) && !peer->behind; i++) {
        struct line *line = line_new(EVENT_NONE, seq, text, length);
        if (!line) {
            let_go(peer);
            return;
        }
        peer_queue(peer, line, now);
        line_drop(line);
    }
}

static void queue_event(struct peer *peer, const struct event *event, double now) {
    struct line *line = line_encode(event);
    if (!line) {
        let_go(peer);
        return;
    }
    peer_queue(peer, line, now);
    line_drop(line);
}

static void queue_gap(struct hub *hub, struct peer *peer, double now) {
    struct event event = event_new(EVENT_GAP);
    event.gap.last_seq = record_last_seq(hub->record);
    event.gap.offset = record_offset(hub->record);
    queue_event(peer, &event, now);
    queue_waiting(hub, peer, now);
}

void hub_greet(struct hub *hub, struct peer *peer) {
    struct event event = event_new(EVENT_HELLO);
    event.hello.protocol = WIRE_PROTOCOL;
    event.hello.version = TOWERSCOPE_VERSION;
    event.hello.run = hub->options.run.name;
    event.hello.last_seq = record_last_seq(hub->record);
    event.hello.offset = record_offset(hub->record);
    peer->hello_seq = event.hello.last_seq;
    queue_event(peer, &event, clock_seconds());
}

void hub_catch_up(struct hub *hub, struct peer *peer, double now) {
    peer->behind = false;
    queue_gap(hub, peer, now);
}

/* ---- who a client is */

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void take_greeting(struct hub *hub, struct peer *peer, const json_t *object, double now) {
    if (peer->greeted)
        return;
    peer->greeted = true;
    text_printable(peer->program, sizeof peer->program, text_of(object, "client"));
    text_printable(peer->terminal, sizeof peer->terminal, text_of(object, "terminal"));
    peer->watch = json_is_true(json_object_get(object, "watch"));
    peer->events = json_is_true(json_object_get(object, "events"));
    const json_t *protocol = json_object_get(object, "protocol");
    peer->foreign = !json_is_integer(protocol) || json_integer_value(protocol) != WIRE_PROTOCOL;
    if (peer->foreign) {
        char version[40];
        text_printable(version, sizeof version, text_of(object, "version"));
        hub_say(
            hub,
            "a client of towerscope %s speaks protocol %lld, this engine (%s) %d: it may only save and stop",
            version, (long long)json_integer_value(protocol), TOWERSCOPE_VERSION, WIRE_PROTOCOL);
        peer->events = false;
    }
    if (!peer->events)
        return;
    if (record_last_seq(hub->record) != peer->hello_seq)
        queue_gap(hub, peer, now); /* what was said since its hello */
    else
        queue_waiting(hub, peer, now);
    hub_control_came(hub, peer);
}

/* ---- commands */

static void answer(struct hub *hub, struct peer *peer, const struct command *command, const char *status,
                   const char *reason) {
    struct event event = event_new(EVENT_COMMAND);
    event.time = clock_wall();
    event.command.id = command->id;
    event.command.from = command->from;
    event.command.screen = *command->screen ? command->screen : NULL;
    event.command.text = command->text;
    event.command.status = status;
    event.command.reason = reason;
    event.command.step = command->at; /* while it waits */
    pthread_mutex_lock(&hub->lock);
    if (reason)
        event.command.step = hub->summary.step;
    pthread_mutex_unlock(&hub->lock);
    hub_tell(hub, peer, &event);
}

static void status_words(const struct hub *hub, const struct hub_summary *s, char *out, size_t size) {
    char loss[32];
    int n = snprintf(out, size, "%s: %s, step %" PRId64, hub->options.run.name, s->state, s->step);
    if (s->planned != WIRE_UNKNOWN_INT && n > 0 && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, " of %" PRId64, s->planned);
    if (s->towers != WIRE_UNKNOWN_INT && n > 0 && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, ", %" PRId64 " tower%s", s->towers,
                      s->towers == 1 ? "" : "s");
    if (!wire_is_unknown(s->loss) && n > 0 && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, ", loss %s", text_loss(s->loss, loss));
    if (!wire_is_unknown(s->images_per_second) && n > 0 && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, ", lr %g, %.0f images/s", s->lr, s->images_per_second);
    if (s->applied[0] && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ", under the wrong rule %s", s->applied);
}

static json_t *real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static void status_json(const struct hub *hub, const struct hub_summary *s, char *out, size_t size) {
    json_t *object = json_pack("{s:s, s:s, s:I}", "run", hub->options.run.name, "state", s->state, "step",
                               (json_int_t)s->step);
    size_t length = 0;
    if (object) {
        if (s->planned != WIRE_UNKNOWN_INT)
            json_object_set_new(object, "steps", json_integer(s->planned));
        if (s->towers != WIRE_UNKNOWN_INT)
            json_object_set_new(object, "towers", json_integer(s->towers));
        if (!wire_is_unknown(s->loss))
            json_object_set_new(object, "loss", real(s->loss));
        if (!wire_is_unknown(s->images_per_second)) {
            json_object_set_new(object, "lr", real(s->lr));
            json_object_set_new(object, "images_per_second", real(s->images_per_second));
        }
        if (s->applied[0])
            json_object_set_new(object, "applied", json_string(s->applied));
        json_object_set_new(object, "process", json_integer(getpid()));
        length = json_dumpb(object, out, size - 1, JSON_COMPACT | JSON_REAL_PRECISION(9));
        json_decref(object);
    }
    out[length < size ? length : 0] = 0;
}

/* Answered here, so that it is answered whatever training does. */
static void answer_status(struct hub *hub, struct peer *peer, const struct command *command) {
    char text[600];
    pthread_mutex_lock(&hub->lock);
    struct hub_summary summary = hub->summary;
    pthread_mutex_unlock(&hub->lock);
    if (command->json)
        status_json(hub, &summary, text, sizeof text);
    else
        status_words(hub, &summary, text, sizeof text);
    answer(hub, peer, command, "applied", text);
}

/* Queue a command for the training thread; NULL, or why it is not taken. */
static const char *queue_command(struct hub *hub, const struct command *command) {
    static const uint64_t one = 1;
    const char *reason = NULL;
    pthread_mutex_lock(&hub->command_lock);
    if (hub->commands_ended)
        reason = "the run is ending";
    else if (hub->command_count == HUB_COMMANDS)
        reason = "too many commands wait already";
    else
        hub->commands[hub->command_count++] = *command;
    pthread_mutex_unlock(&hub->command_lock);
    if (!reason && write(hub->command_fd, &one, sizeof one) < 0)
        return NULL; /* it can only be full, and then it is readable */
    return reason;
}

static void take_command(struct hub *hub, struct peer *peer, const json_t *object, const char *line,
                         size_t length) {
    struct command command = {.at = WIRE_UNKNOWN_INT};
    const char *reason = NULL;
    bool understood = command_decode(line, length, &command) == STATUS_OK;
    char refusal[400];
    if (!understood) {
        snprintf(refusal, sizeof refusal, "%s", status_text());
        text_printable(command.id, sizeof command.id, text_of(object, "id"));
        text_printable(command.text, sizeof command.text, text_of(object, "command"));
    }
    if (!strcmp(peer->program, "ctl"))
        snprintf(command.from, sizeof command.from, "ctl");
    else
        snprintf(command.from, sizeof command.from, "%.30s@%.30s", peer->user, peer->terminal);
    if (!understood)
        answer(hub, peer, &command, "refused", refusal);
    else if (command.kind == COMMAND_STATUS)
        answer_status(hub, peer, &command);
    else if (!hub_may_command(hub, peer, &reason))
        answer(hub, peer, &command, "refused", reason);
    else if (peer->foreign && !command_of_any_version(command.kind))
        answer(hub, peer, &command, "refused",
               "from another version only save, stop, pause, resume and status are taken");
    else if ((reason = queue_command(hub, &command)))
        answer(hub, peer, &command, "refused", reason);
    else
        answer(hub, NULL, &command, "pending", NULL);
}

void hub_take_line(void *context, struct peer *peer, const char *line, size_t length) {
    struct hub *hub = context;
    double now = clock_seconds();
    json_t *object = json_loadb(line, length, 0, NULL);
    const char *word = json_string_value(json_object_get(object, "control"));
    if (json_is_string(json_object_get(object, "client")))
        take_greeting(hub, peer, object, now);
    else if (json_is_string(json_object_get(object, "command")) && peer->greeted)
        take_command(hub, peer, object, line, length);
    else if (word && peer->greeted)
        hub_control_word(hub, peer, word, now);
    else if (++peer->bad_lines >= PEER_BAD_LINES) {
        peer->complaint = "ten lines that are no line of a client";
        peer->gone = true;
    }
    json_decref(object);
}
