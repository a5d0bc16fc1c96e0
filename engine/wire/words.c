/* Events in words. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/printable.h"
#include "engine/base/text.h"
#include "engine/wire/state.h"

struct sentence {
    char text[1024];
    size_t length;
};

static void say(struct sentence *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct sentence *s, const char *format, ...) {
    if (s->length + 1 >= sizeof s->text)
        return;
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(s->text + s->length, sizeof s->text - s->length, format, arguments);
    va_end(arguments);
    if (n > 0)
        s->length = s->length + (size_t)n < sizeof s->text ? s->length + (size_t)n : sizeof s->text - 1;
}

/* ", WORD VALUE" when the value is known. */
static void say_number(struct sentence *s, const char *before, double value, const char *format, double scale,
                       const char *after) {
    if (wire_is_unknown(value))
        return;
    char number[40] = "not finite";
    if (isfinite(value)) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* formats of this file */
        snprintf(number, sizeof number, format, value * scale);
#pragma GCC diagnostic pop
    }
    say(s, "%s%s%s", before, number, after);
}

/* The same for a loss. */
static void say_loss(struct sentence *s, const char *before, double value) {
    char number[32];
    if (!wire_is_unknown(value))
        say(s, "%s%s", before, text_loss(value, number));
}

static void say_integer(struct sentence *s, const char *before, int64_t value, const char *after) {
    char count[28];
    if (value != WIRE_UNKNOWN_INT)
        say(s, "%s%s%s", before, text_count(value, count), after);
}

static void say_bytes(struct sentence *s, const char *before, int64_t bytes) {
    char words[32];
    if (bytes != WIRE_UNKNOWN_INT)
        say(s, "%s%s", before, memory_words(bytes > 0 ? (size_t)bytes : 0, words));
}

static void say_text(struct sentence *s, const char *before, const char *text, const char *after) {
    if (text && *text)
        say(s, "%s%s%s", before, text, after);
}

/* The same for what the engine tells in words. */
static void say_reason(struct sentence *s, const char *before, const char *reason) {
    char words[640];
    text_counts(words, sizeof words, reason ? reason : "");
    say_text(s, before, words, "");
}

static void run_start_words(struct sentence *s, const struct event_run_start *e) {
    bool resumed = e->resumed_from != WIRE_UNKNOWN_INT;
    say(s, "run %s %s", e->run ? e->run : "", resumed ? "resumed" : "started");
    if (resumed)
        say_integer(s, " from step ", e->resumed_from, "");
    say_text(s, ": ", e->model, "");
    say_text(s, " on ", e->data_name, "");
    say_integer(s, ", ", e->towers, e->towers == 1 ? " tower" : " towers");
    say_integer(s, ", batch ", e->batch, "");
    say_number(s, ", lr ", e->lr, "%g", 1, "");
    if (e->seed != WIRE_UNKNOWN_INT)
        say(s, ", seed %" PRId64, e->seed);
}

static void step_words(struct sentence *s, const struct event_step *e) {
    say_integer(s, "step ", e->step, "");
    say_loss(s, ": loss ", e->loss);
    say_loss(s, " = cross-entropy ", e->cross_entropy);
    say_loss(s, " + weight decay ", e->weight_decay);
    say_number(s, ", gradient ", e->grad_norm, "%.4g", 1, "");
    say_number(s, ", ", e->images_per_second, "%.0f", 1, " images/s");
    say_text(s, ", under the wrong rule ", e->applied, "");
}

static enum event_level eval_words(struct sentence *s, const struct event_eval *e) {
    say_number(s, "precision ", e->precision, "%.2f", 100, " %");
    if (e->correct != WIRE_UNKNOWN_INT && e->images != WIRE_UNKNOWN_INT) {
        say_integer(s, " (", e->correct, "");
        say_integer(s, " of ", e->images, " test images)");
    }
    say_loss(s, ", cross-entropy ", e->loss);
    say_text(s, ", ", e->averaged ? "averaged parameters" : "parameters as they are", "");
    return isfinite(e->loss) || wire_is_unknown(e->loss) ? LEVEL_INFO : LEVEL_WARNING;
}

static enum event_level command_words(struct sentence *s, const struct event_command *e) {
    say(s, "%s", e->text ? e->text : "a command");
    say_text(s, " (", e->from, ")");
    if (text_is(e->status, "applied")) {
        say(s, " applied");
        say_integer(s, " at step ", e->step, "");
        say_reason(s, ": ", e->reason);
        return LEVEL_INFO;
    }
    if (text_is(e->status, "refused")) {
        say(s, " refused");
        say_reason(s, ": ", e->reason);
        return LEVEL_WARNING;
    }
    say_text(s, " ", e->status, "");
    if (!e->reason)
        say_integer(s, ": waits for step ", e->step, "");
    say_text(s, ": ", e->reason, "");
    return LEVEL_INFO;
}

static enum event_level alarm_words(struct sentence *s, const struct event_alarm *e) {
    say_reason(s, "", e->text);
    /* most alarms name both in their text */
    char tower[32];
    snprintf(tower, sizeof tower, "tower %" PRId64, e->tower);
    if (e->tensor && !(e->text && strstr(e->text, e->tensor)))
        say_text(s, " [", e->tensor, "]");
    if (e->tower != WIRE_UNKNOWN_INT && !(e->text && strstr(e->text, tower)))
        say(s, " [%s]", tower);
    return text_is(e->level, "error")     ? LEVEL_ERROR
           : text_is(e->level, "warning") ? LEVEL_WARNING
                                          : LEVEL_INFO;
}

static void control_words(struct sentence *s, const struct event_control *e) {
    if (e->holder_user)
        say(s, "%s", e->holder_user);
    say_text(s, " at ", e->holder_terminal, "");
    say(s, "%s", e->holder_user ? " holds control" : "nobody holds control");
    if (e->watchers > 0)
        say_integer(s, ", watching: ", e->watchers, "");
    if (e->asking_user)
        say(s, "; %s asks for it", e->asking_user);
}

static void device_words(struct sentence *s, const struct event_device *e) {
    say(s, "%s", e->device ? e->device : "device");
    say_number(s, ", use ", e->utilization, "%.0f", 100, " %");
    say_bytes(s, ", memory ", e->memory_used);
    say_number(s, ", ", e->temperature, "%.0f", 1, " C");
    say_number(s, ", ", e->power, "%.0f", 1, " W");
}

static enum event_level run_end_words(struct sentence *s, const struct event_run_end *e) {
    say(s, "run ");
    say_text(s, "", e->reason ? e->reason : "ended", "");
    say_integer(s, " at step ", e->step, "");
    say_reason(s, ": ", e->text);
    return text_is(e->reason, "failed") ? LEVEL_ERROR : LEVEL_INFO;
}

static void why_words(struct sentence *s, const struct event_why *e) {
    say_integer(s, "step ", e->step, " looked into");
    say_number(s, "; on one tower the gradient differs by ", e->proof_gradient_difference, "%.1e", 1,
               " of its norm");
}

static void towers_words(struct sentence *s, const struct event_towers *e) {
    say_integer(s, "towers ", e->from, "");
    say_integer(s, " -> ", e->to, "");
    say_reason(s, ": ", e->reason);
}

/* The folder is the run's own. */
static void checkpoint_words(struct sentence *s, const struct event_checkpoint *e) {
    const char *slash = e->path ? strrchr(e->path, '/') : NULL;
    say_text(s, "saved ", slash ? slash + 1 : e->path, "");
    say_bytes(s, ", ", e->bytes);
    say_number(s, " in ", e->seconds, "%.2f", 1, " s");
}

/* Of what a step computes: its numbers and what is looked at beside them. */
static enum event_level computed_words(struct sentence *s, const struct event *event) {
    switch (event->kind) {
    case EVENT_STEP:
        step_words(s, &event->step);
        break;
    case EVENT_LOSSES:
        say_integer(s, "losses of step ", event->losses.step, "");
        break;
    case EVENT_LAYERS:
        say_integer(s, "layers at step ", event->layers.step, "");
        break;
    case EVENT_PHASE:
        say_text(s, "phase ", event->phase.phase, "");
        say_integer(s, " of step ", event->phase.step, "");
        break;
    case EVENT_WHY:
        why_words(s, &event->why);
        break;
    case EVENT_IMAGES:
        say_integer(s, "images of tower ", event->images.tower, "");
        say_integer(s, " at step ", event->images.step, "");
        break;
    case EVENT_EVAL:
        return eval_words(s, &event->eval);
    default:
        say(s, "an event that this version does not know");
    }
    return LEVEL_INFO;
}

static enum event_level words(struct sentence *s, const struct event *event) {
    switch (event->kind) {
    case EVENT_RUN_START:
        run_start_words(s, &event->run_start);
        break;
    case EVENT_COMMAND:
        return command_words(s, &event->command);
    case EVENT_TOWERS:
        towers_words(s, &event->towers);
        break;
    case EVENT_CHECKPOINT:
        checkpoint_words(s, &event->checkpoint);
        break;
    case EVENT_REWIND:
        say_integer(s, "back to step ", event->rewind.to, "");
        say_reason(s, ": ", event->rewind.reason);
        return LEVEL_WARNING;
    case EVENT_NOTE:
        say_text(s, "note: ", event->note.text, "");
        break;
    case EVENT_ALARM:
        return alarm_words(s, &event->alarm);
    case EVENT_STATE:
        say_text(s, "", event->state.state, "");
        break;
    case EVENT_DEVICE:
        device_words(s, &event->device);
        break;
    case EVENT_CONTROL:
        control_words(s, &event->control);
        break;
    case EVENT_HELLO:
        say_text(s, "connected to ", event->hello.run, "");
        break;
    case EVENT_GAP:
        say(s, "fell behind; the record is read instead");
        break;
    case EVENT_RUN_END:
        return run_end_words(s, &event->run_end);
    default:
        return computed_words(s, event);
    }
    return LEVEL_INFO;
}

enum event_level event_words(const struct event *event, char *out, size_t size) {
    struct sentence sentence = {.length = 0};
    enum event_level level = words(&sentence, event);
    text_printable(out, size, sentence.text);
    return level;
}
