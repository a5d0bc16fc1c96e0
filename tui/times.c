#include "tui/times.h"

#include <math.h>

static double sum_of(const double ms[TIMES_PARTS]) {
    double sum = 0;
    for (int p = 0; p < TIMES_PARTS; p++)
        sum += ms[p];
    return sum;
}

double times_of(const struct event_step *step, const struct event_step_tower *tower, double ms[TIMES_PARTS]) {
    const double told[TIMES_PARTS] = {tower->load_ms, tower->forward_ms, tower->backward_ms,
                                      tower->wait_ms, step->average_ms,  step->update_ms};
    for (int p = 0; p < TIMES_PARTS; p++)
        ms[p] = isfinite(told[p]) && told[p] > 0 ? told[p] : 0;
    double whole = 1000 * step->seconds, sum = sum_of(ms);
    return isfinite(whole) && whole > sum ? whole : sum;
}

void times_place(const double ms[TIMES_PARTS], double whole, int cols, int edges[TIMES_PARTS + 1]) {
    double done = whole - sum_of(ms);
    for (int p = 0; p <= TIMES_PARTS; p++) {
        edges[p] = whole > 0 ? (int)lround(done / whole * cols) : 0;
        done += p < TIMES_PARTS ? ms[p] : 0;
    }
}
