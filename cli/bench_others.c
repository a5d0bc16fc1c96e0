#include "cli/bench_others.h"

#include <stdio.h>
#include <unistd.h>

#include "engine/base/clock.h"

static double process_seconds(pid_t process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "r");
    long long user, system;
    int found = file ? fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld",
                              &user, &system)
                     : 0;
    if (file)
        fclose(file);
    return found == 2 ? (double)(user + system) / (double)sysconf(_SC_CLK_TCK) : 0;
}

struct bench_others bench_others_now(const pid_t *own, int count) {
    struct bench_others o = {.clock = clock_seconds()};
    FILE *file = fopen("/proc/stat", "r");
    long long user, nice, system, idle, waiting, interrupts, soft, stolen;
    int found = file ? fscanf(file, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &user, &nice, &system,
                              &idle, &waiting, &interrupts, &soft, &stolen)
                     : 0;
    if (file)
        fclose(file);
    if (found != 8)
        return o;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    o.programs = (double)(user + nice + system + interrupts + soft) / ticks - process_seconds(getpid());
    o.host = (double)stolen / ticks;
    for (int i = 0; i < count; i++)
        if (own[i])
            o.programs -= process_seconds(own[i]);
    return o;
}

struct bench_others bench_others_between(struct bench_others from, struct bench_others to) {
    double seconds = to.clock - from.clock;
    return (struct bench_others){.programs = (to.programs - from.programs) / seconds,
                                 .host = (to.host - from.host) / seconds,
                                 .clock = seconds};
}
