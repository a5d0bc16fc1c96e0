/* Two clocks: one that only goes forward, for durations and rates, and the calendar, for what is written down. */
#ifndef TOWERSCOPE_ENGINE_BASE_CLOCK_H
#define TOWERSCOPE_ENGINE_BASE_CLOCK_H

/* Seconds since some fixed moment; never goes back, whatever is done to the machine's date. */
double clock_seconds(void);

/* Seconds since 1970 (UTC). */
double clock_wall(void);

#endif
