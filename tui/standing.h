/* What stands on the message line when nothing was said just now: a crash, a request for control, an alarm,
 * trouble. */
#ifndef TOWERSCOPE_TUI_STANDING_H
#define TOWERSCOPE_TUI_STANDING_H

#include "engine/wire/state.h"
#include "tui/canvas.h"
#include "tui/feed.h"
#include "tui/format.h"

struct standing {
    char text[600];         /* "": nothing stands */
    char when[FORMAT_SIZE]; /* it came, where that is some time ago; "" */
    const char *hint;       /* what takes it away, if there is room to say so; NULL: nothing does */
    enum style style;
    bool request; /* for control: it waits for an answer, and comes before what was said */
    double time;  /* of the event it is about, to tell one alarm from the next like it */
};

/* The most pressing of what stands. An alarm no longer does when the run has gone on well beyond it. */
struct standing standing_find(const struct run_state *state, const struct feed_status *about);

/* Whether it is the one that was taken away. */
bool standing_same(const struct standing *a, const struct standing *b);

#endif
