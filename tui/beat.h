/* How often a console draws by itself. All consoles of a run are on its engine's machine, and what they draw
 * with is taken from training: a few draw as often as they are set to, more of them share as many frames. */
#ifndef TOWERSCOPE_TUI_BEAT_H
#define TOWERSCOPE_TUI_BEAT_H

#include <stdint.h>

/* Consoles that draw at the full rate for each processor, and the most seconds that a crowd makes of an
 * interval. */
enum { BEAT_CONSOLES = 2 };
#define BEAT_SLOWEST 2.5

/* Processors that this process may use, at least 1. */
int beat_processors(void);

/* Seconds between two frames that nobody asked for by a key, where the interval is set to `set` and so many
 * consoles (this one among them) are on the run. One that is set to more than BEAT_SLOWEST stays as it is. */
double beat_interval(double set, double consoles, int processors);

/* 1 to 1.1, each process another, to multiply an interval by: consoles that were opened together don't draw
 * all at once, which would hold up a step, but soon one after the other. */
double beat_own(int64_t process);

#endif
