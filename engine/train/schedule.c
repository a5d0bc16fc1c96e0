#include "engine/train/schedule.h"

#include <math.h>

enum { RECORD_ALL = 1000, RECORD_STEPS = 20000, RECORD_UNPLANNED = 50 };

static int64_t periods(const struct schedule *schedule, int64_t images) {
    return (int64_t)floor((double)images / schedule->period_images);
}

double schedule_rate(const struct schedule *schedule, int64_t images) {
    return schedule->base * pow(schedule->decay, (double)(periods(schedule, images) - schedule->start));
}

void schedule_set(struct schedule *schedule, double rate, int64_t images) {
    schedule->base = rate;
    schedule->start = periods(schedule, images);
}

double schedule_until_fall(const struct schedule *schedule, int64_t images) {
    return (double)(periods(schedule, images) + 1) * schedule->period_images - (double)images;
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
