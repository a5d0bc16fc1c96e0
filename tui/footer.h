/* The last lines: which keys there are, who holds control, where one is in a record, what the console costs.
 */
#ifndef TOWERSCOPE_TUI_FOOTER_H
#define TOWERSCOPE_TUI_FOOTER_H

#include "engine/wire/state.h"
#include "tui/canvas.h"
#include "tui/feed.h"
#include "tui/keymap.h"

struct footer {
    const struct keymap *keymap;
    unsigned where;      /* WHERE_LIVE or WHERE_REPLAY */
    enum action current; /* the screen that is shown */
    bool commands;       /* the keys that tell the run what to do mean something now */
    bool guided;         /* a guide makes the steps */
    bool guide_done;     /* it is at its end: other keys make steps again */
    bool paused, playing;
    char control[128]; /* at the right end; "": nothing */
};

/* The keys of the help page, which are all that act while it is open. */
void footer_help(const struct keymap *keymap, struct canvas *canvas, struct box box);

void footer_draw(const struct footer *footer, struct canvas *canvas, struct box box);

/* Who holds control, in words for the footer: "" when it is ours and nobody watches. */
void footer_control(const struct run_state *state, bool watch, char *out, size_t size);

/* Where one is in a record: playing or not, how fast, a bar, the time. */
void footer_record(const struct feed_status *about, struct canvas *canvas, struct box box);

/* What the console costs, measured while it runs. */
struct budget_time {     /* milliseconds of the last frames */
    double median, most; /* most: 99 of 100 took no longer */
};
struct budget {
    double bytes_per_second;      /* written to the terminal; unknown: the system does not say */
    struct budget_time wall, cpu; /* to draw: by the clock, of the processor */
    double events_per_second;
    double queue; /* bytes from the engine that wait to be taken; unknown: there is no engine */
    bool quiet;
};

void footer_budget(const struct budget *budget, struct canvas *canvas, struct box box);

#endif
