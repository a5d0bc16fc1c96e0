#include "kernels/cuda/conv_impl.h"

#include <float.h>

enum { ROUNDS = 3 };

struct trial {
    void *memory;
    cudaEvent_t begin, end;
    struct conv_tensors tensors;
    void *workspace;
};

static size_t aligned(size_t bytes) {
    return (bytes + 255) & ~(size_t)255;
}

static void trial_close(struct trial *t) {
    if (t->begin)
        (void)cudaEventDestroy(t->begin);
    if (t->end)
        (void)cudaEventDestroy(t->end);
    if (t->memory)
        (void)cudaFree(t->memory);
    (void)cudaGetLastError(); /* what failed here was only a trial */
}

/* Memory for all tensors and the largest workspace; false when it can't be had. */
static bool trial_open(struct trial *t, cudaStream_t stream, const struct conv_request *request,
                       const struct engine *engines, int count) {
    size_t workspace = 0, bytes = 0;
    for (int i = 0; i < count; i++)
        workspace = engines[i].workspace > workspace ? engines[i].workspace : workspace;
    for (int i = CONV_X; i <= CONV_BIAS; i++)
        bytes += aligned(conv_tensor_bytes(request, (enum conv_tensor)i));
    *t = (struct trial){0};
    if (cudaMalloc(&t->memory, bytes + aligned(workspace) + 256) != cudaSuccess ||
        cudaMemsetAsync(t->memory, 0, bytes, stream) != cudaSuccess ||
        cudaEventCreate(&t->begin) != cudaSuccess || cudaEventCreate(&t->end) != cudaSuccess)
        return false;
    char *at = t->memory;
    for (int i = CONV_X; i <= CONV_BIAS; i++) {
        t->tensors.at[i] = at;
        at += aligned(conv_tensor_bytes(request, (enum conv_tensor)i));
    }
    t->workspace = at;
    return true;
}

/* Milliseconds of the quickest of a few executions; false when it does not run. */
static bool time_engine(const struct trial *t, cudnnHandle_t handle, cudaStream_t stream,
                        const struct engine *engine, float *out) {
    *out = FLT_MAX;
    for (int round = 0; round <= ROUNDS; round++) { /* the first loads the engine's code */
        float ms = 0;
        if (cudaEventRecord(t->begin, stream) != cudaSuccess ||
            conv_execute(handle, engine, &t->tensors, t->workspace) != STATUS_OK ||
            cudaEventRecord(t->end, stream) != cudaSuccess || cudaEventSynchronize(t->end) != cudaSuccess ||
            cudaEventElapsedTime(&ms, t->begin, t->end) != cudaSuccess)
            return false;
        if (round && ms < *out)
            *out = ms;
    }
    return true;
}

enum status conv_measure(cudnnHandle_t handle, cudaStream_t stream, const struct conv_request *request,
                         const struct conv_graph *graph, const struct engine *engines, int count, int *best) {
    *best = 0;
    if (count < 2)
        return STATUS_OK;
    struct trial trial;
    float least = FLT_MAX;
    bool ran = false, tried = trial_open(&trial, stream, request, engines, count);
    if (tried && !graph->fused)
        trial.tensors.at[CONV_BIAS] = NULL;
    for (int i = 0; i < count && tried; i++) {
        float ms;
        if (!time_engine(&trial, handle, stream, &engines[i], &ms))
            continue;
        ran = true;
        if (ms < least) {
            least = ms;
            *best = i;
        }
    }
    trial_close(&trial);
    if (tried && !ran) /* the text is the last engine's */
        return status_prefix(STATUS_DEVICE, "none of %d engines for a convolution runs: ", count);
    return STATUS_OK;
}
