#include "engine/train/schedule.h"

#include <math.h>

#include "engine/wire/event.h"

enum { RECORD_ALL = 1000, RECORD_STEPS = 20000, RECORD_UNPLANNED = 50 };

static int64_t periods(const struct schedule *schedule, int64_t images) {
    return (int64_t)floor((double)images / schedule->period_images);
}

/* Those that count for the rate. A run that went back to before its base was set has that base all the same.
 */
static int64_t falls(const struct schedule *schedule, int64_t images) {
    int64_t passed = periods(schedule, images);
    return passed > schedule->start ? passed - schedule->start : 0;
}

double schedule_period(double epochs, int64_t images) {
    return fmax(1, round(epochs * (double)images));
}

double schedule_rate(const struct schedule *schedule, int64_t images) {
    return schedule->base * pow(schedule->decay, (double)falls(schedule, images));
}

void schedule_set(struct schedule *schedule, double rate, int64_t images) {
    schedule->base = rate;
    schedule->start = periods(schedule, images);
}

double schedule_until_fall(const struct schedule *schedule, int64_t images) {
    int64_t next = schedule->start + falls(schedule, images) + 1;
    return (double)next * schedule->period_images - (double)images;
}

double average_decay(double limit, int64_t updates) {
    return fmin(limit, (1.0 + (double)updates) / (10.0 + (double)updates));
}

bool recorded_by_count(int64_t step, int64_t planned, int64_t every) {
    if (every > 0)
        return step % every == 0;
    if (step <= RECORD_ALL)
        return true;
    int64_t k = planned < 0 ? RECORD_UNPLANNED : planned / RECORD_STEPS + (planned % RECORD_STEPS != 0);
    return step % (k > 0 ? k : 1) == 0;
}

bool layers_by_count(int64_t step) {
    return step == 1 || step % LAYERS_EVERY == 0;
}
