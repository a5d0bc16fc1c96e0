#include "cli/lines.h"

#include <string.h>
#include <time.h>

#include "engine/base/clock.h"
#include "engine/wire/state.h"

static const double redraw_seconds = 0.2;

static const char *now(char out[32]) {
    time_t seconds = (time_t)clock_wall();
    struct tm local;
    if (!localtime_r(&seconds, &local) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S", &local))
        out[0] = 0;
    return out;
}

void lines_break(struct lines *lines) {
    if (lines->width)
        fputc('\n', lines->out);
    lines->width = 0;
}

/* Write over what stands there; blanks cover a longer line. No escape sequences are needed. */
static void draw(struct lines *lines, const char *text) {
    int length = (int)strlen(text);
    fprintf(lines->out, "\r%s%*s", text, lines->width > length ? lines->width - length : 0, "");
    if (lines->width > length)
        fprintf(lines->out, "\r%s", text);
    lines->width = length;
    fflush(lines->out);
}

static void step_line(struct lines *lines, const struct event_step *s) {
    lines->images += s->images;
    lines->steps++;
    lines->seconds += s->seconds;
    bool last = s->step == lines->planned;
    double clock = clock_seconds();
    if (lines->progress ? !last && clock - lines->drawn < redraw_seconds : s->step % lines->every != 0)
        return;
    char text[160], when[32], of[32] = "";
    double rate = lines->seconds > 0 ? (double)lines->images / lines->seconds : 0;
    double seconds = lines->seconds / (double)lines->steps;
    if (lines->progress) {
        if (lines->planned != WIRE_UNKNOWN_INT)
            snprintf(of, sizeof of, " of %lld", (long long)lines->planned);
        snprintf(text, sizeof text, "step %lld%s, loss = %.2f (%.1f examples/sec; %.3f sec/batch)",
                 (long long)s->step, of, s->loss, rate, seconds);
        draw(lines, text);
    } else {
        fprintf(lines->out, "%s: step %lld, loss = %.2f (%.1f examples/sec; %.3f sec/batch)\n", now(when),
                (long long)s->step, s->loss, rate, seconds);
        fflush(lines->out);
    }
    lines->drawn = clock;
    lines->images = lines->steps = 0;
    lines->seconds = 0;
}

static void eval_line(struct lines *lines, const struct event_eval *e) {
    char when[32];
    lines_break(lines);
    fprintf(lines->out,
            "%s: step %lld, precision @ 1 = %.4f (%lld of %lld test images%s), cross-entropy = %.4f\n",
            now(when), (long long)e->step, e->precision, (long long)e->correct, (long long)e->images,
            e->averaged ? ", averaged parameters" : "", e->loss);
    fflush(lines->out);
}

void lines_event(struct lines *lines, const struct event *event) {
    char words[600], when[32];
    switch (event->kind) {
    case EVENT_STEP:
        step_line(lines, &event->step);
        return;
    case EVENT_EVAL:
        eval_line(lines, &event->eval);
        return;
    case EVENT_TOWERS:
    case EVENT_CHECKPOINT:
    case EVENT_REWIND:
    case EVENT_NOTE:
    case EVENT_COMMAND:
    case EVENT_ALARM:
        break;
    default:
        return;
    }
    if (event->kind == EVENT_ALARM && !strcmp(event->alarm.level, "info"))
        return; /* the sizes, told already */
    int64_t times = event->kind == EVENT_ALARM ? repeats_count(&lines->repeats, &event->alarm) : 1;
    if (!repeats_told(times))
        return;
    enum event_level level = event_words(event, words, sizeof words);
    lines_break(lines);
    FILE *to = level > LEVEL_INFO ? lines->errors : lines->out;
    fprintf(to, "%s: %s", now(when), words);
    if (times > 1)
        fprintf(to, " (%lld times)", (long long)times);
    fputc('\n', to);
    fflush(to);
}
