#include "tui/beat.h"

#include <math.h>
#include <sched.h>
#include <unistd.h>

#include "engine/base/hash.h"

int beat_processors(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    if (count < 1) /* more than the set has room for */
        count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return count < 1 ? 1 : count;
}

double beat_interval(double set, double consoles, int processors) {
    double crowd = consoles / ((double)BEAT_CONSOLES * processors);
    return fmax(set, fmin(set * crowd, BEAT_SLOWEST));
}

double beat_own(int64_t process) {
    return 1 + 0.1 * (double)(hash_step(0, (uint64_t)process) >> 32) / 4294967296.0;
}
