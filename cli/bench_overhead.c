#include "cli/bench_overhead.h"

#include <stdlib.h>
#include <time.h>

#include "engine/base/clock.h"

static double processor_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of one turn, for an image. */
struct turn {
    double seconds, processor;
};

static enum status take_turn(struct bench_step *step, struct bench_loader *loader, double seconds,
                             struct turn *turn) {
    double before = processor_seconds(), start = clock_seconds(), rate;
    STATUS_TRY(step ? bench_step_run(step, seconds, &rate) : bench_loader_run(loader, seconds, &rate));
    double images = rate * (clock_seconds() - start);
    *turn = (struct turn){1 / rate, (processor_seconds() - before) / images};
    return STATUS_OK;
}

enum status bench_overhead_run(struct bench_overhead *o, struct bench_step *step, struct bench_loader *loader,
                               double seconds, double rates[2]) {
    double sums[2] = {0};
    const int pairs = seconds > 0 ? BENCH_PAIRS : 1; /* no time: one step of each */
    for (int i = 0; i < pairs; i++) {
        struct turn turns[2]; /* of the step, of the run */
        for (int which = i % 2, k = 0; k < 2; k++, which = 1 - which)
            STATUS_TRY(take_turn(which ? NULL : step, loader, seconds / pairs, &turns[which]));
        for (int which = 0; which < 2; which++)
            sums[which] += turns[which].seconds;
        if (o->count == BENCH_MOST_PAIRS)
            continue;
        o->time[o->count] = turns[1].seconds / turns[0].seconds - 1;
        o->processor[o->count++] = turns[1].processor / turns[0].processor - 1;
    }
    for (int which = 0; which < 2; which++)
        rates[which] = pairs / sums[which];
    return STATUS_OK;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct bench_spread bench_spread(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return (struct bench_spread){.low = values[(count - 1) / 4],
                                 .middle = (values[count / 2] + values[(count - 1) / 2]) / 2,
                                 .high = values[count - 1 - (count - 1) / 4]};
}
