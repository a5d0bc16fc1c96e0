#include "cli/bench_peak.h"

#include "engine/base/clock.h"
#include "kernels/cpu/team.h"

enum { ROUNDS = 500000, MOST_THREADS = 1024 };

struct peak {
    const struct peak_kernels *kernels;
    double operations[MOST_THREADS];
};

static enum status peak_part(void *context, int part, int thread) {
    (void)thread;
    struct peak *peak = context;
    peak->operations[part] = peak->kernels->multiply_add(ROUNDS);
    return STATUS_OK;
}

enum status bench_peak_team(const struct peak_kernels *kernels, struct stream *stream, double *rate) {
    struct peak peak = {.kernels = kernels};
    double start = clock_seconds(), operations = 0;
    STATUS_TRY(team_run(stream, stream->size, peak_part, &peak));
    double seconds = clock_seconds() - start;
    for (int part = 0; part < stream->size; part++)
        operations += peak.operations[part];
    *rate = operations / seconds * 1e-9;
    return STATUS_OK;
}

struct turn {
    const struct peak_kernels *kernels;
    double seconds, rate;
};

static enum status whole_device(void *context, int item, int worker, struct stream *stream) {
    (void)item, (void)worker;
    struct turn *turn = context;
    double start = clock_seconds(), sum = 0;
    int times = 0;
    do {
        double rate;
        STATUS_TRY(bench_peak_team(turn->kernels, stream, &rate));
        sum += 1 / rate;
        times++;
    } while (clock_seconds() - start < turn->seconds);
    turn->rate = times / sum;
    return STATUS_OK;
}

enum status bench_peak_run(const struct peak_kernels *kernels, struct device_handle device, double seconds,
                           double *rate) {
    struct turn turn = {.kernels = kernels, .seconds = seconds};
    STATUS_TRY(device.ops->each(device.device, 1, whole_device, &turn)); /* one worker: all threads */
    *rate = turn.rate;
    return STATUS_OK;
}
