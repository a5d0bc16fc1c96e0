// A simulated NCCL over the simulated streams, built against the real header. It refuses what the real one
// does: one GPU twice in a communicator, calls for some of its ranks only, counts that differ, a communicator
// that is still at work. Communicators do not block (config.blocking = 0): they are made, sums are queued on
// the streams, and they end while somebody looks at their state, not before. Nothing is known here of a GPU
// that is lost: between the GPUs of one machine the real one doesn't know either, but waits.
#include "tests/cudasim/fake.h"
#include "tests/cudasim/memory.h"

#include <nccl.h>

#include <cstring>
#include <memory>
#include <set>
#include <vector>

using namespace cudasim;

namespace {

struct Clique { // what the ranks of one communicator share
    std::vector<ncclComm *> ranks;
    size_t ending = 0; // ranks that were asked to end
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

// What a group of calls has begun. The real library does it in a thread of its own.
struct Job {
    enum { BEGIN, SUM, END } kind;
    std::shared_ptr<Clique> clique;
    std::vector<Call> calls;
    int looks; // at a state before it is done
    int number = 0;
    bool done = false;
    ncclResult_t result = ncclSuccess;
};

int depth, collectives;
std::vector<Call> calls;
std::vector<ncclComm *> beginning;
std::set<ncclComm *> living;
std::set<unsigned> awaited; // ids for which nobody has come: somebody listens for them
std::vector<std::shared_ptr<Job>> late;
unsigned next_id = 1;

} // namespace

struct ncclComm {
    int gpu, rank, size;
    ncclUniqueId id;
    std::shared_ptr<Clique> clique;
    std::shared_ptr<Job> job; // that it is at
    bool ends;
};

namespace {

unsigned number_of(const ncclUniqueId &id) {
    unsigned number;
    memcpy(&number, &id, sizeof number);
    return number;
}

// Between 1 and 4, differently for each.
int looks_of(int number) {
    return 1 + int((unsigned(number) * 2654435761u + settings().seed * 40503u) >> 16) % 4;
}

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
    auto job = std::make_shared<Job>(Job{Job::BEGIN, clique, {}, 3});
    for (ncclComm *a : made) {
        a->clique = clique;
        a->job = job;
    }
    awaited.erase(number_of(made[0]->id));
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
                    out[r * n + i] = calls[r].from[i];
                else
                    out[i] += calls[r].from[i];
        for (const Call &call : calls)
            memcpy(call.to, out.data(), out.size() * sizeof(float));
    }
};

// Queue a sum on the streams of its ranks; when it fails, on some of them.
ncclResult_t queue_sum(const Job &job) {
    auto meeting = std::make_shared<Meeting>();
    size_t ranks = job.calls.size();
    bool fails = settings().fail_collective >= 0 && job.number >= settings().fail_collective,
         hangs = job.number == settings().hang_collective;
    meeting->calls = job.calls;
    meeting->clique = job.clique;
    meeting->here.assign(ranks, false);
    int before;
    ncclResult_t result = fails ? ncclSystemError : ncclSuccess;
    cudaGetDevice(&before);
    for (size_t r = 0; r < ranks - fails; r++) {
        auto ready = [=] {
            meeting->here[r] = true;
            return meeting->aborted() || (meeting->all_here() && !hangs);
        };
        cudaSetDevice(int(gpu_of(job.calls[r].stream)));
        if (enqueue_when(job.calls[r].stream, "collective", ready, [=] { meeting->run(); }) != cudaSuccess)
            result = ncclUnhandledCudaError;
    }
    cudaSetDevice(before);
    return result;
}

void finish(Job &job) {
    if (job.done)
        return;
    job.done = true;
    if (job.kind == Job::SUM && !job.clique->aborted)
        job.result = queue_sum(job);
}

// Somebody looks.
void go_on(Job &job) {
    time_passes();
    bool all = job.kind != Job::END || job.clique->ending == job.clique->ranks.size();
    if (all && --job.looks <= 0)
        finish(job);
}

bool at_work(const ncclComm *comm) {
    return comm->job && !comm->job->done;
}

ncclResult_t meet() {
    std::vector<Call> now;
    now.swap(calls);
    if (now.empty())
        return ncclSuccess;
    if (int(now.size()) != now[0].comm->size)
        return ncclInvalidUsage; // one thread drives all ranks: the others would never come
    std::vector<Call> ordered(now.size());
    for (const Call &call : now) {
        if (call.comm->clique != now[0].comm->clique || call.count != now[0].count ||
            call.gather != now[0].gather)
            return ncclInvalidUsage;
        ordered[size_t(call.comm->rank)] = call;
    }
    int number = collectives++;
    auto job =
        std::make_shared<Job>(Job{Job::SUM, now[0].comm->clique, ordered, looks_of(number), number});
    for (const Call &call : ordered)
        call.comm->job = job;
    return ncclInProgress;
}

ncclResult_t add(const Call &call) {
    if (!living.count(call.comm) || at_work(call.comm) || !call.comm->clique)
        return ncclInvalidArgument;
    if (gpu_of(call.stream) != call.comm->gpu || memory_gpu(call.from) != call.comm->gpu ||
        memory_gpu(call.to) != call.comm->gpu)
        return ncclInvalidArgument;
    if (!depth) // alone it would wait for the other ranks, of which this thread has to speak as well
        return ncclInvalidUsage;
    calls.push_back(call);
    return ncclSuccess;
}

void leave(ncclComm *comm) {
    living.erase(comm);
    delete comm;
}

} // namespace

bool cudasim::nccl_clean() {
    return living.empty() && awaited.empty();
}

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    memset(id, 0, sizeof *id);
    memcpy(id, &next_id, sizeof next_id);
    awaited.insert(next_id++);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    int gpu;
    cudaGetDevice(&gpu);
    if (!depth || !config || config->blocking != 0 || rank < 0 || rank >= size ||
        !awaited.count(number_of(id)))
        return ncclInvalidUsage;
    collectives = 0;
    *out = new ncclComm{gpu, rank, size, id, nullptr, nullptr, false};
    living.insert(*out);
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
    if (!living.count(comm))
        return ncclInvalidArgument;
    *out = ncclSuccess;
    if (settings().hasty_nccl) { // it says so, and does it when it is looked at next
        for (const auto &job : late)
            finish(*job);
        late.clear();
    }
    if (!comm->job)
        return ncclSuccess;
    if (settings().hasty_nccl && comm->job->kind == Job::SUM && comm->rank == comm->size - 1)
        late.push_back(comm->job);
    if (!settings().hasty_nccl || comm->job->kind != Job::SUM) {
        go_on(*comm->job);
        *out = comm->job->done ? comm->job->result : ncclInProgress;
    }
    if (*out != ncclInProgress)
        comm->job = nullptr;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
    if (type != ncclFloat || op != ncclSum)
        return ncclInvalidArgument;
    return add({comm, static_cast<const float *>(from), static_cast<float *>(to), count, false, stream});
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    if (type != ncclFloat)
        return ncclInvalidArgument;
    return add({comm, static_cast<const float *>(from), static_cast<float *>(to), count, true, stream});
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    if (!living.count(comm) || at_work(comm) || !comm->clique || comm->ends)
        return ncclInvalidArgument;
    comm->ends = true;
    comm->clique->ending++;
    comm->job = std::make_shared<Job>(Job{Job::END, comm->clique, {}, 2});
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (!living.count(comm) || at_work(comm))
        return ncclInvalidArgument; // and it stays
    leave(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    if (!living.count(comm))
        return ncclInvalidArgument;
    if (comm->clique)
        comm->clique->aborted = true;
    awaited.erase(number_of(comm->id));
    leave(comm);
    return ncclSuccess;
}

const char *ncclGetLastError(ncclComm_t) {
    return "";
}

const char *ncclGetErrorString(ncclResult_t result) {
    switch (result) {
    case ncclSuccess:
        return "no error";
    case ncclUnhandledCudaError:
        return "unhandled cuda error (simulated)";
    case ncclInvalidUsage:
        return "invalid usage (simulated)";
    case ncclSystemError:
        return "unhandled system error (simulated)";
    default:
        return "an error of the simulation";
    }
}

} // extern "C"
