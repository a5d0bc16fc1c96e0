#include "tests/support/guarded.h"

#include "tests/support/cmocka.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64 }; /* elements on each side: 256 bytes, so that what follows stays aligned */

/* Differs between buffers, so that a kernel that copies too much does not copy the right guard. */
static float guard_pattern(const struct guarded *buffer) {
    return (float)((uintptr_t)buffer->whole.data / 64 % 65521) + 12345.5f;
}

void expect_ok(enum status status, const char *what) {
    if (status != STATUS_OK)
        fail_msg("%s: %s: %s", what, status_name(status), status_text());
}

size_t device_element_bytes(struct device_handle device) {
    struct device_info info;
    expect_ok(device.ops->describe(device.device, &info), "describe");
    return (size_t)info.element_bytes;
}

void device_finish(struct device_handle device) {
    enum status status;
    while ((status = device.ops->poll(device.device)) == STATUS_BUSY)
        sched_yield();
    expect_ok(status, "waiting for the device");
}

/* Elements that hold `bytes`. */
static size_t elements(struct device_handle device, size_t bytes) {
    size_t element = device_element_bytes(device);
    return (bytes + element - 1) / element;
}

static struct span part(struct device_handle device, struct span whole, size_t first, size_t count) {
    size_t element = device_element_bytes(device);
    return (struct span){(char *)whole.data + first * element, count * element};
}

static void fill(struct device_handle device, struct span to, size_t count, float value) {
    float *values = malloc(count * sizeof *values + 1);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = value;
    expect_ok(device.ops->write(device.device, NULL, to, values, count), "filling a buffer");
    device_finish(device);
    free(values);
}

struct guarded guarded_new(struct device_handle device, size_t bytes) {
    struct guarded buffer = {0};
    if (bytes == 0)
        return buffer;
    size_t inside = elements(device, bytes), element = device_element_bytes(device);
    expect_ok(device.ops->buffer_new(device.device, (inside + 2 * GUARD) * element, 0, &buffer.whole),
              "a guarded buffer");
    fill(device, buffer.whole, inside + 2 * GUARD, guard_pattern(&buffer));
    buffer.span = (struct span){(char *)buffer.whole.data + GUARD * element, bytes};
    guarded_poison(device, &buffer);
    return buffer;
}

void guarded_free(struct device_handle device, struct guarded *buffer) {
    if (buffer->whole.data)
        device.ops->buffer_free(device.device, buffer->whole);
    *buffer = (struct guarded){0};
}

void guarded_poison(struct device_handle device, const struct guarded *buffer) {
    size_t inside = elements(device, buffer->span.bytes);
    if (inside)
        fill(device, part(device, buffer->whole, GUARD, inside), inside, NAN);
}

void guarded_check(struct device_handle device, const struct guarded *buffer, const char *what) {
    if (!buffer->whole.data)
        return;
    size_t inside = elements(device, buffer->span.bytes);
    for (int side = 0; side < 2; side++) {
        float guard[GUARD];
        struct span span = part(device, buffer->whole, side ? GUARD + inside : 0, GUARD);
        expect_ok(device.ops->read(device.device, NULL, guard, span, GUARD), "reading a guard");
        device_finish(device);
        for (int i = 0; i < GUARD; i++)
            if (guard[i] != guard_pattern(buffer))
                fail_msg("%s: written %s its %zu bytes, %d elements away", what, side ? "after" : "before",
                         buffer->span.bytes, side ? i + 1 : GUARD - i);
    }
}

void guarded_write(struct device_handle device, const struct guarded *buffer, const float *from,
                   size_t count) {
    if (count)
        expect_ok(device.ops->write(device.device, NULL, buffer->span, from, count), "writing a buffer");
    device_finish(device);
}

void guarded_read(struct device_handle device, const struct guarded *buffer, float *to, size_t count) {
    if (count)
        expect_ok(device.ops->read(device.device, NULL, to, buffer->span, count), "reading a buffer");
    device_finish(device);
}
