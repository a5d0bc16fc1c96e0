#include "engine/train/machine.h"

#include <math.h>
#include <sched.h>
#include <time.h>

enum status machine_open(struct device_handle device, struct machine *out) {
    *out = (struct machine){.device = device};
    STATUS_TRY(device.ops->describe(device.device, &out->info));
    for (int i = 0; i < out->info.count; i++)
        device_place_name(device, i, out->place_names[i], sizeof out->place_names[i]);
    return STATUS_OK;
}

enum status machine_buffer_new(struct machine *m, size_t bytes, int place, struct span *out) {
    enum status status = m->device.ops->buffer_new(m->device.device, bytes, place, out);
    if (status == STATUS_OK)
        m->buffer_bytes += bytes;
    return status;
}

void machine_buffer_free(struct machine *m, struct span *span) {
    if (!span->data)
        return;
    m->buffer_bytes -= span->bytes;
    m->device.ops->buffer_free(m->device.device, *span);
    *span = (struct span){0};
}

/* ---- waiting */

static enum status wait_until(const struct machine *m, enum status (*look)(struct device *)) {
    const struct timespec moment = {0, 20000};
    enum status status;
    /* A step of a small network takes less time than it takes to fall asleep and wake up. */
    for (int looks = 0; (status = look(m->device.device)) == STATUS_BUSY; looks++)
        if (looks < 500)
            sched_yield();
        else
            nanosleep(&moment, NULL);
    return status;
}

enum status machine_wait(const struct machine *m) {
    return wait_until(m, m->device.ops->poll);
}

enum status machine_wait_mark(const struct machine *m) {
    return wait_until(m, m->device.ops->reached);
}

/* ---- host and device */

struct exchange {
    struct device_handle device;
    struct span span;
    const float *from; /* to the device, or */
    float *to;         /* from it */
    size_t count;
};

static enum status exchange_item(void *context, int item, int worker, struct stream *stream) {
    (void)item;
    (void)worker;
    const struct exchange *x = context;
    const struct device_handle device = x->device;
    return x->from ? device.ops->write(device.device, stream, x->span, x->from, x->count)
                   : device.ops->read(device.device, stream, x->to, x->span, x->count);
}

static enum status exchange(const struct machine *m, struct exchange x) {
    STATUS_TRY(m->device.ops->each(m->device.device, 1, exchange_item, &x));
    return machine_wait(m);
}

enum status machine_read(const struct machine *m, struct span span, size_t first, size_t count, float *out) {
    size_t element = (size_t)m->info.element_bytes;
    struct span part = {(char *)span.data + first * element, count * element};
    return exchange(m, (struct exchange){.device = m->device, .span = part, .to = out, .count = count});
}

enum status machine_write(const struct machine *m, struct span span, const float *from, size_t count) {
    return exchange(m, (struct exchange){.device = m->device, .span = span, .from = from, .count = count});
}

double machine_loss_sum(const struct machine *m, struct span losses, const float *host, int64_t images) {
    double sum = 0;
    for (int64_t i = 0; i < images; i++)
        sum += m->info.element_bytes == 8 ? ((const double *)losses.data)[i] : (double)host[i];
    return sum;
}

/* ---- measuring */

static int64_t measure_here(const struct machine *m, struct span values, size_t count, enum measure what) {
    int64_t zeros = 0;
    for (size_t i = 0; i < count; i++) {
        double value = m->info.element_bytes == 8 ? ((const double *)values.data)[i]
                                                  : (double)((const float *)values.data)[i];
        if (what == MEASURE_NON_FINITE && !isfinite(value))
            return (int64_t)i;
        zeros += value == 0;
    }
    return what == MEASURE_ZEROS ? zeros : -1;
}

enum status machine_measure(const struct machine *m, struct stream *stream, struct span values, size_t count,
                            enum measure what, int64_t *out) {
    if (!m->info.host_memory)
        return m->device.ops->measure(m->device.device, stream, values, count, what, out);
    *out = measure_here(m, values, count, what);
    return STATUS_OK;
}

struct look {
    const struct machine *machine;
    struct span values;
    size_t count;
    int64_t first;
};

static enum status look_item(void *context, int item, int worker, struct stream *stream) {
    (void)item;
    (void)worker;
    struct look *l = context;
    return machine_measure(l->machine, stream, l->values, l->count, MEASURE_NON_FINITE, &l->first);
}

int64_t machine_non_finite(const struct machine *m, struct span values, size_t count) {
    struct look l = {m, values, count, -1};
    bool looked = count && m->device.ops->each(m->device.device, 1, look_item, &l) == STATUS_OK &&
                  machine_wait(m) == STATUS_OK;
    return looked ? l.first : -1;
}

/* ---- what plans derive from parameters */

struct preparation {
    struct net *net;
    struct span values, prepared;
};

static enum status prepare_item(void *context, int item, int worker, struct stream *stream) {
    (void)item;
    (void)worker;
    const struct preparation *p = context;
    return net_prepare(p->net, stream, p->values, p->prepared);
}

enum status machine_prepare(const struct machine *m, struct net *net, struct span values,
                            struct span prepared) {
    struct preparation p = {net, values, prepared};
    return m->device.ops->each(m->device.device, 1, prepare_item, &p);
}
