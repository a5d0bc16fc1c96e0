#include "tui/standing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Seconds after which it is said when it came, and after which on which day. */
static const double LONG_AGO = 60, ANOTHER_DAY = 43200;

/* Steps after which an alarm of a run that goes on no longer stands. */
enum { ALARM_STEPS = 1000 };

static void alarm_standing(const struct run_state *state, struct standing *out) {
    const struct event_alarm *alarm = &state->alarm.alarm;
    bool training = !strcmp(state->phase, "training") && state->step.kind == EVENT_STEP;
    if (state->alarm.kind != EVENT_ALARM || !alarm->text ||
        (training && alarm->step != WIRE_UNKNOWN_INT &&
         (double)state->step.step.step > (double)alarm->step + ALARM_STEPS))
        return;
    bool error = alarm->level && !strcmp(alarm->level, "error");
    char words[512];
    event_words(&state->alarm, words, sizeof words);
    snprintf(out->text, sizeof out->text, "%s%s", error ? "alarm: " : "warning: ", words);
    out->hint = "x takes this away";
    out->style = error ? STYLE_BANNER : STYLE_WARNING;
    out->time = state->alarm.time;
    double age = state->last_time - out->time; /* of the newest event: a console that attaches makes one */
    if (age > LONG_AGO)
        format_time(out->when, out->time, age > ANOTHER_DAY);
}

/* The most pressing of what stands; text "": nothing. */
struct standing standing_find(const struct run_state *state, const struct feed_status *about) {
    struct standing out = {.style = STYLE_PLAIN};
    const struct event_control *control = &state->control.control;
    if (state->crashed) {
        snprintf(out.text, sizeof out.text, "%s",
                 state->log_count > 0 ? state->log[state->log_count - 1].text : "the engine is gone");
        out.style = STYLE_BANNER;
        return out;
    }
    if (state->control.kind == EVENT_CONTROL && control->yours && control->asking_user) {
        snprintf(out.text, sizeof out.text, "%s%s%s asks for control: c gives it, x refuses",
                 control->asking_user, control->asking_terminal ? "@" : "",
                 control->asking_terminal ? control->asking_terminal : "");
        out.style = STYLE_STRONG;
        out.request = true;
        return out;
    }
    alarm_standing(state, &out);
    if (*out.text)
        return out;
    if (*about->trouble) {
        snprintf(out.text, sizeof out.text, "%s", about->trouble);
        out.style = STYLE_WARNING;
    } else if (state->missing > 0 && !about->replay) {
        snprintf(out.text, sizeof out.text, "%lld events are missing from the record",
                 (long long)state->missing);
        out.style = STYLE_WARNING;
    }
    return out;
}

bool standing_same(const struct standing *a, const struct standing *b) {
    return !strcmp(a->text, b->text) && !(fabs(a->time - b->time) > 0);
}
