/* Plans for GPUs that are not here: cuDNN makes one for every convolution of the models that come with the
 * program, forward and both gradients, when it is told what a GPU is like. What is shown is that cuDNN
 * accepts the graphs and has engines for them, deterministic ones too, and what memory they want. Nothing is
 * computed: this is no test of a GPU. How a GPU is told (JSON) is undocumented, so that a version of cuDNN
 * that wants it otherwise is passed over.
 *
 * Exit 0: good, 1: a plan is missing, 77: cuDNN can't be asked; the last line says why. */
#include "engine/model/model.h"
#include "kernels/cuda/engines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SKIP = 77 };

static const struct gpu {
    const char *name;
    int sm, processors, cores_shared, threads, blocks;
    long long cache, memory;
} gpus[] = {
    {"Tesla T4", 75, 40, 65536, 1024, 16, 4194304, 15000000000},
    {"NVIDIA A100", 80, 108, 166912, 2048, 32, 41943040, 80000000000},
    {"NVIDIA RTX 3090", 86, 82, 101376, 1536, 16, 6291456, 24000000000},
    {"NVIDIA H200", 90, 132, 232448, 2048, 32, 62914560, 150000000000},
    {"NVIDIA B200", 100, 148, 232448, 2048, 32, 62914560, 180000000000},
    {"NVIDIA RTX 5090", 120, 170, 101376, 1536, 24, 62914560, 32000000000},
};
enum { GPUS = sizeof gpus / sizeof *gpus };

static const char *const precision_names[] = {"f32", "tf32", "bf16"};
static const char *const pass_words[CONV_PASSES] = {"forward", "input gradient", "weights gradient"};
static const int batches[] = {128, 1024};
static const int shards[] = {2, 33, 1024}; /* that the engine for ENGINE_REFERENCE_IMAGES has to do as well */
enum { BATCHES = sizeof batches / sizeof *batches };

static enum status describe(const struct gpu *g, cudnnBackendDescriptor_t *out) {
#if CUDNN_VERSION < 90800
    (void)g, (void)out;
    return status_fail(STATUS_UNSUPPORTED, "cuDNN plans for a GPU that is not there from version 9.8 on");
#else
    char json[1024];
    int length = snprintf(
        json, sizeof json,
        "{\"deviceName\": \"%s\", \"cudaDeviceId\": 0, \"deviceVer\": %d, \"driverVer\": 13000, "
        "\"regsPerBlock\": 65536, \"multiProcessorCount\": %d, \"smClockRateKHz\": 1980000, "
        "\"memClockRateKHz\": 3201000, \"l2CacheSize\": %lld, \"warpSize\": 32, "
        "\"maxSharedMemoryPerBlock\": 49152, \"maxSharedMemoryPerBlockOptin\": %d, "
        "\"reservedSharedMemoryPerBlock\": 1024, \"maxRegistersPerSM\": 65536, \"pciDeviceId\": 0, "
        "\"maxCtasPerSM\": %d, \"maxThreadsPerBlock\": 1024, \"maxThreadsPerSM\": %d, \"isTccDriver\": 0, "
        "\"supportCoopLaunch\": 1, \"totalGlobalMem\": %lld, \"maxGridSize\": [2147483647, 65535, 65535], "
        "\"maxBlockSize\": [1024, 1024, 64]}",
        g->name, g->sm * 10, g->processors, g->cache, g->cores_shared, g->blocks, g->threads, g->memory);
    STATUS_TRY(cudnn_make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, out));
    STATUS_TRY(cudnn_set(*out, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, length, json));
    return cudnn_finish(*out, "take a description of a GPU");
#endif
}

enum { OPS = 64 };

struct tally {
    struct op ops[OPS]; /* those that were looked at */
    int op_count;
    int plans, unfused; /* forward passes that leave bias and ReLU to our own kernel */
    int again, shards;  /* plans of other shards by the same engine, of so many asked for */
    size_t workspace;
    bool tensor_core;
};

/* One pass: an engine there must be, and where `deterministic`, it must say that it is. */
static bool check_pass(const struct conv_request *request, enum conv_pass pass,
                       cudnnBackendDescriptor_t device, struct tally *tally) {
    struct engine engines[ENGINES_MAX];
    struct engine_wish wish = {.deterministic = request->deterministic,
                               .precision = request->precision,
                               .workspace_max = engines_workspace_max(request),
                               .count = 3,
                               .device = device};
    enum status status = STATUS_UNSUPPORTED;
    int count = 0;
    for (int fused = pass == CONV_FORWARD; fused >= 0 && status == STATUS_UNSUPPORTED; fused--) {
        struct conv_graph graph;
        status = conv_graph_make(request, pass, fused, NULL, &graph);
        if (status == STATUS_OK)
            status = engines_find(&graph, &wish, engines, &count);
        if (status == STATUS_OK && pass == CONV_FORWARD && !fused)
            tally->unfused++;
        bool good = status == STATUS_OK && count > 0;
        for (int i = 0; i < count && good; i++) {
            good = engines[i].workspace <= wish.workspace_max &&
                   !(wish.deterministic && engines[i].nondeterministic) &&
                   !(request->precision == CUDA_F32 && engines[i].tensor_core);
            tally->workspace =
                engines[i].workspace > tally->workspace ? engines[i].workspace : tally->workspace;
            tally->tensor_core |= engines[i].tensor_core;
            tally->plans++;
        }
        if (status == STATUS_OK && !good)
            (void)status_fail(STATUS_INTERNAL, "an engine is not as wished");
        if (status == STATUS_OK)
            engines_free(engines, count);
        conv_graph_free(&graph);
        if (good)
            return true;
    }
    printf("    %s of %dx%dx%d to %d channels, %d images%s: %s\n", pass_words[pass], request->op->in.h,
           request->op->in.w, request->op->in.c, request->op->out.c, request->images,
           request->deterministic ? ", deterministic" : "", status_text());
    return false;
}

/* The engine that --deterministic takes, for other shards. */
static void check_shards(const struct conv_request *request, enum conv_pass pass,
                         cudnnBackendDescriptor_t device, struct tally *tally) {
    struct conv_request other = *request;
    struct engine engines[ENGINES_MAX];
    struct engine_choice choice = {0};
    struct engine_wish wish = {
        .deterministic = true, .precision = request->precision, .count = 1, .device = device};
    for (size_t i = 0; i <= sizeof shards / sizeof *shards; i++) {
        struct conv_graph graph;
        int count = 0;
        other.images = i ? shards[i - 1] : ENGINE_REFERENCE_IMAGES;
        wish.workspace_max = engines_workspace_max(&other);
        enum status status = conv_graph_make(&other, pass, pass == CONV_FORWARD, NULL, &graph);
        if (status == STATUS_OK && i == 0)
            status = engines_find(&graph, &wish, engines, &count);
        if (status == STATUS_OK && i == 0)
            status = engine_choice_of(&engines[0], &choice);
        if (status == STATUS_OK && i > 0) {
            status = engine_again(&graph, &choice, &wish, engines);
            count = status == STATUS_OK;
        }
        tally->again += i > 0 && status == STATUS_OK;
        tally->shards += i > 0;
        engines_free(engines, count);
        conv_graph_free(&graph);
        if (status != STATUS_OK)
            printf("    %s of %dx%dx%d, %d images: %s\n", pass_words[pass], request->op->in.h,
                   request->op->in.w, request->op->in.c, other.images, status_text());
    }
}

/* Whether an operation before this one is the same: models may share layers. */
static bool seen(const struct op *ops, int count, const struct op *op) {
    for (int i = 0; i < count; i++)
        if (ops[i].kind == op->kind && !memcmp(&ops[i].in, &op->in, sizeof op->in) &&
            !memcmp(&ops[i].out, &op->out, sizeof op->out) &&
            !memcmp(&ops[i].window, &op->window, sizeof op->window))
            return true;
    return false;
}

/* Every convolution of a model at one precision. */
static bool check_model(const struct model *model, cudnnBackendDescriptor_t device,
                        enum cuda_precision precision, struct tally *tally) {
    bool good = true;
    for (int o = 0; o < model->op_count; o++) {
        if (model->ops[o].kind != OP_CONV || seen(tally->ops, tally->op_count, &model->ops[o]))
            continue;
        if (tally->op_count < OPS)
            tally->ops[tally->op_count++] = model->ops[o];
        for (int b = 0; b < BATCHES; b++)
            for (int deterministic = 0; deterministic < 2; deterministic++)
                for (int pass = 0; pass < CONV_PASSES; pass++) {
                    if (pass == CONV_INPUT_GRADIENT && o == 0)
                        continue; /* nobody wants the gradient of the images */
                    struct conv_request request = {.op = &model->ops[o],
                                                   .images = batches[b],
                                                   .bias = true,
                                                   .relu = true,
                                                   .training = true,
                                                   .input_gradient = o > 0,
                                                   .deterministic = deterministic,
                                                   .precision = precision};
                    good &= check_pass(&request, (enum conv_pass)pass, device, tally);
                    if (deterministic && b == 0)
                        check_shards(&request, (enum conv_pass)pass, device, tally);
                }
    }
    return good;
}

static int check_gpu(const struct gpu *gpu) {
    const struct model_ends ends = {32, 32, 3, 10};
    cudnnBackendDescriptor_t device;
    bool good = true;
    if (describe(gpu, &device) != STATUS_OK) {
        printf("skipped: %s\n", status_text());
        return SKIP;
    }
    for (int p = CUDA_F32; p <= CUDA_BF16; p++) {
        if (p == CUDA_BF16 && gpu->sm < 80)
            continue;
        struct tally tally = {0};
        bool fine = true;
        for (int m = 0; model_builtin(m); m++) {
            struct model *model;
            if (model_read(model_builtin(m), ends, NAN, &model) != STATUS_OK) {
                printf("    %s\n", status_text());
                return 1;
            }
            fine &= check_model(model, device, (enum cuda_precision)p, &tally);
            model_free(model);
        }
        fine &= tally.again == tally.shards;
        printf("  %-16s sm_%-4d %-5s %4d plans%s, largest workspace %.1f MB%s, %d of %d other shards by the "
               "same "
               "engine%s\n",
               gpu->name, gpu->sm, precision_names[p], tally.plans,
               tally.tensor_core ? " (tensor cores)" : "", (double)tally.workspace / 1e6,
               tally.unfused ? ", bias and ReLU apart" : "", tally.again, tally.shards,
               fine ? "" : "  MISSING");
        good &= fine;
    }
    cudnnBackendDestroyDescriptor(device);
    return good ? 0 : 1;
}

int main(void) {
    size_t version = cudnnGetVersion();
    int worst = 0;
    printf("cuDNN %zu.%zu.%zu, plans made without a device; nothing was computed on a GPU\n", version / 10000,
           version / 100 % 100, version % 100);
    for (int i = 0; i < GPUS && worst != SKIP; i++) {
        int result = check_gpu(&gpus[i]);
        worst = result > worst ? result : worst;
    }
    return worst;
}
