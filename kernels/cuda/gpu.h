/* The CUDA device's inside, shared by the host files of kernels/cuda: a group of GPUs driven by one host
 * thread.
 *
 * Each GPU has one main stream, for what concerns all its towers (sums, updates, shared buffers), and streams
 * of its workers. Work of one kind of stream waits for the other's by events: gpu_join() before work is
 * queued on the main stream, gpu_leave() after it, and worker_use() before work is queued on a worker's.
 * Nothing ever waits on the host but device_poll's caller. */
#ifndef TOWERSCOPE_KERNELS_CUDA_GPU_H
#define TOWERSCOPE_KERNELS_CUDA_GPU_H

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/host/telemetry.h"
#include "kernels/cuda/kernels.h"
#include "kernels/device.h"

#include <nccl.h>

enum { WORKERS_PER_GPU = 8 };

/* A worker's second stream, for what needs not be done before its next work. */
struct beside {
    cudaStream_t handle;
    cudaEvent_t fork, join;
    struct conv_context *conv;
};

struct stream { /* of a worker, or a GPU's main one (number -1) */
    struct device *device;
    int number, gpu;
    cudaStream_t handle; /* NULL: not made yet */
    cudaEvent_t event;
    bool busy;          /* a worker: the main stream has not waited for its work yet */
    unsigned long seen; /* a worker: how much of the main stream's work it waited for */
    bool queried;       /* nothing was queued since a query said that all is done */
    struct conv_context *conv;
    struct gemm *gemm;
    struct beside beside; /* of a worker */
    int32_t *labels;      /* on the GPU: of the loss that is queued last */
    int labels_room;
    long long *measure; /* on the GPU: what measure() found last, and its scratch */
    size_t measure_bytes;
    cudaEvent_t lap;     /* where its lap began, in the generation at work */
    struct graph *graph; /* that its work is being captured for, or NULL */
};

struct table; /* combine_tables.c: the pieces of the flat buffers, on every GPU */

/* Sums of pieces and results on one GPU; made as large as they have to be. */
struct sums {
    double *memory;                           /* all of these: */
    double *norms2, *dots;                    /* [rows][pieces] by tower */
    double *average, *other;                  /* [pieces] */
    double *average_norm2;                    /* [1] of the last combine() */
    double *tower_norms2, *tower_dots;        /* [rows] */
    double *segment_norms2;                   /* [segments] of the average */
    double *parameter_norms2, *update_norms2; /* [segments] of the last update(): the last of the memory */
    size_t rows, pieces, segments;
    char *fixed;                         /* all of these: */
    const float **gradients;             /* [COMBINE_MAX_TOWERS] addresses on the GPU */
    double *weights;                     /* [COMBINE_MAX_TOWERS] */
    struct cuda_update_scalars *scalars; /* [1] */
    int *held;                           /* [1] */
    float *gather; /* deterministic sums: gradients of this GPU's towers, then of all GPUs' */
    size_t gather_bytes;
};

struct gpu {
    int index;
    char name[32]; /* "cuda:0" */
    struct stream main;
    unsigned long work;  /* how often something was queued on the main stream */
    cudaStream_t rescue; /* for reading what is there after a failure */
    struct sums sums;
    size_t memory_bytes;
    char model[64];
};

/* A buffer. */
struct block {
    char *base[DEVICE_GROUP_MAX]; /* by GPU; NULL where it is not. base[first] is what callers know */
    size_t bytes;
    int gpu; /* where it is alone; -1: shared */
};

/* Values that go to the host once they are there. */
struct delivery {
    void *to;
    const void *from;
    size_t bytes; /* at `from` */
    bool widen;   /* they are bfloat16 there, and floats here */
};

/* What is queued between two marks: page-locked memory that its copies go through, and its results. */
struct generation {
    struct lap *laps; /* the events of the laps */
    struct chunk *staging;
    struct delivery *deliveries;
    int delivery_count, delivery_room;
    cudaEvent_t done[DEVICE_GROUP_MAX]; /* by GPU: the mark at its end */
};

struct device {
    struct device_options options;
    enum cuda_precision precision;
    int count;
    struct gpu gpu[DEVICE_GROUP_MAX];
    struct device_gpus gpus; /* the same for the telemetry */
    struct stream worker[DEVICE_GROUP_MAX * WORKERS_PER_GPU];
    struct block *blocks; /* sorted by the callers' address */
    int block_count, block_room;
    struct generation generation[DEVICE_MARKS];
    int oldest, marks; /* open marks, the first of them at the end of generation[oldest] */
    struct table *tables;
    struct graph *graphs;
    struct share *shares;              /* [count] combine.c */
    ncclComm_t comm[DEVICE_GROUP_MAX]; /* with several GPUs */
    bool communicates;
    double busy_since, deadline; /* seconds on the clock; 0: nothing is waited for */
    char failure[256];           /* the device is of no use any more: why */
};

/* What activations are in its memory. */
static inline enum cuda_type device_type(const struct device *device) {
    return device->precision == CUDA_BF16 ? CUDA_TYPE_BF16 : CUDA_TYPE_F32;
}

/* ---- streams.c */

/* Make the GPU current. */
void gpu_use(const struct gpu *gpu);

/* STATUS_OK, STATUS_NO_MEMORY, or STATUS_DEVICE: then the whole device has failed. "cuda:1 cannot WHAT: ..."
 */
enum status gpu_checked(struct device *device, int gpu, cudaError_t error, const char *what);

/* The failure the device ended with. */
enum status device_failed(const struct device *device);

/* Make the main stream, or a worker's with its libraries' handles (once). */
enum status stream_open(struct device *device, int gpu, int number, struct stream *stream);
void stream_close(struct stream *stream);

/* The main stream, behind everything that the GPU's workers have queued; the GPU is current. */
enum status gpu_join(struct device *device, int gpu, cudaStream_t *main);

/* What was queued on the main stream goes before what its workers queue from now on. */
enum status gpu_leave(struct device *device, int gpu);

/* A worker's stream, made when it is needed. */
enum status worker_enter(struct device *device, int number, struct stream **out);

/* Before work is queued on a worker's stream: behind the main stream's work; its GPU is current. */
enum status worker_use(struct stream *worker);

/* What is queued on a worker's second stream from here on comes behind what it has queued so far ... */
enum status beside_begin(struct stream *worker);
/* ... and what it queues from here on behind that. Always called when the other was, else what uses the same
 * memory next is not held back, and a capture ends with a stream that is not joined. */
enum status beside_end(struct stream *worker);

/* STATUS_OK: all is done; STATUS_BUSY, or a failure. */
enum status streams_query(struct device *device);

/* All is done: nobody has to wait for what was queued so far. */
void streams_settled(struct device *device);

/* ---- memory.c */

enum status memory_new(struct device *device, size_t bytes, int place, struct span *out);
void memory_free(struct device *device, struct span span);

/* The buffer that the span is a piece of; STATUS_INTERNAL when it is none. */
enum status memory_find(const struct device *device, struct span span, const struct block **out);

/* Where the span lies on that GPU; STATUS_INTERNAL when it does not, or has less than `bytes`. NULL for an
 * empty span of which 0 bytes are needed. */
enum status memory_local(const struct device *device, int gpu, struct span span, size_t bytes,
                         const char *what, void **out);

/* Page-locked memory until the generation at work is done. STATUS_INTERNAL: too many marks are open. */
enum status staging_take(struct device *device, size_t bytes, void **out);

/* Copy host memory to the GPU that is current, on `stream`, by way of page-locked memory. */
enum status staging_send(struct device *device, int gpu, cudaStream_t stream, void *to, const void *from,
                         size_t bytes);

/* Page-locked memory that a GPU's `bytes` bytes are copied to on `stream`. */
enum status staging_receive(struct device *device, int gpu, cudaStream_t stream, const void *from,
                            size_t bytes, const void **out);

/* `bytes` bytes of page-locked memory are to be copied to `to` once the generation at work is done. */
enum status deliver_later(struct device *device, void *to, const void *from, size_t bytes);

/* How many of those there are, and the status of a call that began when there were `before`. When it failed
 * its own are forgotten: the caller's memory may be gone by then. */
int deliveries(const struct device *device);
enum status deliver_or_forget(struct device *device, int before, enum status status);

/* The same for bfloat16 values, which become floats. */
enum status deliver_widened(struct device *device, float *to, const void *from, size_t bytes);

/* Begin another generation; the end of this one is an event on every GPU's main stream. */
enum status marks_open(struct device *device);
enum status marks_set(struct device *device);

/* STATUS_OK: the oldest mark is reached; STATUS_BUSY, or a failure. */
enum status marks_query(struct device *device);

/* The first `generations` of those at work (at most marks + 1) are done: deliver, and close their marks. */
void staging_deliver(struct device *device, int generations);
/* Nothing will be done any more. */
void staging_forget(struct device *device);
void staging_close(struct device *device);

/* The generation at work; NULL: too many marks are open. */
struct generation *staging_at_work(struct device *device);

/* ---- laps.c: how long things take, by events in the streams */

enum status cuda_lap(struct device *device, struct stream *stream, double *seconds);

/* Deliver a generation's times (`done`), or forget them. */
void laps_settle(struct device *device, struct generation *generation, bool done);
void laps_close(struct device *device, struct generation *generation);

/* ---- transfer.c */

enum status transfer_write(struct device *device, struct stream *stream, struct span to, const float *from,
                           size_t count);
enum status transfer_read(struct device *device, struct stream *stream, float *to, struct span from,
                          size_t count);
enum status transfer_copy(struct device *device, struct stream *stream, struct span to, struct span from);
enum status cuda_measure(struct device *device, struct stream *stream, struct span values, size_t count,
                         enum measure what, int64_t *out);

/* ---- plan.c and run.c */

enum status cuda_plan(struct device *device, const struct plan_request *request, struct plan **out);
const struct plan_info *cuda_plan_info(const struct plan *plan);
void cuda_plan_free(struct plan *plan);
enum status cuda_prepare(struct stream *stream, const struct plan *plan, const struct plan_args *args);
enum status cuda_prepare_all(struct stream *stream, int count, const struct plan *const *plans,
                             const struct plan_args *args);
enum status cuda_forward(struct stream *stream, const struct plan *plan, const struct plan_args *args);
enum status cuda_backward(struct stream *stream, const struct plan *plan, const struct plan_args *args);
enum status cuda_loss(struct stream *stream, const struct loss_args *args);

/* ---- combine.c, combine_tables.c, update.c */

struct table {
    struct table *next;
    struct segment *segments; /* a copy: what it was made for */
    int segment_count, pieces;
    bool decays; /* some segment does */
    struct cuda_piece *piece[DEVICE_GROUP_MAX];
    int *begin[DEVICE_GROUP_MAX]; /* [segment_count + 1] first piece of each segment */
};

/* The table of these segments; made, and sent to the GPUs' main streams, when it is not there yet. */
enum status table_get(struct device *device, const struct segment *segments, int count,
                      const struct table **out);
void tables_close(struct device *device);

/* Room for sums of `rows` towers by the table's pieces on one GPU. */
enum status sums_room(struct device *device, int gpu, const struct table *table, int rows);
enum status sums_gather_room(struct device *device, int gpu, size_t bytes);
void sums_close(struct device *device, int gpu);

/* Allocates device->shares; free() frees it. */
enum status combine_open(struct device *device);
enum status cuda_combine_towers(struct device *device, const struct combine_args *args);
enum status cuda_update_parameters(struct device *device, const struct update_args *args);
enum status cuda_combine_update(struct device *device, const struct combine_args *combine,
                                const struct update_args *update);

/* What an update works on on one GPU. */
struct update_place {
    float *parameters, *average, *velocity, *shadow;
};

/* Find it, and send the scalars, which the main stream alone reads: the GPU has room for sums, and need not
 * be joined. */
enum status update_begin(struct device *device, int gpu, const struct update_args *args,
                         struct update_place *out);

/* Queue its kernels on the main stream, and nothing else. */
enum status update_queue(struct device *device, int gpu, const struct table *table,
                         const struct update_place *place);

/* Its figures are to be delivered from `host`, a copy of what begins at sums.parameter_norms2. */
enum status update_deliver(struct device *device, int gpu, const struct update_args *args,
                           const double *host);

/* ---- graphs.c */

/* What work is made of; zeroed where a place is not used. Equal keys, equal work. */
struct graph_key {
    const void *pointer[8];
    int number[4];
};

/* Do the work, which launches kernels on the stream and does nothing else; as a graph from the second time
 * on. The stream is ready for it: joined, or in use. */
enum status graph_run(struct stream *stream, const struct graph_key *key, repeat_work *work, void *context);

enum status cuda_repeat(struct stream *stream, const struct repeat *repeat, repeat_work *work, void *context);

/* Where the labels will be, on the GPU, whenever the graph is launched. */
const int32_t *graph_labels(const struct graph *graph);

/* A buffer or plan goes, or memory that only graphs of that stream know (NULL: of all). */
void graphs_forget(struct device *device, const struct stream *stream);

/* ---- collective.c: between the GPUs. The caller has joined the main streams. */

enum status collective_open(struct device *device);
void collective_close(struct device *device);

/* Where the device has failed: end the sums under way, whose partner may never come. */
void collective_given_up(struct device *device);

/* Sum of the GPUs' buffers in each of them. */
enum status collective_sum(struct device *device, float *const buffers[], size_t count);

/* Every GPU's `count` values, one after the other, in each `to`. */
enum status collective_gather(struct device *device, float *const from[], float *const to[], size_t count);

/* STATUS_DEVICE: a GPU or the way to it is lost. */
enum status collective_check(struct device *device);

#endif
