/* The CUDA device: a group of GPUs behind the table of devices. Built with the toolkit's libraries it is the
 * plugin `cuda`; built with the simulated ones of tests/cudasim (CUDASIM) it is `sim`. */
#include "kernels/cuda/gpu.h"

#include "kernels/cuda/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef CUDASIM
#define KIND        "sim"
#define DESCRIPTION "cuda-sim: " /* never to be taken for a GPU */
#else
#define KIND        "cuda"
#define DESCRIPTION ""
#endif

#define DEADLINE                                                                                             \
    120.0 /* seconds a GPU may take for what is queued on it; TOWERSCOPE_GPU_DEADLINE replaces it */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- opening and closing */

static void close_gpu(struct device *device, int g) {
    struct gpu *gpu = &device->gpu[g];
    sums_close(device, g);
    stream_close(&gpu->main);
    if (gpu->rescue) {
        gpu_use(gpu);
        (void)cudaStreamDestroy(gpu->rescue);
    }
}

static void device_close(struct device *device) {
    if (!device)
        return;
    collective_close(device);
    graphs_forget(device, NULL);
    for (int w = 0; w < device->count * WORKERS_PER_GPU; w++)
        stream_close(&device->worker[w]);
    tables_close(device);
    for (int g = 0; g < device->count; g++)
        close_gpu(device, g);
    staging_close(device);
    free(device->shares);
    free(device->blocks);
    free(device);
}

/* Which engines were the quickest on such a GPU; a part of one is another kind. */
static void keep_choices(const struct device *device, struct gpu *gpu, int processors) {
    char kind[96];
    if (!device->options.kept)
        return;
    snprintf(kind, sizeof kind, "%s-%d", gpu->model, processors);
    for (char *at = kind; *at; at++)
        if (*at <= ' ')
            *at = '_';
    conv_context_keep(gpu->main.conv, device->options.kept, kind);
}

static enum status open_gpu(struct device *device, int g) {
    struct gpu *gpu = &device->gpu[g];
    struct cudaDeviceProp properties;
    gpu->index = device->options.indices[g];
    snprintf(gpu->name, sizeof gpu->name, KIND ":%d", gpu->index);
    STATUS_TRY(cuda_probe(gpu->index, &properties));
    if (device->precision == CUDA_BF16 && properties.major < 8)
        return status_fail(STATUS_UNSUPPORTED,
                           "--precision bf16: %s (%s, sm_%d%d) has no bfloat16, which comes with sm_80; take "
                           "--precision f32",
                           gpu->name, properties.name, properties.major, properties.minor);
    gpu->memory_bytes = properties.totalGlobalMem;
    device->gpus.count = g + 1;
    snprintf(device->gpus.gpu[g].name, sizeof device->gpus.gpu[g].name, KIND ":%d", gpu->index);
    snprintf(device->gpus.gpu[g].bus, sizeof device->gpus.gpu[g].bus, "%08x:%02x:%02x.0",
             (unsigned)properties.pciDomainID, (unsigned)properties.pciBusID & 0xff,
             (unsigned)properties.pciDeviceID & 0xff);
    snprintf(gpu->model, sizeof gpu->model, "%.63s", properties.name);
    STATUS_TRY(stream_open(device, g, -1, &gpu->main));
    keep_choices(device, gpu, properties.multiProcessorCount);
    return gpu_checked(device, g, cudaStreamCreateWithFlags(&gpu->rescue, cudaStreamNonBlocking),
                       "make a stream");
}

static enum status choose_precision(const char *name, enum cuda_precision *out) {
    static const char *const names[] = {[CUDA_F32] = "f32", [CUDA_TF32] = "tf32", [CUDA_BF16] = "bf16"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (!strcmp(name ? name : "f32", names[i])) {
            *out = (enum cuda_precision)i;
            return STATUS_OK;
        }
    return status_fail(STATUS_BAD_INPUT, "precision %s: a GPU has f32, tf32 and bf16", name);
}

static enum status open_group(struct device *device) {
    const char *deadline = getenv("TOWERSCOPE_GPU_DEADLINE");
    STATUS_TRY(choose_precision(device->options.precision, &device->precision));
    device->deadline = deadline && atof(deadline) > 0 ? atof(deadline) : DEADLINE;
    STATUS_TRY(combine_open(device));
    for (int g = 0; g < device->count; g++)
        STATUS_TRY(open_gpu(device, g));
    STATUS_TRY(marks_open(device));
    return collective_open(device);
}

static enum status device_open(const struct device_options *options, struct device **out) {
    *out = NULL;
    if (options->count < 1 || options->count > DEVICE_GROUP_MAX)
        return status_fail(STATUS_INTERNAL, "a group of %d GPUs", options->count);
    if (options->isa && *options->isa)
        return status_fail(STATUS_UNSUPPORTED, "a GPU has no instruction set \"%s\"", options->isa);
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return status_fail(STATUS_NO_MEMORY, "no memory for a device");
    device->options = *options;
    device->count = options->count;
    enum status status = open_group(device);
    device->options.kept = NULL; /* the caller's */
    if (status != STATUS_OK) {
        device_close(device);
        return status;
    }
    *out = device;
    return STATUS_OK;
}

/* ---- what it is */

static void device_place_name(const struct device *device, int place, char *out, size_t size) {
    snprintf(out, size, "%s", device->gpu[place < 0 ? 0 : place % device->count].name);
}

static enum status device_describe(const struct device *device, struct device_info *out) {
    static const char *const precisions[] = {[CUDA_F32] = "f32", [CUDA_TF32] = "tf32", [CUDA_BF16] = "bf16"};
    *out = (struct device_info){.element_bytes = sizeof(float),
                                .activation_bytes = (int)cuda_type_bytes(device_type(device)),
                                .asynchronous = true,
                                .count = device->count};
    snprintf(out->name, sizeof out->name, "%s", device->count == 1 ? device->gpu[0].name : KIND);
    snprintf(out->description, sizeof out->description, DESCRIPTION "%s", device->gpu[0].model);
    snprintf(out->precision, sizeof out->precision, "%s", precisions[device->precision]);
    for (int g = 0; g < device->count; g++)
        out->memory_bytes += (long long)device->gpu[g].memory_bytes;
    return STATUS_OK;
}

/* ---- running */

static int device_workers(const struct device *device, int count) {
    int most = device->count * WORKERS_PER_GPU;
    return count < most ? count : most;
}

static enum status
device_each(struct device *device, int count,
            enum status (*work)(void *context, int item, int worker, struct stream *stream), void *context) {
    int workers = device_workers(device, count);
    for (int item = 0; item < count; item++) {
        struct stream *stream;
        STATUS_TRY(worker_enter(device, item % workers, &stream));
        STATUS_TRY(work(context, item, item % workers, stream));
    }
    return STATUS_OK;
}

static enum status overdue(struct device *device) {
    double moment = now();
    if (device->busy_since == 0)
        device->busy_since = moment;
    if (moment - device->busy_since < device->deadline)
        return STATUS_BUSY;
    snprintf(device->failure, sizeof device->failure, "%s%s not finish within %g seconds",
             device->count == 1 ? device->gpu[0].name : "the GPUs",
             device->count == 1 ? " did" : " or the sum over them did", device->deadline);
    return device_failed(device);
}

/* What a look at the GPUs means for the device, with NCCL and the deadline. */
static enum status looked(struct device *device, enum status status) {
    if (status == STATUS_OK || status == STATUS_BUSY) {
        enum status collective = collective_check(device);
        if (collective != STATUS_OK)
            status = collective;
    }
    if (status == STATUS_BUSY)
        status = overdue(device);
    if (status == STATUS_BUSY)
        return status;
    device->busy_since = 0;
    if (status != STATUS_OK) {
        collective_close(device); /* else what is queued behind a sum would never end */
        staging_forget(device);
    }
    return status;
}

/* It has failed before. */
static enum status failed_already(struct device *device) {
    collective_given_up(device);
    staging_forget(device);
    return device_failed(device);
}

static enum status device_poll(struct device *device) {
    if (*device->failure)
        return failed_already(device);
    enum status status = looked(device, streams_query(device));
    if (status == STATUS_OK) {
        streams_settled(device);
        staging_deliver(device, device->marks + 1);
    }
    return status;
}

static enum status device_reached(struct device *device) {
    if (*device->failure)
        return failed_already(device);
    if (!device->marks)
        return status_fail(STATUS_INTERNAL, "no mark is open");
    enum status status = looked(device, marks_query(device));
    if (status == STATUS_OK)
        staging_deliver(device, 1);
    return status;
}

/* "gpus": where the telemetry finds them (kernels/cuda/host/telemetry.h); simulated ones are nowhere. */
static void *device_extra(struct device *device, const char *name) {
    bool real = !strcmp(DESCRIPTION, "");
    return real && !strcmp(name, "gpus") ? &device->gpus : NULL;
}

static const struct device_ops operations = {
    .api = DEVICE_API,
    .name = KIND,
    .open = device_open,
    .close = device_close,
    .describe = device_describe,
    .place_name = device_place_name,
    .buffer_new = memory_new,
    .buffer_free = memory_free,
    .write = transfer_write,
    .read = transfer_read,
    .copy = transfer_copy,
    .plan = cuda_plan,
    .plan_info = cuda_plan_info,
    .plan_free = cuda_plan_free,
    .prepare = cuda_prepare,
    .prepare_all = cuda_prepare_all,
    .forward = cuda_forward,
    .backward = cuda_backward,
    .loss = cuda_loss,
    .measure = cuda_measure,
    .repeat = cuda_repeat,
    .combine = cuda_combine_towers,
    .update = cuda_update_parameters,
    .combine_update = cuda_combine_update,
    .each = device_each,
    .workers = device_workers,
    .poll = device_poll,
    .mark = marks_set,
    .reached = device_reached,
    .lap = cuda_lap,
    .extra = device_extra,
};

__attribute__((visibility("default"))) const struct device_ops *towerscope_plugin(void);

const struct device_ops *towerscope_plugin(void) {
    return &operations;
}
