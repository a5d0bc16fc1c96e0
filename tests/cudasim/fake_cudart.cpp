// A simulated CUDA runtime, built against the real header, so that the plugin's host code runs without a GPU.
//
// It is as hostile as the real one may be: work is queued and runs later, in the order of its stream, streams
// interleaved by a seed; an event is bound to what was queued when it was recorded; memory of a GPU can be
// touched by work of that GPU alone, never by the host; what may allocate or wait is refused during a
// capture, and spoils it, and streams that came into it run beside each other whenever its graph is launched;
// asynchronous copies must be from and to page-locked memory, which arrives when the
// work runs, and holds nothing of use before.
#include "tests/cudasim/fake.h"
#include "tests/cudasim/memory.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace cudasim {
namespace {

struct Piece {
    const char *name;
    std::function<bool()> ready; // empty: at once
    std::function<void()> run;
    int opens;   // whose memory
    bool marker; // an event or a wait: no work
};

struct Stream;

// A piece of work in a graph: on which of its lanes, and the number of the event that it records or waits
// for.
struct Step {
    Piece piece;
    size_t lane;
    int records, waits; // -1: none
};

// A capture: of the stream that began it, lane 0, and of those that came to wait for an event in it.
struct Capture {
    std::vector<Stream *> lanes;
    std::vector<Step> steps;
    int events = 0;
    bool spoiled = false, over = false; // spoiled: something was done that a capture forbids
};

struct Stream {
    int gpu;
    unsigned priority;
    std::deque<Piece> queue;
    std::shared_ptr<Capture> capture; // that it is in
};

struct Event {
    int gpu;
    bool timing;
    std::shared_ptr<bool> done; // of its last record; null: never recorded, or in a capture
    std::shared_ptr<long> when; // how many pieces of work had run
    std::shared_ptr<Capture> capture;
    int number; // in that
};

struct Graph {
    int gpu;
    std::vector<Step> steps;
    size_t lanes;
    std::vector<Stream *> branches; // where lanes 1 .. run; of one that can be launched
};

struct World {
    cudasim_settings settings = {2, 1, 0, -1, -1, 0, -1, -1, 0, 0};
    std::vector<Stream *> streams;
    std::set<Event *> events;
    std::set<Graph *> graphs;
    std::map<char *, size_t> pinned;
    std::mt19937 random{1};
    int current = 0, waits = 0;
    long launches = 0, spoiled = 0, ran = 0, ran_on[MAX_GPUS] = {};
    bool lost[MAX_GPUS] = {};
    cudaError_t last = cudaSuccess;
    World() {
        const char *seed = getenv("CUDASIM_SEED"), *gpus = getenv("CUDASIM_GPUS");
        if (seed)
            random.seed(settings.seed = unsigned(atoi(seed)));
        if (gpus)
            settings.gpus = atoi(gpus);
        if (settings.gpus < 0 || settings.gpus > MAX_GPUS)
            die("CUDASIM_GPUS: expected 0 to %d", int(MAX_GPUS));
    }
};

World &world() {
    static World w;
    return w;
}

cudaError_t failed(cudaError_t error) {
    if (error != cudaSuccess)
        world().last = error;
    return error;
}

Stream *stream_of(cudaStream_t handle) {
    auto *s = reinterpret_cast<Stream *>(handle);
    for (Stream *known : world().streams)
        if (known == s)
            return s;
    return nullptr;
}

// What may allocate or wait, and so is forbidden to a thread that captures. The captures are of no use then.
bool forbidden() {
    bool any = false;
    for (Stream *s : world().streams)
        if (s->capture)
            any = s->capture->spoiled = true;
    return any;
}

cudaError_t spoil(Stream *s, cudaError_t error) {
    s->capture->spoiled = true;
    return failed(error);
}

bool runnable(const Stream *s) {
    return !s->queue.empty() && !lost(s->gpu) && (!s->queue.front().ready || s->queue.front().ready());
}

// Which stream goes on: even seeds keep to an order of precedence that changes now and then, which finds work
// that overtakes; odd ones draw each time.
Stream *choose() {
    World &w = world();
    std::vector<Stream *> able;
    for (Stream *s : w.streams)
        if (runnable(s))
            able.push_back(s);
    if (able.empty())
        return nullptr;
    if (w.settings.seed % 2)
        return able[w.random() % able.size()];
    if (w.random() % 64 == 0)
        for (Stream *s : w.streams)
            s->priority = unsigned(w.random());
    Stream *best = able[0];
    for (Stream *s : able)
        if (s->priority > best->priority)
            best = s;
    return best;
}

bool run_one() {
    World &w = world();
    Stream *s = choose();
    if (!s)
        return false;
    Piece piece = std::move(s->queue.front());
    s->queue.pop_front();
    if (!piece.marker) {
        memory_open(piece.opens);
        w.ran++;
        w.ran_on[s->gpu]++;
    }
    piece.run();
    if (w.settings.lose_gpu == s->gpu && w.ran_on[s->gpu] > w.settings.lose_after)
        w.lost[s->gpu] = true;
    return true;
}

// Some work, as time would bring it: until `done`, or as much as one look at a stream is worth.
void pass_time(const std::function<bool()> &done, unsigned most) {
    while (most-- && !done() && run_one())
        ;
    memory_open(NO_GPU);
}

void pass_time_until(const char *what, const std::function<bool()> &done) {
    while (!done())
        if (!run_one())
            die("%s would wait for ever: the streams wait for each other", what);
    memory_open(NO_GPU);
}

cudaError_t capture_step(Stream *s, Piece piece, int records = -1, int waits = -1) {
    Capture &c = *s->capture;
    if (c.spoiled)
        return failed(cudaErrorStreamCaptureInvalidated);
    size_t lane = 0;
    while (c.lanes[lane] != s)
        lane++;
    c.steps.push_back({std::move(piece), lane, records, waits});
    return cudaSuccess;
}

cudaError_t put(cudaStream_t handle, Piece piece) {
    Stream *s = stream_of(handle);
    if (!s || s->gpu != world().current)
        return failed(cudaErrorInvalidResourceHandle);
    if (lost(s->gpu))
        return failed(cudaErrorDevicesUnavailable);
    if (s->capture)
        return capture_step(s, std::move(piece));
    s->queue.push_back(std::move(piece));
    return cudaSuccess;
}

bool is_pinned(const void *at, size_t bytes) {
    auto *p = static_cast<char *>(const_cast<void *>(at));
    auto next = world().pinned.upper_bound(p);
    if (next == world().pinned.begin())
        return false;
    --next;
    return p + bytes <= next->first + next->second;
}

} // namespace

[[noreturn]] void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("cudasim: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    abort();
}

const cudasim_settings &settings() {
    return world().settings;
}

bool lost(int gpu) {
    return world().lost[gpu];
}

int gpu_of(cudaStream_t stream) {
    Stream *s = stream_of(stream);
    return s ? s->gpu : NO_GPU;
}

cudaError_t enqueue(cudaStream_t stream, const char *name, std::function<void()> work) {
    return put(stream, {name, nullptr, std::move(work), world().current, false});
}

bool visible(const void *at) {
    return memory_gpu(at) == world().current;
}

cudaError_t enqueue_when(cudaStream_t stream, const char *name, std::function<bool()> ready,
                         std::function<void()> run) {
    Stream *s = stream_of(stream);
    if (s && s->capture)
        return spoil(s, cudaErrorStreamCaptureUnsupported);
    return put(stream, {name, std::move(ready), std::move(run), ALL_GPUS, false});
}

void time_passes() {
    pass_time([] { return false; }, unsigned(world().random() % 64));
}

library library_call(cudaStream_t stream) {
    Stream *s = stream_of(stream);
    if (!s || !s->capture || !settings().uncapturable)
        return library::GOES_ON;
    s->capture->spoiled = true;
    return settings().uncapturable == 1 ? library::REFUSED : library::SPOILED;
}

} // namespace cudasim

using namespace cudasim;

extern "C" {

void cudasim_set(const struct cudasim_settings *wanted) {
    World &w = world();
    w.settings = *wanted;
    w.random.seed(wanted->seed);
    w.waits = 0;
    w.launches = 0;
    w.spoiled = 0;
    w.ran = 0;
    for (int i = 0; i < MAX_GPUS; i++) {
        w.ran_on[i] = 0;
        w.lost[i] = false;
    }
}

int cudasim_waits(void) {
    return world().waits;
}

long cudasim_graphs(void) {
    return world().launches;
}

long cudasim_spoiled(void) {
    return world().spoiled;
}

long cudasim_pieces(void) {
    return world().ran;
}

int cudasim_clean(void) {
    World &w = world();
    return w.streams.empty() && w.events.empty() && w.graphs.empty() && w.pinned.empty() && memory_empty() &&
           nccl_clean() && cudnn_clean();
}

// ---- GPUs

cudaError_t cudaGetDeviceCount(int *count) {
    *count = settings().gpus;
    return failed(*count ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int gpu) {
    if (gpu < 0 || gpu >= settings().gpus)
        return failed(cudaErrorInvalidDevice);
    world().current = gpu;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *gpu) {
    *gpu = world().current;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int gpu) {
    if (gpu < 0 || gpu >= settings().gpus)
        return failed(cudaErrorInvalidDevice);
    *out = cudaDeviceProp();
    snprintf(out->name, sizeof out->name, "simulated GPU");
    out->major = 9;
    out->multiProcessorCount = 4;
    out->totalGlobalMem = settings().memory_bytes ? settings().memory_bytes : size_t(2) << 30;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    *total = settings().memory_bytes ? settings().memory_bytes : size_t(2) << 30;
    *free_bytes = *total - memory_used(world().current);
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t error = world().last;
    world().last = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) {
    return world().last;
}

const char *cudaGetErrorString(cudaError_t error) {
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorDevicesUnavailable:
        return "the device is gone (simulated)";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
        return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureIsolation:
        return "dependency created on uncaptured work in another stream";
    case cudaErrorInvalidResourceHandle:
        return "invalid resource handle";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    default:
        return "an error of the simulation";
    }
}

const char *cudaGetErrorName(cudaError_t error) {
    return cudaGetErrorString(error);
}

// ---- memory

cudaError_t cudaMalloc(void **out, size_t bytes) {
    World &w = world();
    *out = nullptr;
    if (forbidden())
        return failed(cudaErrorStreamCaptureUnsupported);
    if (lost(w.current))
        return failed(cudaErrorDevicesUnavailable);
    *out = memory_take(w.current, bytes);
    return *out ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *at) {
    if (!at)
        return cudaSuccess;
    if (forbidden())
        return failed(cudaErrorStreamCaptureUnsupported);
    int gpu = memory_gpu(at);
    if (gpu != world().current)
        return failed(cudaErrorInvalidValue);
    pass_time_until("cudaFree", [=] { // it waits for the GPU
        for (Stream *s : world().streams)
            if (s->gpu == gpu && !s->queue.empty() && !lost(gpu))
                return false;
        return true;
    });
    return memory_give(gpu, at) ? cudaSuccess : failed(cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned) {
    *out = nullptr;
    if (forbidden())
        return failed(cudaErrorStreamCaptureUnsupported);
    if (lost(world().current))
        return failed(cudaErrorDevicesUnavailable);
    *out = malloc(bytes ? bytes : 1);
    if (!*out)
        return failed(cudaErrorMemoryAllocation);
    memset(*out, 0xCD, bytes);
    world().pinned[static_cast<char *>(*out)] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *at) {
    if (forbidden())
        return failed(cudaErrorStreamCaptureUnsupported);
    if (!world().pinned.erase(static_cast<char *>(at)))
        return failed(cudaErrorInvalidValue);
    free(at);
    return cudaSuccess;
}

static bool copy_allowed(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
    int here = world().current;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return is_pinned(from, bytes) && memory_gpu(to) == here;
    case cudaMemcpyDeviceToHost:
        return is_pinned(to, bytes) && memory_gpu(from) == here;
    case cudaMemcpyDeviceToDevice:
        return memory_gpu(to) == here && memory_gpu(from) == here;
    default:
        return false;
    }
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    if (!copy_allowed(to, from, bytes, kind))
        return failed(cudaErrorInvalidValue);
    if (kind == cudaMemcpyDeviceToHost) // whoever reads it too early shall see that
        memset(to, 0xCD, bytes);
    return enqueue(stream, "copy", [=] { memcpy(to, from, bytes); });
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_gpu, const void *from, int from_gpu, size_t bytes,
                                cudaStream_t stream) {
    if (memory_gpu(to) != to_gpu || memory_gpu(from) != from_gpu)
        return failed(cudaErrorInvalidValue);
    return put(stream, {"copy between GPUs", nullptr, [=] { memcpy(to, from, bytes); }, ALL_GPUS, false});
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    if (memory_gpu(to) != world().current)
        return failed(cudaErrorInvalidValue);
    return enqueue(stream, "fill", [=] { memset(to, value, bytes); });
}

// ---- streams and events

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned) {
    World &w = world();
    auto *s = new Stream;
    s->gpu = w.current;
    s->priority = unsigned(w.random());
    w.streams.push_back(s);
    *out = reinterpret_cast<cudaStream_t>(s);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    Stream *s = stream_of(handle);
    if (!s)
        return failed(cudaErrorInvalidResourceHandle);
    if (forbidden())
        return failed(cudaErrorStreamCaptureUnsupported);
    if (!lost(s->gpu) && settings().hang_collective < 0 && settings().lose_gpu < 0)
        pass_time_until("cudaStreamDestroy", [=] { return s->queue.empty(); });
    auto &all = world().streams;
    for (size_t i = 0; i < all.size(); i++)
        if (all[i] == s)
            all.erase(all.begin() + long(i));
    delete s;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
    Stream *s = stream_of(handle);
    if (!s)
        return failed(cudaErrorInvalidResourceHandle);
    if (forbidden())
        return failed(cudaErrorStreamCaptureUnsupported);
    pass_time([=] { return s->queue.empty(); }, unsigned(world().random() % 256));
    if (lost(s->gpu))
        return failed(cudaErrorDevicesUnavailable);
    return s->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    Stream *s = stream_of(handle);
    if (!s)
        return failed(cudaErrorInvalidResourceHandle);
    if (forbidden())
        return failed(cudaErrorStreamCaptureUnsupported);
    if (lost(s->gpu))
        return failed(cudaErrorDevicesUnavailable);
    pass_time_until("cudaStreamSynchronize", [=] { return s->queue.empty() || lost(s->gpu); });
    return lost(s->gpu) ? failed(cudaErrorDevicesUnavailable) : cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags) {
    auto *e = new Event{world().current, !(flags & cudaEventDisableTiming), nullptr, nullptr, nullptr, -1};
    world().events.insert(e);
    *out = reinterpret_cast<cudaEvent_t>(e);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out) {
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    auto *e = reinterpret_cast<Event *>(handle);
    if (!world().events.count(e))
        return failed(cudaErrorInvalidResourceHandle);
    if (forbidden())
        return failed(cudaErrorStreamCaptureUnsupported);
    if (e->capture)
        return failed(cudaErrorCapturedEvent);
    pass_time_until("cudaEventSynchronize", [=] { return !e->done || *e->done || lost(e->gpu); });
    return lost(e->gpu) ? failed(cudaErrorDevicesUnavailable) : cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    auto *e = reinterpret_cast<Event *>(handle);
    if (!world().events.erase(e))
        return failed(cudaErrorInvalidResourceHandle);
    delete e;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream) {
    auto *e = reinterpret_cast<Event *>(handle);
    Stream *s = stream_of(stream);
    if (!s || !world().events.count(e) || e->gpu != s->gpu)
        return failed(cudaErrorInvalidResourceHandle);
    if (s->capture) {
        e->done = nullptr;
        e->capture = s->capture;
        e->number = s->capture->events++;
        return capture_step(s, {"event", nullptr, [] {}, NO_GPU, true}, e->number);
    }
    e->capture = nullptr;
    auto done = std::make_shared<bool>(false);
    auto when = std::make_shared<long>(0);
    e->done = done;
    e->when = when;
    return put(stream, {"event", nullptr,
                        [=] {
                            *done = true;
                            *when = world().ran;
                        },
                        NO_GPU, true});
}

// A stream that is in no capture comes into the event's.
static cudaError_t wait_in_capture(Stream *s, const Event &e) {
    Capture &c = *e.capture;
    if (c.over || s->gpu != e.gpu)
        return failed(cudaErrorInvalidValue);
    if (!s->capture) {
        s->capture = e.capture;
        c.lanes.push_back(s);
    }
    return capture_step(s, {"wait", nullptr, [] {}, NO_GPU, true}, -1, e.number);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned) {
    World &w = world();
    auto *e = reinterpret_cast<Event *>(handle);
    Stream *s = stream_of(stream);
    if (!s || !w.events.count(e))
        return failed(cudaErrorInvalidResourceHandle);
    if (s->capture && e->capture != s->capture) // for what was recorded outside of it
        return spoil(s, cudaErrorStreamCaptureIsolation);
    if (e->capture)
        return wait_in_capture(s, *e);
    if (!e->done)
        return cudaSuccess; // never recorded: there is nothing to wait for
    if (w.waits++ == w.settings.drop_wait)
        return cudaSuccess;
    auto done = e->done;
    return put(stream, {"wait", [=] { return *done; }, [] {}, NO_GPU, true});
}

// A millisecond for each piece of work that ran between them, on whichever GPU.
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    auto *a = reinterpret_cast<Event *>(from), *b = reinterpret_cast<Event *>(to);
    if (!world().events.count(a) || !world().events.count(b) || !a->timing || !b->timing || !a->done ||
        !b->done || a->gpu != b->gpu)
        return failed(cudaErrorInvalidResourceHandle);
    if (!*a->done || !*b->done)
        return failed(cudaErrorNotReady);
    *milliseconds = float(*b->when - *a->when);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    auto *e = reinterpret_cast<Event *>(handle);
    if (!world().events.count(e))
        return failed(cudaErrorInvalidResourceHandle);
    if (forbidden())
        return failed(cudaErrorStreamCaptureUnsupported);
    if (e->capture)
        return failed(cudaErrorCapturedEvent);
    pass_time([=] { return !e->done || *e->done; }, unsigned(world().random() % 256));
    if (lost(e->gpu))
        return failed(cudaErrorDevicesUnavailable);
    return !e->done || *e->done ? cudaSuccess : cudaErrorNotReady;
}

// ---- graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode) {
    Stream *s = stream_of(handle);
    if (!s || s->capture)
        return failed(cudaErrorInvalidResourceHandle);
    s->capture = std::make_shared<Capture>();
    s->capture->lanes.push_back(s);
    return cudaSuccess;
}

// Whether the first lane waits, in the end, for all that the others do: each one's last piece is an event
// that it waits for.
static bool joined(const Capture &c) {
    for (size_t lane = 1; lane < c.lanes.size(); lane++) {
        int last = -1;
        bool waited = false;
        for (const Step &step : c.steps) {
            if (step.lane == lane) {
                last = step.records;
                waited = false;
            }
            waited = waited || (step.lane == 0 && last >= 0 && step.waits == last);
        }
        if (!waited)
            return false;
    }
    return true;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out) {
    Stream *s = stream_of(handle);
    *out = nullptr;
    if (!s || !s->capture || s->capture->lanes[0] != s)
        return failed(cudaErrorInvalidResourceHandle);
    std::shared_ptr<Capture> c = s->capture;
    c->over = true;
    for (Stream *lane : c->lanes)
        lane->capture = nullptr;
    if (c->spoiled || !joined(*c)) {
        world().spoiled++;
        return failed(c->spoiled ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined);
    }
    auto *graph = new Graph{s->gpu, c->steps, c->lanes.size(), {}};
    world().graphs.insert(graph);
    *out = reinterpret_cast<cudaGraph_t>(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t handle, unsigned long long) {
    World &w = world();
    auto *graph = reinterpret_cast<Graph *>(handle);
    if (!w.graphs.count(graph))
        return failed(cudaErrorInvalidResourceHandle);
    auto *copy = new Graph(*graph);
    for (size_t lane = 1; lane < copy->lanes; lane++)
        copy->branches.push_back(
            w.streams.emplace_back(new Stream{copy->gpu, unsigned(w.random()), {}, nullptr}));
    w.graphs.insert(copy);
    *out = reinterpret_cast<cudaGraphExec_t>(copy);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream) {
    World &w = world();
    auto *graph = reinterpret_cast<Graph *>(handle);
    Stream *s = stream_of(stream);
    if (!w.graphs.count(graph) || !s || s->gpu != graph->gpu || s->capture)
        return failed(cudaErrorInvalidResourceHandle);
    w.launches++;
    std::map<int, std::shared_ptr<bool>> done; // the events of this launch
    for (const Step &step : graph->steps) {
        Stream *lane = step.lane ? graph->branches[step.lane - 1] : s;
        Piece piece = step.piece;
        if (step.records >= 0)
            piece.run = [at = done[step.records] = std::make_shared<bool>(false)] { *at = true; };
        if (step.waits >= 0 && w.waits++ == w.settings.drop_wait)
            continue;
        if (step.waits >= 0)
            piece.ready = [at = done[step.waits]] { return *at; };
        cudaError_t error = put(reinterpret_cast<cudaStream_t>(lane), piece);
        if (error != cudaSuccess)
            return error;
    }
    return cudaSuccess;
}

static cudaError_t forget(Graph *graph) {
    if (!world().graphs.erase(graph))
        return failed(cudaErrorInvalidResourceHandle);
    cudaError_t error = cudaSuccess;
    for (Stream *branch : graph->branches) // what is under way ends first
        error = cudaStreamDestroy(reinterpret_cast<cudaStream_t>(branch));
    delete graph;
    return error;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return forget(reinterpret_cast<Graph *>(graph));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    return forget(reinterpret_cast<Graph *>(graph));
}

} // extern "C"
