// A simulated NCCL over the simulated streams, built against the real header. It refuses what the real one
// does: one GPU twice in a communicator, calls for some of its ranks only, counts that differ. Communicators
// are made and end asynchronously (config.blocking = 0), and a lost GPU is reported by ncclCommGetAsyncError
// alone.
#include "tests/cudasim/fake.h"
#include "tests/cudasim/memory.h"

#include <nccl.h>

#include <cstring>
#include <memory>
#include <vector>

using namespace cudasim;

namespace {

struct Clique { // what the ranks of one communicator share
    std::vector<ncclComm *> ranks;
    bool aborted = false;
};

struct Call {
    ncclComm *comm;
    const float *from;
    float *to;
    size_t count;
    bool gather;
    cudaStream_t stream;
};

int depth, collectives;
std::vector<Call> calls;
std::vector<ncclComm *> beginning;
unsigned next_id = 1;

} // namespace

struct ncclComm {
    int gpu, rank, size;
    ncclUniqueId id;
    std::shared_ptr<Clique> clique;
    int until_ready; // looks at its state before it says that it is made
};

namespace {

ncclResult_t begin_together() {
    std::vector<ncclComm *> made;
    made.swap(beginning);
    if (made.empty())
        return ncclSuccess;
    auto clique = std::make_shared<Clique>();
    for (ncclComm *a : made) {
        for (ncclComm *b : made)
            if (a != b && (a->gpu == b->gpu || a->rank == b->rank || memcmp(&a->id, &b->id, sizeof a->id)))
                return ncclInvalidUsage;
        if (a->size != int(made.size()))
            return ncclInvalidUsage;
        clique->ranks.push_back(a);
    }
    for (ncclComm *a : made)
        a->clique = clique;
    return ncclInProgress;
}

struct Meeting { // one collective
    std::vector<Call> calls;
    std::vector<bool> here;
    bool done = false;
    std::shared_ptr<Clique> clique;
    bool aborted() const { return clique->aborted; }
    bool all_here() const {
        for (bool h : here)
            if (!h)
                return false;
        return true;
    }
    void run() {
        if (done || aborted())
            return;
        done = true;
        size_t n = calls[0].count, ranks = calls.size();
        std::vector<float> out(calls[0].gather ? n * ranks : n);
        for (size_t r = 0; r < ranks; r++)
            for (size_t i = 0; i < n; i++)
                if (calls[r].gather)
                    out[size_t(calls[r].comm->rank) * n + i] = calls[r].from[i];
                else
                    out[i] += calls[r].from[i];
        for (const Call &call : calls)
            memcpy(call.to, out.data(), out.size() * sizeof(float));
    }
};

ncclResult_t meet() {
    std::vector<Call> now;
    now.swap(calls);
    if (now.empty())
        return ncclSuccess;
    if (int(now.size()) != now[0].comm->size)
        return ncclInvalidUsage; // one thread drives all ranks: the others would never come
    for (const Call &call : now)
        if (call.comm->clique != now[0].comm->clique || call.count != now[0].count ||
            call.gather != now[0].gather)
            return ncclInvalidUsage;
    int number = collectives++;
    if (settings().fail_collective >= 0 && number >= settings().fail_collective)
        return ncclSystemError;
    auto meeting = std::make_shared<Meeting>();
    meeting->calls = now;
    meeting->clique = now[0].comm->clique;
    meeting->here.assign(now.size(), false);
    bool hangs = number == settings().hang_collective;
    int before;
    cudaGetDevice(&before);
    for (size_t r = 0; r < now.size(); r++) {
        auto ready = [=] {
            meeting->here[r] = true;
            return meeting->aborted() || (meeting->all_here() && !hangs);
        };
        cudaSetDevice(now[r].comm->gpu);
        cudaError_t error = enqueue_when(now[r].stream, "collective", ready, [=] { meeting->run(); });
        if (error != cudaSuccess)
            return ncclUnhandledCudaError;
    }
    cudaSetDevice(before);
    return ncclSuccess;
}

ncclResult_t add(const Call &call) {
    if (gpu_of(call.stream) != call.comm->gpu || memory_gpu(call.from) != call.comm->gpu ||
        memory_gpu(call.to) != call.comm->gpu)
        return ncclInvalidArgument;
    if (!depth && call.comm->size > 1)
        return ncclInvalidUsage;
    calls.push_back(call);
    return depth ? ncclSuccess : meet();
}

void leave(ncclComm *comm) {
    if (comm->clique)
        for (ncclComm *&rank : comm->clique->ranks)
            if (rank == comm)
                rank = nullptr;
    delete comm;
}

} // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    memset(id, 0, sizeof *id);
    memcpy(id, &next_id, sizeof next_id);
    next_id++;
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    int gpu;
    cudaGetDevice(&gpu);
    if (!depth || !config || config->blocking != 0 || rank < 0 || rank >= size)
        return ncclInvalidUsage;
    collectives = 0;
    *out = new ncclComm{gpu, rank, size, id, nullptr, 3};
    beginning.push_back(*out);
    return ncclInProgress;
}

ncclResult_t ncclGroupStart(void) {
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    if (depth < 1)
        return ncclInvalidUsage;
    if (--depth)
        return ncclSuccess;
    ncclResult_t made = begin_together(), met = meet();
    return made == ncclSuccess ? met : made;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out) {
    *out = ncclSuccess;
    if (comm->until_ready > 0 && comm->until_ready-- > 0)
        *out = ncclInProgress;
    for (const ncclComm *other : comm->clique ? comm->clique->ranks : std::vector<ncclComm *>())
        if (other && lost(other->gpu))
            *out = ncclRemoteError;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    if (type != ncclFloat || op != ncclSum || comm->until_ready > 0)
        return ncclInvalidArgument;
    return add({comm, static_cast<const float *>(from), static_cast<float *>(to), count, false, stream});
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    if (type != ncclFloat || comm->until_ready > 0)
        return ncclInvalidArgument;
    return add({comm, static_cast<const float *>(from), static_cast<float *>(to), count, true, stream});
}

ncclResult_t ncclCommFinalize(ncclComm_t) {
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    leave(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (comm->clique)
        comm->clique->aborted = true;
    leave(comm);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    switch (result) {
    case ncclSuccess:
        return "no error";
    case ncclInvalidUsage:
        return "invalid usage (simulated)";
    case ncclRemoteError:
        return "remote process exited or there was a network error (simulated)";
    case ncclSystemError:
        return "unhandled system error (simulated)";
    default:
        return "an error of the simulation";
    }
}

} // extern "C"
