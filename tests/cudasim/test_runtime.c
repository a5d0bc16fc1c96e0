/* The simulated CUDA runtime and NCCL are no kinder than the real ones: programs that are wrong, each in one
 * way, are told so, or find values that mean nothing.
 * test-skip-under: thread (it has no threads) */
#include "kernels/cuda/gemm.h"
#include "tests/cudasim/control.h"
#include "tests/support/cmocka.h"

#include <nccl.h>
#include <stdint.h>
#include <string.h>

#define ok(call) assert_int_equal(call, cudaSuccess)

enum { COUNT = 64, BYTES = COUNT * sizeof(float) };

/* One GPU's things, or two of each. */
static struct side {
    cudaStream_t stream;
    cudaEvent_t event;
    float *device, *host; /* page-locked */
} sides[2];

static void begin(void) {
    const struct cudasim_settings settings = {
        .gpus = 2, .seed = 1, .drop_wait = -1, .lose_gpu = -1, .hang_collective = -1, .fail_collective = -1};
    cudasim_set(&settings);
    for (int g = 0; g < 2; g++) {
        struct side *s = &sides[g];
        void *device, *host;
        ok(cudaSetDevice(g));
        ok(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
        ok(cudaEventCreateWithFlags(&s->event, cudaEventDefault));
        ok(cudaMalloc(&device, BYTES));
        ok(cudaHostAlloc(&host, BYTES, cudaHostAllocPortable));
        s->device = device;
        s->host = host;
        for (int i = 0; i < COUNT; i++)
            s->host[i] = (float)(g + 1);
        ok(cudaMemcpyAsync(s->device, s->host, BYTES, cudaMemcpyHostToDevice, s->stream));
        ok(cudaStreamSynchronize(s->stream));
    }
    ok(cudaSetDevice(0));
}

static void end(void) {
    for (int g = 0; g < 2; g++) {
        ok(cudaSetDevice(g));
        ok(cudaFree(sides[g].device));
        ok(cudaFreeHost(sides[g].host));
        ok(cudaEventDestroy(sides[g].event));
        ok(cudaStreamDestroy(sides[g].stream));
    }
    assert_true(cudasim_clean());
}

/* ---- captures */

static cudaError_t allocate(void) {
    void *at;
    return cudaMalloc(&at, BYTES);
}
static cudaError_t deallocate(void) {
    return cudaFree(sides[0].device);
}
static cudaError_t lock_memory(void) {
    void *at;
    return cudaHostAlloc(&at, BYTES, cudaHostAllocPortable);
}
static cudaError_t unlock_memory(void) {
    return cudaFreeHost(sides[0].host);
}
static cudaError_t ask_itself(void) {
    return cudaStreamQuery(sides[0].stream);
}
static cudaError_t ask_another(void) {
    return cudaStreamQuery(sides[1].stream);
}
static cudaError_t ask_an_event(void) {
    return cudaEventQuery(sides[1].event);
}
static cudaError_t wait_for_it(void) {
    return cudaStreamSynchronize(sides[0].stream);
}
static cudaError_t wait_for_what_is_outside(void) {
    return cudaStreamWaitEvent(sides[0].stream, sides[1].event, 0);
}
static cudaError_t end_a_stream(void) {
    return cudaStreamDestroy(sides[1].stream);
}
static cudaError_t begin_a_library(void) {
    struct gemm *gemm;
    return gemm_new(sides[0].stream, CUDA_F32, &gemm) == STATUS_OK ? cudaSuccess : cudaErrorUnknown;
}

static void a_capture_is_spoiled(void **state) {
    (void)state;
    cudaError_t (*const calls[])(void) = {allocate,      deallocate,     lock_memory,
                                          unlock_memory, ask_itself,     ask_another,
                                          ask_an_event,  wait_for_it,    wait_for_what_is_outside,
                                          end_a_stream,  begin_a_library};
    begin();
    ok(cudaSetDevice(1));
    ok(cudaEventRecord(sides[1].event, sides[1].stream));
    ok(cudaSetDevice(0));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        cudaGraph_t graph;
        ok(cudaStreamBeginCapture(sides[0].stream, cudaStreamCaptureModeThreadLocal));
        ok(cudaMemsetAsync(sides[0].device, 0, BYTES, sides[0].stream));
        assert_int_not_equal(calls[i](), cudaSuccess);
        assert_int_equal(cudaMemsetAsync(sides[0].device, 0, BYTES, sides[0].stream),
                         cudaErrorStreamCaptureInvalidated);
        assert_int_equal(cudaStreamEndCapture(sides[0].stream, &graph), cudaErrorStreamCaptureInvalidated);
        assert_null(graph);
        assert_int_equal(cudasim_spoiled(), (int)i + 1);
        ok(cudaStreamQuery(sides[0].stream)); /* nothing was queued */
    }
    end();
}

/* ---- captures of several streams, and what their graphs do */

/* On the first GPU: a stream beside the first one, and events that it follows and is followed by. */
static cudaStream_t beside;
static cudaEvent_t fork_event, join_event;

static void begin_beside(void) {
    begin();
    ok(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
    ok(cudaEventCreateWithFlags(&fork_event, cudaEventDisableTiming));
    ok(cudaEventCreateWithFlags(&join_event, cudaEventDisableTiming));
    ok(cudaStreamBeginCapture(sides[0].stream, cudaStreamCaptureModeThreadLocal));
    ok(cudaEventRecord(fork_event, sides[0].stream));
    ok(cudaStreamWaitEvent(beside, fork_event, 0)); /* it comes in */
    ok(cudaMemsetAsync(sides[0].device, 0, BYTES / 2, beside));
}

static void end_beside(void) {
    ok(cudaSetDevice(0));
    ok(cudaEventDestroy(fork_event));
    ok(cudaEventDestroy(join_event));
    ok(cudaStreamDestroy(beside));
    end();
}

static void a_graph_has_branches(void **state) {
    (void)state;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    begin_beside();
    struct side *s = &sides[0];
    ok(cudaMemsetAsync(s->device + COUNT / 2, 0, BYTES / 2, s->stream));
    ok(cudaEventRecord(join_event, beside));
    ok(cudaStreamWaitEvent(s->stream, join_event, 0));
    ok(cudaMemcpyAsync(s->host, s->device, BYTES, cudaMemcpyDeviceToHost, s->stream));
    assert_int_equal(cudaEventQuery(join_event), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaStreamEndCapture(s->stream, &graph), cudaErrorStreamCaptureInvalidated);
    end_beside();
    for (int drop = -1; drop < 2; drop++) {
        int missed = 0;
        begin_beside();
        ok(cudaEventRecord(join_event, beside));
        ok(cudaStreamWaitEvent(s->stream, join_event, 0));
        ok(cudaMemcpyAsync(s->device + COUNT / 2, s->device, BYTES / 2, cudaMemcpyDeviceToDevice, s->stream));
        ok(cudaStreamEndCapture(s->stream, &graph));
        ok(cudaGraphInstantiate(&ready, graph, 0));
        ok(cudaGraphDestroy(graph));
        assert_int_equal(cudaEventQuery(join_event), cudaErrorCapturedEvent);
        for (unsigned seed = 1; seed <= 16; seed++) {
            const struct cudasim_settings settings = {.gpus = 2,
                                                      .seed = seed,
                                                      .drop_wait = drop,
                                                      .lose_gpu = -1,
                                                      .hang_collective = -1,
                                                      .fail_collective = -1};
            cudasim_set(&settings);
            for (int i = 0; i < COUNT; i++)
                s->host[i] = 5;
            ok(cudaMemcpyAsync(s->device, s->host, BYTES, cudaMemcpyHostToDevice, s->stream));
            ok(cudaGraphLaunch(ready, s->stream));
            ok(cudaMemcpyAsync(s->host, s->device, BYTES, cudaMemcpyDeviceToHost, s->stream));
            ok(cudaStreamSynchronize(s->stream));
            missed += s->host[0] != 0 || s->host[COUNT - 1] != 0;
            assert_int_equal(cudasim_waits(), 2);
        }
        assert_true(drop < 0 ? missed == 0 : missed > 0);
        ok(cudaGraphExecDestroy(ready));
        end_beside();
    }
}

static void branches_have_to_be_joined(void **state) {
    (void)state;
    cudaGraph_t graph;
    begin_beside();
    ok(cudaEventRecord(join_event, beside));
    ok(cudaStreamWaitEvent(sides[0].stream, join_event, 0));
    ok(cudaMemsetAsync(sides[0].device, 0, BYTES / 2, beside)); /* behind that */
    assert_int_equal(cudaStreamEndCapture(sides[0].stream, &graph), cudaErrorStreamCaptureUnjoined);
    assert_null(graph);
    ok(cudaStreamQuery(beside)); /* nothing was queued, and it is out of the capture */
    assert_int_not_equal(cudaStreamWaitEvent(beside, fork_event, 0), cudaSuccess);
    end_beside();
}

/* ---- copies and memory */

static void copies_go_by_page_locked_memory(void **state) {
    (void)state;
    float pageable[COUNT] = {0};
    begin();
    struct side *s = &sides[0], *other = &sides[1];
    assert_int_not_equal(cudaMemcpyAsync(s->device, pageable, BYTES, cudaMemcpyHostToDevice, s->stream), 0);
    assert_int_not_equal(cudaMemcpyAsync(pageable, s->device, BYTES, cudaMemcpyDeviceToHost, s->stream), 0);
    assert_int_not_equal(cudaMemcpyAsync(s->host, s->device, BYTES + 1, cudaMemcpyDeviceToHost, s->stream),
                         0);
    assert_int_not_equal(
        cudaMemcpyAsync(s->device, other->device, BYTES, cudaMemcpyDeviceToDevice, s->stream), 0);
    assert_int_not_equal(cudaMemcpyAsync(s->device, s->host, BYTES, cudaMemcpyHostToDevice, other->stream),
                         0);
    end();
}

static void kernels_are_given_their_gpus_memory(void **state) {
    (void)state;
    begin();
    struct side *s = &sides[0], *other = &sides[1];
    assert_int_equal(cuda_transpose(s->stream, CUDA_TYPE_F32, s->host, CUDA_TYPE_F32, s->device, 1, 8),
                     cudaErrorIllegalAddress);
    assert_int_equal(cuda_transpose(s->stream, CUDA_TYPE_F32, other->device, CUDA_TYPE_F32, s->device, 1, 8),
                     cudaErrorIllegalAddress);
    assert_int_not_equal(
        cuda_transpose(other->stream, CUDA_TYPE_F32, s->device, CUDA_TYPE_F32, s->device, 1, 8), cudaSuccess);
    ok(cuda_transpose(s->stream, CUDA_TYPE_F32, s->device, CUDA_TYPE_F32, s->device + COUNT / 2, 1, 8));
    end();
}

/* What is copied is what is there when the copy is done, both ways. */
static void copies_are_done_later(void **state) {
    (void)state;
    begin();
    struct side *s = &sides[0];
    ok(cudaMemcpyAsync(s->host, s->device, BYTES, cudaMemcpyDeviceToHost, s->stream));
    assert_true(s->host[0] != 1); /* not yet, and not what was there before either */
    ok(cudaStreamSynchronize(s->stream));
    assert_true(s->host[0] == 1);
    s->host[0] = 5;
    ok(cudaMemcpyAsync(s->device, s->host, BYTES, cudaMemcpyHostToDevice, s->stream));
    s->host[0] = 6; /* too early */
    ok(cudaStreamSynchronize(s->stream));
    ok(cudaMemcpyAsync(s->host, s->device, BYTES, cudaMemcpyDeviceToHost, s->stream));
    ok(cudaStreamSynchronize(s->stream));
    assert_true(s->host[0] == 6);
    end();
}

static void a_lost_gpu_serves_nobody(void **state) {
    (void)state;
    begin();
    struct cudasim_settings settings = {
        .gpus = 2, .seed = 1, .drop_wait = -1, .lose_gpu = 0, .hang_collective = -1, .fail_collective = -1};
    cudasim_set(&settings);
    ok(cudaMemsetAsync(sides[0].device, 0, BYTES, sides[0].stream));
    (void)cudaStreamSynchronize(sides[0].stream);
    assert_int_not_equal(allocate(), cudaSuccess);
    assert_int_not_equal(lock_memory(), cudaSuccess);
    assert_int_not_equal(ask_itself(), cudaSuccess);
    ok(cudaSetDevice(1));
    void *host;
    ok(cudaHostAlloc(&host, BYTES, cudaHostAllocPortable));
    ok(cudaFreeHost(host));
    end();
}

static void an_event_is_of_one_gpu(void **state) {
    (void)state;
    float milliseconds;
    begin();
    assert_int_not_equal(cudaEventRecord(sides[1].event, sides[0].stream), cudaSuccess);
    assert_int_not_equal(cudaEventElapsedTime(&milliseconds, sides[0].event, sides[0].event), cudaSuccess);
    ok(cudaEventRecord(sides[0].event, sides[0].stream));
    assert_int_equal(cudaEventRecord(sides[1].event, sides[1].stream), cudaErrorInvalidResourceHandle);
    end();
}

/* ---- NCCL */

static void make(ncclComm_t comms[2], int first, int second) {
    ncclUniqueId id;
    const int gpus[] = {first, second};
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    assert_false(cudasim_clean()); /* somebody listens */
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    for (int g = 0; g < 2; g++) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        ok(cudaSetDevice(gpus[g]));
        assert_int_equal(ncclCommInitRankConfig(&comms[g], 2, id, g, &config), ncclInProgress);
    }
}

static ncclResult_t look(ncclComm_t comm) {
    ncclResult_t state;
    assert_int_equal(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    return state;
}

static void wait_for_both(ncclComm_t comms[2]) {
    for (int g = 0; g < 2; g++)
        for (int i = 0; look(comms[g]) == ncclInProgress; i++)
            assert_true(i < 20);
}

static ncclResult_t sum(ncclComm_t comms[2], int ranks) {
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    for (int g = 0; g < ranks; g++) {
        ncclResult_t result = ncclAllReduce(sides[g].device, sides[g].device, COUNT, ncclFloat, ncclSum,
                                            comms[g], sides[g].stream);
        if (result != ncclSuccess) {
            (void)ncclGroupEnd();
            return result;
        }
    }
    return ncclGroupEnd();
}

static void nccl_has_to_be_waited_for(void **state) {
    (void)state;
    ncclComm_t comms[2];
    begin();
    make(comms, 0, 1);
    assert_int_equal(ncclGroupEnd(), ncclInProgress);
    assert_int_equal(sum(comms, 2), ncclInvalidArgument); /* it isn't made yet */
    wait_for_both(comms);
    assert_int_equal(sum(comms, 2), ncclInProgress);
    ok(cudaSetDevice(0));
    ok(cudaStreamQuery(sides[0].stream)); /* nothing is queued as yet: what follows would overtake the sum */
    assert_int_equal(sum(comms, 2), ncclInvalidArgument);
    assert_int_equal(ncclCommFinalize(comms[0]), ncclInvalidArgument);
    assert_int_equal(ncclCommDestroy(comms[0]), ncclInvalidArgument);
    wait_for_both(comms);
    for (int g = 0; g < 2; g++) {
        struct side *s = &sides[g];
        ok(cudaSetDevice(g));
        ok(cudaMemcpyAsync(s->host, s->device, BYTES, cudaMemcpyDeviceToHost, s->stream));
        ok(cudaStreamSynchronize(s->stream));
        assert_true(s->host[COUNT - 1] == 3);
    }
    assert_int_equal(ncclCommFinalize(comms[0]), ncclInProgress);
    for (int i = 0; i < 20; i++) /* not without the other */
        assert_int_equal(look(comms[0]), ncclInProgress);
    assert_int_equal(ncclCommFinalize(comms[1]), ncclInProgress);
    assert_int_equal(ncclCommDestroy(comms[1]), ncclInvalidArgument);
    wait_for_both(comms);
    for (int g = 0; g < 2; g++)
        assert_int_equal(ncclCommDestroy(comms[g]), ncclSuccess);
    end();
}

static void nccl_wants_all_ranks(void **state) {
    (void)state;
    ncclComm_t comms[2];
    begin();
    make(comms, 0, 0);
    assert_int_equal(ncclGroupEnd(), ncclInvalidUsage); /* one GPU twice */
    for (int g = 0; g < 2; g++)
        assert_int_equal(ncclCommAbort(comms[g]), ncclSuccess);
    make(comms, 0, 1);
    assert_int_equal(ncclGroupEnd(), ncclInProgress);
    wait_for_both(comms);
    assert_int_equal(sum(comms, 1), ncclInvalidUsage);
    assert_int_equal(
        ncclAllReduce(sides[0].device, sides[0].device, COUNT, ncclFloat, ncclSum, comms[0], sides[0].stream),
        ncclInvalidUsage); /* without a group */
    assert_int_equal(ncclGroupStart(), ncclSuccess);
    assert_int_equal(
        ncclAllReduce(sides[1].device, sides[0].device, COUNT, ncclFloat, ncclSum, comms[0], sides[0].stream),
        ncclInvalidArgument); /* another GPU's memory */
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    for (int g = 0; g < 2; g++)
        assert_int_equal(ncclCommAbort(comms[g]), ncclSuccess);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capture_is_spoiled),
        cmocka_unit_test(a_graph_has_branches),
        cmocka_unit_test(branches_have_to_be_joined),
        cmocka_unit_test(copies_go_by_page_locked_memory),
        cmocka_unit_test(kernels_are_given_their_gpus_memory),
        cmocka_unit_test(copies_are_done_later),
        cmocka_unit_test(a_lost_gpu_serves_nobody),
        cmocka_unit_test(an_event_is_of_one_gpu),
        cmocka_unit_test(nccl_has_to_be_waited_for),
        cmocka_unit_test(nccl_wants_all_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
