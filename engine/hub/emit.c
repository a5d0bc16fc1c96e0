/* The side of the threads that emit. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/hub/internal.h"
#include "engine/wire/codec.h"
#include "engine/wire/state_rule.h"

static const double LIVE_STEP_SECONDS = 0.1;

void hub_say(struct hub *hub, const char *format, ...) {
    if (!hub->options.say)
        return;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    hub->options.say(hub->options.context, text);
}

static void copy_text(char *out, size_t size, const char *text) {
    snprintf(out, size, "%s", text ? text : "");
}

/* Where the run stands may be one that a rewind goes back to. */
static void keep_good(struct hub_summary *summary) {
    summary->good_step = summary->step;
    summary->good_loss = summary->loss;
}

static void summarise(struct hub_summary *summary, const struct event *event) {
    const char *rule;
    if (event_rule(event, &rule)) {
        if (*rule && !summary->applied[0])
            keep_good(summary);
        copy_text(summary->applied, sizeof summary->applied, rule);
    }
    switch (event->kind) {
    case EVENT_RUN_START:
        summary->planned = event->run_start.steps;
        summary->towers = event->run_start.towers;
        if (event->run_start.resumed_from != WIRE_UNKNOWN_INT)
            summary->step = event->run_start.resumed_from;
        break;
    case EVENT_STEP:
        summary->step = event->step.step;
        summary->loss = event->step.loss;
        summary->lr = event->step.lr;
        summary->images_per_second = event->step.images_per_second;
        summary->towers = event->step.tower_count;
        if (event->step.step % GOOD_EVERY == 0 && !event->step.applied)
            keep_good(summary);
        break;
    case EVENT_TOWERS:
        summary->towers = event->towers.to;
        break;
    case EVENT_COMMAND:
        if (!wire_is_unknown(event->command.lr))
            summary->lr = event->command.lr;
        break;
    case EVENT_REWIND:
        summary->step = event->rewind.to;
        summary->loss = summary->step == summary->good_step ? summary->good_loss : wire_unknown();
        break;
    case EVENT_STATE:
        copy_text(summary->state, sizeof summary->state, event->state.state);
        break;
    case EVENT_RUN_END:
        copy_text(summary->state, sizeof summary->state, "ended");
        break;
    default:
        break;
    }
}

/* Whether a person waits for it: it is sent without delay. What is told of each step goes together. */
static bool is_urgent(const struct event *event) {
    return event->kind != EVENT_STEP && event->kind != EVENT_LOSSES && event->kind != EVENT_WHY &&
           event->kind != EVENT_LAYERS && event->kind != EVENT_DEVICE;
}

/* Whether a live step is one too many; under the lock. */
static bool too_soon(struct hub *hub, const struct event *event, bool recorded, double now) {
    if (event->kind != EVENT_STEP)
        return false;
    if (!recorded && now - hub->last_step_sent < LIVE_STEP_SECONDS)
        return true;
    hub->last_step_sent = now;
    return false;
}

static void wake(struct hub *hub) {
    static const uint64_t one = 1;
    if (write(hub->wake, &one, sizeof one) < 0)
        return; /* it can only be full, and then it wakes */
}

/* Queue a line. The thread is woken only when it has to be: each time it takes a processor from a worker in
 * the middle of a step, and all others wait for that worker. Under the lock. */
static void push(struct hub *hub, struct line *line, bool urgent) {
    bool asleep = urgent ? !hub->urgent : !hub->queue.first && !hub->coming;
    line_list_add(&hub->queue, line);
    hub->urgent = hub->urgent || urgent;
    if (asleep)
        wake(hub);
}

/* Number, encode and queue; under the lock. */
static enum status queue_event(struct hub *hub, struct event *event, bool recorded) {
    event->seq = recorded ? hub->last_seq + 1 : 0;
    event->time = clock_wall();
    char *text;
    size_t length;
    arena_reset(&hub->arena);
    STATUS_TRY(event_encode(event, &hub->arena, &text, &length));
    struct line *line = line_new(event->kind, event->seq, text, length);
    if (!line)
        return status_fail(STATUS_NO_MEMORY, "no memory for a \"%s\" event", event_kind_name(event->kind));
    if (recorded)
        hub->last_seq++;
    push(hub, line, is_urgent(event));
    return STATUS_OK;
}

/* How an alarm that has come before is told; false: not this time. Under the lock. */
static bool tell_repeats(struct hub *hub, struct event *event, char *told, size_t size) {
    int64_t n = repeats_count(&hub->repeats, &event->alarm);
    if (n > 1) {
        snprintf(told, size, "%.500s (%lld times)", event->alarm.text ? event->alarm.text : "", (long long)n);
        event->alarm.text = told;
    }
    return repeats_told(n);
}

/* hub_emit(); `wait`: the queue may be waited for, which the thread that empties it must not. */
static void emit(struct hub *hub, const struct event *event, bool recorded, bool wait) {
    struct event numbered = *event;
    char told[600];
    enum status status = STATUS_OK;
    pthread_mutex_lock(&hub->lock);
    while (wait && recorded && hub->queue.bytes > HUB_QUEUE_BYTES && !hub->closing)
        pthread_cond_wait(&hub->written, &hub->lock);
    summarise(&hub->summary, event);
    bool left_out = event->kind == EVENT_ALARM && !tell_repeats(hub, &numbered, told, sizeof told);
    left_out = left_out || too_soon(hub, event, recorded, clock_seconds());
    left_out = left_out || (!recorded && hub->queue.bytes > HUB_LIVE_BYTES);
    if (!left_out)
        status = queue_event(hub, &numbered, recorded);
    pthread_mutex_unlock(&hub->lock);
    if (status != STATUS_OK && event->kind != EVENT_ALARM) {
        snprintf(told, sizeof told, "not part of the record: %.500s", status_text());
        hub_alarm(hub, "warning", told);
    }
}

void hub_emit(struct hub *hub, const struct event *event, bool recorded) {
    emit(hub, event, recorded, true);
}

void hub_alarm(struct hub *hub, const char *level, const char *text) {
    hub_say(hub, "%s: %s", level, text);
    struct event event = event_new(EVENT_ALARM);
    event.alarm.level = level;
    event.alarm.text = text;
    pthread_mutex_lock(&hub->lock);
    event.alarm.step = hub->summary.step;
    pthread_mutex_unlock(&hub->lock);
    emit(hub, &event, true, false);
}

bool hub_flush(struct hub *hub) {
    pthread_mutex_lock(&hub->lock);
    if (hub->queue.first)
        wake(hub);
    while ((hub->queue.first || hub->busy) && !hub->closing)
        pthread_cond_wait(&hub->written, &hub->lock);
    pthread_mutex_unlock(&hub->lock);
    return !hub->record_failing;
}

static bool is_due(const struct command *command, int64_t step) {
    return command->at == WIRE_UNKNOWN_INT || command->at <= step;
}

bool hub_stop_waits(struct hub *hub, int64_t step) {
    bool waits = false;
    pthread_mutex_lock(&hub->command_lock);
    for (int i = 0; i < hub->command_count; i++)
        waits = waits || (hub->commands[i].kind == COMMAND_STOP && is_due(&hub->commands[i], step));
    pthread_mutex_unlock(&hub->command_lock);
    return waits;
}

bool hub_take(struct hub *hub, int64_t step, struct command *out) {
    uint64_t told;
    while (read(hub->command_fd, &told, sizeof told) > 0)
        continue;
    bool found = false;
    pthread_mutex_lock(&hub->command_lock);
    for (int i = 0; i < hub->command_count && !found; i++) {
        if (!is_due(&hub->commands[i], step))
            continue;
        *out = hub->commands[i];
        hub->command_count--;
        memmove(&hub->commands[i], &hub->commands[i + 1],
                (size_t)(hub->command_count - i) * sizeof hub->commands[0]);
        found = true;
    }
    pthread_mutex_unlock(&hub->command_lock);
    return found;
}

void hub_end_commands(struct hub *hub) {
    pthread_mutex_lock(&hub->command_lock);
    hub->commands_ended = true;
    pthread_mutex_unlock(&hub->command_lock);
}

int hub_command_fd(const struct hub *hub) {
    return hub->command_fd;
}
