/* What the console costs, measured while it runs: for `:budget`, and to notice a slow terminal. */
#ifndef TOWERSCOPE_TUI_COST_H
#define TOWERSCOPE_TUI_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "tui/footer.h"

enum { COST_FRAMES = 300 }; /* frames that are looked back at: a minute of them */

struct cost {
    float wall[COST_FRAMES],
        cpu[COST_FRAMES]; /* milliseconds of a frame, by the clock and of the processor */
    int count, next;
    double reckoned_at; /* when the rates below were */
    int64_t bytes, events;
    struct budget budget;
};

/* The processor time of this thread, in seconds. */
double cost_cpu_seconds(void);

/* A frame took so many seconds by the clock and of the processor. */
void cost_frame(struct cost *cost, double wall, double cpu);

/* Whether a second has gone since the budget was reckoned. */
bool cost_due(const struct cost *cost, double now);

/* Reckon cost->budget anew. bytes: written by the process since it began (-1: not known); events: taken by
 * the state; queue: bytes that wait to be taken (-1: not known). */
void cost_reckon(struct cost *cost, double now, int64_t bytes, int64_t events, int64_t queue);

#endif
