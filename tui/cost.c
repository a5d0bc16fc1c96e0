#include "tui/cost.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/wire/event.h"

double cost_cpu_seconds(void) {
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

void cost_frame(struct cost *cost, double wall, double cpu) {
    cost->wall[cost->next] = (float)(1000 * wall);
    cost->cpu[cost->next] = (float)(1000 * cpu);
    cost->next = (cost->next + 1) % COST_FRAMES;
    cost->count += cost->count < COST_FRAMES;
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static struct budget_time share_of(const float *values, int count) {
    float sorted[COST_FRAMES];
    struct budget_time time = {0, 0};
    if (count == 0)
        return time;
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, by_value);
    time.median = (double)sorted[count / 2];
    time.most = (double)sorted[(99 * count + 99) / 100 - 1];
    return time;
}

bool cost_due(const struct cost *cost, double now) {
    return now - cost->reckoned_at >= 1;
}

void cost_reckon(struct cost *cost, double now, int64_t bytes, int64_t events, int64_t queue) {
    double seconds = now - cost->reckoned_at;
    struct budget *budget = &cost->budget;
    budget->bytes_per_second = bytes < 0 ? wire_unknown() : (double)(bytes - cost->bytes) / seconds;
    budget->events_per_second = events >= cost->events ? (double)(events - cost->events) / seconds : 0;
    budget->queue = queue < 0 ? wire_unknown() : (double)queue;
    budget->wall = share_of(cost->wall, cost->count);
    budget->cpu = share_of(cost->cpu, cost->count);
    cost->reckoned_at = now;
    cost->bytes = bytes;
    cost->events = events;
}
