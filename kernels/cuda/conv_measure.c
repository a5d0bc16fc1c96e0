#include "kernels/cuda/conv_impl.h"

#include <float.h>

/* Of a quick engine several executions stand behind one another, so that it is timed as in a graph: the host
 * is ahead, and what it takes to queue them is not seen. */
enum { ROWS = 2, IN_A_ROW = 8 };

#define QUICK 1.5f /* milliseconds */

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

/* Milliseconds of that many executions; false when it does not run. */
static bool time_row(const struct trial *t, cudnnHandle_t handle, cudaStream_t stream,
                     const struct engine *engine, int count, float *out) {
    if (cudaEventRecord(t->begin, stream) != cudaSuccess)
        return false;
    for (int i = 0; i < count; i++)
        if (conv_execute(handle, engine, &t->tensors, t->workspace) != STATUS_OK)
            return false;
    return cudaEventRecord(t->end, stream) == cudaSuccess && cudaEventSynchronize(t->end) == cudaSuccess &&
           cudaEventElapsedTime(out, t->begin, t->end) == cudaSuccess;
}

/* Milliseconds of an execution, of the quickest of a few rows; false when it does not run. */
static bool time_engine(const struct trial *t, cudnnHandle_t handle, cudaStream_t stream,
                        const struct engine *engine, float *out) {
    float ms;
    if (!time_row(t, handle, stream, engine, 1, &ms) || /* loads the engine's code */
        !time_row(t, handle, stream, engine, 1, out))
        return false;
    int count = *out < QUICK ? IN_A_ROW : 1;
    for (int row = 0; row < ROWS; row++) {
        if (!time_row(t, handle, stream, engine, count, &ms))
            return false;
        ms /= (float)count;
        *out = ms < *out ? ms : *out;
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
