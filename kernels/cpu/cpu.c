#include "kernels/cpu/cpu.h"

#include "kernels/cpu/impl.h"
#include "kernels/cpu/library.h"
#include "kernels/cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The processor in words, as Linux tells it: "model name" on x86, else whatever names it; "" when nothing
 * does. */
static void read_processor_name(char *out, size_t size) {
    *out = '\0';
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file)
        return;
    char line[256];
    while (!*out && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || (strncmp(line, "model name", 10) != 0 && strncmp(line, "Processor", 9) != 0 &&
                       strncmp(line, "cpu model", 9) != 0))
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(out, size, "%s", colon);
    }
    fclose(file);
}

static void cpu_close(struct device *device) {
    if (!device)
        return;
    onednn_close(device->onednn);
    pool_close(device->pool);
    free(device->partial);
    free(device);
}

static enum status cpu_open(const struct device_options *options, struct device **out) {
    *out = NULL;
    if (options->count != 1 || options->indices[0] != 0)
        return status_fail(STATUS_BAD_INPUT, "there is one CPU device, cpu");
    enum cpu_isa chosen;
    STATUS_TRY(isa_choose(options->isa, &chosen));
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return status_fail(STATUS_NO_MEMORY, "no memory for the CPU device");
    device->isa = chosen;
    read_processor_name(device->processor, sizeof device->processor);
    library_limit_isa(chosen);
    device->library = library_threads_find();
    enum status status = pool_open(options->threads, &device->pool);
    if (status == STATUS_OK)
        status = onednn_open(pool_threads(device->pool), &device->onednn);
    if (status != STATUS_OK) {
        cpu_close(device);
        return status;
    }
    *out = device;
    return STATUS_OK;
}

static enum status cpu_describe(const struct device *device, struct device_info *out) {
    *out = (struct device_info){.name = "cpu",
                                .element_bytes = sizeof(float),
                                .activation_bytes = sizeof(float),
                                .threads = pool_threads(device->pool),
                                .precision = "f32",
                                .host_memory = true,
                                .count = 1,
                                .memory_bytes = 0};
    snprintf(out->description, sizeof out->description, "%s",
             *device->processor ? device->processor : "a processor without a name");
    snprintf(out->isa, sizeof out->isa, "%s", isa_name(device->isa));
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0)
        out->memory_bytes = (long long)pages * page;
    return STATUS_OK;
}

/* Large buffers lie on huge pages where the system gives them: kernels that walk through many rows at once
 * would otherwise wait for addresses to be looked up. */
static void *buffer_memory(size_t bytes) {
    const size_t huge = (size_t)2 << 20;
    void *data = NULL;
    if (posix_memalign(&data, bytes >= huge ? huge : 64, bytes) != 0)
        return NULL;
    if (bytes >= huge)
        madvise(data, bytes, MADV_HUGEPAGE); /* advice: a failure changes nothing */
    return data;
}

static enum status cpu_buffer_new(struct device *device, size_t bytes, int place, struct span *out) {
    (void)device, (void)place;
    *out = (struct span){NULL, 0};
    size_t rounded = align64(bytes ? bytes : 1);
    void *data = rounded >= bytes ? buffer_memory(rounded) : NULL;
    if (!data)
        return status_fail(STATUS_NO_MEMORY, "no memory for a buffer of %zu bytes", bytes);
    memset(data, 0, rounded);
    *out = (struct span){data, bytes};
    return STATUS_OK;
}

static void cpu_buffer_free(struct device *device, struct span buffer) {
    (void)device;
    free(buffer.data);
}

static enum status copy_bytes(void *to, size_t to_bytes, const void *from, size_t from_bytes, size_t bytes) {
    if (bytes > to_bytes || bytes > from_bytes)
        return status_fail(STATUS_INTERNAL, "copy of %zu bytes from %zu to %zu", bytes, from_bytes, to_bytes);
    if (bytes)
        memmove(to, from, bytes);
    return STATUS_OK;
}

static enum status cpu_write(struct device *device, struct stream *stream, struct span to, const float *from,
                             size_t count) {
    (void)device;
    (void)stream;
    size_t bytes = count * sizeof(float);
    return copy_bytes(to.data, to.bytes, from, bytes, bytes);
}

static enum status cpu_read(struct device *device, struct stream *stream, float *to, struct span from,
                            size_t count) {
    (void)device;
    (void)stream;
    size_t bytes = count * sizeof(float);
    return copy_bytes(to, bytes, from.data, from.bytes, bytes);
}

static enum status cpu_copy(struct device *device, struct stream *stream, struct span to, struct span from) {
    (void)device;
    (void)stream;
    return copy_bytes(to.data, to.bytes, from.data, from.bytes, from.bytes);
}

static enum status cpu_each(struct device *device, int count,
                            enum status (*work)(void *context, int item, int worker, struct stream *),
                            void *context) {
    return pool_each(device->pool, count, work, context);
}

static int cpu_workers(const struct device *device, int count) {
    return pool_workers(device->pool, count);
}

static enum status cpu_poll(struct device *device) {
    (void)device;
    return STATUS_OK;
}

static void *cpu_extra(struct device *device, const char *name) {
    (void)device;
    const char *(*refusals)(const struct plan *) = cpu_plan_refusals;
    void *out = NULL;
    if (strcmp(name, "refusals") == 0)
        memcpy(&out, &refusals, sizeof out); /* a function's address in a void *, as dlsym hands it out */
    return out;
}

const struct device_ops cpu_device_ops = {
    .api = DEVICE_API,
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .buffer_new = cpu_buffer_new,
    .buffer_free = cpu_buffer_free,
    .write = cpu_write,
    .read = cpu_read,
    .copy = cpu_copy,
    .plan = cpu_plan,
    .plan_info = cpu_plan_info,
    .plan_free = cpu_plan_free,
    .prepare = cpu_prepare,
    .forward = cpu_forward,
    .backward = cpu_backward,
    .loss = cpu_loss,
    .lanes = cpu_lanes,
    .gradients = cpu_gradients,
    .add = cpu_add,
    .combine = cpu_combine,
    .update = cpu_update,
    .each = cpu_each,
    .workers = cpu_workers,
    .poll = cpu_poll,
    .extra = cpu_extra,
};
