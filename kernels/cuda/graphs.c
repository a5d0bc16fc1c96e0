/* Work that a stream does again and again, as CUDA graphs: the first time it is queued kernel by kernel
 * (libraries settle what they need), the second time it is captured, and from then on a graph is launched.
 * Addresses and numbers are baked into a graph, so that graphs are forgotten when a buffer or a plan is
 * freed; the labels, which change, are sent to memory of the graph's own before each launch. */
#include "kernels/cuda/gpu.h"

#include <stdlib.h>
#include <string.h>

struct graph {
    struct graph *next;
    const struct stream *stream;
    const void *key[REPEAT_KEYS];
    int images;
    bool refused;    /* it could not be captured: kernel by kernel for good */
    int32_t *labels; /* [images] on the GPU */
    cudaGraphExec_t ready;
};

static struct graph *find(struct device *device, const struct stream *stream, const struct repeat *r) {
    for (struct graph *g = device->graphs; g; g = g->next)
        if (g->stream == stream && g->images == r->images && !memcmp(g->key, r->key, sizeof g->key))
            return g;
    return NULL;
}

static void graph_free(struct device *device, struct graph *g) {
    gpu_use(&device->gpu[g->stream->gpu]);
    if (g->ready)
        (void)cudaGraphExecDestroy(g->ready);
    (void)cudaFree(g->labels); /* waits for whoever reads them */
    (void)cudaGetLastError();
    free(g);
}

void graphs_forget(struct device *device) {
    while (device->graphs) {
        struct graph *g = device->graphs;
        device->graphs = g->next;
        graph_free(device, g);
    }
}

const int32_t *graph_labels(const struct graph *g) {
    return g->labels;
}

static enum status make_labels(struct device *device, int gpu, struct graph *g) {
    void *there = NULL;
    STATUS_TRY(gpu_checked(device, gpu, cudaMalloc(&there, (size_t)g->images * sizeof *g->labels),
                           "make room for labels"));
    g->labels = there;
    return STATUS_OK;
}

/* Capture the work; *captured false: it can't be, and nothing was queued. */
static enum status capture(struct stream *stream, struct graph *g, repeat_work *work, void *context,
                           bool *captured) {
    struct device *device = stream->device;
    cudaGraph_t graph = NULL;
    *captured = false;
    STATUS_TRY(worker_use(stream));
    if (make_labels(device, stream->gpu, g) == STATUS_NO_MEMORY) /* it does without */
        return STATUS_OK;
    if (cudaStreamBeginCapture(stream->handle, cudaStreamCaptureModeThreadLocal) != cudaSuccess) {
        (void)cudaGetLastError();
        return STATUS_OK;
    }
    stream->graph = g;
    enum status status = work(context, stream);
    stream->graph = NULL;
    cudaError_t error = cudaStreamEndCapture(stream->handle, &graph);
    if (error == cudaSuccess && status == STATUS_OK)
        error = cudaGraphInstantiate(&g->ready, graph, 0);
    if (graph)
        (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    *captured = status == STATUS_OK && error == cudaSuccess;
    return *device->failure ? device_failed(device) : STATUS_OK;
}

static enum status launch(struct stream *stream, struct graph *g, const int32_t *labels) {
    struct device *device = stream->device;
    STATUS_TRY(worker_use(stream));
    STATUS_TRY(staging_send(device, stream->gpu, stream->handle, g->labels, labels,
                            (size_t)g->images * sizeof *labels));
    return gpu_checked(device, stream->gpu, cudaGraphLaunch(g->ready, stream->handle), "launch a graph");
}

enum status cuda_repeat(struct stream *stream, const struct repeat *r, repeat_work *work, void *context) {
    struct device *device = stream->device;
    struct graph *g = device->options.eager ? NULL : find(device, stream, r);
    if (device->options.eager || (g && g->refused))
        return work(context, stream);
    if (!g) { /* the first time */
        g = calloc(1, sizeof *g);
        if (g) {
            *g = (struct graph){.next = device->graphs, .stream = stream, .images = r->images};
            memcpy(g->key, r->key, sizeof g->key);
            device->graphs = g;
        }
        return work(context, stream);
    }
    if (!g->ready) {
        bool captured;
        STATUS_TRY(capture(stream, g, work, context, &captured));
        g->refused = !captured;
        if (!captured)
            return work(context, stream);
    }
    return launch(stream, g, r->labels);
}
