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
    struct graph_key key;
    bool refused; /* it could not be captured: kernel by kernel for good */
    int images;
    int32_t *labels; /* [images] on the GPU; NULL: it has none */
    cudaGraphExec_t ready;
};

static struct graph *find(struct device *device, const struct stream *stream, const struct graph_key *key) {
    for (struct graph *g = device->graphs; g; g = g->next)
        if (g->stream == stream && !memcmp(&g->key, key, sizeof *key))
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

void graphs_forget(struct device *device, const struct stream *stream) {
    for (struct graph **at = &device->graphs; *at;) {
        struct graph *g = *at;
        if (stream && g->stream != stream) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        graph_free(device, g);
    }
}

const int32_t *graph_labels(const struct graph *g) {
    return g->labels;
}

static enum status make_labels(struct device *device, int gpu, struct graph *g) {
    void *there = NULL;
    if (!g->images)
        return STATUS_OK;
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
    enum status room = make_labels(device, stream->gpu, g);
    if (room != STATUS_OK) /* without memory it does without */
        return room == STATUS_NO_MEMORY ? STATUS_OK : room;
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
    if (error != cudaSuccess)
        g->ready = NULL;
    if (graph)
        (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    /* A library that does what a capture forbids spoils it, and what comes behind fails. That says nothing
     * about the GPU, on which nothing ran: it fails kernel by kernel if it has to. */
    *device->failure = 0;
    *captured = status == STATUS_OK && error == cudaSuccess;
    return STATUS_OK;
}

static struct graph *graph_new(struct device *device, const struct stream *stream,
                               const struct graph_key *key, int images) {
    struct graph *g = calloc(1, sizeof *g);
    if (!g) /* kernel by kernel, then */
        return NULL;
    *g = (struct graph){.next = device->graphs, .stream = stream, .key = *key, .images = images};
    device->graphs = g;
    return g;
}

/* The graph to launch; *out NULL: the work is to be done kernel by kernel this time. */
static enum status graph_get(struct stream *stream, const struct graph_key *key, int images,
                             repeat_work *work, void *context, struct graph **out) {
    struct device *device = stream->device;
    struct graph *g = find(device, stream, key);
    bool captured = false;
    *out = NULL;
    if (!g)
        (void)graph_new(device, stream, key, images); /* the first time */
    if (!g || g->refused)
        return STATUS_OK;
    if (!g->ready) {
        STATUS_TRY(capture(stream, g, work, context, &captured));
        g->refused = !captured;
    }
    *out = g->ready ? g : NULL;
    return STATUS_OK;
}

static enum status launch(struct stream *stream, struct graph *g) {
    return gpu_checked(stream->device, stream->gpu, cudaGraphLaunch(g->ready, stream->handle),
                       "launch a graph");
}

enum status graph_run(struct stream *stream, const struct graph_key *key, repeat_work *work, void *context) {
    struct graph *g = NULL;
    if (!stream->device->options.eager)
        STATUS_TRY(graph_get(stream, key, 0, work, context, &g));
    return g ? launch(stream, g) : work(context, stream);
}

enum status cuda_repeat(struct stream *stream, const struct repeat *r, repeat_work *work, void *context) {
    struct device *device = stream->device;
    struct graph_key key = {.number = {r->images, r->part}};
    struct graph *g;
    if (device->options.eager)
        return work(context, stream);
    memcpy(key.pointer, r->key, sizeof r->key);
    STATUS_TRY(worker_use(stream));
    STATUS_TRY(graph_get(stream, &key, r->images, work, context, &g));
    if (!g)
        return work(context, stream);
    STATUS_TRY(staging_send(device, stream->gpu, stream->handle, g->labels, r->labels,
                            (size_t)g->images * sizeof *r->labels));
    return launch(stream, g);
}
