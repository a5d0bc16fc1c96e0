#include "cli/bench_spread.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct bench_spread bench_spread(double *values, int count) {
    if (count < 1)
        return (struct bench_spread){(double)NAN, (double)NAN, (double)NAN};
    qsort(values, (size_t)count, sizeof *values, by_value);
    return (struct bench_spread){.low = values[(count - 1) / 4],
                                 .middle = (values[count / 2] + values[(count - 1) / 2]) / 2,
                                 .high = values[count - 1 - (count - 1) / 4]};
}
