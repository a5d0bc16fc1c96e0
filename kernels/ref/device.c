/* The device itself: memory of the host, and threads that live as long as one call of each(). */
#include "kernels/ref/operation.h"
#include "kernels/ref/ref.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

static enum status device_open(const struct device_options *options, struct device **out) {
    int threads = options->threads;
    const char *isa = options->isa;
    if (options->count != 1 || options->indices[0] != 0)
        return status_fail(STATUS_UNSUPPORTED, "there is only one plain C device, number 0");
    if (threads < 0)
        return status_fail(STATUS_BAD_INPUT, "%d threads: expected 0 (one per processor) or more", threads);
    if (isa && *isa && strcmp(isa, "plain") != 0)
        return status_fail(STATUS_UNSUPPORTED, "the plain C device has no instruction set \"%s\"", isa);
    struct device *device = malloc(sizeof *device);
    if (!device)
        return status_fail(STATUS_NO_MEMORY, "no memory for a device");
    device->threads = threads ? threads : processors();
    *out = device;
    return STATUS_OK;
}

static void device_close(struct device *device) {
    free(device);
}

static enum status device_describe(const struct device *device, struct device_info *out) {
    *out = (struct device_info){.element_bytes = sizeof(real),
                                .activation_bytes = sizeof(real),
                                .threads = device->threads,
                                .isa = "plain",
                                .precision = "f32",
                                .host_memory = true,
                                .count = 1};
    snprintf(out->name, sizeof out->name, "%s", REF(device_ops).name);
    snprintf(out->description, sizeof out->description, "plain C in %s precision",
             sizeof(real) == sizeof(double) ? "double" : "single");
    return STATUS_OK;
}

static enum status buffer_new(struct device *device, size_t bytes, int place, struct span *out) {
    (void)device, (void)place;
    enum { ALIGN = 64 };
    if (bytes > SIZE_MAX - ALIGN)
        return status_fail(STATUS_NO_MEMORY, "no memory for a buffer of %zu bytes", bytes);
    size_t whole = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    void *data = aligned_alloc(ALIGN, whole);
    if (!data)
        return status_fail(STATUS_NO_MEMORY, "no memory for a buffer of %zu bytes", bytes);
    memset(data, 0, whole);
    *out = (struct span){data, bytes};
    return STATUS_OK;
}

static void buffer_free(struct device *device, struct span buffer) {
    (void)device;
    free(buffer.data);
}

static enum status device_write(struct device *device, struct stream *stream, struct span to,
                                const float *from, size_t count) {
    (void)device, (void)stream;
    STATUS_TRY(REF(need)(to, count * sizeof(real), "writing"));
    for (size_t i = 0; i < count; i++)
        ((real *)to.data)[i] = from[i];
    return STATUS_OK;
}

static enum status device_read(struct device *device, struct stream *stream, float *to, struct span from,
                               size_t count) {
    (void)device, (void)stream;
    STATUS_TRY(REF(need)(from, count * sizeof(real), "reading"));
    for (size_t i = 0; i < count; i++)
        to[i] = (float)((const real *)from.data)[i];
    return STATUS_OK;
}

static enum status device_copy(struct device *device, struct stream *stream, struct span to,
                               struct span from) {
    (void)device, (void)stream;
    STATUS_TRY(REF(need)(to, from.bytes, "copying"));
    if (from.bytes)
        memmove(to.data, from.data, from.bytes);
    return STATUS_OK;
}

static enum status device_poll(struct device *device) {
    (void)device;
    return STATUS_OK;
}

const struct device_ops REF(device_ops) = {
    .api = DEVICE_API,
    .name = sizeof(real) == sizeof(double) ? "ref64" : "ref",
    .open = device_open,
    .close = device_close,
    .describe = device_describe,
    .buffer_new = buffer_new,
    .buffer_free = buffer_free,
    .write = device_write,
    .read = device_read,
    .copy = device_copy,
    .plan = REF(plan),
    .plan_info = REF(plan_info),
    .plan_free = REF(plan_free),
    .prepare = NULL,
    .forward = REF(forward),
    .backward = REF(backward),
    .loss = REF(loss),
    .combine = REF(combine),
    .update = REF(update),
    .each = REF(each),
    .workers = REF(workers),
    .poll = device_poll,
};
