/* Buffers of a device with guards around them, so that a kernel that writes past an end is found, filled with
 * values that are not numbers, so that one that reads what nobody wrote is found too. */
#ifndef TOWERSCOPE_TESTS_SUPPORT_GUARDED_H
#define TOWERSCOPE_TESTS_SUPPORT_GUARDED_H

#include "kernels/device.h"

struct guarded {
    struct span span;  /* what the kernel gets: exactly the bytes asked for, 64-byte aligned */
    struct span whole; /* with the guards */
};

/* bytes 0: an empty span, nothing is allocated. Fails the test when there is no memory. */
struct guarded guarded_new(struct device_handle device, size_t bytes);
void guarded_free(struct device_handle device, struct guarded *buffer);

/* Fill the inside with values that are not numbers. */
void guarded_poison(struct device_handle device, const struct guarded *buffer);

/* Fail the test, naming `what`, when a guard was written to. */
void guarded_check(struct device_handle device, const struct guarded *buffer, const char *what);

/* Host floats in and out; waits until the device is done. */
void guarded_write(struct device_handle device, const struct guarded *buffer, const float *from,
                   size_t count);
void guarded_read(struct device_handle device, const struct guarded *buffer, float *to, size_t count);

/* Bytes of one element of the device. */
size_t device_element_bytes(struct device_handle device);

/* Wait until an asynchronous device has done everything; fails the test when it reports a failure. */
void device_finish(struct device_handle device);

/* Fail the test with the sentence of the last failure unless status is STATUS_OK. */
void expect_ok(enum status status, const char *what);

#endif
