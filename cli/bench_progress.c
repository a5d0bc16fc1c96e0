#include "cli/bench_progress.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/signals.h"
#include "engine/base/clock.h"

static const double REDRAW_SECONDS = 0.2;

void bench_progress_begin(struct bench_progress *p, double planned) {
    *p =
        (struct bench_progress){.shown = isatty(STDERR_FILENO), .planned = planned, .began = clock_seconds()};
}

static void draw(struct bench_progress *p, double now, const char *words) {
    char text[120];
    int length;
    if (p->done > 0) /* what it has taken so far says how much longer it takes than planned */
        length = snprintf(text, sizeof text, "%s, about %.0f s left", words,
                          (now - p->began) * (p->planned - p->done) / p->done);
    else
        length = snprintf(text, sizeof text, "%s", words);
    fprintf(stderr, "\r%s%*s", text, p->width > length ? p->width - length : 0, "");
    fflush(stderr);
    p->width = length;
}

enum status bench_progress_tell(struct bench_progress *p, double done, const char *words) {
    if (signals_asked())
        return status_fail(STATUS_INTERRUPTED,
                           "interrupted; what was measured so far says too little to be shown");
    p->done += done;
    double now = clock_seconds();
    if (p->shown && now - p->drawn >= REDRAW_SECONDS) {
        p->drawn = now;
        draw(p, now, words);
    }
    return STATUS_OK;
}

void bench_progress_end(struct bench_progress *p) {
    if (p->width)
        fprintf(stderr, "\r%*s\r", p->width, "");
    fflush(stderr);
    p->width = 0;
}
