#include "tests/cudasim/memory.h"

#include "tests/cudasim/fake.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <map>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes)   ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

namespace cudasim {
namespace {

constexpr size_t SPACE = size_t(1) << 32, GAP = 256, DEFAULT = size_t(2) << 30;

struct Gpu {
    char *base = nullptr;
    std::map<size_t, size_t> pieces; // offset -> bytes, the gap behind it included
    size_t touched = 0, used = 0;    // bytes from the base that were ever in use; in use
    bool open = false;
};
Gpu gpus[MAX_GPUS];
int opened = NO_GPU;

Gpu &reserved(int gpu) {
    Gpu &g = gpus[gpu];
    if (!g.base) {
        void *at = mmap(nullptr, SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED)
            die("no address space for a simulated GPU");
        g.base = static_cast<char *>(at);
    }
    return g;
}

void set_open(Gpu &g, bool open) {
    if (g.open == open || !g.base)
        return;
    if (g.touched && mprotect(g.base, g.touched, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
        die("mprotect failed");
    g.open = open;
}

// The first gap that is large enough.
size_t place(const Gpu &g, size_t bytes) {
    size_t at = 0;
    for (const auto &piece : g.pieces) {
        if (piece.first - at >= bytes)
            break;
        at = piece.first + piece.second;
    }
    return at;
}

} // namespace

void *memory_take(int gpu, size_t bytes) {
    Gpu &g = reserved(gpu);
    size_t limit = settings().memory_bytes ? settings().memory_bytes : DEFAULT;
    if (bytes > limit || g.used + bytes > limit)
        return nullptr;
    size_t whole = (bytes + 2 * GAP - 1) / GAP * GAP, at = place(g, whole);
    if (at + whole > SPACE)
        return nullptr;
    int before = opened;
    set_open(g, false);
    if (at + whole > g.touched)
        g.touched = (at + whole + 4095) / 4096 * 4096;
    g.pieces[at] = whole;
    g.used += whole;
    set_open(g, true);
    ASAN_UNPOISON_MEMORY_REGION(g.base + at, whole);
    memset(g.base + at, 0xCD, whole); // what is there before it is written means nothing
    ASAN_POISON_MEMORY_REGION(g.base + at + bytes, whole - bytes);
    if (before != ALL_GPUS && before != gpu)
        set_open(g, false);
    return g.base + at;
}

bool memory_give(int gpu, void *pointer) {
    Gpu &g = gpus[gpu];
    auto piece = g.pieces.find(size_t(static_cast<char *>(pointer) - g.base));
    if (!g.base || piece == g.pieces.end())
        return false;
    bool before = g.open;
    set_open(g, true);
    ASAN_UNPOISON_MEMORY_REGION(g.base + piece->first, piece->second);
    memset(g.base + piece->first, 0xCD, piece->second); // nobody may count on it any more
    set_open(g, before);
    ASAN_POISON_MEMORY_REGION(g.base + piece->first, piece->second);
    g.used -= piece->second;
    g.pieces.erase(piece);
    return true;
}

int memory_gpu(const void *pointer) {
    auto at = reinterpret_cast<uintptr_t>(pointer);
    for (int i = 0; i < MAX_GPUS; i++) {
        auto base = reinterpret_cast<uintptr_t>(gpus[i].base);
        if (base && at >= base && at < base + SPACE)
            return i;
    }
    return NO_GPU;
}

void memory_open(int gpu) {
    if (opened == gpu)
        return;
    for (int i = 0; i < MAX_GPUS; i++)
        set_open(gpus[i], gpu == ALL_GPUS || gpu == i);
    opened = gpu;
}

size_t memory_used(int gpu) {
    return gpus[gpu].used;
}

bool memory_empty() {
    for (const Gpu &g : gpus)
        if (!g.pieces.empty())
            return false;
    return true;
}

} // namespace cudasim
