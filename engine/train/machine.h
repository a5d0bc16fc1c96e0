/* The device as a trainer uses it: what it is, buffers that are counted, waiting, and what goes between its
 * memory and the host's. Nothing here knows of towers or steps. */
#ifndef TOWERSCOPE_ENGINE_TRAIN_MACHINE_H
#define TOWERSCOPE_ENGINE_TRAIN_MACHINE_H

#include "engine/model/net.h"
#include "kernels/registry.h"

struct machine {
    struct device_handle device;
    struct device_info info;
    char place_names[DEVICE_GROUP_MAX][32]; /* of its GPUs: tower k is on number k mod info.count */
    size_t buffer_bytes;                    /* of all buffers there are */
};

/* What an open device is. The device outlives the machine; there is nothing to close. */
enum status machine_open(struct device_handle device, struct machine *out);

/* A buffer of `bytes`. place: PLACE_SHARED, or the number of a tower or worker. STATUS_NO_MEMORY,
 * STATUS_DEVICE. */
enum status machine_buffer_new(struct machine *machine, size_t bytes, int place, struct span *out);
void machine_buffer_free(struct machine *machine, struct span *span); /* an empty one is fine */

/* Wait for all that was queued, or for the oldest mark. Anything but STATUS_OK is what failed meanwhile. */
enum status machine_wait(const struct machine *machine);
enum status machine_wait_mark(const struct machine *machine);

/* Copy values first .. first + count of a span to or from floats, and wait for it; nothing of a step may be
 * queued. */
enum status machine_read(const struct machine *machine, struct span span, size_t first, size_t count,
                         float *out);
enum status machine_write(const struct machine *machine, struct span span, const float *from, size_t count);

/* Measure `count` values, 1 or more, of a worker's stream; queued where the device is asynchronous. */
enum status machine_measure(const struct machine *machine, struct stream *stream, struct span values,
                            size_t count, enum measure what, int64_t *out);

/* Index of the first of `count` values that is not finite; -1: all are, or it can't be found out. Waits. */
int64_t machine_non_finite(const struct machine *machine, struct span values, size_t count);

/* Derive `prepared` from `values` with the plans of `net`; queued where the device is asynchronous. */
enum status machine_prepare(const struct machine *machine, struct net *net, struct span values,
                            struct span prepared);

/* Sum of the images' losses, in order: from the device's doubles where they are that, else from the host's
 * copy. */
double machine_loss_sum(const struct machine *machine, struct span losses, const float *host, int64_t images);

#endif
