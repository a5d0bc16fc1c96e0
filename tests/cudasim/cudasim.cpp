// The fibres behind cudasim.h.
#include "tests/cudasim/cudasim.h"

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

// The static shared variables of all kernels; absent in a program that has none.
extern "C" char __start_cudasim_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_cudasim_shared[] __attribute__((weak, visibility("hidden")));

namespace cudasim {
namespace {

enum { WARP = 32, STACK = 64 << 10, PAGE = 4096, MOST_THREADS = 1024, MOST_SHARED = 48 << 10 };
enum class at { NEW, RUNNING, BLOCK, WARP_SYNC, DONE };

// A stack that threads run on, one at a time: a thread keeps it while it waits.
struct fibre {
    ucontext_t context;
    jmp_buf jump; // where it waits
    bool begun = false;
    char *stack;
    unsigned thread = 0; // that runs or waits on it
    void *fake_stack = nullptr;
};

struct thread {
    at place;
    fibre *on;
    // of a wait
    unsigned mask, source;
    char value[8];
    size_t size;
    const char *file;
    int line;
};

struct simulator {
    std::mutex one_grid; // shared memory and the indices exist once
    std::vector<std::unique_ptr<fibre>> fibres;
    std::vector<fibre *> idle;
    std::vector<thread> threads;
    unsigned current = 0; // the thread that runs
    unsigned first = 0, lanes = 0,
             started = 0; // of the warp that begins: its threads, and how many have begun
    bool reverse = false;
    const std::function<void()> *body = nullptr;
    const char *name = "";
    void *shared = nullptr;
    ucontext_t scheduler;
    jmp_buf back;
    void *scheduler_fake_stack = nullptr;
    const void *scheduler_bottom = nullptr;
    size_t scheduler_size = 0;
};

simulator sim;

[[noreturn]] void die(unsigned thread, const char *what, const char *file = "", int line = 0) {
    fprintf(stderr, "cudasim: kernel %s, block %u,%u,%u, thread %u: %s", sim.name, blockIdx.x, blockIdx.y,
            blockIdx.z, thread, what);
    if (line)
        fprintf(stderr, " (%s:%d)", file, line);
    fputc('\n', stderr);
    abort();
}

// ---- switching

// swapcontext() calls the system each time, for signals, which costs more than the kernels; jumps don't. The
// address sanitizer follows only the former.
#if defined(__SANITIZE_ADDRESS__)
void go_to_fibre(fibre *f) {
    swapcontext(&sim.scheduler, &f->context);
}

void go_to_scheduler(fibre *f) {
    swapcontext(&f->context, &sim.scheduler);
}
#else
void go_to_fibre(fibre *f) {
    if (_setjmp(sim.back) != 0)
        return;
    if (f->begun)
        _longjmp(f->jump, 1);
    f->begun = true;
    setcontext(&f->context);
}

void go_to_scheduler(fibre *f) {
    if (_setjmp(f->jump) == 0)
        _longjmp(sim.back, 1);
}
#endif

void to_fibre(fibre *f) {
    sim.current = f->thread;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&sim.scheduler_fake_stack, f->stack, STACK);
#endif
    go_to_fibre(f);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(sim.scheduler_fake_stack, nullptr, nullptr);
#endif
}

void to_scheduler(fibre *f) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&f->fake_stack, sim.scheduler_bottom, sim.scheduler_size);
#endif
    go_to_scheduler(f);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(f->fake_stack, &sim.scheduler_bottom, &sim.scheduler_size);
#endif
}

uint3 place_in(unsigned index, dim3 size) {
    return uint3{index % size.x, index / size.x % size.y, index / size.x / size.y};
}

void set_current(unsigned thread) {
    sim.current = thread;
    threadIdx = place_in(thread, blockDim);
}

unsigned in_order(unsigned position, unsigned count) {
    return sim.reverse ? count - 1 - position : position;
}

// Start threads that are new, one after another, as long as none of them waits.
void fibre_main() {
    fibre *self = sim.idle.back();
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &sim.scheduler_bottom, &sim.scheduler_size);
#endif
    sim.idle.pop_back();
    for (;;) {
        while (sim.started < sim.lanes) {
            self->thread = sim.first + in_order(sim.started++, sim.lanes);
            thread &t = sim.threads[self->thread];
            t.place = at::RUNNING;
            t.on = self;
            set_current(self->thread);
            (*sim.body)();
            t.place = at::DONE;
        }
        sim.idle.push_back(self);
        to_scheduler(self);
        sim.idle.pop_back(); // the scheduler wakes the last of the idle
    }
}

void new_fibre() {
    auto f = std::make_unique<fibre>();
    void *map = mmap(nullptr, STACK + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map, PAGE, PROT_NONE) != 0) {
        perror("cudasim: a stack");
        abort();
    }
    f->stack = static_cast<char *>(map) + PAGE;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fibre_main, 0);
    sim.idle.push_back(f.get());
    sim.fibres.push_back(std::move(f));
}

// ---- waiting

void wait(at place, unsigned mask, const char *file, int line) {
    thread &t = sim.threads[sim.current];
    t.place = place;
    t.mask = mask;
    t.file = file;
    t.line = line;
    to_scheduler(t.on);
    set_current(t.on->thread);
}

// All threads of the block stand at one barrier: let them go on.
bool release_block() {
    const thread *first = nullptr;
    unsigned waiting = 0, ended = 0;
    for (const thread &t : sim.threads) {
        ended += t.place == at::DONE;
        if (t.place != at::BLOCK)
            continue;
        waiting++;
        if (!first)
            first = &t;
        else if (t.line != first->line || strcmp(t.file, first->file) != 0)
            die(static_cast<unsigned>(&t - sim.threads.data()),
                "waits at another barrier than the first thread", t.file, t.line);
    }
    if (waiting && waiting + ended == sim.threads.size() && ended)
        die(static_cast<unsigned>(first - sim.threads.data()),
            "waits at a barrier that other threads of the block did not reach", first->file, first->line);
    if (!waiting || waiting != sim.threads.size())
        return false;
    for (thread &t : sim.threads)
        t.place = at::RUNNING;
    return true;
}

// The lanes of one wait of a warp are all there: exchange their values and let them go on.
bool release_lanes(unsigned warp, unsigned mask) {
    unsigned count = static_cast<unsigned>(sim.threads.size());
    const thread *first = nullptr;
    for (unsigned l = 0; l < WARP; l++) {
        if (!(mask >> l & 1))
            continue;
        if (warp + l >= count)
            return false;
        const thread &t = sim.threads[warp + l];
        if (t.place != at::WARP_SYNC || t.mask != mask)
            return false;
        if (first && (t.line != first->line || strcmp(t.file, first->file) != 0))
            die(warp + l, "waits elsewhere than the first lane of its mask", t.file, t.line);
        first = first ? first : &t;
    }
    char values[WARP][8];
    for (unsigned l = 0; l < WARP; l++)
        if (mask >> l & 1)
            memcpy(values[l], sim.threads[warp + l].value, 8);
    for (unsigned l = 0; l < WARP; l++) {
        if (!(mask >> l & 1))
            continue;
        thread &t = sim.threads[warp + l];
        if (t.size && !(t.source < WARP && mask >> t.source & 1))
            die(warp + l, "takes a value from a lane outside its mask", t.file, t.line);
        if (t.size)
            memcpy(t.value, values[t.source], t.size);
        t.place = at::RUNNING;
    }
    return true;
}

bool release_warp(unsigned warp, unsigned lanes) {
    bool any = false;
    for (unsigned i = warp; i < warp + lanes; i++)
        if (sim.threads[i].place == at::WARP_SYNC)
            any |= release_lanes(warp, sim.threads[i].mask);
    return any;
}

// Run a warp as far as it can go without the others: until all of its lanes have ended or wait for the block,
// or for lanes that do not come.
void run_warp(unsigned warp, unsigned lanes) {
    sim.first = warp;
    sim.lanes = lanes;
    sim.started = sim.threads[warp].place == at::NEW ? 0 : lanes;
    while (sim.started < lanes) {
        if (sim.idle.empty())
            new_fibre();
        to_fibre(sim.idle.back());
    }
    do
        for (unsigned i = 0; i < lanes; i++) {
            thread &t = sim.threads[warp + in_order(i, lanes)];
            if (t.place == at::RUNNING)
                to_fibre(t.on);
        }
    while (release_warp(warp, lanes));
}

// Warps take their turns one after another, so that each is as far ahead of the next as a GPU could let it.
void run_block() {
    unsigned count = static_cast<unsigned>(sim.threads.size()), warps = (count + WARP - 1) / WARP, ended = 0;
    for (thread &t : sim.threads)
        t = thread{at::NEW, nullptr, 0, 0, {}, 0, "", 0};
    do {
        for (unsigned w = 0; w < warps; w++) {
            unsigned warp = in_order(w, warps) * WARP;
            run_warp(warp, count - warp < WARP ? count - warp : unsigned{WARP});
        }
        ended = 0;
        for (const thread &t : sim.threads)
            ended += t.place == at::DONE;
        if (ended < count && !release_block())
            for (unsigned i = 0; i < count; i++)
                if (sim.threads[i].place != at::DONE)
                    die(i, "waits for threads that never come", sim.threads[i].file, sim.threads[i].line);
    } while (ended < count);
}

} // namespace

void *dynamic_shared() {
    return sim.shared;
}

unsigned lane() {
    return sim.current % WARP;
}

void wait_block(const char *file, int line) {
    wait(at::BLOCK, 0, file, line);
}

void wait_warp(unsigned mask, const char *file, int line) {
    sim.threads[sim.current].size = 0;
    if (!(mask >> lane() & 1))
        die(sim.current, "is not in its own mask", file, line);
    wait(at::WARP_SYNC, mask, file, line);
}

void exchange(unsigned mask, void *value, size_t size, unsigned source, const char *file, int line) {
    thread &t = sim.threads[sim.current];
    if (!(mask >> lane() & 1))
        die(sim.current, "is not in its own mask", file, line);
    if (size > sizeof t.value)
        die(sim.current, "exchanges more than 8 bytes", file, line);
    memcpy(t.value, value, size);
    t.size = size;
    t.source = source;
    wait(at::WARP_SYNC, mask, file, line);
    memcpy(value, t.value, size);
}

cudaError_t check_launch(dim3 grid, dim3 block, size_t shared_bytes) {
    unsigned long long threads = 1ull * block.x * block.y * block.z;
    bool good = threads >= 1 && threads <= MOST_THREADS && block.z <= 64 && grid.x >= 1 &&
                grid.x <= INT32_MAX && grid.y >= 1 && grid.y <= 65535 && grid.z >= 1 && grid.z <= 65535 &&
                shared_bytes <= MOST_SHARED;
    return good ? cudaSuccess : cudaErrorInvalidConfiguration;
}

void run_grid(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
              const std::function<void()> &body) {
    std::lock_guard<std::mutex> lock(sim.one_grid);
    const char *reverse = getenv("CUDASIM_REVERSE");
    sim.reverse = reverse && *reverse && *reverse != '0';
    sim.name = name;
    sim.body = &body;
    sim.threads.resize(static_cast<size_t>(block.x) * block.y * block.z);
    gridDim = grid;
    blockDim = block;
    unsigned blocks = grid.x * grid.y * grid.z;
    for (unsigned i = 0; i < blocks; i++) {
        std::unique_ptr<char[]> shared(new char[shared_bytes]); // of its own: ASan sees what lies beside it
        memset(shared.get(), 0xFF, shared_bytes);
        if (__start_cudasim_shared)
            memset(__start_cudasim_shared, 0xFF,
                   static_cast<size_t>(__stop_cudasim_shared - __start_cudasim_shared));
        sim.shared = shared.get();
        blockIdx = place_in(in_order(i, blocks), grid);
        run_block();
    }
}

__attribute__((weak)) bool visible(const void *) {
    return true;
}

// A program without streams of its own (fake_cudart.cpp has them) runs what is queued at once.
__attribute__((weak)) cudaError_t enqueue(cudaStream_t, const char *, std::function<void()> work) {
    work();
    return cudaSuccess;
}

} // namespace cudasim
